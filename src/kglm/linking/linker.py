"""Which entities a text names, with probabilities: names of the graph, and what speaks for one namesake or another.

A mention is the longest name that stands in the text, and begins with a capital letter or digit. Its candidates are all
entities of that name. What speaks for one is a sum of features: how much the graph and the training texts say of it,
whether it is the name itself or an alias, how often links say the name of it, whether a link of this text does, whether
its relations and neighbours have words of the text, whether it has a fact with another mention's candidate. The weights
are those of a conditional logit, so that the scores are probabilities (`benchmarks/linker.py` fits and measures them).
What links call an entity is a name of it too.

Legend: N candidates of one mention, F features.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.kg.arrays import is_fact
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.anchors import Anchors
from kglm.linking.name_index import NameIndex, hash_label, hash_name
from kglm.text.function_words import is_content
from kglm.text.tokenizer import tokenizer

Floats = npt.NDArray[np.float64]
FEATURES = (
    "facts",
    "label",
    "introductions",
    "links",
    "link of this text",
    "related words",
    "neighbour words",
    "facts with others",
)
WEIGHTS = (0.3, 1.6, 1.0, 1.0, 4.0, 0.5, 0.6, 1.5)
"""By feature: set by hand. Fitted on the 715 ambiguous links of one corpus they did worse on another."""
MAX_CANDIDATES = 30
NEIGHBOURS = 60
"""Tails of a candidate whose names are compared with the text."""
CONTEXT = 40
"""Words to either side of a mention that are its context, and in which other mentions count."""
HUB = 4_000
"""Of whoever has more facts it is not asked with whom."""


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


class _About(NamedTuple):
    """What there is to know of a candidate, whatever the text."""

    facts: float
    label: int | None
    """H of its label."""
    introductions: float
    said: frozenset[str]
    """Words of its relations."""
    neighbours: frozenset[str]
    """Words of the names of its tails."""
    tails: npt.NDArray[np.int32]
    """Sorted."""


class Linker:
    """Links the names of a text, for one graph."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        names: NameIndex | None = None,
        introductions: Mapping[int, int] | None = None,
        weights: Sequence[float] = WEIGHTS,
        anchors: Anchors | None = None,
    ) -> None:
        self.graph = graph
        self.names = NameIndex.for_graph(graph) if names is None else names
        self._anchors = anchors or Anchors()
        if anchors is not None:
            self.names = self.names.including(anchors.names())
        self._introductions = introductions or {}
        self._weight_F = np.array(weights)
        self._relation_words = lru_cache(None)(self._words_of_relation)
        self._about = lru_cache(1 << 13)(self._read_about)

    def link(self, words: Sequence[str], known: Sequence[tuple[int, int, int]] = ()) -> list[Linked]:
        """All mentions, in order; what is `known`, (start, end, node), is kept and helps to decide the rest."""
        spans = sorted([*((start, end, [node]) for start, end, node in known), *self.mentions(words, known)])
        kept = {(start, end) for start, end, _ in known}
        starts = [start for start, _, _ in spans]
        own = self._own_names(words, known)
        found = []
        for place, (start, end, nodes) in enumerate(spans):
            if (start, end) in kept:
                found.append(Linked.certain(start, end, nodes[0]))
                continue
            around = range(bisect_left(starts, start - CONTEXT), bisect_right(starts, end + CONTEXT))
            near = set[int]().union(*(spans[other][2] for other in around if other != place))
            p_N = self.probabilities(words, start, end, nodes, near, own)
            order = np.argsort(-p_N, kind="stable")
            found.append(Linked(start, end, tuple(Candidate(nodes[n], float(p_N[n])) for n in order.tolist())))
        return found

    @staticmethod
    def _own_names(words: Sequence[str], known: Sequence[tuple[int, int, int]]) -> dict[int, int]:
        """Whom the links of a text call by a name, given as H; the last one counts."""
        return {hash_name(words[start:end]): node for start, end, node in known}

    def probabilities(
        self,
        words: Sequence[str],
        start: int,
        end: int,
        nodes: Sequence[int],
        near: Collection[int] = (),
        own: Mapping[int, int] | None = None,
    ) -> Floats:
        """How probable each of these entities is to be the one that words [start, end) name."""
        score_N = self.features(words, start, end, nodes, set(near), own) @ self._weight_F
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
        for start, end, nodes in spans:
            if not taken[start:end].any():
                taken[start:end] = True
                found.append((start, end, self._most_known(nodes)))
        return sorted(found)

    def candidates(self, name: Sequence[str]) -> list[int]:
        """The entities of a name; if there are hundreds, those with the most facts."""
        return self._most_known(self.names[name])

    def _most_known(self, nodes: Sequence[int]) -> list[int]:
        if len(nodes) <= MAX_CANDIDATES:
            return list(nodes)
        degree = np.diff(self.graph.edges_of(np.array(nodes, np.int64)).offsets)
        return [nodes[n] for n in np.argsort(-degree, kind="stable")[:MAX_CANDIDATES].tolist()]

    def features(
        self,
        words: Sequence[str],
        start: int,
        end: int,
        nodes: Sequence[int],
        near: set[int],
        own: Mapping[int, int] | None = None,
    ) -> Floats:
        """What speaks for each candidate (N × F); `near` are the candidates of the other mentions, `own` whom the
        links of this text call by which name."""
        name = hash_name(words[start:end])
        around = [*words[max(start - CONTEXT, 0) : start], *words[end : end + CONTEXT]]
        context = {word.casefold() for word in around if is_content(word)}
        linked = None if own is None else own.get(name)
        near_M = np.fromiter(near, np.int32, len(near))
        rows = []
        for node in nodes:
            about = self._about(node)
            rows.append(
                (
                    about.facts,
                    about.label == name,
                    about.introductions,
                    self._anchors.log_share(name, node),
                    linked == node,
                    np.log1p(len(about.said & context)),
                    np.log1p(len(about.neighbours & context)),
                    np.log1p(_common(near_M, about.tails)),
                )
            )
        return np.array(rows, np.float64).reshape(len(nodes), len(FEATURES))

    def _read_about(self, node: int) -> _About:
        relation, tail = self.graph.edges(node)
        said = set[str]().union(*(self._relation_words(r) for r in np.unique(relation).tolist()))
        return _About(
            float(np.log1p(len(tail))),
            hash_label(self.graph, node),
            float(np.log1p(self._introductions.get(node, 0))),
            frozenset(said),
            self._neighbour_words(relation, tail),
            np.unique(tail[tail != node]) if len(tail) <= HUB else tail[:0],
        )

    def _words_of_relation(self, index: int) -> frozenset[str]:
        """Words of the name of a relation that leads away from an entity; a reverse one says nothing of it."""
        if index & 1 or index == 0:
            return frozenset()
        label = self.graph.relation_label(index)
        return frozenset(word.casefold() for word in tokenizer().words(label) if is_content(word))

    def _neighbour_words(self, relation: npt.NDArray[np.integer], tail: npt.NDArray[np.integer]) -> frozenset[str]:
        forward = tail[is_fact(relation)][:NEIGHBOURS]
        names = (name for node in forward.tolist() for name in self.graph.names(node)[:1])
        return frozenset(word.casefold() for name in names for word in name.split() if is_content(word))


def _common(near_M: npt.NDArray[np.int32], tails: npt.NDArray[np.int32]) -> int:
    """How many of the first are among the second, which are sorted."""
    if not len(tails) or not len(near_M):
        return 0
    return int((tails[np.minimum(np.searchsorted(tails, near_M), len(tails) - 1)] == near_M).sum())


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


def gathered(ways: Iterable[tuple[float, Iterable[tuple[int, int, int]]]]) -> list[Linked]:
    """The mentions (start, end, node) of several ways to link a text, each with the probability of the ways it is in.

    What is missing to 1 is the share of ways in which the words are another mention, or none.
    """
    mass: dict[tuple[int, int], dict[int, float]] = {}
    for p, spans in ways:
        for start, end, node in spans:
            nodes = mass.setdefault((start, end), {})
            nodes[node] = nodes.get(node, 0.0) + p
    return [
        Linked(*span, tuple(Candidate(node, p) for node, p in sorted(nodes.items(), key=lambda item: -item[1])))
        for span, nodes in sorted(mass.items())
    ]
