"""Generate text word by word, by sampling or by beam search. Each word has the explanation that it was drawn with.

A word is drawn from the distribution of the next word, and then one of its explanations in proportion to its share:
together a draw of (z_t, x_t) from the model. The local graph grows as entities are mentioned. What the enumeration
leaves out (`NextWords.rest`) is never drawn, nor are the unknown word and the marks of padding and start.
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

EXCLUDED = (PADDING, UNKNOWN, START)
"""Words that are never generated."""
STEPS = {Type.NONE: NONE, Type.CONTINUE: CONTINUE, Type.NEW: FIRST, Type.RELATED: FIRST}


@dataclass(frozen=True)
class GenerateConfig:
    """Settings of generation."""

    words: int = 40
    """Number of words, not counting marks of sentence ends."""
    temperature: float = 0.7
    """1 is the model's distribution; below 1, probable words become more probable; 0 takes the most probable word."""
    top_p: float = 0.9
    """Draw only from the most probable words that together have this probability."""
    seed: int = 0
    beam: int = 0
    """Beam width instead of sampling; 1 is greedy."""
    repeat: int = 8
    """Length of word sequences that greedy and beam search do not repeat, so that they do not loop; 0 allows all."""

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


class Generated(NamedTuple):
    """A word, its probability, and the explanation that it was drawn with."""

    word: str
    p: float
    explanation: Derivation


def generate(
    reading: Reading,
    config: GenerateConfig,
    limits: NextWordConfig | None = None,
    pause: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Generated, Reading]]:
    """Generate words one by one, each with the reading after it.

    `pause` is called before each word is computed; an exception that it raises ends the generation.
    """
    if config.beam:
        yield from _beam(reading, config, limits, pause)
        return
    rng = np.random.default_rng(config.seed)
    which = rng.choice(len(reading.weight_S), p=reading.weight_S)
    reading = reading.only(int(which if config.temperature else reading.weight_S.argmax()))
    count = 0
    for _ in range(_limit(config)):
        if count >= config.words:
            return
        pause()
        words = next_words(reading, limits)
        index = _draw(words, reading, config, rng)
        if index is None:
            return
        generated = Generated(
            words.words[index], float(words.p_N[index]), _explanation(words, words.words[index], rng, config)
        )
        reading = _follow(reading, generated)
        yield generated, reading
        count += _is_counted(generated.word)


def _is_counted(word: str) -> bool:
    return word != END


def _limit(config: GenerateConfig) -> int:
    """Maximum number of steps, even if most of them are sentence ends."""
    return 2 * config.words


def _allowed(words: NextWords, excluded: Iterable[str] = EXCLUDED) -> Floats:
    p_N = words.p_N.copy()
    for word in excluded:
        if (place := words.index(word)) is not None:
            p_N[place] = 0.0
    return p_N


def _unrepeated(words: NextWords, reading: Reading, config: GenerateConfig) -> Floats:
    """Probabilities without those of words that would repeat a sequence."""
    return _allowed(words, (*EXCLUDED, *repeated(reading.surface, config.repeat)))


def repeated(words: Sequence[str], length: int) -> set[str]:
    """Words that would repeat an earlier sequence of `length` words."""
    if not 0 < length <= len(words):
        return set()
    last = tuple(words[len(words) - length + 1 :])
    return {
        words[start + length - 1]
        for start in range(len(words) - length + 1)
        if tuple(words[start : start + length - 1]) == last
    }


def _draw(words: NextWords, reading: Reading, config: GenerateConfig, rng: np.random.Generator) -> int | None:
    """Index of the next word; None if no word has probability."""
    p_N = _allowed(words) if config.temperature else _unrepeated(words, reading, config)
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


def _explanation(words: NextWords, word: str, rng: np.random.Generator, config: GenerateConfig) -> Derivation:
    """Draw one of the explanations of a word; take the most probable if the temperature is 0."""
    explanations = words.derivations(word)
    if config.temperature == 0:
        return best_explanation(explanations)
    until = np.cumsum([explanation.p for explanation in explanations])
    return explanations[min(int(np.searchsorted(until, rng.random() * until[-1], side="right")), len(explanations) - 1)]


def best_explanation(explanations: list[Derivation]) -> Derivation:
    """The most probable explanation of the most probable step."""
    mass = steps(explanations)
    best = max(mass, key=lambda key: mass[key])
    return next(explanation for explanation in explanations if (STEPS[explanation.type], explanation.entity) == best)


def steps(explanations: Iterable[Derivation]) -> dict[tuple[int, int], float]:
    """Probability of each step (column, entity): several facts, copied or generated, may lead to one mention."""
    mass: dict[tuple[int, int], float] = {}
    for explanation in explanations:
        key = (STEPS[explanation.type], explanation.entity)
        mass[key] = mass.get(key, 0.0) + explanation.p
    return mass


def _follow(reading: Reading, generated: Generated) -> Reading:
    """The reading after a generated word."""
    return reading.step(generated.word, STEPS[generated.explanation.type], generated.explanation.entity)


class _Hypothesis(NamedTuple):
    log_p: float
    length: int
    reading: Reading
    text: tuple[tuple[Generated, Reading], ...]


def _beam(
    reading: Reading, config: GenerateConfig, limits: NextWordConfig | None, pause: Callable[[], None]
) -> Iterator[tuple[Generated, Reading]]:
    """The most probable text that beam search over words finds; each word takes its most probable step."""
    start = reading.only(int(np.argmax(reading.weight_S)))
    beam = [_Hypothesis(0.0, 0, start, ())]
    for _ in range(_limit(config)):
        if all(each.length >= config.words for each in beam):
            break
        found: list[tuple[float, int, str, float]] = []
        spread: list[NextWords | None] = []
        for number, each in enumerate(beam):
            if each.length >= config.words:
                found.append((each.log_p, number, "", 1.0))
                spread.append(None)
                continue
            pause()
            words = next_words(each.reading, limits)
            spread.append(words)
            p_N = _unrepeated(words, each.reading, config)
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
    """Indices of the largest probabilities, without zeros."""
    order = np.argsort(-p_N, kind="stable")[:count]
    return np.asarray(order[p_N[order] > 0], np.int64)


def _extended(before: _Hypothesis, words: NextWords | None, log_p: float, word: str, p: float) -> _Hypothesis:
    if words is None:  # the text is complete
        return before
    generated = Generated(word, p, best_explanation(words.derivations(word)))
    reading = _follow(before.reading, generated)
    return _Hypothesis(log_p, before.length + _is_counted(word), reading, (*before.text, (generated, reading)))
