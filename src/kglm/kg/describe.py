"""Describe an entity: its names, its facts and the facts that point at it, a page of values for each relation.

Values are counted by relation in the sorted edges of the entity; facts, labels and qualifiers are read only for the
values of the page. So the cost is that of the page, whatever the degree of the entity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kglm.kg.arrays import IntArray, canonical_id, run_starts
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REVERSE
from kglm.kg.schema import RANKS, FactRow
from kglm.kg.statements import Statement

SORTED_VALUES = 100
"""Of a relation with at most this many values, current ones come first; values of others are in order of number."""


class RelationEdges(NamedTuple):
    """The edges of an entity with one relation index."""

    relation: int
    tail: IntArray


class Page(NamedTuple):
    """Which values of each relation to list."""

    limit: int | None = 100
    """Maximum number of values; None: all."""
    offset: int = 0
    """Values to skip."""

    def of(self, total: int) -> slice:
        """Places of the page among this many values."""
        return slice(self.offset, total if self.limit is None else self.offset + self.limit)


def edges_by_relation(graph: KnowledgeGraph, number: int) -> list[RelationEdges]:
    """The edges of an entity by relation, without the reflexive edge; in the order of relation indices.

    None of a date, quantity or text.
    """
    relation, tail = graph.edges(number)
    if not len(tail):
        return []
    first = np.flatnonzero(run_starts(relation)).tolist()
    groups = zip(first, [*first[1:], len(tail)], strict=True)
    return [RelationEdges(int(relation[a]), tail[a:b]) for a, b in groups if relation[a]]


def describe(
    graph: KnowledgeGraph, number: int, *, relation: str | None = None, facts: Page = Page(), reverse: Page = Page()
) -> dict[str, Any]:
    """An entity of a stored graph as JSON, with a page of the facts and of the reverse facts of each relation.

    With `relation`, only its facts: those of the relation and of its reverse (P31), or of the reverse alone (R:P31).
    `counts` has the number of all values of each relation.
    """
    id = graph.id(number)
    description, title = graph.store.description(id)
    listed: list[dict[str, Any]] = []
    pointing: dict[str, list[dict[str, str]]] = {}
    counts: dict[str, dict[str, int]] = {"facts": {}, "reverse": {}}
    for index, tail in edges_by_relation(graph, number):
        key = graph.relation_id(index)
        if relation is not None and relation not in (key, key.removeprefix(REVERSE)):
            continue
        if index & 1:
            counts["reverse"][key] = len(tail)
            pointing[key] = _heads(graph, index, tail[reverse.of(len(tail))])
            continue
        total = graph.store.count_unlinked(id, key) if ":" in key else len(tail)
        if total:  # a qualifier is shown with its statement, not as a fact of its own
            counts["facts"][key] = total
            listed += _facts(graph, id, key, total, facts)
    return {
        "id": id,
        "label": graph.label(number),
        "description": description,
        "title": title,
        "aliases": list(graph.aliases(number))[1:],
        "facts": listed,
        "reverse": pointing,
        "counts": counts,
    }


def _heads(graph: KnowledgeGraph, index: int, heads: IntArray) -> list[dict[str, str]]:
    label = graph.relation_label(index ^ 1)
    return [{"id": graph.id(head), "label": graph.label(head), "relation_label": label} for head in heads.tolist()]


def _facts(graph: KnowledgeGraph, head: str, relation: str, total: int, page: Page) -> list[dict[str, Any]]:
    store, qualifies = graph.store, ":" in relation
    few = total <= SORTED_VALUES
    limit, offset = (-1 if few or page.limit is None else page.limit), 0 if few else page.offset
    rows = _distinct(store.facts_with(head, relation, limit=limit, offset=offset, unlinked=qualifies))
    qualifiers: dict[str, list[FactRow]] = {row.tail: [] for row in rows}
    sources: dict[str, tuple[str, ...]] = {}
    if few or page.limit is None:
        for tail, qualifier in store.qualifiers_with(head, relation):
            qualifiers.setdefault(tail, []).append(qualifier)
        sources = store.sources_with(head, relation)
    else:
        qualifiers = {tail: [row for _, row in store.qualifiers_with(head, relation, tail)] for tail in qualifiers}
        sources = {tail: store.sources_of(head, relation, tail) for tail in qualifiers}
    statements = {
        row.tail: Statement.of(
            row.rank,
            ((each.relation.partition(":")[2], each.tail) for each in qualifiers[row.tail]),
            sources.get(row.tail, ()),
        )
        for row in rows
    }
    if few:
        rows = sorted(rows, key=lambda row: statements[row.tail].order)[page.of(total)]
    label = graph.relation_name(relation)
    return [
        {"relation": relation, "relation_label": label, "tail": row.tail, "label": _label(graph, row)}
        | {"rank": RANKS[row.rank], **statements[row.tail].to_json()}
        | {"sources": [graph.source_label(text) for text in statements[row.tail].sources]}
        | {"qualifiers": [_qualifier(graph, each) for each in qualifiers[row.tail]]}
        for row in rows
    ]


def _distinct(rows: list[FactRow]) -> list[FactRow]:
    """Two spellings of the same date are shown once."""
    return list({canonical_id(row.tail): row for row in reversed(rows)}.values())[::-1]


def _qualifier(graph: KnowledgeGraph, fact: FactRow) -> dict[str, Any]:
    return {
        "relation": fact.relation,
        "relation_label": graph.relation_name(fact.relation),
        "tail": fact.tail,
        "label": _label(graph, fact),
    }


def _label(graph: KnowledgeGraph, fact: FactRow) -> str:
    return graph.label(graph.number(fact.tail))
