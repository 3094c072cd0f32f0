"""python benchmarks/linker.py --kg KG --train DOCS --test DUMP.xml.bz2 [--words DOCS]

Compare the linker's hand-set weights with fitted ones: accuracy on the links of articles, which it cannot see.

Training examples are article links (source WIKI) of the documents whose words are a name of several entities of the
graph, the linked one among them. Test examples are links of the dump to entities of the graph. Three weightings are
compared: the prior alone (the candidate with the most facts), the weights in use, and the fitted weights. The mentions
of the documents --words are counted as link texts (anchors) for the linker. The fitted weights are printed, not saved.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ablation import documents
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.anchors import Anchors
from kglm.linking.linker import FEATURES, WEIGHTS, Linker
from kglm.linking.links import LinkResolver
from kglm.text.articles import read_articles
from kglm.text.document import Document
from table import print_table

Example = tuple[np.ndarray, int]
Text = tuple[Sequence[str], list[tuple[int, int, int]]]
"""Words and their links: start, end, node."""
CONTEXT = 60
"""Words on each side of a mention whose names count as context."""


def linked_texts(graph: KnowledgeGraph, found: list[Document], sources: tuple[str, ...] = ("WIKI",)) -> Iterator[Text]:
    """Links of annotated documents to entities of the graph."""
    for document in found:
        links = [
            (mention.start, mention.end, node)
            for mention in document.mentions
            if mention.source in sources and (node := graph.find(mention.id)) is not None and mention.id[0] == "Q"
        ]
        yield document.tokens, links


def article_texts(graph: KnowledgeGraph, linker: Linker, path: Path) -> Iterator[Text]:
    """Links of the articles of a dump to entities of the graph."""
    resolver = LinkResolver(graph, linker.names)
    for article in read_articles(path):
        found = ((link.start, link.end, resolver.entity(link.target)) for link in article.links)
        yield article.tokens, [(start, end, node) for start, end, node in found if node is not None]


def example(
    linker: Linker, words: Sequence[str], start: int, end: int, others: dict[int, int]
) -> tuple[list[int], np.ndarray]:
    """Candidates of a name and their features; `others` are links of other names in the text."""
    candidates = linker.candidates(words[start:end])
    near = set[int]()
    at = max(start - CONTEXT, 0)
    for a, b, nodes in linker.mentions(words[at : end + CONTEXT]):
        if b + at <= start or a + at >= end:
            near.update(nodes)
    return candidates, linker.features(words, start, end, candidates, near, others)


def training_examples(linker: Linker, texts: Iterator[Text], rng: np.random.Generator) -> Iterator[Example]:
    """An example for every ambiguous link; the linker gets a random half of the other links, as in an article."""
    from kglm.linking.name_index import hash_name

    for words, links in texts:
        for start, end, node in links:
            own = {
                hash_name(words[a:b]): other for a, b, other in links if (a, b) != (start, end) and rng.random() < 0.5
            }
            candidates, feature_NF = example(linker, words, start, end, own)
            if node in candidates and len(candidates) > 1:
                yield feature_NF, candidates.index(node)


def fit(found: list[Example], *, ridge: float = 1.0) -> torch.Tensor:
    """Maximum likelihood weights with an L2 penalty."""
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


def measure(linker: Linker, texts: Iterator[Text], weightings: dict[str, np.ndarray]) -> dict[str, Any]:
    """Accuracy on all links, and on the ambiguous ones whose candidates include the right entity."""
    links = named = ambiguous = 0
    right = dict.fromkeys(weightings, 0)
    right_ambiguous = dict.fromkeys(weightings, 0)
    for words, found in texts:
        for start, end, node in found:
            links += 1
            candidates, feature_NF = example(linker, words, start, end, {})
            if node not in candidates:
                continue
            named += 1
            ambiguous += len(candidates) > 1
            for name, weight_F in weightings.items():
                hit = candidates[int((feature_NF @ weight_F).argmax())] == node
                right[name] += hit
                right_ambiguous[name] += hit and len(candidates) > 1
    share = {name: (hits / max(links, 1), right_ambiguous[name] / max(ambiguous, 1)) for name, hits in right.items()}
    return {"links": links, "named": named, "ambiguous": ambiguous, "accuracy": share}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path, required=True)
    parser.add_argument("--train", action="append", required=True, help="linked documents to fit on, FILE[:RANGE]")
    parser.add_argument("--test", type=Path, required=True, help="articles to measure on")
    parser.add_argument("--words", action="append", default=[], help="linked documents with link texts, FILE[:RANGE]")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    graph = KnowledgeGraph.open(options.kg)
    counted = (
        Anchors.count(linked_texts(graph, documents(options.words), ("WIKI", "KG", "NEL"))) if options.words else None
    )
    linker = Linker(graph, anchors=counted)
    fitted = list(
        training_examples(linker, linked_texts(graph, documents(options.train)), np.random.default_rng(options.seed))
    )
    weights = fit(fitted).numpy()
    rows = zip(FEATURES, weights.tolist(), WEIGHTS, strict=True)
    print_table(("feature", "fitted weight", "in use"), rows, title=f"fitted on {len(fitted):,} ambiguous links")
    weightings = {"prior only": np.eye(len(FEATURES))[0], "in use": np.array(WEIGHTS), "fitted": weights}
    result = measure(linker, article_texts(graph, linker, options.test), weightings)
    title = f"{result['links']:,} links, {result['named']:,} by a name of the entity, {result['ambiguous']:,} ambiguous"
    accuracies = [(name, *pair) for name, pair in result["accuracy"].items()]
    print_table(("weights", "accuracy, all links", "ambiguous links"), accuracies, title=title)


if __name__ == "__main__":
    main()
