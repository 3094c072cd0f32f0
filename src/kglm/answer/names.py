"""The name that the model most probably gives an entity at this place of a text.

    p(n | e) = Π_i p(w_i | e, w_<i) · Π_(i < |n|) p(continue | w_≤i) · (1 − p(continue | n))      n = w_1 … w_|n|

over the names n of e, or over those that go on after the words said so far. The search is best first over the words of
the names, so it is exact. A date or quantity is written in full, by its first name: "August 4, 1961", not "1961".

Letters: see `kglm.model`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

import numpy as np
import torch

from kglm.answer.reading import Reading
from kglm.model.arrays import array
from kglm.model.chunk import FIRST_WORD, LATER_WORD
from kglm.model.histories import CONTINUE, FIRST

Words = tuple[str, ...]


class _Prefix(NamedTuple):
    """Words of a mention, their log-probability, and the reading before the last of them."""

    log_p: float
    words: Words
    before: Reading
    whole: bool
    """True if the mention ends with these words."""


def most_probable_name(reading: Reading, node: int, said: Words = ()) -> Words | None:
    """Words of the most probable name of an entity that starts now, or whose words so far are `said`.

    None if no name goes on after these words.
    """
    names = [
        name
        for name in dict.fromkeys(reading.components.features.aliases[node].names)
        if len(name) > len(said) and name[: len(said)] == said
    ]
    if len(names) < 2 or reading.components.features.graph.are_literals(np.array([node]))[0]:
        return names[0] if names else None
    if said:
        running_S = [reading.histories.running_S[s] == node and reading.running_words(s) == said
                     for s in range(len(reading.weight_S))]  # fmt: skip
        reading = reading.select(np.flatnonzero(running_S))
    with torch.no_grad():
        return _search(reading, node, said, names)


def _search(reading: Reading, node: int, said: Words, names: list[Words]) -> Words | None:
    order = count()
    queue: list[tuple[float, int, _Prefix]] = []

    def push(prefixes: Iterable[_Prefix]) -> None:
        for each in prefixes:
            heapq.heappush(queue, (-each.log_p, next(order), each))

    push(_longer(reading, node, said, names, 0.0))
    while queue:
        best = heapq.heappop(queue)[2]
        if best.whole:
            return best.words
        column = CONTINUE if len(best.words) > 1 else FIRST
        after = best.before.follow(best.words[-1], column, node if column == FIRST else -1)
        log_p_continue = after.log_p(CONTINUE)
        if best.words in names:
            end = math.log1p(-math.exp(log_p_continue)) if log_p_continue < 0 else -math.inf
            push([best._replace(log_p=best.log_p + end, whole=True)])
        if any(_goes_on(name, best.words) for name in names):
            push(_longer(after, node, best.words, names, best.log_p + log_p_continue))
    return None


def _longer(reading: Reading, node: int, said: Words, names: list[Words], log_p: float) -> Iterator[_Prefix]:
    """The prefixes of names that are one word longer than `said`."""
    following = dict.fromkeys(name[len(said)] for name in names if _goes_on(name, said))
    word_log_p = _word_log_probs(reading, node, said, list(following))
    for word, value in zip(following, word_log_p, strict=True):
        yield _Prefix(log_p + value, (*said, word), reading, whole=False)


def _goes_on(name: Words, said: Words) -> bool:
    return len(name) > len(said) and name[: len(said)] == said


def _word_log_probs(reading: Reading, node: int, said: Words, words: list[str]) -> list[float]:
    """log p(word | entity, the words of its mention so far): generated or copied."""
    aliases, model = reading.components.features.aliases[node], reading.model
    device = reading.h_D.device
    order_1J = np.zeros((1, len(aliases.surface)), np.int64)
    order_1J[0, aliases.next_slots(said)] = LATER_WORD if said else FIRST_WORD
    generated_1V, copied_1J = model.every_word(
        model.hidden(reading.h_D).x,
        torch.tensor([node], dtype=torch.int64, device=device),
        torch.from_numpy(aliases.words_AL[None]).to(device),
        torch.from_numpy(order_1J).to(device),
    )
    vocabulary, copied_J = reading.components.vocabulary, array(copied_1J[0])
    found = []
    for word in words:
        terms = [float(copied_J[slot]) for slot in aliases.matches(word)]
        if word in vocabulary:
            terms.append(float(generated_1V[0, vocabulary.index[word]]))
        found.append(float(np.logaddexp.reduce(terms)))
    return found
