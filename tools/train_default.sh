#!/usr/bin/env bash
# tools/train_default.sh DATA TO
#
# Train the heads for SmolLM2 that come with kglm: two hours on one core. DATA is the folder with kg/, lw2/, simplewiki/,
# trex/ and wordings/; TO is a folder for everything that is made, features of the base included (5 GB). Run it again to
# go on where it was stopped. WITHOUT=FILE leaves out the relations that the file lists, and WITHOUT_LABELS=FILE those of
# tables with a label that the file lists; both also a fifth of the wordings. They are for measurements
# (benchmarks/pretrained/held_out_relations.txt and held_out_labels.txt).
set -euo pipefail
DATA=$(realpath "$1") TO=$2 SEED=${SEED:-0}
HERE=$(cd "$(dirname "$0")/.." && pwd)
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
WITHOUT=${WITHOUT:+$(realpath "$WITHOUT")} WITHOUT_LABELS=${WITHOUT_LABELS:+$(realpath "$WITHOUT_LABELS")}
mkdir -p "$TO" && cd "$TO"
OWN="$HERE/tools/wordings" FOUND="$DATA/wordings/wikifactdiff.json.gz"

if [ ! -e train.kg ]; then
  echo "1/5  the graph, without the facts of held-out relations, with an invented world"
  python "$HERE/tools/invented_world.py" --wordings "$OWN/own.jsonl" --relations "$DATA/kg/relations.tsv" --to invented \
    ${WITHOUT_LABELS:+--without "$WITHOUT_LABELS"}
  ids=$([ -z "$WITHOUT" ] || grep -o '^P[0-9]*' "$WITHOUT" | tr '\n' ' ')
  zcat "$DATA/kg/facts.tsv.gz" | awk -F'\t' -v ids="$ids" '
    BEGIN { n = split(ids, list, " "); for (k = 1; k <= n; k++) held[list[k]] = 1 }
    { split($2, part, ":"); if (!(part[1] in held) && !(part[2] in held)) print }' >facts.tsv
  kglm kg import facts.tsv invented/invented.tsv --entities "$DATA/kg/entities.jsonl.gz" --entities invented/names.jsonl \
    --relations "$DATA/kg/relations.tsv" --to train.kg
fi
if [ ! -e texts/trex.jsonl ]; then
  echo "2/5  facts in words, questions, the invented world, sentences of T-REx"
  python "$HERE/tools/training_texts.py" --kg train.kg --wordings "$FOUND" --own "$OWN/wikidata.jsonl" --invented invented \
    --trex "$DATA/trex/evidence.jsonl.gz" --to texts --statements 10000 --questions 7000 --trex-sentences 60 \
    --invented-texts 8000 ${WITHOUT:+--without "$WITHOUT" --hold-out-wordings}
fi
if [ ! -e valid.jsonl ]; then
  echo "3/5  articles"
  zcat "$DATA/lw2/valid.jsonl.gz" | head -n 50 >lw2.jsonl || true
  zcat "$DATA/simplewiki/train.jsonl.gz" | awk 'NR % 11 == 1' >simplewiki.jsonl
  zcat "$DATA/simplewiki/valid.jsonl.gz" | sed -n 201,240p >valid.jsonl
fi
if [ ! -e adapter ]; then
  echo "4/5  the adapter of the sentence encoder"
  python "$HERE/tools/train_adapter.py" --own "$OWN" --wordings "$FOUND" --relations "$DATA/kg/relations.tsv" --to adapter \
    --steps 1000 ${WITHOUT:+--without "$WITHOUT" --hold-out-wordings} ${WITHOUT_LABELS:+--without-labels "$WITHOUT_LABELS"}
fi
echo "5/5  training: half an hour for the states of the base, an hour for the heads"
kglm train kglm --base smollm2 --kg train.kg --to heads --features features --adapter adapter \
  $([ ! -e heads/heads.json ] || echo --resume) \
  --data texts/wordings.jsonl --data texts/questions.jsonl --data texts/invented.jsonl \
  --data lw2.jsonl --data simplewiki.jsonl --data texts/trex.jsonl \
  --valid valid.jsonl --set train.epochs=2 --set train.rate=0.003 --set train.validate=400 --set "train.seed=$SEED"
