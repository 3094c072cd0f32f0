"""Cost of estimating p(x) without annotation, relative to one annotated scoring pass over the same document.

python benchmarks/marginal.py --run RUN --proposal RUN --documents valid.jsonl.gz [--size paper] [--turns 3]

With a size, the trained runs are widened to it with zeros (see `widen`): they draw what they drew, at the cost of that
size. All ways take turns in one run on one thread; what counts are the ratios.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median

import torch

from kglm.evaluate.perplexity import Perplexity
from kglm.marginal.estimate import MarginalConfig
from kglm.runs.run import Run, read_for_training
from kglm.runs.settings import load_config
from kglm.text.document import Document
from widen import widened, widened_graph

WAYS = {
    "annotated": ("annotated", 1),
    "importance 100": ("importance", 100),
    "importance 1000": ("importance", 1000),
    "particle 100": ("particle", 100),
    "beam 16": ("beam", 16),
}
VECTORS = {"paper": 256}


def opened(model: Path, proposal: Path, size: str | None, home: Path) -> list[Run]:
    """The two runs, widened to the size."""
    runs = [Run.open(model), Run.open(proposal)]
    if size is None:
        return runs
    graph = widened_graph(runs[0].graph.store.path, VECTORS[size], home)
    return [widened(run, graph, load_config(size, run.settings.model).encoder) for run in runs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--proposal", type=Path, required=True)
    parser.add_argument("--size", choices=VECTORS)
    parser.add_argument("--turns", type=int, default=3, help="documents, the ones of middle length")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    documents = sorted(read_for_training([options.documents]), key=lambda document: len(document.tokens))
    middle = max((len(documents) - options.turns) // 2, 0)
    chosen = documents[middle : middle + options.turns]
    with tempfile.TemporaryDirectory() as home:
        model, proposal = opened(options.run, options.proposal, options.size, Path(home))
        judges = {
            name: Perplexity(model, how, MarginalConfig(samples=samples), proposal)  # type: ignore[arg-type]
            for name, (how, samples) in WAYS.items()
            if name in options.ways
        }
        warm = Document("warm", chosen[0].tokens[:60])
        for judge in judges.values():
            judge.score(warm)
        seconds: dict[str, list[float]] = {name: [] for name in judges}
        for turn, document in enumerate(chosen):
            for name, judge in judges.items():
                start = time.perf_counter()
                scored = judge.score(document)
                seconds[name].append(time.perf_counter() - start)
                per_word = scored.estimate.log_p / scored.estimate.targets
                print(f"turn {turn + 1}: {name:16} {seconds[name][-1]:8.2f} s, {per_word:8.3f} nats a word", flush=True)
    targets = sum(len(document.tokens) - 1 for document in chosen)
    print(f"\n{len(model.vocabulary):,} words, {len(chosen)} documents of {targets:,} words")
    result: dict[str, object] = {"words": len(model.vocabulary), "targets": targets, "size": options.size}
    for name, taken in seconds.items():
        ratio = median(a / b for a, b in zip(taken, seconds["annotated"], strict=True))
        print(f"{name:16} {targets / sum(taken):8,.0f} words/s, {ratio:6.2f} × annotated")
        result[name] = {"words_per_second": targets / sum(taken), "ratio": ratio}
    if options.json:
        options.json.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
