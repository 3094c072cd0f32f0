"""The facts of a graph as triples for TransE: table rows instead of node numbers.

All dates share one row, all quantities and texts another, and entities without facts a third, the mean vector; every
entity with facts has its own row, in order of node numbers. Reverse edges are separate triples with separate
relations; reflexive edges are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.kg.arrays import IntArray, LongArray, run_starts
from kglm.kg.graph import KnowledgeGraph

DATE, QUANTITY, MEAN, FIRST_ENTITY = range(4)
"""The shared rows, and the first row of a single entity."""
LARGEST_SHARE = 0.01
"""Largest share of the facts to hold out."""

BoolArray = npt.NDArray[np.bool_]


class Triples(NamedTuple):
    """(p, r, e): rows of head and tail, index of the relation."""

    head: IntArray
    relation: IntArray
    tail: IntArray

    def __len__(self) -> int:
        return len(self.head)

    def take(self, places: npt.NDArray[np.integer] | BoolArray) -> Triples:
        return Triples(self.head[places], self.relation[places], self.tail[places])


class GraphTriples(NamedTuple):
    """All triples of a graph, as rows of the entity table."""

    row_of_node: IntArray
    rows: int
    """Number of rows, the shared ones included."""
    relations: int
    """Relation indices are below this."""
    triples: Triples
    """Distinct triples, sorted by (head, relation, tail)."""


class Split(NamedTuple):
    """Triples to train on, and facts to evaluate on."""

    training: Triples
    held_out: Triples


def graph_triples(graph: KnowledgeGraph) -> GraphTriples:
    """All edges of a graph, edits included, except reflexive ones."""
    literal, date = graph.literal_nodes()
    offsets, relation, tail = _edges(graph)
    source = np.repeat(np.arange(len(graph), dtype=np.int32), np.diff(offsets))
    real = (relation > 1) & ~literal[source]
    source, relation, tail = source[real], relation[real], tail[real]
    with_facts = np.zeros(len(graph), np.bool_)
    with_facts[source] = True
    row_of_node = np.full(len(graph), MEAN, np.int32)
    row_of_node[literal] = QUANTITY
    row_of_node[date] = DATE
    rows = FIRST_ENTITY + int(with_facts.sum())
    row_of_node[with_facts] = np.arange(FIRST_ENTITY, rows, dtype=np.int32)
    triples = _distinct(row_of_node[source], relation, row_of_node[tail], literal[tail])
    return GraphTriples(row_of_node, rows, graph.relation_count, triples)


def split(data: GraphTriples, wanted: int, generator: np.random.Generator) -> Split:
    """Hold out up to `wanted` facts with an entity as tail; their reverses leave the training triples too.

    Every entity and every relation keeps at least one training triple.
    """
    head, relation, tail = triples = data.triples
    links, uses = np.bincount(head, minlength=data.rows), np.bincount(relation, minlength=data.relations)
    facts = np.flatnonzero((relation % 2 == 0) & (tail >= FIRST_ENTITY) & (head != tail))
    wanted = min(wanted, int(np.ceil(LARGEST_SHARE * len(facts))))
    chosen: list[int] = []
    for place in generator.permutation(facts):
        if len(chosen) >= wanted:
            break
        p, r, e = head[place], relation[place], tail[place]
        if links[p] > 1 and links[e] > 1 and uses[r] > 1:
            links[p] -= 1
            links[e] -= 1
            uses[r] -= 1
            chosen.append(place)
    held_out = triples.take(np.array(sorted(chosen), np.int64))
    keep = np.ones(len(triples), np.bool_)
    keep[chosen] = False
    keep[_places(data, Triples(held_out.tail, held_out.relation ^ 1, held_out.head))] = False
    return Split(triples.take(keep), held_out)


def answers(data: GraphTriples, head: IntArray, relation: IntArray) -> tuple[LongArray, LongArray]:
    """Start and end in `data.triples` of the triples (head, relation, ·), for each pair of head and relation."""
    keys = data.triples.head.astype(np.int64) * data.relations + data.triples.relation
    wanted = head.astype(np.int64) * data.relations + relation
    return np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, side="right")


def _places(data: GraphTriples, triples: Triples) -> LongArray:
    """Indices of the given triples in `data.triples`, which must contain them."""
    start, end = answers(data, triples.head, triples.relation)
    tails = data.triples.tail
    found = [
        s + np.searchsorted(tails[s:e], tail) for s, e, tail in zip(start, end, triples.tail.tolist(), strict=True)
    ]
    return np.array(found, np.int64)


def _edges(graph: KnowledgeGraph) -> tuple[LongArray, IntArray, IntArray]:
    base, overlay = graph.overlay.base, graph.overlay
    if overlay.touched or overlay.ids:
        return graph.edges_of(np.arange(len(graph)))
    return base.edge_offsets, base.edge_relation, base.edge_tail


def _distinct(head: IntArray, relation: IntArray, tail: IntArray, literal: BoolArray) -> Triples:
    """Distinct triples, sorted: several dates of one head and relation share a row, so their triples are equal."""
    order = np.lexsort((tail, relation, head)) if literal.any() else np.arange(len(head))
    head, relation, tail = head[order], relation[order], tail[order]
    keep = run_starts(head, relation, tail)
    return Triples(head[keep], relation[keep], tail[keep])
