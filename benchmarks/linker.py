"""python benchmarks/linker.py --kg KG --train DOCS --test DUMP.xml.bz2 [--words DOCS] [--unlinked] [--print-weights]

Fit the linker's weights on linked documents and measure them on the links of articles, which it cannot see.

Every name of the graph in a text is an example. Its right outcome is the linked entity if a link has the same words,
and NIL if the link leads outside of the graph, or if the name is a part of a longer link to another entity ("Paris" in
a link to Paris Hilton). To learn what missing entities look like, some entities (--hide) are removed from the
candidates of whole documents: their names must become NIL or another entity. With --unlinked, a name of common words
that is nowhere linked in its document counts as half an example of NIL.

The weights maximise the log-likelihood of a conditional logit over candidates and NIL, with a Gaussian prior around the
weights in use (all times the sharpness, see `kglm.linking.weights`). Compared: the prior alone (the candidate with the
most facts, never NIL), the weights in use, the fitted ones. Accuracy counts NIL; "ambiguous" are links to an entity of
the graph that shares its name with another one, where only the choice among candidates counts. ECE: expected
calibration error of the most probable outcome, in ten bins.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from ablation import documents
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.anchors import Anchors
from kglm.linking.context import NIL_FEATURES
from kglm.linking.linker import CONTEXT, FEATURES, LinkedName, LinkedText, Linker
from kglm.linking.links import LinkResolver
from kglm.linking.weights import NIL_WEIGHTS, SHARPNESS, WEIGHTS
from kglm.text.articles import read_articles
from kglm.text.common_words import is_common
from kglm.text.document import Document
from linking import calibration_error
from table import print_table

HELD = (
    "facts",
    "introductions",
    "link of this text",
    "no proper name",
    "short name",
    "NIL: a or own before",
    "NIL: first word",
    "NIL: small letters",
    "NIL: small common letters",
    "NIL: small among capitals",
)
"""Features whose weights stay as they are: links say little about them, as well-known names are linked less."""
NAMES = (*FEATURES, *(f"NIL: {name}" for name in NIL_FEATURES))
BESIDE = [NIL_FEATURES.index(name) for name in NIL_FEATURES if name.endswith((" after", " before", "longer name"))]
SILVER = 0.25
"""Weight of a name that was linked automatically, and only without a capital beside it, where links are reliable: these
names balance the links of people, which rarely lead to the best known entities."""
OUTSIDE = -1
"""Node of a link to an entity outside of the graph."""
UNKNOWN = -2
"""Node of a link whose target may or may not be in the graph."""


class Text(NamedTuple):
    """Words and their links: start, end, node."""

    words: Sequence[str]
    links: list[tuple[int, int, int]]


class Example(NamedTuple):
    """A name in a text: features of its candidates and of NIL, and the place of the right outcome (the last is NIL)."""

    feature_NF: np.ndarray
    nil_G: np.ndarray
    right: int
    weight: float
    is_link: bool
    """True if a link has exactly these words."""


def linked_texts(graph: KnowledgeGraph, found: list[Document], sources: tuple[str, ...]) -> Iterator[Text]:
    """Links of annotated documents; ids of entities are exact, so that an id that the graph lacks is outside of it."""
    for document in found:
        mentions = [mention for mention in document.mentions if mention.source in sources and mention.id[0] == "Q"]
        nodes = [graph.find(mention.id) for mention in mentions]
        places = zip(mentions, nodes, strict=True)
        yield Text(document.tokens, [(m.start, m.end, OUTSIDE if node is None else node) for m, node in places])


def article_texts(graph: KnowledgeGraph, linker: Linker, path: Path) -> Iterator[Text]:
    """Links of the articles of a dump. A target with a title that is a name of the graph may be an entity of it."""
    resolver = LinkResolver(graph, linker.names)
    for article in read_articles(path):
        links = []
        for link in article.links:
            node = resolver.entity(link.target)
            if node is None:
                title = link.target.replace("_", " ").split(" (")[0]
                node = UNKNOWN if linker.names[title.split()] else OUTSIDE
            links.append((link.start, link.end, node))
        yield Text(article.tokens, links)


def examples(linker: Linker, text: Text, hidden: set[int], *, unlinked: bool = False) -> Iterator[Example]:
    """All names of a text whose right outcome follows from its links. `hidden` entities are no candidates."""
    words, links = text
    at = {position: link for link in links for position in range(link[0], link[1])}
    mentioned = {tuple(words[start:end]) for start, end, _ in links}
    mentions = [(a, b, [node for node in nodes if node not in hidden]) for a, b, nodes in linker.mentions(words)]
    mentions = [mention for mention in mentions if mention[2]]
    reading = LinkedText(linker, words, (), [(start, end) for start, end, _ in mentions])
    starts = np.array([start for start, _, _ in mentions])
    for place, (start, end, nodes) in enumerate(mentions):
        link, weight, node = at.get(start), 1.0, OUTSIDE
        if link is None or at.get(end - 1) != link:
            if not unlinked or link is not None or end - 1 in at or tuple(words[start:end]) in mentioned:
                continue
            if not all(map(is_common, words[start:end])):  # well-known names often have no link
                continue
            weight = 0.5
        else:
            node = link[2]
        nodes = reading.candidates(start, end, nodes)
        is_link = link is not None and link[:2] == (start, end)
        if node == UNKNOWN or (node in hidden and not is_link):
            continue
        around = slice(*np.searchsorted(starts, [start - CONTEXT, end + CONTEXT]))
        others = [other for other in mentions[around] if other[0] != start]
        feature_NF, nil_G = reading.features(start, end, nodes, others)
        right = nodes.index(node) if node in nodes else len(nodes)
        yield Example(feature_NF, nil_G, right, weight, is_link)
        known = node in nodes
        reading.remember(LinkedName.certain(start, end, node) if known else LinkedName(start, end, ()))
        del place


def design(found: list[Example]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All outcomes below each other (X × (F + G)), the example of each, and the row of each right outcome."""
    rows, owner, right, first = [], [], [], 0
    for number, each in enumerate(found):
        count = len(each.feature_NF)
        block = np.zeros((count + 1, len(FEATURES) + len(NIL_FEATURES)))
        block[:count, : len(FEATURES)] = each.feature_NF
        block[count, len(FEATURES) :] = each.nil_G
        rows.append(block)
        owner.append(np.full(count + 1, number))
        right.append(first + each.right)
        first += count + 1
    return np.concatenate(rows), np.concatenate(owner), np.array(right)


def fit(found: list[Example], centre: np.ndarray, *, ridge: float) -> np.ndarray:
    """Weights with the highest likelihood under a Gaussian prior around `centre`."""
    rows, owner, right = design(found)
    x, own = torch.from_numpy(rows), torch.from_numpy(owner)
    weight_N = torch.tensor([each.weight for each in found], dtype=torch.float64)
    start = torch.from_numpy(centre)
    ridge_F = torch.tensor([1e6 if name in HELD else ridge for name in NAMES], dtype=torch.float64)
    weight = start.clone().requires_grad_()
    optimiser = torch.optim.LBFGS([weight], max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        score = x @ weight
        top = torch.full((len(found),), -torch.inf, dtype=torch.float64).scatter_reduce(0, own, score.detach(), "amax")
        total = torch.zeros(len(found), dtype=torch.float64).index_add(0, own, (score - top[own]).exp()).log() + top
        value = (weight_N * (total - score[right])).sum() + (ridge_F * (weight - start).square()).sum()
        value.backward()
        return value

    optimiser.step(loss)
    return weight.detach().numpy()


def measure(found: list[Example], weight: np.ndarray) -> dict[str, float]:
    """Accuracy over links, of NIL, of the ambiguous, and the calibration error; log-likelihood of an example."""
    sure: list[tuple[float, bool]] = []
    links = ambiguous = right_links = right_ambiguous = nil = right_nil = 0
    total = 0.0
    for each in found:
        score = np.append(each.feature_NF @ weight[: len(FEATURES)], each.nil_G @ weight[len(FEATURES) :])
        p = np.exp(score - score.max())
        p /= p.sum()
        best = int(p.argmax())
        total += np.log(p[each.right])
        sure.append((float(p[best]), best == each.right))
        count = len(each.feature_NF)
        if each.right == count:
            nil, right_nil = nil + 1, right_nil + (best == count)
        else:
            links, right_links = links + 1, right_links + (best == each.right)
            if count > 1:
                ambiguous += 1
                right_ambiguous += int(score[:-1].argmax()) == each.right
    return {
        "links": right_links / max(links, 1),
        "ambiguous": right_ambiguous / max(ambiguous, 1),
        "NIL": right_nil / max(nil, 1),
        "all": (right_links + right_nil) / max(links + nil, 1),
        "ECE": calibration_error(sure),
        "log-likelihood": total / max(len(found), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path, required=True)
    parser.add_argument("--train", action="append", required=True, help="linked documents to fit on, FILE[:RANGE]")
    parser.add_argument("--silver", action="append", default=[], help="documents that were annotated automatically")
    parser.add_argument("--train-articles", type=Path, help="also fit on the articles at even places of this dump")
    parser.add_argument("--check", action="append", default=[], help="linked documents to measure on, FILE[:RANGE]")
    parser.add_argument("--test", type=Path, help="articles to measure on")
    parser.add_argument("--words", action="append", default=[], help="linked documents with link texts, FILE[:RANGE]")
    parser.add_argument("--hide", type=float, default=0.1, help="share of the entities hidden in each document")
    parser.add_argument("--unlinked", action="store_true", help="names that a document never links are NIL")
    parser.add_argument("--ridge", type=float, default=2.0, help="precision of the prior")
    parser.add_argument("--sources", default="WIKI,KG,NEL", help="sources of the links to fit on")
    parser.add_argument("--print-weights", action="store_true", help="print the fitted weights as Python tuples")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    graph = KnowledgeGraph.open(options.kg)
    rng = np.random.default_rng(options.seed)
    anchors = None
    sources = tuple(options.sources.split(","))
    if options.words:
        texts = linked_texts(graph, documents(options.words), ("WIKI", "KG", "NEL"))
        anchors = Anchors.count((words, [link for link in links if link[2] >= 0]) for words, links in texts)
    linker = Linker(graph, anchors=anchors)

    def examples_of(texts: Iterable[Text], hide: float) -> list[Example]:
        found: list[Example] = []
        for text in texts:
            nodes = sorted({node for _, _, node in text.links if node >= 0})
            hidden = {node for node in nodes if rng.random() < hide}
            found += examples(linker, text, hidden, unlinked=options.unlinked and hide > 0)
        return found

    training = []
    for each in examples_of(linked_texts(graph, documents(options.silver), ("KG",)), options.hide):
        if not each.nil_G[BESIDE].any():
            training.append(each._replace(weight=SILVER * each.weight))
    training += examples_of(linked_texts(graph, documents(options.train), sources), options.hide)
    if options.train_articles:
        even = islice(article_texts(graph, linker, options.train_articles), 0, None, 2)
        training += examples_of(even, options.hide)
    in_use = SHARPNESS * np.array([*WEIGHTS, *NIL_WEIGHTS])
    fitted = fit(training, in_use, ridge=options.ridge)
    rows = list(zip(NAMES, fitted.tolist(), in_use.tolist(), strict=True))
    nil = sum(each.right == len(each.feature_NF) for each in training)
    print_table(("feature", "fitted", "in use"), rows, title=f"fitted on {len(training):,} names, {nil:,} of them NIL")
    prior = np.zeros(len(NAMES))
    prior[0], prior[len(FEATURES)] = 1.0, -100.0
    sets = {"training": training}
    if options.check:
        sets["check"] = examples_of(linked_texts(graph, documents(options.check), sources), 0.0)
    if options.test:
        texts = islice(
            article_texts(graph, linker, options.test),
            bool(options.train_articles),
            None,
            2 if options.train_articles else 1,
        )
        sets["test"] = examples_of(texts, 0.0)
        sets["test, same words"] = [each for each in sets["test"] if each.is_link]
    for title, found in sets.items():
        results = {name: measure(found, w) for name, w in (("prior", prior), ("in use", in_use), ("fitted", fitted))}
        columns = ("weights", *next(iter(results.values())))
        print_table(
            columns, [(name, *each.values()) for name, each in results.items()], title=f"{title}, {len(found):,} names"
        )
    if options.print_weights:
        fitted /= SHARPNESS
        for names_of, part in ((FEATURES, fitted[: len(FEATURES)]), (NIL_FEATURES, fitted[len(FEATURES) :])):
            print("\n".join(f"    {w:.2f},  # {name}" for name, w in zip(names_of, part.tolist(), strict=True)), "\n")


if __name__ == "__main__":
    main()
