"""Entity linker: find the names in a text and give a probability to each candidate entity.

A mention is the longest name of the graph at its position; its first word has a capital letter or a digit. All entities
of that name are candidates. A candidate's score is a weighted sum of features: its number of facts and of training
mentions, whether the name is its label rather than an alias, how often links with this text lead to it, whether a link
of the same text does, overlap of its relations and neighbours with the context, and facts shared with candidates of
nearby mentions. A softmax over the candidates turns scores into probabilities (a conditional logit). The weights are
set by hand; `benchmarks/linker.py` compares them with fitted ones on hidden links. Frequent link texts of an entity
count as its aliases.

Legend: N candidates of one mention, F features.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.kg.arrays import run_starts
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
"""One weight per feature, set by hand: weights fitted on 715 ambiguous links of one corpus were worse on another."""
MAX_CANDIDATES = 30
NEIGHBOURS = 60
"""Tails of a candidate whose names are compared with the context."""
CONTEXT = 40
"""Words on each side of a mention that form its context."""
HUB = 4_000
"""Above this degree, facts shared with other candidates are not checked."""


class Candidate(NamedTuple):
    """An entity that a mention may refer to, with its probability."""

    node: int
    p: float


class LinkedName(NamedTuple):
    """A name in a text, words [start, end), and its candidates, the most probable first; they sum to 1."""

    start: int
    end: int
    candidates: tuple[Candidate, ...]

    @classmethod
    def certain(cls, start: int, end: int, node: int) -> LinkedName:
        """A name whose entity is given."""
        return cls(start, end, (Candidate(node, 1.0),))

    @property
    def node(self) -> int:
        """The most probable entity."""
        return self.candidates[0].node


class _CandidateFacts(NamedTuple):
    """Features of a candidate that do not depend on the text."""

    facts: float
    label: int | None
    """Hash H of its label."""
    introductions: float
    relation_words: frozenset[str]
    """Words of the labels of its relations."""
    neighbour_words: frozenset[str]
    """Words of the labels of its tails."""
    tails: npt.NDArray[np.int32]
    """Sorted."""


class Linker:
    """Links names in texts to the entities of one graph."""

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
        self._candidate_facts = lru_cache(1 << 13)(self._read_candidate_facts)

    def link(self, words: Sequence[str], given: Sequence[tuple[int, int, int]] = ()) -> list[LinkedName]:
        """Link all names, in order. Spans `given` as (start, end, node) stay and help to disambiguate the others."""
        spans = sorted([*((start, end, [node]) for start, end, node in given), *self.mentions(words, given)])
        given_spans = {(start, end) for start, end, _ in given}
        starts = [start for start, _, _ in spans]
        own = self._link_texts(words, given)
        found = []
        for index, (start, end, nodes) in enumerate(spans):
            if (start, end) in given_spans:
                found.append(LinkedName.certain(start, end, nodes[0]))
                continue
            around = range(bisect_left(starts, start - CONTEXT), bisect_right(starts, end + CONTEXT))
            near = set[int]().union(*(spans[other][2] for other in around if other != index))
            p_N = self.probabilities(words, start, end, nodes, near, own)
            order = np.argsort(-p_N, kind="stable")
            found.append(LinkedName(start, end, tuple(Candidate(nodes[n], float(p_N[n])) for n in order.tolist())))
        return found

    @staticmethod
    def _link_texts(words: Sequence[str], given: Sequence[tuple[int, int, int]]) -> dict[int, int]:
        """Map the hash H of each given span's words to its entity; the last one wins."""
        return {hash_name(words[start:end]): node for start, end, node in given}

    def probabilities(
        self,
        words: Sequence[str],
        start: int,
        end: int,
        nodes: Sequence[int],
        near: Collection[int] = (),
        own: Mapping[int, int] | None = None,
    ) -> Floats:
        """Probability of each candidate in `nodes` that words [start, end) refer to it."""
        score_N = self.features(words, start, end, nodes, set(near), own) @ self._weight_F
        p_N = np.exp(score_N - score_N.max())
        return np.asarray(p_N / p_N.sum())

    def mentions(
        self, words: Sequence[str], given: Sequence[tuple[int, int, int]] = ()
    ) -> list[tuple[int, int, list[int]]]:
        """(start, end, candidates) of the names outside the given spans; where names overlap, the longest wins."""
        covered = np.zeros(len(words), np.bool_)
        for start, end, _ in given:
            covered[start:end] = True
        spans = [span for span in self.names.spans(words) if _is_name(words[span[0] : span[1]])]
        spans.sort(key=lambda span: (span[0] - span[1], span[0]))
        found = []
        for start, end, nodes in spans:
            if not covered[start:end].any():
                covered[start:end] = True
                found.append((start, end, self._highest_degree(nodes)))
        return sorted(found)

    def candidates(self, name: Sequence[str]) -> list[int]:
        """Entities of a name; above `MAX_CANDIDATES`, those with the most facts."""
        return self._highest_degree(self.names[name])

    def _highest_degree(self, nodes: Sequence[int]) -> list[int]:
        if len(nodes) <= MAX_CANDIDATES:
            return list(nodes)
        degree = self.graph.degrees(nodes)
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
        """Features of each candidate (N × F). `near`: candidates of nearby mentions; `own`: entities of the given
        spans of this text, by hash H of their words."""
        name = hash_name(words[start:end])
        around = [*words[max(start - CONTEXT, 0) : start], *words[end : end + CONTEXT]]
        context = {word.casefold() for word in around if is_content(word)}
        linked = None if own is None else own.get(name)
        near_M = np.fromiter(near, np.int32, len(near))
        rows = []
        for node in nodes:
            candidate = self._candidate_facts(node)
            rows.append(
                (
                    candidate.facts,
                    candidate.label == name,
                    candidate.introductions,
                    self._anchors.log_share(name, node),
                    linked == node,
                    np.log1p(len(candidate.relation_words & context)),
                    np.log1p(len(candidate.neighbour_words & context)),
                    np.log1p(_common(near_M, candidate.tails)),
                )
            )
        return np.array(rows, np.float64).reshape(len(nodes), len(FEATURES))

    def _read_candidate_facts(self, node: int) -> _CandidateFacts:
        relation, tail = self.graph.edges(node)
        distinct = relation[run_starts(relation)].tolist()
        relation_words = set[str]().union(*(self._relation_words(r) for r in distinct))
        return _CandidateFacts(
            float(np.log1p(len(tail))),
            hash_label(self.graph, node),
            float(np.log1p(self._introductions.get(node, 0))),
            frozenset(relation_words),
            self._neighbour_words([self.graph.tails(node, r) for r in distinct if r and r % 2 == 0]),
            np.unique(tail[tail != node]) if len(tail) <= HUB else tail[:0],
        )

    def _words_of_relation(self, index: int) -> frozenset[str]:
        """Words of a relation's label; none for reverse relations, which describe the other entity."""
        if index & 1 or index == 0:
            return frozenset()
        label = self.graph.relation_label(index)
        return frozenset(word.casefold() for word in tokenizer().words(label) if is_content(word))

    def _neighbour_words(self, tails: Iterable[npt.NDArray[np.integer]]) -> frozenset[str]:
        """Words of the labels of the first tails; `tails` has those of each relation."""
        forward = islice((node for each in tails for node in each[:NEIGHBOURS].tolist()), NEIGHBOURS)
        names = (name for node in forward for name in self.graph.names(node)[:1])
        return frozenset(word.casefold() for name in names for word in name.split() if is_content(word))


def _common(near_M: npt.NDArray[np.int32], tails: npt.NDArray[np.int32]) -> int:
    """Number of elements of `near_M` in the sorted array `tails`."""
    if not len(tails) or not len(near_M):
        return 0
    return int((tails[np.minimum(np.searchsorted(tails, near_M), len(tails) - 1)] == near_M).sum())


def _is_name(words: Sequence[str]) -> bool:
    """True if the first word has a capital letter or digit ("iPod" too) and any word is a content word."""
    return any(char.isupper() or char.isdigit() for char in words[0]) and any(is_content(word) for word in words)


def joint_links(
    linked: Sequence[LinkedName], *, limit: int = 8, per_name: int = 4
) -> list[tuple[float, list[tuple[int, int, int]]]]:
    """The `limit` most probable joint assignments of entities to all names, each as (probability, spans).

    Only the first `per_name` candidates of a name are used, so the probabilities may sum to less than 1.
    """
    joint: list[tuple[float, list[tuple[int, int, int]]]] = [(1.0, [])]
    for start, end, candidates in linked:
        likely = candidates[:per_name]
        grown = [(p * p_node, [*spans, (start, end, node)]) for p, spans in joint for node, p_node in likely]
        joint = sorted(grown, key=lambda pair: -pair[0])[:limit]
    return joint


def marginal_links(joint: Iterable[tuple[float, Iterable[tuple[int, int, int]]]]) -> list[LinkedName]:
    """Marginal probability of each (start, end, node) over weighted joint assignments of a text.

    The candidates of a span sum to less than 1 if some assignments do not contain the span.
    """
    mass: dict[tuple[int, int], dict[int, float]] = {}
    for p, spans in joint:
        for start, end, node in spans:
            nodes = mass.setdefault((start, end), {})
            nodes[node] = nodes.get(node, 0.0) + p
    return [
        LinkedName(*span, tuple(Candidate(node, p) for node, p in sorted(nodes.items(), key=lambda item: -item[1])))
        for span, nodes in sorted(mass.items())
    ]
