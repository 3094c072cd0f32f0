"""Suggest entities for a misspelt name: "Barak Obama" is close to Barack Obama.

Candidates come from the store's index: entities with a name that starts like the text or like one of its words. This
bounds the cost for a graph of any size.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kglm.kg.graph import KnowledgeGraph

MAX_CHARACTERS = 80
"""Longer texts get no suggestion."""
PREFIX = 3
"""Number of first characters of a word that are assumed to be spelt correctly."""
MAX_WORDS = 4
MAX_CANDIDATES = 1_000
"""Names taken from the index for each prefix; those closest in length to the text come first."""
MIN_SIMILARITY = 0.75
"""Smallest difflib ratio of a suggested name."""


class Suggestion(NamedTuple):
    """A suggested entity."""

    id: str
    label: str

    def __str__(self) -> str:
        return f"{self.label} ({self.id})"


def suggest(graph: KnowledgeGraph, text: str, limit: int = 3) -> list[Suggestion]:
    """Entities with a similar name, most similar first."""
    wanted = text.casefold()
    if not wanted or len(wanted) > MAX_CHARACTERS:
        return []
    owners: dict[str, list[str]] = {}
    for id, name in _candidates(graph, wanted):
        owners.setdefault(name, []).append(id)
    close = difflib.get_close_matches(wanted, owners, 2 * limit, MIN_SIMILARITY)
    ids = dict.fromkeys(id for name in close for id in owners[name])
    return [Suggestion(id, graph.label(graph.number(id))) for id in ids][:limit]


def _candidates(graph: KnowledgeGraph, wanted: str) -> Iterator[tuple[str, str]]:
    """(id, case-folded name) of all names of the candidate entities."""
    words = [word for word in wanted.split()[:MAX_WORDS] if len(word) >= PREFIX]
    prefixes = dict.fromkeys([wanted[:PREFIX], *(word[: max(PREFIX, len(word) - 2)] for word in words)])
    seen: set[int] = set()
    for prefix in prefixes:
        found = graph.store.rows(
            "SELECT entity FROM name WHERE folded >= ?1 AND folded < ?1 || char(0x10FFFF)"
            " ORDER BY abs(length(folded) - ?2), folded LIMIT ?3",
            (prefix, len(wanted), MAX_CANDIDATES),
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
    for number, names in graph.overlay.names.items():  # entities created by edits; a fork's are not in the store
        yield from ((graph.id(number), name.casefold()) for name in names)
