"""The local graph of a text: entities mentioned so far, and the edges that lead on from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kglm.kg.arrays import IntArray, run_starts
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.model.arrays import Ints


class EdgeGroups(NamedTuple):
    """The edges of an entity grouped by relation: relation i has `size[i]` tails, from `tail[first[i]]` on."""

    node: int
    relation: IntArray
    first: Ints
    size: Ints
    tail: IntArray

    @classmethod
    def of(cls, graph: KnowledgeGraph, node: int) -> EdgeGroups:
        relation, tail = graph.edges(node)
        first = np.flatnonzero(run_starts(relation))
        return cls(node, relation[first], first, np.diff(first, append=len(tail)), tail)

    def with_at_most(self, tails: int) -> EdgeGroups:
        """Only the relations with at most this many tails."""
        few = self.size <= tails
        if few.all():
            return self
        first, size = self.first[few], self.size[few]
        parts = [self.tail[a : a + n] for a, n in zip(first.tolist(), size.tolist(), strict=True)]
        tail = np.concatenate(parts) if parts else self.tail[:0]
        return EdgeGroups(self.node, self.relation[few], np.cumsum(size) - size, size, tail)


MANY_EDGES = 4096
"""The edges of entities with more of them are found by binary search, not by an index of all their tails."""


class _HubEdges(NamedTuple):
    """The edges of one slot, sorted by tail."""

    tail: IntArray
    relation: IntArray
    size: Ints
    """Number of tails of the relation."""

    @classmethod
    def of(cls, edges: EdgeGroups) -> _HubEdges:
        order = np.argsort(edges.tail, kind="stable")
        relation, size = np.repeat(edges.relation, edges.size), np.repeat(edges.size, edges.size)
        return cls(edges.tail[order], relation[order], size[order])

    def paths_to(self, node_N: Ints, slot: int) -> tuple[Ints, Ints]:
        """Index of the node, and (slot, relation, number of tails), of each edge that leads to one of the nodes."""
        first_N = np.searchsorted(self.tail, node_N)
        last_N = np.searchsorted(self.tail, node_N, side="right")
        column_W = np.repeat(np.arange(len(node_N)), last_N - first_N)
        before_N = np.cumsum(last_N - first_N) - (last_N - first_N)
        place_W = np.arange(len(column_W)) + (first_N - before_N)[column_W]
        slot_W = np.full(len(column_W), slot)
        return column_W, np.stack([slot_W, self.relation[place_W].astype(np.int64), self.size[place_W]], 1)


class PathsTo(NamedTuple):
    """All edges that lead from mentioned entities to some of the nodes of a list."""

    column_W: Ints
    """Index of the node in the list."""
    slot_W: Ints
    """Slot of the parent."""
    relation_W: Ints
    size_W: Ints
    """Number of tails of the parent's relation."""


class MentionedEntities:
    """The entities that some history of a text has mentioned. Each has a slot, in order of first mention."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph
        self.nodes: list[int] = []
        self._node_P = np.empty(0, np.int64)
        self._edges: list[EdgeGroups] = []
        self._slot: dict[int, int] = {}
        self._literal: dict[int, bool] = {}
        self._not_indexed: list[int] = []
        self._paths: dict[int, list[tuple[int, int, int]]] = {}
        """For each node, the (slot, relation, number of tails) of the edges that lead to it."""
        self._path_arrays: dict[int, Ints] = {}
        """The same as arrays, made on demand."""
        self._hubs: dict[int, _HubEdges | None] = {}
        """Slots of entities with many edges; sorted when paths are first asked for."""

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def node_P(self) -> Ints:
        """Node of each slot; the same object as long as no slot is added."""
        if len(self._node_P) < len(self.nodes):
            self._node_P = np.array(self.nodes, np.int64)
        return self._node_P

    def is_literal(self, node: int) -> bool:
        found = self._literal.get(node)
        if found is None:
            found = self._literal[node] = is_literal(self.graph.id(node))
        return found

    def slot(self, node: int) -> int:
        """Slot of an entity, which is added if it has none."""
        found = self._slot.get(node)
        if found is not None:
            return found
        slot = self._slot[node] = len(self.nodes)
        self.nodes.append(node)
        edges = EdgeGroups.of(self.graph, node)
        self._edges.append(edges)
        if len(edges.tail) > MANY_EDGES:
            self._hubs[slot] = None
        else:
            self._not_indexed.append(slot)
        return slot

    def _index(self) -> None:
        """Index the edges of new slots by their tails; not needed by those who only read edges."""
        for slot in self._not_indexed:
            edges = self._edges[slot]
            columns = (np.repeat(edges.relation, edges.size), edges.tail, np.repeat(edges.size, edges.size))
            for relation, tail, size in zip(*(column.tolist() for column in columns), strict=True):
                self._paths.setdefault(tail, []).append((slot, relation, size))
                self._path_arrays.pop(tail, None)
        self._not_indexed.clear()

    def edges(self, slot: int) -> EdgeGroups:
        """The edges of the entity of a slot."""
        return self._edges[slot]

    def paths_to(self, nodes: Sequence[int]) -> PathsTo | None:
        """The edges that lead to these nodes; None if there are none."""
        self._index()
        found = {column: paths for column, node in enumerate(nodes) if (paths := self._paths_of(node)) is not None}
        columns = [np.repeat(list(found), [len(paths) for paths in found.values()])] if found else []
        parts = list(found.values())
        for slot, hub in self._hubs.items():
            if hub is None:
                hub = self._hubs[slot] = _HubEdges.of(self._edges[slot])
            column_W, path_W3 = hub.paths_to(np.asarray(nodes, np.int64), slot)
            if len(column_W):
                columns.append(column_W)
                parts.append(path_W3)
        return PathsTo(np.concatenate(columns), *np.concatenate(parts).T) if columns else None

    def _paths_of(self, node: int) -> Ints | None:
        found = self._path_arrays.get(node)
        if found is None and (paths := self._paths.get(node)):
            found = self._path_arrays[node] = np.array(paths, np.int64)
        return found
