"""Whole answers: the entities and plain words that a text can go on with, each with the facts that lead to it.

    p(e) = p(continue, e) + p(new, e) + Σ_(p, r) p(related, p, r, e)      the next word is part of a mention of e
    p(x) = p(none) p(x | none)                                           the next word is x, outside of mentions

p(continue, e) is that of a mention that the text ends with: "was born on August". Several histories of a text are
averaged by weight. These events exclude each other, and with what is not enumerated (`NextWords.rest`) their
probabilities sum to 1. A name of several words, such as a date, is one answer, and so are all names of an entity; the
text of the answer is the name that is most probable here (see `names`).

A function word ("the", "in") answers nothing by itself. Those of the largest probability are replaced by the answers
after them, p(a) = p(x) p(a | x), which leaves the sum as it is: "the" and "same" become "the same". An entity that is
reached with and without such words is one answer, and its text is the name alone.

The fact that began a mention is not part of a history. For a mention that runs, p(p, r | e) is computed at its first
word: later words depend on the fact only through e.

Letters: see `kglm.model`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple, Protocol

import numpy as np

from kglm.answer.names import Words, most_probable_name
from kglm.answer.next_word import TYPES, Derivation, NextWordConfig, NextWords, most_probable, next_words
from kglm.answer.reading import Reading, read
from kglm.model.histories import CONTINUE, FIRST, NONE
from kglm.model.types import Type
from kglm.text.document import END, START
from kglm.text.function_words import is_content
from kglm.text.tokenizer import detokenize
from kglm.text.vocabulary import PADDING, UNKNOWN

NO_ANSWER = (PADDING, UNKNOWN, START)
"""Words of the vocabulary that are no answers."""
MAX_LEADS = 4
"""Function words that are replaced by the answers after them."""
MIN_LEAD = 0.02
"""Probability of a function word below which it stays an answer."""
MIN_NAMED = 0.01
"""Probability of an answer below which it gets the entity's first name, because the search for names takes time."""


UNEXPLAINED = 1e-6
"""Share of an answer that is left out if its reason is not known."""


class RankedAnswer(NamedTuple):
    """An answer by node number. `reasons` are its explanations, and sum to its probability."""

    p: float
    text: str
    node: int
    """The entity, or -1 for a plain word."""
    reasons: tuple[Derivation, ...]


class Ranking(Protocol):
    """Answers of a text, best first."""

    def top(self, count: int) -> list[RankedAnswer]:
        """The most probable answers."""
        ...


class _Key(NamedTuple):
    """What makes two ways to go on the same answer: the entity, or the plain words."""

    node: int
    words: Words = ()


@dataclass(frozen=True, eq=False)
class _Lead:
    """Function words after the text, their probability, and the distribution of the word after them."""

    words: Words
    p: float
    reading: Reading
    following: NextWords


class _Way(NamedTuple):
    """One way to an answer: why it is said, the lead that it follows, and the words of its mention so far."""

    reason: Derivation
    lead: _Lead
    said: Words = ()


class Answers:
    """The answers of a text. The next word of each expanded function word is enumerated when they are first needed."""

    def __init__(self, reading: Reading, following: NextWords, limits: NextWordConfig | None = None) -> None:
        """`following` is the distribution of the next word after `reading`, enumerated with these limits."""
        self._limits = limits
        self._first = _Lead((), 1.0, reading, following)

    @cached_property
    def _leads(self) -> list[_Lead]:
        """The text itself, and the function words that are replaced by the answers after them."""
        leads, order, queue = [self._first], count(), list[tuple[float, int, _Lead, str]]()

        def push(lead: _Lead) -> None:
            for word, p in _function_words(lead):
                heapq.heappush(queue, (-p, next(order), lead, word))

        push(self._first)
        while queue and len(leads) <= MAX_LEADS:
            p, _, lead, word = heapq.heappop(queue)
            reading = lead.reading.follow(word, NONE)
            leads.append(_Lead((*lead.words, word), -p, reading, next_words(reading, self._limits)))
            push(leads[-1])
        return leads

    def top(self, count: int) -> list[RankedAnswer]:
        """The most probable answers; entities before plain words of equal probability."""
        if count == 0:
            return []
        ways = self._entities()
        for key, way in self._plain(count):
            ways.setdefault(key, []).append(way)
        mass = {key: sum(way.reason.p for way in found) for key, found in ways.items()}
        best = heapq.nsmallest(count, mass, key=lambda key: (-mass[key], key.node < 0))
        return [self._answer(key, mass[key], ways[key]) for key in best if mass[key] > 0]

    @property
    def rest(self) -> float:
        """Probability of what is no answer: what is not enumerated, and words such as the unknown one."""
        total = 0.0
        for lead in self._leads:
            total += lead.p * sum(lead.following.rest.values())
            total += lead.p * sum(_plain_p(lead.following, word) for word in NO_ANSWER)
        return total

    # Ways to answers

    def _entities(self) -> dict[_Key, list[_Way]]:
        """Every enumerated way to each entity."""
        ways: dict[_Key, list[_Way]] = {}
        for lead in self._leads:
            following = lead.following
            rows = zip(*(column.tolist() for column in following.explanations), strict=True)
            for kind, mention, parent, relation, p in rows:
                node = following.nodes_U[mention]
                reason = Derivation(lead.p * p, TYPES[kind], node, parent, relation)
                ways.setdefault(_Key(node), []).append(_Way(reason, lead, following.said_U[mention]))
        return ways

    def _plain(self, count: int) -> Iterator[tuple[_Key, _Way]]:
        """The most probable plain words after each lead, at least `count` of all of them."""
        expanded = {lead.words for lead in self._leads}
        for lead in self._leads:
            words, plain_V = lead.following.words, lead.following.plain_V
            spare = len(expanded) + len(NO_ANSWER)
            for index in most_probable(plain_V, count + spare).tolist():
                word = words[index]
                if word not in NO_ANSWER and (*lead.words, word) not in expanded:
                    reason = Derivation(lead.p * float(plain_V[index]), Type.NONE)
                    yield _Key(-1, (*lead.words, word)), _Way(reason, lead)

    # An answer

    def _answer(self, key: _Key, p: float, ways: list[_Way]) -> RankedAnswer:
        if key.node < 0:
            text = END if key.words == (END,) else detokenize(key.words)
            return RankedAnswer(p, text, -1, (ways[0].reason,))
        groups: dict[tuple[Words, Words], list[_Way]] = {}
        for way in ways:
            groups.setdefault((way.lead.words, way.said), []).append(way)
        best = max(groups.values(), key=lambda group: sum(way.reason.p for way in group))[0]
        reasons = merged(
            reason
            for (_, said), group in groups.items()
            for reason in (
                [way.reason for way in group] if not said else self._begun(key.node, said, group[0].reason.p)
            )
        )
        text = self._text(key.node, best, search=p >= MIN_NAMED)
        return RankedAnswer(p, text, key.node, tuple(reasons))

    def _text(self, node: int, way: _Way, *, search: bool) -> str:
        """The most probable name of an entity after a lead, as the graph writes it; the first name without `search`.

        The lead is not part of it: the model says "the" before it chooses the entity, and so before Japan, too.
        """
        features = way.lead.reading.components.features
        name = most_probable_name(way.lead.reading, node, way.said) if search or way.said else None
        if name is None and way.said:  # no name goes on after these words
            return f"{detokenize(way.said)} …"
        return features.graph.label(node) if name is None else features.aliases.written(node, name)

    def _begun(self, node: int, said: Words, p: float) -> list[Derivation]:
        """The facts that began a mention that the text ends with; their shares of `p`."""
        reading = self._first.reading
        running = np.flatnonzero((reading.histories.running_S == node) & (reading.weight_S > 0)).tolist()
        running = [s for s in running if reading.running_words(s) == said]
        first = len(reading.surface) - len(said)
        kept = [[span for span in reading.annotations[s] if span.end <= first] for s in running]
        before = read(reading.components, reading.model, reading.surface[:first], [(1.0, spans) for spans in kept])
        log_p_S = [math.log(reading.weight_S[s]) + reading.only(s).log_p(CONTINUE) for s in running]
        share_S = np.exp(np.array(log_p_S) - np.logaddexp.reduce(log_p_S))
        found = []
        for s, share in enumerate(share_S.tolist()):
            start = before.only(s)
            log_p = start.log_p(FIRST, node)
            for derivation in _starts(next_words(start, self._limits), node):
                part = p * share * derivation.p / math.exp(log_p)
                found.append(derivation._replace(p=part, type=Type.CONTINUE))
        rest = p - sum(each.p for each in found)  # it began in a way that is not enumerated
        return merged(found) + ([Derivation(rest, Type.CONTINUE, node)] if rest > UNEXPLAINED * p else [])


def _function_words(lead: _Lead) -> Iterator[tuple[str, float]]:
    """Function words that are probable enough to be replaced by the answers after them."""
    plain_V = lead.p * lead.following.plain_V
    for index in np.flatnonzero(plain_V >= MIN_LEAD).tolist():
        word = lead.following.words[index]
        if word.isalpha() and not is_content(word):
            yield word, float(plain_V[index])


def _starts(following: NextWords, node: int) -> Iterator[Derivation]:
    """The enumerated ways to start a mention of an entity."""
    rows = zip(*(column.tolist() for column in following.explanations), strict=True)
    for kind, mention, parent, relation, p in rows:
        if following.nodes_U[mention] == node and not following.said_U[mention]:
            yield Derivation(p, TYPES[kind], node, parent, relation)


def merged(reasons: Iterable[Derivation]) -> list[Derivation]:
    """The sum of equal explanations, the most probable first."""
    mass: dict[Derivation, float] = {}
    for reason in reasons:
        same = reason._replace(p=0.0)
        mass[same] = mass.get(same, 0.0) + reason.p
    return sorted((same._replace(p=p) for same, p in mass.items()), key=lambda reason: -reason.p)


def _plain_p(following: NextWords, word: str) -> float:
    index = following.index(word)
    return 0.0 if index is None or index >= len(following.plain_V) else float(following.plain_V[index])
