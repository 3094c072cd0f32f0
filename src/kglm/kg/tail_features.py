"""Features of the tails of one (parent p, relation r): they tell the current, main value from former and minor ones.

    preferred   1 if the statement has the preferred rank
    ended       1 if it has an end time
    latest      1 if no other tail has a later start (or point in time), and it has one
    joined      log n(p, e), n the number of edges from p to e, by whatever relations
    shared      log (1 + |N(p) ∩ N(e)|), N the neighbours of an entity, itself included
    known       log (1 + degree of e)

The first three are of the statement, 0 in a graph without ranks and times; the others are of the graph alone. Each is
computed when it is first asked for and kept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.statements import NO_YEAR, IntArray, StatementColumns, columns_of

FloatArray = npt.NDArray[np.float64]
WEIGHTS = {"preferred": 2.0, "ended": -2.0, "latest": 1.0, "joined": 0.25, "shared": 0.4, "known": 0.2}
"""Weights of the features before any training: Σ_q w_q f_q is high for the current, main value.

Those of `joined`, `shared` and `known` are of a conditional logit on the mentions in 800 annotated Wikipedia articles
whose relation has several tails (12,133 mentions). That corpus has no ranks or times, so the others are set by hand.
"""
NAMES = tuple(WEIGHTS)
STATED = ("preferred", "ended", "latest")
"""Features of the statement; the others follow in `NAMES`."""
MAX_TAILS = 64
"""Among more tails than these, no feature is computed."""
GROUPS_KEPT = 1 << 16
"""Pairs (p, r) whose features are kept."""
NODES_KEPT = 1 << 12
"""Entities whose neighbours are kept."""


class TailFeatures(NamedTuple):
    """Features of the tails of one parent and relation, in the order of `KnowledgeGraph.tails`."""

    tail: IntArray
    value_NQ: FloatArray
    """The features `NAMES`."""
    statements: StatementColumns | None
    """Their ranks and years; None if none is known."""

    def only(self, place: int) -> TailFeatures:
        """The features of one of the tails."""
        one = slice(place, place + 1)
        statements = None if self.statements is None else StatementColumns(*(each[one] for each in self.statements))
        return TailFeatures(self.tail[one], self.value_NQ[one], statements)


class TailFeatureReader:
    """Reads the features of one graph as it is now; after an edit, another reader is made."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self.of = lru_cache(GROUPS_KEPT)(self._of)
        self._neighbours = lru_cache(NODES_KEPT)(self._find_neighbours)

    def _of(self, parent: int, relation: int) -> TailFeatures:
        """The features of the tails of (parent, relation), which are at most `MAX_TAILS`."""
        graph = self._graph
        tail = graph.tails(parent, relation)
        near = self._neighbours(parent)
        value_NQ = np.zeros((len(tail), len(NAMES)), np.float64)
        value_NQ[:, -3] = np.log(near.edges[np.searchsorted(near.node, tail)])
        value_NQ[:, -2] = np.log1p([_common(near.node, self._neighbours(node).node) for node in tail.tolist()])
        value_NQ[:, -1] = np.log1p(graph.degrees(tail))
        statements = tail_statements(graph, parent, relation)
        if statements is not None:
            value_NQ[:, : len(STATED)] = _of_statements(statements)
        return TailFeatures(tail, value_NQ, statements)

    def _find_neighbours(self, node: int) -> _Neighbours:
        return _Neighbours(*np.unique(self._graph.edges(node).tail, return_counts=True))


class _Neighbours(NamedTuple):
    """Nodes that an entity has edges to, sorted, and the number of edges to each."""

    node: IntArray
    edges: npt.NDArray[np.int64]


def tail_statements(graph: KnowledgeGraph, head: int, relation: int) -> StatementColumns | None:
    """Ranks and years of the facts (head, relation, e), in the order of `tails`; None if none has any."""
    overlay, tails = graph.overlay, graph.tails(head, relation)
    if overlay.restated and any(overlay.is_restated(head, relation, tail) for tail in tails.tolist()):
        return columns_of(graph.statement(head, relation, tail) for tail in tails.tolist())
    places, statements = overlay.base_places(head, relation, tails), overlay.base.statements
    if not len(places) or not statements.between(places[0], places[-1] + 1):
        return None
    return statements.at(places)


def _common(first: IntArray, second: IntArray) -> int:
    """Number of common elements of two sorted arrays, at the cost of the shorter one."""
    few, many = (first, second) if len(first) <= len(second) else (second, first)
    if not len(few):
        return 0
    place = np.minimum(np.searchsorted(many, few), len(many) - 1)
    return int((many[place] == few).sum())


def _of_statements(statements: StatementColumns) -> FloatArray:
    """The features of the statements (N × 3)."""
    year = np.where(statements.start != NO_YEAR, statements.start, statements.point)
    latest = (year == year.max()) & (year != NO_YEAR)
    return np.stack([statements.rank > 0, statements.ended, latest], 1).astype(np.float64)


def covers(statements: StatementColumns, year: int) -> npt.NDArray[np.int8]:
    """For each statement, 1 if it held in a year, -1 if it did not, 0 if its times are unknown.

    >>> from kglm.kg.statements import Statement, columns_of
    >>> covers(columns_of([Statement(start="T::9::+1790-00-00T00:00:00Z"), Statement()]), 1789).tolist()
    [-1, 0]
    """
    only_point = (statements.start == NO_YEAR) & (statements.end == NO_YEAR)
    start = np.where(only_point, statements.point, statements.start)
    end = np.where(only_point, statements.point, statements.end)
    known = (start != NO_YEAR) | (end != NO_YEAR)
    inside = (start <= year) & ((year <= end) | (end == NO_YEAR))
    return np.where(known, np.where(inside, 1, -1), 0).astype(np.int8)
