"""Rule-based coreference: resolve pronouns, "the game" and parts of names to entities mentioned before.

Each expression selects candidates among the entities mentioned so far, from left to right:

    he, his, she, her …     a human, of that gender if the graph states it
    it, its                 any entity that is not human
    they, their             a band, team, company …
    the game, this band     an instance of that class
    Obama                   a human whose name begins or ends with that word

The candidate with the highest score wins: recent, first in its sentence, the article's subject, often mentioned. The
graph supplies gender and class, so there is no model to train or download.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import MutableMapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.linking.spans import LinkedSpan, covered_positions
from kglm.linking.traits import MAX_WORDS, TraitReader, Traits
from kglm.text.document import END, START
from kglm.text.function_words import is_content

MALE = frozenset(["he", "him", "his", "himself"])
FEMALE = frozenset(["she", "her", "hers", "herself"])
NEUTER = frozenset(["it", "its", "itself"])
PLURAL = frozenset(["they", "them", "their", "theirs", "themselves"])
PRONOUNS = MALE | FEMALE | NEUTER | PLURAL
DETERMINERS = frozenset(["the", "this", "that"])
LOOK_AHEAD = 4
"""Most words after an expression that decide what it refers to."""
_AFTER_NAMES = frozenset(["of", "&"])
"""Words after which a name goes on."""
_EXPLETIVE = frozenset(["that", "to", "clear", "possible", "likely", "unlikely", "important", "common", "difficult"])
_WEATHER = frozenset(["rains", "rained", "raining", "snows", "snowed", "snowing"])
_BE = frozenset(["is", "was", "seems", "seemed", "appears", "appeared", "became", "has", "would", "may", "might"])


class Resolver(Protocol):
    """Finds coreferent mentions of entities that are linked elsewhere in a text."""

    def resolve(
        self, tokens: Sequence[str], given: Sequence[LinkedSpan], subject: int | None = None
    ) -> list[LinkedSpan]:
        """Mentions outside the given spans, which are sorted and do not overlap; `subject`: the article's entity."""


@dataclass(frozen=True)
class CoreferenceConfig:
    """Limits and score weights for choosing an antecedent."""

    sentences: int = 2
    """Most sentences back to an antecedent's last mention; twice as many for the article's subject."""
    distance: float = -0.9
    """Score per sentence since its last mention."""
    words: float = -0.02
    """Score per word since its last mention."""
    early: float = 1.0
    """Score if it was the first entity of its sentence."""
    subject: float = 0.8
    """Score if it is the article's subject."""
    often: float = 0.3
    """Score per log of its number of mentions."""


class _Antecedent(NamedTuple):
    """An entity mentioned so far, and where its last mention was."""

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

    def resolve(
        self, tokens: Sequence[str], given: Sequence[LinkedSpan], subject: int | None = None
    ) -> list[LinkedSpan]:
        """Mentions outside the given spans."""
        return _TextResolver(self._graph, self._traits, self._config, tokens, given, subject).resolve()


class _TextResolver:
    """Resolves one text from left to right."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        traits: TraitReader,
        config: CoreferenceConfig,
        tokens: Sequence[str],
        given: Sequence[LinkedSpan],
        subject: int | None,
    ) -> None:
        self._graph, self._traits, self._config = graph, traits, config
        self._tokens = tokens
        self._subject = subject
        self._given = {span.start: span for span in given}
        self._covered = covered_positions(given)
        self._antecedents: MutableMapping[int, _Antecedent] = {}
        self._recent: dict[int, _Antecedent] = {}
        """Antecedents whose last mention is recent enough for a pronoun."""
        self._by_name_part: MutableMapping[str, tuple[int, ...]] = {}
        """Humans by the first and last words of their names."""
        self._sentence, self._first = 0, True
        """Number of the sentence, and whether it has no mention so far."""

    def resolve(self, begin: int = 0, end: int | None = None) -> list[LinkedSpan]:
        """Coreferent mentions of the whole text, or of the words [begin, end), of which those before are resolved."""
        result: list[LinkedSpan] = []
        at, end = begin, len(self._tokens) if end is None else end
        while at < end:
            if self._tokens[at] in (START, END):
                self._next_sentence()
                at += 1
                continue
            span = self._given.get(at)
            if span is None:
                span = self._mention_at(at)
                if span is None:
                    at += 1
                    continue
                result.append(span)
            if span.node >= 0 and not is_literal(self._graph.id(span.node)):  # pronouns do not refer to dates
                self._add_mention(span)
            at = span.end
        return result

    def _next_sentence(self) -> None:
        self._sentence, self._first = self._sentence + 1, True
        oldest = self._sentence - 2 * self._config.sentences
        self._recent = {node: entity for node, entity in self._recent.items() if entity.sentence >= oldest}

    def _add_mention(self, span: LinkedSpan) -> None:
        """Record a mention."""
        entity = self._antecedents.get(span.node)
        if entity is None:
            entity = _Antecedent(span.node, self._traits.of(span.node))
            for name in self._graph.names(span.node)[:6] if entity.traits.human else ():
                self._add_name(entity, name.split())
        if entity.traits.human:
            self._add_name(entity, self._tokens[span.start : span.end])
        early = self._first or (entity.early and entity.sentence == self._sentence)
        entity = entity._replace(times=entity.times + 1, sentence=self._sentence, end=span.end, early=early)
        self._antecedents[span.node] = self._recent[span.node] = entity
        self._first = False

    def _add_name(self, entity: _Antecedent, name: Sequence[str]) -> None:
        for part in _short_names(name):
            nodes = self._by_name_part.get(part, ())
            if entity.node not in nodes:
                self._by_name_part[part] = (*nodes, entity.node)

    def _mention_at(self, at: int) -> LinkedSpan | None:
        """The coreferent mention that begins at a word, if there is one."""
        word = self._tokens[at]
        small = word.casefold()
        if small in PRONOUNS and word in (small, small.capitalize()):
            if small in NEUTER and _is_expletive(self._tokens, at):
                return None
            return self._best([entity for entity in self._recent.values() if _agrees(small, entity.traits)], at, at + 1)
        if small in DETERMINERS and not (at and self._tokens[at - 1] in _BE):  # "is the singer" refers to nobody
            return self._nominal(at)
        if word in self._by_name_part and len(word) > 2 and at not in self._covered and _stands_alone(self._tokens, at):
            people = [self._antecedents[node] for node in self._by_name_part[word]]
            return self._best(people, at, at + 1, far=True)
        return None

    def _nominal(self, at: int) -> LinkedSpan | None:
        """Resolve "the video game", "this band": the longest match with the class of a recent entity."""
        tokens = self._tokens
        for end in range(min(at + 1 + MAX_WORDS, len(tokens)), at + 1, -1):
            if END in tokens[at:end] or not self._covered.isdisjoint(range(at, end)):
                continue
            kind = " ".join(tokens[at + 1 : end])
            candidates = [entity for entity in self._recent.values() if kind in entity.traits.kinds]
            if candidates:
                return self._best(candidates, at, end)
        return None

    def _best(self, candidates: Sequence[_Antecedent], start: int, end: int, *, far: bool = False) -> LinkedSpan | None:
        """The candidate with the highest score; `far` lifts the limit on distance, which does not apply to names."""
        config = self._config
        chosen, highest = None, -math.inf
        for entity in candidates:
            away, is_subject = self._sentence - entity.sentence, entity.node == self._subject
            if away > config.sentences * (2 if is_subject else 1) and not far:
                continue
            score = config.distance * away + config.words * (start - entity.end) + config.early * entity.early
            score += config.subject * is_subject + config.often * math.log(entity.times)
            if score > highest:
                chosen, highest = entity, score
        return None if chosen is None else LinkedSpan(start, end, chosen.node, "COREF")


class RunningResolver(_TextResolver):
    """Resolves a text that grows: words up to a place are settled, those after it are resolved again and again."""

    def __init__(self, graph: KnowledgeGraph, traits: TraitReader, tokens: Sequence[str]) -> None:
        """`tokens` is the list that grows."""
        super().__init__(graph, traits, CoreferenceConfig(), tokens, (), None)

    def fork(self, tokens: Sequence[str]) -> RunningResolver:
        """A copy for a text that begins with the same words."""
        other = copy(self)
        other._tokens = tokens
        other._antecedents, other._recent = dict(self._antecedents), dict(self._recent)
        other._by_name_part = dict(self._by_name_part)
        return other

    def settle(self, given: Sequence[LinkedSpan], begin: int, end: int) -> list[LinkedSpan]:
        """Resolve the words [begin, end) for good, where [0, begin) are settled; `given` are their other mentions."""
        self._given = {span.start: span for span in given}
        self._covered = covered_positions(given)
        return self.resolve(begin, end)

    def is_pending(self, first: int) -> bool:
        """True if the words from a position on may refer to something, or say whether those just before them do."""
        return any(
            word in self._by_name_part
            or (small := word.casefold()) in PRONOUNS
            or small in DETERMINERS
            or small in _AFTER_NAMES
            for word in self._tokens[max(first - LOOK_AHEAD, 0) :]
        )

    def tentative(self, given: Sequence[LinkedSpan], begin: int) -> list[LinkedSpan]:
        """Resolve the words from `begin` on, where [0, begin) are settled; nothing is remembered."""
        other = copy(self)
        other._antecedents, other._recent = ChainMap({}, self._antecedents), dict(self._recent)
        other._by_name_part = ChainMap({}, self._by_name_part)
        return other.settle(given, begin, len(self._tokens))


def _short_names(name: Sequence[str]) -> set[str]:
    """First and last word of a person's name; none if a word is not capitalized ("Angel of Death")."""
    return {name[0], name[-1]} if len(name) > 1 and all(word[:1].isupper() for word in name) else set()


def _stands_alone(tokens: Sequence[str], at: int) -> bool:
    """True if a capitalized word is not part of a longer name."""
    before, after = tokens[at - 1] if at else START, tokens[at + 1] if at + 1 < len(tokens) else END
    beside = after[:1].isupper() or after in _AFTER_NAMES or (before[:1].isupper() and is_content(before))
    return not beside and before not in ("&", "of", "the", "The")


def _agrees(pronoun: str, traits: Traits) -> bool:
    """True if a pronoun can refer to an entity with these traits."""
    if pronoun in MALE:
        return traits.human and traits.gender != "female"
    if pronoun in FEMALE:
        return traits.human and traits.gender != "male"
    if pronoun in PLURAL:
        return traits.group
    return not traits.human


def _is_expletive(tokens: Sequence[str], at: int) -> bool:
    """True if "it" refers to no entity, as in "it is clear that"."""
    after = [token.casefold() for token in tokens[at + 1 : at + 1 + LOOK_AHEAD]]
    if not after or after[0] in _WEATHER:
        return bool(after)
    return after[0] in _BE and bool((_EXPLETIVE | _WEATHER) & set(after[1:]))
