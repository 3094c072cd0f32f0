"""Queries of the ranks, times and sources of all statements of a graph file, for its arrays."""

from __future__ import annotations

from collections.abc import Iterator

from kglm.kg.statements import TIMES
from kglm.kg.store import Store

_TIME_RELATION = " OR ".join(f"r.id GLOB '*:{property}'" for property in TIMES)
"""Condition on the relations of qualifiers that give times."""


def has_statement_data(store: Store) -> bool:
    """True if a fact has a preferred rank, a time or a source."""
    queries = ["SELECT 1 FROM fact WHERE rank > 0 LIMIT 1"]
    queries += ["SELECT 1 FROM source LIMIT 1"] if store.version > 1 else []
    queries += [f"SELECT 1 FROM relation r WHERE {_TIME_RELATION} LIMIT 1"]
    return any(store.rows(query) for query in queries)


def statement_data(store: Store) -> Iterator[tuple[int, int, int, str, str | int]]:
    """Ranks, times and sources of all facts that have any: (head, relation, tail, property, value), by numbers.

    The property of a rank is "rank", that of a source "source"; the value of a time is the id of a date.
    """
    yield from store.stream("SELECT head, relation, tail, 'rank', rank FROM fact WHERE rank > 0")
    yield from store.stream(
        "SELECT s.head, s.relation, s.tail, substr(r.id, instr(r.id, ':') + 1), e.id FROM relation r"
        " CROSS JOIN fact f ON f.relation = r.number CROSS JOIN qualifier q ON q.fact = f.number"
        f" CROSS JOIN fact s ON s.number = q.statement JOIN entity e ON e.number = f.tail WHERE {_TIME_RELATION}"
    )
    if store.version > 1:
        yield from store.stream(
            "SELECT DISTINCT f.head, f.relation, f.tail, 'source', 0 FROM source s JOIN fact f ON f.number = s.fact"
        )
