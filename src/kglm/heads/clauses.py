"""Clauses: what a sentence says before a position, as text for the sentence encoder.

The encoder says which relation a clause asks for whatever its entities are, so each linked mention is replaced by a
neutral word: "Marie Curie was born in" becomes "it was born in", and the question "Who wrote Emma?" "Who wrote it?".
What a mention is called says nothing of what is asked, so "the film" goes with the name in "When did the film Emma
come out?".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from kglm.heads.local import Link, sentence_starts
from kglm.heads.passage import Passage
from kglm.text.document import ANSWER

NEUTRAL = "it"
SURE = 0.5
"""Probability that a mention is linked at all, from which it is replaced."""
_APPOSITION = re.compile(r"\b[Tt]he [a-z]+ $")
"""What a name is called, right before it."""
LONGEST = 200
"""Characters of a clause; of a longer one, its end is kept."""


class _Replaced(NamedTuple):
    """Characters [begin, end) of a mention, and its links."""

    begin: int
    end: int
    links: tuple[Link, ...]


def clause_texts(passage: Passage, links: Sequence[Link], positions: Sequence[int]) -> list[str]:
    """The clause before each position (number of a subword; the number of all subwords for the end of the text)."""
    ends = passage.end_T.tolist()
    spans = _replaced(passage, links)
    starts = [span.begin for span in spans]
    question = ANSWER in passage.surface
    first_T = sentence_starts(passage)
    found = []
    for t in positions:
        if question:
            begin, end = _question(passage)
        else:
            end = ends[t - 1] if t else 0
            first = int(first_T[min(t, len(first_T) - 1)]) if len(first_T) else 0
            begin = ends[first - 1] if first else 0
        begin = max(begin, end - LONGEST)
        parts, last = [], begin
        for span in spans[max(bisect_right(starts, begin) - 1, 0) :]:
            if span.begin >= end:
                break
            if span.begin < last or span.end > end:
                continue
            if sum(link.p for link in span.links if link.holds(t)) < SURE:
                continue
            parts += [_APPOSITION.sub("", passage.text[last : span.begin]), NEUTRAL]
            last = span.end
        found.append("".join([*parts, passage.text[last:end]]).strip())
    return found


def _question(passage: Passage) -> tuple[int, int]:
    """Characters of the question of a passage in the chat format."""
    words = passage.word_T
    answer = passage.surface.index(ANSWER)
    own = [t for t, word in enumerate(words.tolist()) if 0 < word < answer]
    if not own:
        return 0, 0
    return int(passage.end_T[own[0] - 1]) if own[0] else 0, int(passage.end_T[own[-1]])


def _replaced(passage: Passage, links: Sequence[Link]) -> list[_Replaced]:
    """The characters of the linked mentions, without blanks before them, in order; the longest first of one place."""
    links_of: dict[tuple[int, int], list[Link]] = {}
    for link in links:
        if link.start < link.end:
            links_of.setdefault((link.start, link.end), []).append(link)
    found = []
    for (start, stop), same in links_of.items():
        begin = int(passage.end_T[start - 1]) if start else 0
        end = int(passage.end_T[stop - 1])
        begin += len(passage.text[begin:end]) - len(passage.text[begin:end].lstrip())
        found.append(_Replaced(begin, end, tuple(same)))
    return sorted(found, key=lambda span: (span.begin, -span.end))
