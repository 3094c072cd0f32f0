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
from dataclasses import dataclass
from typing import Protocol

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.linking.spans import Found, taken_places
from kglm.linking.traits import MAX_WORDS, TraitReader, Traits
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
        reader = _Reader(self._graph, self._traits, self._config, tokens, found, subject)
        return reader.read(found)


class _Reader:
    """One text on its way from left to right."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        traits: TraitReader,
        config: CoreferenceConfig,
        tokens: Sequence[str],
        found: Sequence[Found],
        subject: int | None,
    ) -> None:
        self._graph, self._traits, self._config = graph, traits, config
        self._tokens = tokens
        self._subject = subject
        self._taken = taken_places(found)
        self._known: dict[int, _Known] = {}
        self._recent: dict[int, _Known] = {}
        """Of them, those whose last mention is not too long ago."""
        self._named: dict[str, dict[int, _Known]] = {}
        """Humans by parts of their names."""
        self._sentence = 0

    def read(self, found: Sequence[Found]) -> list[Found]:
        """Walk through the text."""
        result: list[Found] = []
        starts = {each.start: each for each in found}
        first, at = True, 0
        while at < len(self._tokens):
            if self._tokens[at] in (START, END):
                self._next_sentence()
                first, at = True, at + 1
                continue
            each = starts.get(at)
            if each is None:
                each = self._at(at)
                if each is None:
                    at += 1
                    continue
                result.append(each)
            if each.node >= 0 and not is_literal(self._graph.id(each.node)):  # nobody calls a date "it"
                self._note(each, first)
                first = False
            at = each.end
        return result

    def _next_sentence(self) -> None:
        self._sentence += 1
        oldest = self._sentence - 2 * self._config.sentences
        self._recent = {node: who for node, who in self._recent.items() if who.sentence >= oldest}

    def _note(self, each: Found, first: bool) -> None:
        who = self._known.get(each.node)
        if who is None:
            who = self._known[each.node] = _Known(each.node, self._traits.of(each.node))
            for name in self._graph.names(each.node)[:6] if who.traits.human else ():
                self._name(who, name.split())
        if who.traits.human:
            self._name(who, self._tokens[each.start : each.end])
        who.early = first or (who.early and who.sentence == self._sentence)
        who.times, who.sentence, who.end = who.times + 1, self._sentence, each.end
        self._recent[each.node] = who

    def _name(self, who: _Known, name: Sequence[str]) -> None:
        for part in _parts(name):
            self._named.setdefault(part, {})[who.node] = who

    def _at(self, at: int) -> Found | None:
        """Who is meant by what begins at a word, if it stands for someone."""
        word = self._tokens[at]
        small = word.casefold()
        if small in PRONOUNS and word in (small, small.capitalize()):
            if small in NEUTER and _is_expletive(self._tokens, at):
                return None
            return self._best([who for who in self._recent.values() if _agrees(small, who.traits)], at, at + 1)
        if small in DETERMINERS:
            return self._nominal(at)
        if word in self._named and len(word) > 2 and at not in self._taken and _stands_alone(self._tokens, at):
            return self._best(list(self._named[word].values()), at, at + 1, far=True)
        return None

    def _nominal(self, at: int) -> Found | None:
        """ "The video game", "this band": the longest that someone is called."""
        tokens = self._tokens
        for end in range(min(at + 1 + MAX_WORDS, len(tokens)), at + 1, -1):
            if END in tokens[at:end] or not self._taken.isdisjoint(range(at, end)):
                continue
            kind = " ".join(tokens[at + 1 : end])
            fits = [who for who in self._recent.values() if kind in who.traits.kinds]
            if fits:
                return self._best(fits, at, end)
        return None

    def _best(self, fits: Sequence[_Known], start: int, end: int, *, far: bool = False) -> Found | None:
        """Of those that fit, the one that is spoken of; `far` says that a name finds also whoever was long ago."""
        config = self._config
        chosen, highest = None, -math.inf
        for who in fits:
            away, is_subject = self._sentence - who.sentence, who.node == self._subject
            if away > config.sentences * (2 if is_subject else 1) and not far:
                continue
            score = config.distance * away + config.words * (start - who.end) + config.early * who.early
            score += config.subject * is_subject + config.often * math.log(who.times)
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
