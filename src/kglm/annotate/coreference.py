"""Words that stand for an entity without its name: pronouns, "the game", and parts of a name.

From left to right, among the entities that were mentioned so far:

    he, his, she, her …     a human, of that gender if the graph knows it
    it, its                 anything else
    they, their             a band, team, company …
    the game, this band     one that is an instance of such a thing
    Obama                   a human whose name ends (or begins) so

Of several that fit, the one counts that is near, stands early in its sentence, is the article's subject, is spoken of
often. Facts of the graph decide who fits, so there is nothing to train or to download.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kglm.annotate.story import Found
from kglm.annotate.traits import MAX_WORDS, TraitReader, Traits
from kglm.kg.graph import KnowledgeGraph
from kglm.text.document import END, START
from kglm.text.function_words import is_content

MALE = frozenset(["he", "him", "his", "himself"])
FEMALE = frozenset(["she", "her", "hers", "herself"])
NEUTER = frozenset(["it", "its", "itself"])
PLURAL = frozenset(["they", "them", "their", "theirs", "themselves"])
PRONOUNS = MALE | FEMALE | NEUTER | PLURAL
DETERMINERS = frozenset(["the", "this", "that"])
_EXPLETIVE = frozenset(["that", "to", "clear", "possible", "likely", "unlikely", "important", "common", "difficult"])
_BE = frozenset(["is", "was", "seems", "seemed", "appears", "appeared", "became", "has", "would", "may", "might"])


class Resolver(Protocol):
    """Finds further mentions of entities that a text names."""

    def resolve(self, tokens: Sequence[str], found: Sequence[Found], subject: int | None = None) -> list[Found]:
        """Mentions beside those found, which come in order and do not overlap."""


@dataclass(frozen=True)
class CoreferenceConfig:
    """How an antecedent is chosen."""

    sentences: int = 2
    """An antecedent's last mention is at most so many sentences ago; the article's subject may be twice as far."""
    distance: float = -0.9
    """For each sentence in between."""
    words: float = -0.02
    """For each word in between."""
    early: float = 1.0
    """It was the first to be mentioned in its sentence."""
    subject: float = 0.8
    """It is the article's subject."""
    often: float = 0.3
    """For the logarithm of how often it was mentioned."""


@dataclass
class _Known:
    """An entity that was mentioned."""

    node: int
    traits: Traits
    times: int = 0
    sentence: int = 0
    end: int = 0
    early: bool = False
    names: set[str] = field(default_factory=set)
    """First and last words of a human's names."""


class GraphResolver:
    """The built-in resolver, for one graph."""

    def __init__(
        self, graph: KnowledgeGraph, config: CoreferenceConfig | None = None, traits: TraitReader | None = None
    ) -> None:
        self._graph = graph
        self._traits = traits or TraitReader(graph)
        self._config = config or CoreferenceConfig()

    def resolve(self, tokens: Sequence[str], found: Sequence[Found], subject: int | None = None) -> list[Found]:
        """Mentions beside those found."""
        result: list[Found] = []
        known: dict[int, _Known] = {}
        starts = {each.start: each for each in found}
        taken = {place for each in found for place in range(each.start, each.end)}
        sentence, first, at = 0, True, 0
        while at < len(tokens):
            if tokens[at] in (START, END):
                sentence, first, at = sentence + 1, True, at + 1
                continue
            each = starts.get(at)
            if each is None:
                each = self._at(tokens, at, taken, known, sentence, subject)
                if each is not None:
                    result.append(each)
            if each is None:
                at += 1
                continue
            self._note(each, tokens, known, sentence, first)
            first, at = False, each.end
        return result

    def _note(self, each: Found, tokens: Sequence[str], known: dict[int, _Known], sentence: int, first: bool) -> None:
        who = known.get(each.node)
        if who is None:
            who = known[each.node] = _Known(each.node, self._traits.of(each.node))
            if who.traits.human:
                for name in self._graph.names(each.node)[:6]:
                    who.names |= _parts(name.split())
        if who.traits.human:
            who.names |= _parts(tokens[each.start : each.end])
        who.early = first or (who.early and who.sentence == sentence)
        who.times, who.sentence, who.end = who.times + 1, sentence, each.end

    def _at(
        self,
        tokens: Sequence[str],
        at: int,
        taken: set[int],
        known: dict[int, _Known],
        sentence: int,
        subject: int | None,
    ) -> Found | None:
        """Who is meant by what begins at a word, if it stands for someone."""
        word = tokens[at]
        small = word.casefold()
        if small in PRONOUNS:
            if small in NEUTER and _is_expletive(tokens, at):
                return None
            fits = [who for who in known.values() if _agrees(small, who.traits)]
            return self._best(fits, at, at + 1, sentence, subject)
        if small in DETERMINERS:
            return self._nominal(tokens, at, taken, known, sentence, subject)
        if word[:1].isupper() and len(word) > 2 and at not in taken and _stands_alone(tokens, at):
            fits = [who for who in known.values() if word in who.names]
            return self._best(fits, at, at + 1, sentence, subject, far=True)
        return None

    def _nominal(
        self,
        tokens: Sequence[str],
        at: int,
        taken: set[int],
        known: dict[int, _Known],
        sentence: int,
        subject: int | None,
    ) -> Found | None:
        """ "The video game", "this band": the longest that someone is called."""
        for end in range(min(at + 1 + MAX_WORDS, len(tokens)), at + 1, -1):
            if END in tokens[at:end] or not taken.isdisjoint(range(at, end)):
                continue
            kind = " ".join(tokens[at + 1 : end])
            fits = [who for who in known.values() if kind in who.traits.kinds]
            if fits:
                return self._best(fits, at, end, sentence, subject)
        return None

    def _best(
        self, fits: Sequence[_Known], start: int, end: int, sentence: int, subject: int | None, *, far: bool = False
    ) -> Found | None:
        config = self._config
        chosen, highest = None, -math.inf
        for who in fits:
            away = sentence - who.sentence
            if away > config.sentences * (2 if who.node == subject else 1) and not far:
                continue
            score = config.distance * away + config.words * (start - who.end) + config.early * who.early
            score += config.subject * (who.node == subject) + config.often * math.log(who.times)
            if score > highest:
                chosen, highest = who, score
        return None if chosen is None else Found(start, end, chosen.node, "COREF")


def _parts(name: Sequence[str]) -> set[str]:
    """What a person of this name is called for short; "Angel of Death" is never called Angel."""
    return {name[0], name[-1]} if len(name) > 1 and all(word[:1].isupper() for word in name) else set()


def _stands_alone(tokens: Sequence[str], at: int) -> bool:
    """Whether a word with a capital is not part of a longer name."""
    before, after = tokens[at - 1] if at else START, tokens[at + 1] if at + 1 < len(tokens) else END
    beside = after[:1].isupper() or after in ("of", "&") or (before[:1].isupper() and is_content(before))
    return not beside and before not in ("&", "of", "the", "The")


def _agrees(pronoun: str, traits: Traits) -> bool:
    if pronoun in MALE:
        return traits.human and traits.gender != "female"
    if pronoun in FEMALE:
        return traits.human and traits.gender != "male"
    if pronoun in PLURAL:
        return traits.group
    return not traits.human


def _is_expletive(tokens: Sequence[str], at: int) -> bool:
    """ "It is clear that", "it was not until": the word stands for nobody."""
    after = [token.casefold() for token in tokens[at + 1 : at + 5]]
    return bool(after) and after[0] in _BE and bool(_EXPLETIVE & set(after[1:]))
