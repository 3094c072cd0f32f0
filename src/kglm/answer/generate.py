"""Text, word by word: drawn from the model, or the best that a beam finds. Every word carries the reason it came by.

A word is drawn from the distribution of the next word, and then one of the ways to it in proportion to its share: that
is a draw of (z_t, x_t) from the model. Who is mentioned decides what comes next: the local graph grows as entities are
named. What the enumeration leaves out (`NextWords.rest`) is never drawn, nor are the unknown word and the marks of
padding and start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kglm.answer.next_word import Derivation, NextWordConfig, NextWords, next_words
from kglm.answer.reading import Reading
from kglm.errors import ConfigError
from kglm.model.arrays import Floats, Ints
from kglm.model.histories import CONTINUE, FIRST, NONE
from kglm.model.types import Type
from kglm.text.document import END, START
from kglm.text.vocabulary import PADDING, UNKNOWN

SILENT = (PADDING, UNKNOWN, START)
"""Words that are never said."""
STEPS = {Type.NONE: NONE, Type.CONTINUE: CONTINUE, Type.NEW: FIRST, Type.RELATED: FIRST}


@dataclass(frozen=True)
class GenerateConfig:
    """How to generate."""

    words: int = 40
    """How many words to say; marks of sentence ends are not counted."""
    temperature: float = 0.7
    """Below 1, probable words become more so; 0 takes the most probable. 1 is the model's own distribution."""
    top_p: float = 0.9
    """Draw only from the most probable words that together have this share."""
    seed: int = 0
    beam: int = 0
    """Width of a beam, instead of drawing; 1 is greedy."""
    repeat: int = 8
    """So many words in a row are not said twice where the most probable is taken: it runs in circles. 0: they are."""

    def __post_init__(self) -> None:
        if self.words < 0 or self.beam < 0:
            raise ConfigError(f"{self.words} words by a beam of {self.beam}", remedy="give at least 0")
        if self.repeat < 0:
            raise ConfigError(f"repeat = {self.repeat}", remedy="give 0 or more")
        if self.seed < 0:
            raise ConfigError(f"seed = {self.seed}", remedy="give 0 or more")
        if not 0 <= self.temperature < float("inf"):
            raise ConfigError(f"a temperature of {self.temperature}", remedy="give 0 or more")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p = {self.top_p}", remedy="give a share above 0, at most 1")


class Spoken(NamedTuple):
    """A word, its probability, and the way it came by."""

    word: str
    p: float
    reason: Derivation


def generate(
    reading: Reading,
    config: GenerateConfig,
    enumerate_: NextWordConfig | None = None,
    pause: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Spoken, Reading]]:
    """Words one by one, each with the reading after it. `pause` is called before each is computed: it may end it all by
    raising something."""
    if config.beam:
        yield from _beam(reading, config, enumerate_, pause)
        return
    rng = np.random.default_rng(config.seed)
    which = rng.choice(len(reading.weight_S), p=reading.weight_S)
    reading = reading.only(int(which if config.temperature else reading.weight_S.argmax()))
    said = 0
    for _ in range(_limit(config)):
        if said >= config.words:
            return
        pause()
        words = next_words(reading, enumerate_)
        index = _draw(words, reading, config, rng)
        if index is None:
            return
        spoken = Spoken(words.words[index], float(words.p_N[index]), _way(words, words.words[index], rng, config))
        reading = _follow(reading, spoken)
        yield spoken, reading
        said += _counts(spoken.word)


def _counts(word: str) -> bool:
    return word != END


def _limit(config: GenerateConfig) -> int:
    """Steps after which it is enough even if most are sentence ends."""
    return 2 * config.words


def _speakable(words: NextWords, silent: Iterable[str] = SILENT) -> Floats:
    p_N = words.p_N.copy()
    for word in silent:
        if (place := words.index(word)) is not None:
            p_N[place] = 0.0
    return p_N


def _new(words: NextWords, reading: Reading, config: GenerateConfig) -> Floats:
    """p of the words that may be said where the most probable is taken."""
    return _speakable(words, (*SILENT, *repeated(reading.surface, config.repeat)))


def repeated(said: Sequence[str], length: int) -> set[str]:
    """The words after which the last `length` words of a text would have been said before."""
    if not 0 < length <= len(said):
        return set()
    last = tuple(said[len(said) - length + 1 :])
    return {
        said[start + length - 1]
        for start in range(len(said) - length + 1)
        if tuple(said[start : start + length - 1]) == last
    }


def _draw(words: NextWords, reading: Reading, config: GenerateConfig, rng: np.random.Generator) -> int | None:
    """The place of the next word; None when there is none to say."""
    p_N = _speakable(words) if config.temperature else _new(words, reading, config)
    if not p_N.any():
        return None
    if config.temperature == 0:
        return int(p_N.argmax())
    with np.errstate(divide="ignore", over="ignore"):
        share_N = np.exp((np.log(p_N) - np.log(p_N.max())) / config.temperature)
    share_N /= share_N.sum()
    order = np.argsort(-share_N, kind="stable")
    until = np.cumsum(share_N[order])
    kept = order[: int(np.searchsorted(until, config.top_p * until[-1])) + 1]
    until = np.cumsum(share_N[kept])
    return int(kept[min(int(np.searchsorted(until, rng.random() * until[-1], side="right")), len(kept) - 1)])


def _way(words: NextWords, word: str, rng: np.random.Generator, config: GenerateConfig) -> Derivation:
    """One of the reasons for a word; the most probable if nothing is drawn."""
    reasons = words.derivations(word)
    if config.temperature == 0:
        return best_way(reasons)
    until = np.cumsum([reason.p for reason in reasons])
    return reasons[min(int(np.searchsorted(until, rng.random() * until[-1], side="right")), len(reasons) - 1)]


def best_way(reasons: list[Derivation]) -> Derivation:
    """The greatest reason of the most probable step."""
    mass = steps(reasons)
    best = max(mass, key=lambda key: mass[key])
    return next(reason for reason in reasons if (STEPS[reason.type], reason.entity) == best)


def steps(reasons: Iterable[Derivation]) -> dict[tuple[int, int], float]:
    """What each step (column, entity) has of the reasons: several facts, copied or not, may lead to one mention."""
    mass: dict[tuple[int, int], float] = {}
    for reason in reasons:
        key = (STEPS[reason.type], reason.entity)
        mass[key] = mass.get(key, 0.0) + reason.p
    return mass


def _follow(reading: Reading, spoken: Spoken) -> Reading:
    """The reading after a word that was said for this reason."""
    return reading.step(spoken.word, STEPS[spoken.reason.type], spoken.reason.entity)


class _Hypothesis(NamedTuple):
    log_p: float
    said: int
    reading: Reading
    text: tuple[tuple[Spoken, Reading], ...]


def _beam(
    reading: Reading, config: GenerateConfig, enumerate_: NextWordConfig | None, pause: Callable[[], None]
) -> Iterator[tuple[Spoken, Reading]]:
    """The most probable text that a beam over words finds; each word by its most probable step."""
    start = reading.only(int(np.argmax(reading.weight_S)))
    beam = [_Hypothesis(0.0, 0, start, ())]
    for _ in range(_limit(config)):
        if all(each.said >= config.words for each in beam):
            break
        found: list[tuple[float, int, str, float]] = []
        spread: list[NextWords | None] = []
        for number, each in enumerate(beam):
            if each.said >= config.words:
                found.append((each.log_p, number, "", 1.0))
                spread.append(None)
                continue
            pause()
            words = next_words(each.reading, enumerate_)
            spread.append(words)
            p_N = _new(words, each.reading, config)
            for place in _best(p_N, config.beam).tolist():
                found.append((each.log_p + math.log(p_N[place]), number, words.words[place], float(p_N[place])))
        if not found:
            break
        found.sort(key=lambda entry: -entry[0])
        beam = [
            _extended(beam[number], spread[number], log_p, word, p) for log_p, number, word, p in found[: config.beam]
        ]
    yield from beam[0].text


def _best(p_N: Floats, count: int) -> Ints:
    """The places of the greatest, none of them zero."""
    order = np.argsort(-p_N, kind="stable")[:count]
    return np.asarray(order[p_N[order] > 0], np.int64)


def _extended(before: _Hypothesis, words: NextWords | None, log_p: float, word: str, p: float) -> _Hypothesis:
    if words is None:  # it is as long as it should be
        return before
    spoken = Spoken(word, p, best_way(words.derivations(word)))
    reading = _follow(before.reading, spoken)
    return _Hypothesis(log_p, before.said + _counts(word), reading, (*before.text, (spoken, reading)))
