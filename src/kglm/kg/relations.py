"""The relations of a graph: how many facts each has, what its values are, and an example."""

from __future__ import annotations

from dataclasses import dataclass

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_date, is_literal, is_quantity


@dataclass(frozen=True, slots=True)
class RelationInfo:
    """A relation, and one of its facts as labels."""

    id: str
    label: str
    type: str
    """As the import or an edit has said, else as the example is."""
    facts: int
    head: str
    tail: str


def list_relations(graph: KnowledgeGraph, *, qualifiers: bool = False) -> list[RelationInfo]:
    """The stored relations, those with the most facts first; with `qualifiers`, also P…:P…."""
    rows = graph.store.checked_rows(
        "SELECT r.id, count(f.number), min(f.number) FROM relation r LEFT JOIN fact f ON f.relation = r.number"
        " WHERE r.number > 0 GROUP BY r.number ORDER BY count(f.number) DESC, r.id"
    )
    found = []
    for id, facts, first in rows:
        if ":" in id and not qualifiers:
            continue
        [head, tail] = ["", ""] if first is None else _ends(graph, first)
        shown = [graph.label(graph.number(end)) if end else "" for end in (head, tail)]
        found.append(RelationInfo(id, graph.relation_name(id), graph.datatype(id) or _type(tail), facts, *shown))
    return found


def _ends(graph: KnowledgeGraph, fact: int) -> list[str]:
    [row] = graph.store.rows(
        "SELECT h.id, t.id FROM fact f JOIN entity h ON h.number = f.head JOIN entity t ON t.number = f.tail"
        " WHERE f.number = ?",
        (fact,),
    )
    return list(row)


def _type(tail: str) -> str:
    if not tail:
        return ""
    if not is_literal(tail):
        return "entity"
    return "date" if is_date(tail) else "quantity" if is_quantity(tail) else "text"
