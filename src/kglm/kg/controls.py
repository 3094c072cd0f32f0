"""Graphs for control experiments, in memory: the same entities and names, other facts.

shuffled(graph)            the tails of each relation are permuted: as many facts of each kind, hardly one of them true
without(graph, nodes)      some entities have neither facts nor names
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from kglm.kg.arrays import LongArray, is_fact
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.overlay import Overlay
from kglm.kg.statements import StatementColumns

Graph = TypeVar("Graph", bound=KnowledgeGraph)


def shuffled(graph: KnowledgeGraph, seed: int = 0) -> KnowledgeGraph:
    """The graph with the tails of each relation permuted."""
    head, relation, tail = _facts(graph)
    rng = np.random.default_rng(seed)
    order = np.argsort(relation, kind="stable")
    bounds = np.flatnonzero(np.diff(relation[order])) + 1
    for places in np.split(order, bounds):
        tail[places] = tail[rng.permutation(places)]
    return _with_facts(KnowledgeGraph, graph, head, relation, tail)


class _Fewer(KnowledgeGraph):
    """A graph in which some entities have no names."""

    unnamed: frozenset[int] = frozenset()

    def names(self, number: int) -> Sequence[str]:
        return () if number in self.unnamed else super().names(number)


def without(graph: KnowledgeGraph, nodes: Iterable[int]) -> KnowledgeGraph:
    """The graph without the facts and names of some entities, whose numbers remain."""
    unnamed = frozenset(nodes)
    hidden = np.zeros(len(graph), np.bool_)
    hidden[list(unnamed)] = True
    head, relation, tail = _facts(graph)
    kept = ~(hidden[head] | hidden[tail])
    fewer = _with_facts(_Fewer, graph, head[kept], relation[kept], tail[kept])
    fewer.unnamed = unnamed
    return fewer


def _facts(graph: KnowledgeGraph) -> tuple[LongArray, LongArray, LongArray]:
    """Head, relation and tail of all facts."""
    edges = graph.edges_of(np.arange(len(graph)))
    head = np.repeat(np.arange(len(graph)), np.diff(edges.offsets))
    forward = is_fact(edges.relation)
    return head[forward], edges.relation[forward].astype(np.int64), edges.tail[forward].astype(np.int64)


def _with_facts(
    kind: type[Graph], graph: KnowledgeGraph, head: LongArray, relation: LongArray, tail: LongArray
) -> Graph:
    """The graph with these facts instead of its own. Entities that only edits have added are left out."""
    base = graph.overlay.base
    stored = (head < len(base)) & (tail < len(base))
    head, relation, tail = head[stored], relation[stored], tail[stored]
    literal = graph.are_literals(np.arange(len(base)))
    back, own = ~literal[tail], np.flatnonzero(~literal & (np.diff(base.edge_offsets) > 0))
    source = np.concatenate([own, head, tail[back]])
    edge = np.concatenate([np.zeros(len(own), np.int64), relation, relation[back] + 1])
    target = np.concatenate([own, tail, head[back]])
    rows = np.unique(np.stack([source, edge, target], 1), axis=0)
    offsets = np.searchsorted(rows[:, 0], np.arange(len(base) + 1))
    changed = replace(
        base,
        edge_offsets=offsets.astype(np.int64),
        edge_relation=rows[:, 1].astype(np.int32),
        edge_tail=rows[:, 2].astype(np.int32),
        statements=StatementColumns.none(),
    )
    return kind(graph.store, Overlay(changed), graph.generation, "refused")
