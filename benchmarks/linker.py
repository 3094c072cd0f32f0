"""Fit the weights of the linker on links that people made, and measure it on others against the plain prior.

python benchmarks/linker.py --kg world.kg --train linked.jsonl.gz:50 --test linked.jsonl.gz:-10:

Only mentions whose source is an article link (WIKI) count, whose words are a name of the entity in the graph, and that
have a namesake. The prior takes the namesake with the most facts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from ablation import documents
from kglm.annotate.linker import FEATURES, WEIGHTS, Linker
from kglm.kg.graph import KnowledgeGraph
from kglm.model.entities import count_introductions
from kglm.text.document import Document

Example = tuple[np.ndarray, int]


def examples(linker: Linker, found: list[Document]) -> Iterator[Example]:
    """The features of the candidates of each link, and which of them is right."""
    for document in found:
        words = document.tokens
        nodes = {id(mention): linker.graph.find(mention.id) for mention in document.mentions}
        for mention in document.mentions:
            node = nodes[id(mention)]
            candidates = linker.candidates(words[mention.start : mention.end])
            if mention.source != "WIKI" or node not in candidates or len(candidates) < 2:
                continue
            near = set[int]()
            for start, end, others in linker.mentions(words[max(mention.start - 60, 0) : mention.end + 60]):
                at = max(mention.start - 60, 0)
                if end + at <= mention.start or start + at >= mention.end:
                    near.update(others)
            yield linker.features(words, mention.start, mention.end, candidates, near), candidates.index(node)


def fit(found: list[Example], *, ridge: float = 1.0) -> torch.Tensor:
    """The weights of greatest likelihood, held back a little."""
    weight_F = torch.zeros(len(FEATURES), dtype=torch.float64, requires_grad=True)
    features = [torch.from_numpy(each) for each, _ in found]
    optimiser = torch.optim.LBFGS([weight_F], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        total = ridge * weight_F.square().sum()
        for feature_NF, (_, right) in zip(features, found, strict=True):
            total = total - (feature_NF @ weight_F).log_softmax(0)[right]
        total.backward()
        return total

    optimiser.step(loss)
    return weight_F.detach()


def accuracy(found: list[Example], weights: np.ndarray) -> float:
    return float(np.mean([int((feature_NF @ weights).argmax()) == right for feature_NF, right in found]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path, required=True)
    parser.add_argument("--train", action="append", required=True)
    parser.add_argument("--test", action="append", required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    graph = KnowledgeGraph.open(options.kg)
    train, test = documents(options.train), documents(options.test)
    fitted = list(examples(Linker(graph, introductions=count_introductions(test, graph)), train))
    weights = fit(fitted)
    held_out = list(examples(Linker(graph, introductions=count_introductions(train, graph)), test))
    print(f"{len(fitted):,} links to fit on, {len(held_out):,} to measure on, all of them ambiguous")
    for name, weight, now in zip(FEATURES, weights.tolist(), WEIGHTS, strict=True):
        print(f"{name:20} {weight:8.3f}   (in use: {now})")
    prior = np.eye(len(FEATURES))[0]
    for name, weight_F in (("prior only", prior), ("weights in use", np.array(WEIGHTS)), ("fitted", weights.numpy())):
        print(f"{name:20} {accuracy(held_out, weight_F):.3f}")


if __name__ == "__main__":
    main()
