"""Results for users: answers, next words, generated words and linked mentions, by ids and labels.

Each has one JSON form: `to_json()` returns what the commands print with `--json`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from kglm.answer.answers import Answers, RankedAnswer, Ranking
from kglm.answer.mentions import LinkedMention, linked_mentions
from kglm.answer.missing import says_missing
from kglm.answer.next_word import Derivation, Distribution, MissingFact, NextWordConfig, NextWords
from kglm.answer.reading import Reading
from kglm.answer.sentences import asked_for
from kglm.heads.meanings import RelationList
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REFLEXIVE, REVERSE, REVERSE_LABEL
from kglm.kg.statements import NOTHING_KNOWN, Statement
from kglm.linking.linker import LinkedName
from kglm.model.types import Type

MAX_REASONS = 20
"""Reasons of an answer or a word that JSON lists by default; the rest is summed up."""
MAX_MISSING = 5
"""Missing facts that a completion lists."""
LEAST_MISSING = 1e-3
"""Probability below which a missing fact is not listed."""
NOTABLE_MISSING = 0.1
"""Probability from which a missing fact is reported to people."""


@dataclass(frozen=True)
class Named:
    """An entity or a relation: its id, and its label for people."""

    id: str
    label: str

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class Reason:
    """One way to a word or an answer and its share of the probability, e.g. a fact (parent, relation, entity)."""

    p: float
    type: str
    """none (no entity), new, related (by a fact of the graph), continue (a later word of a name), or missing (a plain
    word where the text asks for a fact that the graph lacks)."""
    entity: Named | None = None
    parent: Named | None = None
    relation: Named | None = None
    copied: bool | None = False
    """True if the word was copied from a name, False if it was generated from the vocabulary; None for an answer."""
    statement: Statement = NOTHING_KNOWN
    """Rank, times and sources of the fact."""
    source: str | None = None
    """Names of its sources, or their addresses."""

    @classmethod
    def of(cls, graph: KnowledgeGraph, derivation: Derivation, relations: RelationList | None = None) -> Reason:
        """The reason with ids and labels instead of node numbers; `relations` may have more than the graph."""
        entity, parent = (_node(graph, node) for node in (derivation.entity, derivation.parent))
        relation = _relation(graph, derivation.relation, relations) if derivation.relation >= 0 else None
        edge = derivation.parent, derivation.relation, derivation.entity
        statement = graph.statement(*edge) if derivation.entity >= 0 and derivation.relation > 0 else NOTHING_KNOWN
        source = ", ".join(map(graph.source_label, statement.sources)) or None
        is_missing = derivation.type == Type.NONE and relation is not None
        kind = "missing" if is_missing else derivation.type.name.lower()
        return cls(derivation.p, kind, entity, parent, relation, derivation.copied, statement, source)

    @property
    def is_fact(self) -> bool:
        """True if a fact of the graph leads to the entity, and not that it was mentioned before."""
        return self.type != "missing" and self.relation is not None and self.relation.id != REFLEXIVE

    @property
    def fact(self) -> str:
        """The fact and when it holds, or what else leads to the entity: "France —capital→ Paris (since 1944)"."""
        if self.type == "missing":
            return f"missing: {self.relation} of {self.parent}"
        if self.is_fact:
            period = f" ({self.statement.period})" if self.statement.period else ""
            return f"{self.parent} —{self.relation}→ {self.entity}{period}"
        if self.relation is not None:
            return f"{self.entity}, mentioned again"
        if self.type == "none":
            return "no entity"
        return f"more of {self.entity}" if self.type == "continue" else f"{self.entity}, new"

    def __str__(self) -> str:
        """For people: "related France —capital→ Paris (since 1944), copied; source: The World Factbook"."""
        source = f"; source: {self.source}" if self.source else ""
        if self.copied is None:
            return self.fact + source
        if self.type in ("none", "missing"):
            return self.fact
        name = str(self.entity)
        if self.type == "related":
            name = self.fact if self.is_fact else f"{self.parent} —{self.relation}→ {self.entity}"
        how = "more of" if self.type == "continue" else self.type
        return f"{how} {name}, {'copied' if self.copied else 'generated'}{source}"

    def to_json(self) -> dict[str, Any]:
        """Ids under `parent`, `relation` and `entity`; labels under `…_label`; times as in ISO 8601, and in words."""
        result: dict[str, Any] = {"p": self.p, "type": self.type}
        for name in ("parent", "relation", "entity"):
            named: Named | None = getattr(self, name)
            result |= {name: named and named.id, f"{name}_label": named and named.label}
        result |= {**self.statement.to_json(), "source": self.source}
        return {**result, "copied": self.copied, "text": str(self)}


class Reasons(Sequence[Reason]):
    """The reasons of a word. Labels are looked up when a reason is read, because a word can have hundreds."""

    def __init__(
        self, graph: KnowledgeGraph, derivations: Sequence[Derivation], relations: RelationList | None = None
    ) -> None:
        self._graph, self._relations = graph, relations
        self._derivations = derivations

    def __len__(self) -> int:
        return len(self._derivations)

    @overload
    def __getitem__(self, index: int) -> Reason: ...
    @overload
    def __getitem__(self, index: slice) -> Reasons: ...
    def __getitem__(self, index: int | slice) -> Reason | Reasons:
        if isinstance(index, slice):
            return Reasons(self._graph, self._derivations[index], self._relations)
        return Reason.of(self._graph, self._derivations[index], self._relations)

    @property
    def p(self) -> float:
        """Their total share of the word's probability."""
        return sum((derivation.p for derivation in self._derivations), 0.0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reasons) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        shown = ", ".join(f"{reason.p:.1%} {reason}" for reason in self[:3])
        return f"[{shown}{f', … {len(self)} reasons' if len(self) > 3 else ''}]"


@dataclass(frozen=True)
class Answer:
    """A whole answer: the name of an entity, or plain words, that the text goes on with."""

    text: str
    p: float
    entity: Named | None
    """The entity; None for plain words."""
    reasons: Reasons
    """Why the text goes on with it, the largest share first: facts, or that the entity is new or mentioned again."""

    @classmethod
    def of(cls, graph: KnowledgeGraph, ranked: RankedAnswer) -> Answer:
        """The answer with ids and labels instead of node numbers."""
        reasons = [derivation._replace(copied=None) for derivation in ranked.reasons]
        return cls(ranked.text, ranked.p, _node(graph, ranked.node), Reasons(graph, reasons))

    @property
    def facts(self) -> list[Reason]:
        """The facts of the graph that lead to the answer, each with its share of the probability.

        A fact that begins a mention, and that began one that goes on, is listed once.
        """
        merged: dict[tuple[Named | None, Named | None], Reason] = {}
        for reason in filter(lambda reason: reason.is_fact, self.reasons):
            key = (reason.parent, reason.relation)
            merged[key] = replace(merged[key], p=merged[key].p + reason.p) if key in merged else reason
        return sorted(merged.values(), key=lambda reason: -reason.p)

    def __str__(self) -> str:
        return f"{self.text}  {self.p:.1%}  {self.reasons[0]}"

    def to_json(self, *, reasons: int = MAX_REASONS) -> dict[str, Any]:
        """The JSON form with at most `reasons` facts and reasons; the other reasons are counted and summed."""
        further = self.reasons[reasons:]
        return {
            "text": self.text,
            "p": self.p,
            "entity": self.entity and self.entity.id,
            "entity_label": self.entity and self.entity.label,
            "facts": [reason.to_json() for reason in self.facts[:reasons]],
            "reasons": [reason.to_json() for reason in self.reasons[:reasons]],
            "further_reasons": {"count": len(further), "p": further.p},
        }


@dataclass(frozen=True)
class Missing:
    """The text asks for a relation that the parent lacks in the graph, with this probability."""

    p: float
    parent: Named
    relation: Named

    @classmethod
    def of(cls, graph: KnowledgeGraph, missing: MissingFact, relations: RelationList | None = None) -> Missing:
        """The missing fact with ids and labels instead of numbers; `relations` may have more than the graph."""
        return cls(missing.p, _named(graph, missing.parent), _relation(graph, missing.relation, relations))

    @property
    def edit(self) -> str:
        """The fact as `kglm kg edit` takes it, without the entity that is missing: "Angela Merkel | spouse | …"."""
        if self.relation.id.startswith(REVERSE):
            return f"… | {self.relation.label.removeprefix(REVERSE_LABEL)} | {self.parent}"
        return f"{self.parent} | {self.relation} | …"

    def __str__(self) -> str:
        """For people: "the text asks for the spouse of Angela Merkel (p 0.80); the graph has none"."""
        reverse = self.relation.id.startswith(REVERSE)
        label = self.relation.label.removeprefix(REVERSE_LABEL)
        asked = asked_for(self.parent.label, label, reverse=reverse)
        return f"the text asks for {asked} (p {self.p:.2f}); the graph has none"

    def to_json(self) -> dict[str, Any]:
        """Ids under `parent` and `relation`; labels under `…_label`."""
        return {
            "p": self.p,
            "parent": self.parent.id,
            "parent_label": self.parent.label,
            "relation": self.relation.id,
            "relation_label": self.relation.label,
            "text": str(self),
        }


@dataclass(frozen=True)
class Word:
    """A candidate for the next word, its probability, and its reasons, the largest share first."""

    word: str
    p: float
    reasons: Reasons

    def to_json(self, *, reasons: int = MAX_REASONS) -> dict[str, Any]:
        """The JSON form with at most `reasons` reasons; the others are counted and summed."""
        further = self.reasons[reasons:]
        return {
            "word": self.word,
            "p": self.p,
            "reasons": [reason.to_json() for reason in self.reasons[:reasons]],
            "further_reasons": {"count": len(further), "p": further.p},
        }


@dataclass(frozen=True)
class GeneratedWord:
    """A generated word, its probability, and the reason it was drawn for."""

    word: str
    p: float
    reason: Reason
    text: str | None = None
    """The word with the blank before it, if that does not follow from the words."""
    supported: bool | None = None
    """For a name, a date or a number: True if the graph or the prompt supports it. None for other words."""

    @classmethod
    def of(cls, graph: KnowledgeGraph, word: str, p: float, derivation: Derivation) -> GeneratedWord:
        """The word with ids and labels instead of node numbers."""
        return cls(word, p, Reason.of(graph, derivation))

    def __str__(self) -> str:
        return f"{self.word}  {self.p:.1%}  {self.reason}"

    def to_json(self) -> dict[str, Any]:
        more = {} if self.text is None else {"text": self.text, "supported": self.supported}
        return {"word": self.word, "p": self.p, "reason": self.reason.to_json(), **more}


@dataclass(frozen=True)
class Completion:
    """How a text goes on: the most probable answers and next words, with their reasons and the links they rest on."""

    prompt: tuple[str, ...]
    answers: tuple[Answer, ...]
    """The most probable answers, best first."""
    missing: tuple[Missing, ...]
    """Facts that the text asks for and the graph lacks, the most probable first."""
    words: tuple[Word, ...]
    """The most probable words, best first."""
    rest: dict[str, float]
    """Probability of words that was not enumerated: of less probable `new` entities and `related` facts."""
    mentions: tuple[LinkedMention, ...]
    graph: KnowledgeGraph = field(repr=False)
    distribution: Distribution = field(repr=False)
    """The full distribution of the next word; its explanations have node numbers."""
    ranking: Ranking = field(repr=False)
    """All answers, by node number."""
    linked: tuple[LinkedName, ...] = field(default=(), repr=False)
    """The candidates of each name by node number."""
    relations: RelationList | None = field(default=None, repr=False)
    """Relations that texts can ask for, if they are more than those of the graph."""

    @classmethod
    def of(
        cls,
        graph: KnowledgeGraph,
        reading: Reading,
        linked: Sequence[LinkedName],
        distribution: NextWords,
        *,
        top: int,
        limits: NextWordConfig | None = None,
    ) -> Completion:
        """The completion of a prompt that was linked and read, and whose next word was enumerated with these limits."""
        ranking = Answers(reading, distribution, limits)
        return cls.ranked(graph, reading.surface[1:], linked, distribution, ranking, top=top)

    @classmethod
    def ranked(
        cls,
        graph: KnowledgeGraph,
        prompt: Sequence[str],
        linked: Sequence[LinkedName],
        distribution: Distribution,
        ranking: Ranking,
        *,
        top: int,
        relations: RelationList | None = None,
    ) -> Completion:
        """The completion of a prompt, with the distribution of the next word and the ranking of the answers."""
        mentions = tuple(linked_mentions(graph, prompt, linked))
        listed = [missing for missing in distribution.missing if missing.p >= LEAST_MISSING][:MAX_MISSING]
        missing = tuple(Missing.of(graph, each, relations) for each in listed)
        completion = cls(
            tuple(prompt), (), missing, (), distribution.rest, mentions, graph, distribution, ranking, tuple(linked),
            relations,
        )  # fmt: skip
        return completion.with_top(top)

    def with_top(self, count: int) -> Completion:
        """The same completion with this many answers and words."""
        words = tuple(
            Word(word, p, Reasons(self.graph, self.distribution.derivations(word), self.relations))
            for word, p in self.distribution.top(count)
        )
        answers = tuple(Answer.of(self.graph, ranked) for ranked in self.ranking.top(count))
        return replace(self, answers=answers, words=words)

    @property
    def notable_missing(self) -> Missing | None:
        """The most probable missing fact, if it is probable enough to be reported."""
        return next((missing for missing in self.missing if missing.p >= NOTABLE_MISSING), None)

    @property
    def asks_for_missing(self) -> bool:
        """True if the answer is that a fact is missing: see `says_missing`."""
        return self.notable_missing is not None and says_missing(self.distribution) is not None

    def __str__(self) -> str:
        """A missing fact, and the best answers with their probabilities and main reasons, one a line."""
        missing = [] if self.notable_missing is None else [str(self.notable_missing)]
        answers = [str(answer) for answer in self.answers]
        return "\n".join([*missing, *answers] if self.asks_for_missing else [*answers, *missing])

    def to_json(self, *, reasons: int = MAX_REASONS) -> dict[str, Any]:
        """The one JSON form of a completion; an answer or a word lists at most `reasons` reasons."""
        return {
            "prompt": list(self.prompt),
            "answers": [answer.to_json(reasons=reasons) for answer in self.answers],
            "missing": [missing.to_json() for missing in self.missing],
            "words": [word.to_json(reasons=reasons) for word in self.words],
            "rest": self.rest,
            "mentions": [mention.to_json() for mention in self.mentions],
        }


def _node(graph: KnowledgeGraph, node: int) -> Named | None:
    return _named(graph, node) if node >= 0 else None


def _named(graph: KnowledgeGraph, node: int) -> Named:
    return Named(graph.id(node), graph.label(node))


def _relation(graph: KnowledgeGraph, relation: int, relations: RelationList | None = None) -> Named:
    if relations is not None:
        return Named(relations.id(relation), relations.label(relation))
    return Named(graph.relation_id(relation), graph.relation_label(relation))
