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

    relation: IntArray
    first: Ints
    size: Ints
    tail: IntArray

    @classmethod
    def of(cls, graph: KnowledgeGraph, node: int) -> EdgeGroups:
        relation, tail = graph.edges(node)
        first = np.flatnonzero(run_starts(relation))
        return cls(relation[first], first, np.diff(first, append=len(tail)), tail)


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
        self._paths: dict[int, list[tuple[int, int, int]]] = {}
        """For each node, the (slot, relation, number of tails) of the edges that lead to it."""
        self._path_arrays: dict[int, Ints] = {}
        """The same as arrays, made on demand."""

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
        columns = (np.repeat(edges.relation, edges.size), edges.tail, np.repeat(edges.size, edges.size))
        for relation, tail, size in zip(*(column.tolist() for column in columns), strict=True):
            self._paths.setdefault(tail, []).append((slot, relation, size))
            self._path_arrays.pop(tail, None)
        return slot

    def edges(self, slot: int) -> EdgeGroups:
        """The edges of the entity of a slot."""
        return self._edges[slot]

    def paths_to(self, nodes: Sequence[int]) -> PathsTo | None:
        """The edges that lead to these nodes; None if there are none."""
        found = {column: paths for column, node in enumerate(nodes) if (paths := self._paths_of(node)) is not None}
        if not found:
            return None
        column_W = np.repeat(list(found), [len(paths) for paths in found.values()])
        return PathsTo(column_W, *np.concatenate(list(found.values())).T)

    def _paths_of(self, node: int) -> Ints | None:
        found = self._path_arrays.get(node)
        if found is None and (paths := self._paths.get(node)):
            found = self._path_arrays[node] = np.array(paths, np.int64)
        return found
