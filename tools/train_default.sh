#!/usr/bin/env bash
# tools/train_default.sh DATA TO
#
# Train the heads for SmolLM2 that come with kglm: an hour on one core. DATA is the folder with kg/, lw2/, simplewiki/,
# trex/ and wordings/; TO is a folder for everything that is made, features of the base included (4 GB). Run it again to
# go on where it was stopped. WITHOUT=FILE leaves out the relations that the file lists, and a fifth of the wordings, for
# measurements (benchmarks/pretrained/held_out_relations.txt).
set -euo pipefail
DATA=$(realpath "$1") TO=$2 SEED=${SEED:-0}
HERE=$(cd "$(dirname "$0")/.." && pwd)
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
mkdir -p "$TO" && cd "$TO"

if [ ! -e train.kg ]; then
  echo "1/4  the graph, without the facts of held-out relations"
  ids=$([ -z "${WITHOUT:-}" ] || grep -o '^P[0-9]*' "$WITHOUT" | tr '\n' ' ')
  zcat "$DATA/kg/facts.tsv.gz" | awk -F'\t' -v ids="${ids:-}" '
    BEGIN { n = split(ids, list, " "); for (k = 1; k <= n; k++) held[list[k]] = 1 }
    { split($2, part, ":"); if (!(part[1] in held) && !(part[2] in held)) print }' >facts.tsv
  kglm kg import facts.tsv --entities "$DATA/kg/entities.jsonl.gz" --relations "$DATA/kg/relations.tsv" --to train.kg
fi
if [ ! -e texts/trex.jsonl ]; then
  echo "2/4  facts in words, questions, sentences of T-REx"
  python "$HERE/tools/training_texts.py" --kg train.kg --wordings "$DATA/wordings/wikifactdiff.json.gz" \
    --trex "$DATA/trex/evidence.jsonl.gz" --to texts --statements 12000 --questions 8600 --trex-sentences 110 \
    ${WITHOUT:+--without "$(realpath "$WITHOUT")" --hold-out-wordings}
fi
if [ ! -e valid.jsonl ]; then
  echo "3/4  articles"
  zcat "$DATA/lw2/valid.jsonl.gz" | head -n 50 >lw2.jsonl || true
  zcat "$DATA/simplewiki/train.jsonl.gz" | awk 'NR % 11 == 1' >simplewiki.jsonl
  zcat "$DATA/simplewiki/valid.jsonl.gz" | sed -n 201,240p >valid.jsonl
fi
echo "4/4  training: half an hour for the states of the base, half an hour for the heads"
kglm train kglm --base smollm2 --kg train.kg --to heads --features features $([ ! -e heads/heads.json ] || echo --resume) \
  --data texts/wordings.jsonl --data texts/questions.jsonl --data lw2.jsonl --data simplewiki.jsonl --data texts/trex.jsonl \
  --valid valid.jsonl --set train.epochs=2 --set train.rate=0.003 --set train.validate=400 --set "train.seed=$SEED"
