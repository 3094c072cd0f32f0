"""Cost of estimating p(x) without annotation, relative to one annotated scoring pass over the same document.

python benchmarks/marginal.py --kg world.kg --documents valid.jsonl.gz --words train.txt.gz [--size paper] [--turns 3]
python benchmarks/marginal.py --run RUN --proposal RUN --documents valid.jsonl.gz

With a run, it is what is measured. Without one, models of the given size are made with random weights, and the biases
of their types are set to how often these occur in the documents: what it costs depends on how many mentions there are,
not on whether they make sense. All ways take turns in one run on one thread; what counts are the ratios.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch

from kglm.evaluate.perplexity import Perplexity
from kglm.infer.marginal import MarginalConfig
from kglm.kg.graph import KnowledgeGraph
from kglm.model.annotation import Type
from kglm.model.parts import LatentModel
from kglm.text.document import Document
from kglm.text.vocabulary import Vocabulary
from kglm.train.run import Run, read_for_training
from kglm.train.settings import load_config

WAYS = {
    "annotated": ("annotated", 1),
    "importance 100": ("importance", 100),
    "importance 1000": ("importance", 1000),
    "particle 100": ("particle", 100),
    "beam 16": ("beam", 16),
}


def made_runs(kg: Path, documents: list[Document], words: Path, size: str) -> tuple[Run, Run]:
    """A model and a proposal with random weights, that mention as often as the documents do."""
    graph = KnowledgeGraph.open(kg)
    with gzip.open(words, "rt") as stream:
        vocabulary = Vocabulary.count([Document("words", stream.read().split())])
    settings = load_config(size, "kglm")
    home = Path(tempfile.gettempdir())
    runs = [Run(home, replace(settings, model=name), vocabulary, graph, {}) for name in ("kglm", "proposal")]  # type: ignore[arg-type]
    counts: Counter[int] = Counter()
    for encoded in runs[0].encode(documents, "counting"):
        counts.update(encoded.type_T.tolist())
    for run in runs:
        assert isinstance(run.model, LatentModel)
        with torch.no_grad():
            run.model.latent.type_head.weight.zero_()
            run.model.latent.type_head.bias.copy_(torch.tensor([float(counts[kind] + 1) for kind in Type]).log())
        run.model.eval()
    return runs[0], runs[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--proposal", type=Path)
    parser.add_argument("--kg", type=Path)
    parser.add_argument("--words", type=Path)
    parser.add_argument("--size", default="paper")
    parser.add_argument("--turns", type=int, default=3, help="documents, the ones of middle length")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    documents = sorted(read_for_training([options.documents]), key=lambda document: len(document.tokens))
    middle = max((len(documents) - options.turns) // 2, 0)
    chosen = documents[middle : middle + options.turns]
    if options.run is not None:
        model, proposal = Run.open(options.run), Run.open(options.proposal)
    else:
        model, proposal = made_runs(options.kg, documents, options.words, options.size)
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
    result: dict[str, object] = {"words": len(model.vocabulary), "targets": targets}
    for name, taken in seconds.items():
        ratio = median(a / b for a, b in zip(taken, seconds["annotated"], strict=True))
        print(f"{name:16} {targets / sum(taken):8,.0f} words/s, {ratio:6.2f} × annotated")
        result[name] = {"words_per_second": targets / sum(taken), "ratio": ratio}
    if options.json:
        options.json.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
