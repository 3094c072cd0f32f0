"""python benchmarks/marginal.py --run RUN --proposal RUN --documents DOCS [--size paper] [--turns 3] [--json FILE]

Compare the time of estimating p(x) of a document, by method, with one scoring pass over its annotation.

All methods score the same documents in turns, on one thread; the table has the median ratio of times over documents.
With --size, the trained runs are padded with zeros to that size (see `widen.py`): they draw the same samples, at the
cost of the larger size.
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
from table import print_table
from widen import widened, widened_graph

METHODS = {
    "annotated": ("annotated", 1),
    "importance 100": ("importance", 100),
    "importance 1000": ("importance", 1000),
    "particle 100": ("particle", 100),
    "beam 16": ("beam", 16),
}
"""Method and samples."""
VECTORS = {"paper": 256}
"""Dimension of entity vectors by size."""


def opened(model: Path, proposal: Path, size: str | None, home: Path) -> list[Run]:
    """Open model and proposal, padded to the size if one is given."""
    runs = [Run.open(model), Run.open(proposal)]
    if size is None:
        return runs
    graph = widened_graph(runs[0].graph.store.path, VECTORS[size], home)
    return [widened(run, graph, load_config(size, run.settings.model).encoder) for run in runs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=Path, required=True, help="annotated documents")
    parser.add_argument("--run", type=Path, required=True, help="run of kglm")
    parser.add_argument("--proposal", type=Path, required=True, help="run of its proposal")
    parser.add_argument("--size", choices=VECTORS, help="pad the runs to this size")
    parser.add_argument("--turns", type=int, default=3, help="documents to score, those of middle length")
    parser.add_argument("--ways", nargs="+", choices=METHODS, default=list(METHODS), help="methods; annotated always")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    documents = sorted(read_for_training([options.documents]), key=lambda document: len(document.tokens))
    middle = max((len(documents) - options.turns) // 2, 0)
    chosen = documents[middle : middle + options.turns]
    with tempfile.TemporaryDirectory() as home:
        model, proposal = opened(options.run, options.proposal, options.size, Path(home))
        scorers = {
            name: Perplexity(model, method, MarginalConfig(samples=samples), proposal)  # type: ignore[arg-type]
            for name, (method, samples) in METHODS.items()
            if name in ("annotated", *options.ways)
        }
        warm_up = Document("warm-up", chosen[0].tokens[:60])
        for scorer in scorers.values():
            scorer.score(warm_up)
        seconds: dict[str, list[float]] = {name: [] for name in scorers}
        for turn, document in enumerate(chosen):
            for name, scorer in scorers.items():
                start = time.perf_counter()
                scored = scorer.score(document)
                seconds[name].append(time.perf_counter() - start)
                per_word = scored.estimate.log_p / scored.estimate.targets
                print(f"turn {turn + 1}: {name:16} {seconds[name][-1]:8.2f} s, {per_word:8.3f} nats a word", flush=True)
    targets = sum(len(document.tokens) - 1 for document in chosen)
    result: dict[str, object] = {"words": len(model.vocabulary), "targets": targets, "size": options.size}
    rows = []
    for name, taken in seconds.items():
        ratio = median(a / b for a, b in zip(taken, seconds["annotated"], strict=True))
        rows.append((name, round(targets / sum(taken)), ratio))
        result[name] = {"words_per_second": targets / sum(taken), "ratio": ratio}
    title = f"{len(chosen)} documents of {targets:,} words, vocabulary of {len(model.vocabulary):,}"
    print_table(("method, samples", "words/s", "time / annotated"), rows, title=title)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
