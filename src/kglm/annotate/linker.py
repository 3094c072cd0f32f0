"""Which entities a text names, with probabilities: names of the graph, and what speaks for one namesake or another.

A mention is the longest name that stands in the text, and begins with a capital letter or digit. Its candidates are all
entities of that name. What speaks for one is a sum of features: how much the graph and the training texts say of it,
whether it is the name itself or an alias, whether its relations and neighbours have words of the text, whether it has a
fact with another mention's candidate. The weights are those of a conditional logit, fitted on links that people made
(`benchmarks/linker.py`), so that the scores are probabilities.

Legend: N candidates of one mention, F features.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.annotate.names import NameIndex
from kglm.kg.arrays import is_fact
from kglm.kg.graph import KnowledgeGraph
from kglm.text.function_words import is_content
from kglm.text.tokenizer import tokenizer

Floats = npt.NDArray[np.float64]
FEATURES = ("facts", "label", "introductions", "related words", "neighbour words", "facts with others")
WEIGHTS = (0.3, 1.6, 1.0, 0.5, 0.6, 1.5)
"""By feature, as fitted."""
MAX_CANDIDATES = 30
NEIGHBOURS = 60
"""Tails of a candidate whose names are compared with the text."""
CONTEXT = 40
"""Words to either side of a mention that are its context."""


class Candidate(NamedTuple):
    """An entity that a mention may be of."""

    node: int
    p: float


class Linked(NamedTuple):
    """Words [start, end) are a name; the candidates sum to 1, the most probable first."""

    start: int
    end: int
    candidates: tuple[Candidate, ...]

    @classmethod
    def certain(cls, start: int, end: int, node: int) -> Linked:
        """A mention of which it is known whose it is."""
        return cls(start, end, (Candidate(node, 1.0),))

    @property
    def node(self) -> int:
        return self.candidates[0].node


class Linker:
    """Links the names of a text, for one graph."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        names: NameIndex | None = None,
        introductions: Mapping[int, int] | None = None,
        weights: Sequence[float] = WEIGHTS,
    ) -> None:
        self.graph = graph
        self.names = NameIndex.for_graph(graph) if names is None else names
        self._introductions = introductions or {}
        self._weight_F = np.array(weights)
        self._relation_words = lru_cache(None)(self._words_of_relation)

    def link(self, words: Sequence[str], known: Sequence[tuple[int, int, int]] = ()) -> list[Linked]:
        """All mentions, in order; what is `known`, (start, end, node), is kept and helps to decide the rest."""
        found = [Linked.certain(*span) for span in known]
        spans = [*((start, end, [node]) for start, end, node in known), *self.mentions(words, known)]
        others = {place: set(nodes) for place, (_, _, nodes) in enumerate(spans)}
        for place in range(len(known), len(spans)):
            start, end, nodes = spans[place]
            near = set[int]().union(*(each for other, each in others.items() if other != place))
            p_N = self.probabilities(words, start, end, nodes, near)
            order = np.argsort(-p_N, kind="stable")
            candidates = tuple(Candidate(nodes[n], float(p_N[n])) for n in order.tolist())
            found.append(Linked(start, end, candidates))
        return sorted(found)

    def probabilities(
        self, words: Sequence[str], start: int, end: int, nodes: Sequence[int], near: Collection[int] = ()
    ) -> Floats:
        """How probable each of these entities is to be the one that words [start, end) name."""
        score_N = self.features(words, start, end, nodes, set(near)) @ self._weight_F
        p_N = np.exp(score_N - score_N.max())
        return np.asarray(p_N / p_N.sum())

    def mentions(
        self, words: Sequence[str], known: Sequence[tuple[int, int, int]] = ()
    ) -> list[tuple[int, int, list[int]]]:
        """(start, end, candidates) of the names in a text: the longest first, none over another."""
        taken = np.zeros(len(words), np.bool_)
        for start, end, _ in known:
            taken[start:end] = True
        spans = [span for span in self.names.spans(words) if _is_name(words[span[0] : span[1]])]
        spans.sort(key=lambda span: (span[0] - span[1], span[0]))
        found = []
        for start, end, _ in spans:
            if not taken[start:end].any():
                taken[start:end] = True
                found.append((start, end, self.candidates(words[start:end])))
        return sorted(found)

    def candidates(self, name: Sequence[str]) -> list[int]:
        """The entities of a name; if there are hundreds, those with the most facts."""
        nodes = self.names[name]
        if len(nodes) <= MAX_CANDIDATES:
            return list(nodes)
        degree = self._degrees(nodes)
        return [nodes[n] for n in np.argsort(-degree, kind="stable")[:MAX_CANDIDATES].tolist()]

    def _degrees(self, nodes: Sequence[int]) -> Floats:
        return np.diff(self.graph.edges_of(np.array(nodes, np.int64)).offsets).astype(np.float64)

    def features(self, words: Sequence[str], start: int, end: int, nodes: Sequence[int], near: set[int]) -> Floats:
        """What speaks for each candidate (N × F); `near` are the candidates of the other mentions."""
        name = " ".join(words[start:end])
        around = [*words[max(start - CONTEXT, 0) : start], *words[end : end + CONTEXT]]
        context = {word.casefold() for word in around if is_content(word)}
        result = np.zeros((len(nodes), len(FEATURES)))
        result[:, 0] = np.log1p(self._degrees(nodes))
        for n, node in enumerate(nodes):
            relation, tail = self.graph.edges(node)
            label = self.graph.names(node)[:1]
            result[n, 1] = bool(label) and " ".join(tokenizer().words(label[0])) == name
            result[n, 2] = np.log1p(self._introductions.get(node, 0))
            said = set[str]().union(*(self._relation_words(r) for r in np.unique(relation).tolist()))
            result[n, 3] = np.log1p(len(said & context))
            result[n, 4] = np.log1p(len(self._neighbour_words(relation, tail) & context))
            result[n, 5] = np.log1p(len(near & set(tail.tolist()) - {node}))
        return result

    def _words_of_relation(self, index: int) -> frozenset[str]:
        """Words of the name of a relation that leads away from an entity; a reverse one says nothing of it."""
        if index & 1 or index == 0:
            return frozenset()
        label = self.graph.relation_label(index)
        return frozenset(word.casefold() for word in tokenizer().words(label) if is_content(word))

    def _neighbour_words(self, relation: npt.NDArray[np.integer], tail: npt.NDArray[np.integer]) -> set[str]:
        forward = tail[is_fact(relation)][:NEIGHBOURS]
        names = (name for node in forward.tolist() for name in self.graph.names(node)[:1])
        return {word.casefold() for name in names for word in name.split() if is_content(word)}


def _is_name(words: Sequence[str]) -> bool:
    """Whether words that are a name are likely to be one here: its first word has a capital or digit ("iPod" too)."""
    return any(char.isupper() or char.isdigit() for char in words[0]) and any(is_content(word) for word in words)


def readings(
    linked: Sequence[Linked], *, most: int = 8, each: int = 4
) -> list[tuple[float, list[tuple[int, int, int]]]]:
    """The most probable ways to link a text as a whole, with their probabilities (which then sum to less than 1)."""
    ways: list[tuple[float, list[tuple[int, int, int]]]] = [(1.0, [])]
    for start, end, candidates in linked:
        longer = [(p * each_p, [*spans, (start, end, node)]) for p, spans in ways for node, each_p in candidates[:each]]
        ways = sorted(longer, key=lambda way: -way[0])[:most]
    return ways
