"""Spans of a text that refer to entities, and how overlapping spans are reconciled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kglm.text.document import END, START

STRENGTH = {"WIKI": 3, "NEL": 2, "COREF": 1, "KG": 0}
"""Priority of each source; the highest wins where spans overlap."""
_DETERMINERS = frozenset(["the", "a", "an", "this", "that", "these", "those"])


class LinkedSpan(NamedTuple):
    """Words [start, end) that a link, the linker or coreference attributes to an entity.

    A negative node is an entity outside the graph.
    """

    start: int
    end: int
    node: int
    source: str


def without_overlaps(tokens: Sequence[str], spans: Iterable[LinkedSpan]) -> list[LinkedSpan]:
    """Resolve overlaps and sort by position: the stronger source wins, then the longer span, then the earlier one.

    A weaker span of the same entity extends the winner ("the" + a link). No span contains the end of a sentence.
    """
    accepted: list[LinkedSpan] = []
    owner: dict[int, int] = {}  # position of a covered word -> index of its span in `accepted`
    for span in sorted(spans, key=lambda span: (-STRENGTH[span.source], span.start - span.end, span.start)):
        start, end = max(span.start, 0), min(span.end, len(tokens))
        while end > start and tokens[end - 1] == END:
            end -= 1
        if start >= end or START in tokens[start:end] or END in tokens[start:end]:
            continue
        overlapping = {owner[position] for position in range(start, end) if position in owner}
        if not overlapping:
            owner |= dict.fromkeys(range(start, end), len(accepted))
            accepted.append(span._replace(start=start, end=end))
        elif len(overlapping) == 1 and accepted[index := overlapping.pop()].node == span.node:
            other = accepted[index]
            accepted[index] = other._replace(start=min(start, other.start), end=max(end, other.end))
            owner |= dict.fromkeys(range(start, end), index)
    accepted.sort()
    joined: list[LinkedSpan] = []
    for span in accepted:  # join a determiner with the name after it, which another source has marked
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.node == span.node
            and last.end == span.start
            and last.end - last.start == 1
            and tokens[last.start].casefold() in _DETERMINERS
        ):
            strongest = max(last.source, span.source, key=STRENGTH.__getitem__)
            joined[-1] = LinkedSpan(last.start, span.end, span.node, strongest)
        else:
            joined.append(span)
    return joined


def covered_positions(spans: Iterable[LinkedSpan]) -> set[int]:
    """Positions of the words inside any span."""
    return {position for span in spans for position in range(span.start, span.end)}
