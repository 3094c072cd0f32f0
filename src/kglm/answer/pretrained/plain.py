"""Plain answers: words of the base that follow a text, found best first.

    p(word) = Π_i p(s_i, no mention | s_<i) · p(the word ends)

A word ends where the next subword begins another one. A capitalized word goes on with the capitalized words that
probably follow it ("New York"). Expanding a beginning of a word costs one step of the base, so only probable ones are
expanded; the others are listed as they stand.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import torch

from kglm.answer.pretrained.steps import Step

LEAST_EXPANDED = 0.02
"""Probability of a beginning from which it is expanded."""
MAX_EXPANDED = 8
"""Beginnings that are expanded."""
LONGEST = 12
"""Subwords of a plain answer."""
WAYS = 4
"""Ways in which a beginning goes on that are followed."""
NAME_GOES_ON = 0.5
"""Probability of further capitalized words from which they belong to the answer."""


class PlainWord(NamedTuple):
    """A word or short phrase of the base after a text."""

    p: float
    text: str
    """With the blank before it, if there is one."""
    ids: tuple[int, ...]


class _Beginning(NamedTuple):
    p: float
    before: Step
    ids: tuple[int, ...]
    text: str
    done: bool


def plain_words(start: Step, count_: int, *, phrases: bool = True) -> list[PlainWord]:
    """The most probable plain words after a text; with `phrases`, capitalized words may go on."""
    return list(_search(start, count_, phrases))


def _search(start: Step, most: int, phrases: bool) -> Iterator[PlainWord]:
    texts = start.reading.reader.tables.base.subwords.texts
    order, queue, expanded, found = count(), list[tuple[float, int, _Beginning]](), 0, 0

    def push(beginning: _Beginning) -> None:
        if beginning.p > 0:
            heapq.heappush(queue, (-beginning.p, next(order), beginning))

    top = start.following.outside_V.topk(min(most + 8, len(texts)))
    for id in top.indices.tolist():
        if texts[id].strip() or texts[id] == " ":
            push(_Beginning(start.p * float(start.following.outside_V[id]), start, (id,), texts[id], done=False))
    while queue and found < most:
        best = heapq.heappop(queue)[2]
        few = best.p < LEAST_EXPANDED or expanded >= MAX_EXPANDED or len(best.ids) >= LONGEST
        if best.text.isspace() and few:
            continue
        if best.done or few or not (best.text.isspace() or best.text[-1].isalnum()):
            found += 1
            yield PlainWord(best.p, best.text, best.ids)
            continue
        expanded += 1
        step = best.before.after(best.ids[-1])
        outside_V = step.following.outside_V
        ways = outside_V.topk(min(32, len(texts)))
        going_on = [id for id in ways.indices.tolist() if _goes_on(best.text, texts[id])]
        if phrases and best.text.strip()[:1].isupper():
            names = [id for id in ways.indices.tolist() if texts[id][:1] == " " and texts[id][1:2].isupper()]
            if float(outside_V[torch.tensor(names, dtype=torch.int64)].sum()) >= NAME_GOES_ON:
                going_on += names
        mass = float(outside_V[torch.tensor(going_on, dtype=torch.int64)].sum())
        if not best.text.isspace():
            push(best._replace(p=best.p * max(1 - mass, 0.0), done=True))
        for id in going_on[:WAYS]:
            push(_Beginning(best.p * float(outside_V[id]), step, (*best.ids, id), best.text + texts[id], done=False))


def _goes_on(text: str, piece: str) -> bool:
    """True if a subword continues the word that a text ends with."""
    if text.isspace():
        return bool(piece.strip())
    if not piece or not text[-1].isalnum():
        return False
    return piece[0].isalnum() or (piece[0] in "-'’" and piece[1:2].isalnum())
