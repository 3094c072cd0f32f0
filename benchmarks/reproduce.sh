#!/usr/bin/env bash
# Every system of the paper at `small` size, on the shared corpora, and the tables of their numbers.
#
#   benchmarks/reproduce.sh DATA OUT        (DATA as in its README: kg/, lw2/, simplewiki/, completion/)
#
# All train on the first 1,800 articles of simplewiki/train and the first 50 of lw2/valid, for as many epochs, with the
# same sizes and seed; none sees the last 10 of lw2/valid, nor simplewiki/valid. What is done is not done again: a run
# that was stopped goes on where it was. It says how long it will take before it begins, and `STEPS=no` says only that.
# OUT/tables.md and OUT/*.svg are the result; EPOCHS, SEED and SAMPLES may be set.
set -euo pipefail
DATA=$(cd "$1" && pwd); mkdir -p "$2"; OUT=$(cd "$2" && pwd)
EPOCHS=${EPOCHS:-3} SEED=${SEED:-0} SAMPLES=${SAMPLES:-100} KGLM=${KGLM:-kglm} PYTHON=${PYTHON:-python}
HERE=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1
cd "$OUT"

# Words a second of one core that made a certain product in 0.52 s; this machine is so many times as fast.
"$PYTHON" - "$EPOCHS" "$SAMPLES" <<'PY'
import sys, time, torch
torch.set_num_threads(1)
h, w = torch.randn(2800, 128), torch.randn(17_000, 128)
times = []
for _ in range(5):
    start = time.perf_counter(); h @ w.T; times.append(time.perf_counter() - start)
pace = 0.52 / sorted(times)[2]
epochs, samples = int(sys.argv[1]), int(sys.argv[2])
train = {"awd-lstm": 2200, "kglm": 1200, "proposal": 3000, "entity-copynet": 1300, "entity-nlm": 2000, "entity-nlm-proposal": 4000}
hours = sum(1_240_000 * epochs / rate for rate in train.values()) / pace / 3600
scoring = 6 * 80_000 / (95 * 100 / samples) / pace / 3600
print(f"About {hours:.1f} hours of training and {scoring:.1f} of scoring on one core.", flush=True)
PY
[ "${STEPS:-yes}" = no ] && exit

[ -f shared.kg ] || "$KGLM" kg import "$DATA/kg/facts.tsv.gz" --entities "$DATA/kg/entities.jsonl.gz" \
    --relations "$DATA/kg/relations.tsv" --to shared.kg
[ -d shared.kg.vectors ] || "$KGLM" kg embed shared.kg --dim 128
[ -f articles.jsonl.gz ] || { zcat "$DATA/simplewiki/train.jsonl.gz" | sed -n 1,1800p | gzip > articles.jsonl.gz; }
[ -f check.jsonl.gz ] || { zcat "$DATA/simplewiki/train.jsonl.gz" | sed -n 1801,1920p | gzip > check.jsonl.gz; }
[ -f lw2-first.jsonl.gz ] || { zcat "$DATA/lw2/valid.jsonl.gz" | sed -n 1,50p | gzip > lw2-first.jsonl.gz; }
[ -f lw2-last.jsonl.gz ] || { zcat "$DATA/lw2/valid.jsonl.gz" | sed -n 51,60p | gzip > lw2-last.jsonl.gz; }
[ -f simplewiki.jsonl.gz ] || { zcat "$DATA/simplewiki/valid.jsonl.gz" | sed -n 1,100p | gzip > simplewiki.jsonl.gz; }

fit() {  # fit RUN MODEL [option…]
    local run=$1 model=$2; shift 2
    local on=(); [ -f "$run/run.json" ] && on=(--resume)
    [ -f "$run/.done" ] && return
    "$KGLM" train "$model" --config small --set train.threads=1 --set train.epochs="$EPOCHS" --set train.seed="$SEED" "$@" \
        --data articles.jsonl.gz --data lw2-first.jsonl.gz --valid check.jsonl.gz --kg shared.kg --to "$run" "${on[@]}"
    touch "$run/.done"
}
fit awd awd-lstm
fit kglm kglm
fit proposal proposal
fit copynet entity-copynet
fit nlm entity-nlm
fit nlm-proposal entity-nlm-proposal

[ -f adaptation.json ] || "$PYTHON" "$HERE/adaptation.py" --run awd --data check.jsonl.gz --json adaptation.json
adapted() { "$PYTHON" -c "import json; print(json.load(open('adaptation.json'))['$1'])"; }

score() {  # score CORPUS NAME RUN [option…]
    local corpus=$1 name=$2 run=$3; shift 3
    [ -s "$corpus-$name.json" ] && return
    "$KGLM" evaluate "$run" --data "$corpus.jsonl.gz" --samples "$SAMPLES" --seed "$SEED" "$@" --to "$corpus-$name.json"
}
ROWS=(awd cache dynamic both nlm-importance nlm-particle copynet kglm-importance kglm-particle)
for corpus in lw2-last simplewiki; do
    score $corpus awd awd
    score $corpus cache awd $(adapted cache)
    score $corpus dynamic awd $(adapted dynamic)
    score $corpus both awd $(adapted both)
    score $corpus kglm-particle kglm
    score $corpus kglm-importance kglm --method importance --proposal proposal
    score $corpus copynet copynet
    score $corpus nlm-particle nlm --proposal nlm-proposal
    score $corpus nlm-importance nlm --method importance --proposal nlm-proposal
done

{
    echo "$(date +%F), $(nproc) cores, $(awk '/MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo), seed $SEED, $EPOCHS epochs."
    for corpus in lw2-last simplewiki; do
        echo; echo "### $corpus"; echo
        "$KGLM" table perplexity $(printf "$corpus-%s.json " "${ROWS[@]}") --markdown --chart "$corpus.svg"
    done
    echo; echo "### completion"; echo
    "$KGLM" table completion "$DATA/completion/sample.jsonl" --run awd --run copynet --run kglm --kg shared.kg \
        ${PRETRAINED:+--run "$PRETRAINED"} --markdown --chart completion.svg
} > tables.md
cat tables.md
