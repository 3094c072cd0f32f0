"""Mentions as links, the linker and coreference find them, and how overlapping ones are reconciled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kglm.text.document import END, START

STRENGTH = {"WIKI": 3, "NEL": 2, "COREF": 1, "KG": 0}
"""Which source stands when several say the same."""
_DETERMINERS = frozenset(["the", "a", "an", "this", "that", "these", "those"])


class Found(NamedTuple):
    """Words [start, end) name an entity, as a link, the linker or coreference says; a node below 0 is a stranger, whom
    the graph does not have."""

    start: int
    end: int
    node: int
    source: str


def settle(tokens: Sequence[str], found: Iterable[Found]) -> list[Found]:
    """Mentions in order, none over another: the stronger source stands, then the longer, then the earlier.

    A weaker one of the same entity that reaches further ("the" + a link) makes the mention longer; a mention never
    holds the end of a sentence.
    """
    kept: list[Found] = []
    at: dict[int, int] = {}  # for each word that is taken, by whom
    for each in sorted(found, key=lambda each: (-STRENGTH[each.source], each.start - each.end, each.start)):
        start, end = max(each.start, 0), min(each.end, len(tokens))
        while end > start and tokens[end - 1] == END:
            end -= 1
        if start >= end or START in tokens[start:end] or END in tokens[start:end]:
            continue
        over = {at[place] for place in range(start, end) if place in at}
        if not over:
            at |= dict.fromkeys(range(start, end), len(kept))
            kept.append(each._replace(start=start, end=end))
        elif len(over) == 1 and kept[which := over.pop()].node == each.node:
            other = kept[which]
            kept[which] = other._replace(start=min(start, other.start), end=max(end, other.end))
            at |= dict.fromkeys(range(start, end), which)
    kept.sort()
    joined: list[Found] = []
    for each in kept:  # a determiner and a name, marked by different sources
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.node == each.node
            and last.end == each.start
            and last.end - last.start == 1
            and tokens[last.start].casefold() in _DETERMINERS
        ):
            strongest = max(last.source, each.source, key=STRENGTH.__getitem__)
            joined[-1] = Found(last.start, each.end, each.node, strongest)
        else:
            joined.append(each)
    return joined


def taken_places(found: Iterable[Found]) -> set[int]:
    """The words that are part of a mention."""
    return {place for each in found for place in range(each.start, each.end)}
