"""Whom a misspelt name may be of: "Barak Obama" is close to Barack Obama.

Only names are compared that the store's index finds: those of entities with a name that begins as the text or as one of
its words does. So the cost is bounded whatever the size of the graph.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kglm.kg.graph import KnowledgeGraph

LONGEST = 80
"""Characters of a text; nobody misspells a longer name."""
BEGINNING = 3
"""Characters that a misspelt word is taken to begin with rightly."""
MOST_WORDS = 4
ENTITIES = 1_000
"""Compared for each beginning, at most: those of names as long as the text first."""
CLOSE = 0.75
"""How alike two names are at least, by difflib's ratio."""


class Suggestion(NamedTuple):
    """An entity that may be meant."""

    id: str
    label: str

    def __str__(self) -> str:
        return f"{self.label} ({self.id})"


def suggest(graph: KnowledgeGraph, text: str, limit: int = 3) -> list[Suggestion]:
    """Entities with a name like this one, the most alike first."""
    wanted = text.casefold()
    if not wanted or len(wanted) > LONGEST:
        return []
    owners: dict[str, list[str]] = {}
    for id, name in _near(graph, wanted):
        owners.setdefault(name, []).append(id)
    close = difflib.get_close_matches(wanted, owners, 2 * limit, CLOSE)
    ids = dict.fromkeys(id for name in close for id in owners[name])
    return [Suggestion(id, graph.label(graph.number(id))) for id in ids][:limit]


def _near(graph: KnowledgeGraph, wanted: str) -> Iterator[tuple[str, str]]:
    """(id, folded name) of all names of the entities that are worth a comparison."""
    words = [word for word in wanted.split()[:MOST_WORDS] if len(word) >= BEGINNING]
    beginnings = dict.fromkeys([wanted[:BEGINNING], *(word[: max(BEGINNING, len(word) - 2)] for word in words)])
    seen: set[int] = set()
    for beginning in beginnings:
        found = graph.store.rows(
            "SELECT entity FROM name WHERE folded >= ?1 AND folded < ?1 || char(0x10FFFF)"
            " ORDER BY abs(length(folded) - ?2), folded LIMIT ?3",
            (beginning, len(wanted), ENTITIES),
        )
        new = sorted({entity for [entity] in found} - seen)
        seen.update(new)
        for start in range(0, len(new), 500):
            part = new[start : start + 500]
            yield from graph.store.rows(
                "SELECT e.id, n.folded FROM name n JOIN entity e ON e.number = n.entity"
                f" WHERE n.entity IN ({','.join('?' * len(part))})",
                tuple(part),
            )
    for number, names in graph.overlay.names.items():  # entities of edits that the store may not know
        yield from ((graph.id(number), name.casefold()) for name in names)
