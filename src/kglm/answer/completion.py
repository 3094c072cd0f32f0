"""Results for users: next words, generated words and linked mentions, by ids and labels, with one JSON form each.

`to_json()` returns what the commands print with `--json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, overload

from kglm.answer.next_word import Derivation, NextWords
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.descriptions import Describer
from kglm.linking.linker import LinkedName

MAX_REASONS = 20
"""Reasons of a word that JSON lists by default; the rest is summed up."""


@dataclass(frozen=True)
class Named:
    """An entity or a relation: its id, and its label for people."""

    id: str
    label: str

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class Reason:
    """One way to a word and its share of the word's probability, e.g. a fact (parent, relation, entity)."""

    p: float
    type: str
    """none (no entity), new, related (by a fact of the graph) or continue (a later word of a name)."""
    entity: Named | None = None
    parent: Named | None = None
    relation: Named | None = None
    copied: bool = False
    """True if the word was copied from a name, False if it was generated from the vocabulary."""

    @classmethod
    def of(cls, graph: KnowledgeGraph, derivation: Derivation) -> Reason:
        """The reason with ids and labels instead of node numbers."""
        entity, parent = (_node(graph, node) for node in (derivation.entity, derivation.parent))
        relation = None
        if derivation.relation >= 0:
            relation = Named(graph.relation_id(derivation.relation), graph.relation_label(derivation.relation))
        return cls(derivation.p, derivation.type.name.lower(), entity, parent, relation, derivation.copied)

    def __str__(self) -> str:
        """For people: "related Barack Obama —date of birth→ August 4, 1961, copied"."""
        if self.type == "none":
            return "no entity"
        name = f"{self.parent} —{self.relation}→ {self.entity}" if self.type == "related" else str(self.entity)
        how = "more of" if self.type == "continue" else self.type
        return f"{how} {name}, {'copied' if self.copied else 'generated'}"

    def to_json(self) -> dict[str, Any]:
        """Ids under `parent`, `relation` and `entity`; labels under `…_label`."""
        result: dict[str, Any] = {"p": self.p, "type": self.type}
        for name in ("parent", "relation", "entity"):
            named: Named | None = getattr(self, name)
            result |= {name: named and named.id, f"{name}_label": named and named.label}
        return {**result, "copied": self.copied, "text": str(self)}


class Reasons(Sequence[Reason]):
    """The reasons of a word. Labels are looked up when a reason is read, because a word can have hundreds."""

    def __init__(self, graph: KnowledgeGraph, derivations: Sequence[Derivation]) -> None:
        self._graph = graph
        self._derivations = derivations

    def __len__(self) -> int:
        return len(self._derivations)

    @overload
    def __getitem__(self, index: int) -> Reason: ...
    @overload
    def __getitem__(self, index: slice) -> Reasons: ...
    def __getitem__(self, index: int | slice) -> Reason | Reasons:
        if isinstance(index, slice):
            return Reasons(self._graph, self._derivations[index])
        return Reason.of(self._graph, self._derivations[index])

    @property
    def p(self) -> float:
        """Their total share of the word's probability."""
        return sum(derivation.p for derivation in self._derivations)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reasons) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        shown = ", ".join(f"{reason.p:.1%} {reason}" for reason in self[:3])
        return f"[{shown}{f', … {len(self)} reasons' if len(self) > 3 else ''}]"


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

    @classmethod
    def of(cls, graph: KnowledgeGraph, word: str, p: float, derivation: Derivation) -> GeneratedWord:
        """The word with ids and labels instead of node numbers."""
        return cls(word, p, Reason.of(graph, derivation))

    def __str__(self) -> str:
        return f"{self.word}  {self.p:.1%}  {self.reason}"

    def to_json(self) -> dict[str, Any]:
        return {"word": self.word, "p": self.p, "reason": self.reason.to_json()}


@dataclass(frozen=True)
class LinkedMention:
    """Words [start, end) of a text refer to this entity with probability p; an ambiguous name has several of these.

    Where no entity of the graph (NIL) is the most probable, `id` is None in the first of them, and p that of NIL.
    """

    start: int
    end: int
    text: str
    id: str | None
    label: str | None
    p: float
    description: str | None = None
    """What tells the entity from others of its name."""
    p_nil: float = 0.0
    """Probability that the name refers to no entity of the graph; with p of all entities of the name it sums to 1."""

    def __str__(self) -> str:
        if self.id is None:
            return f"{self.text} = no entity of the graph, {self.p:.1%}"
        described = f" – {self.description}" if self.description else ""
        return f"{self.text} = {self.label} ({self.id}){described}, {self.p:.1%}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def linked_mentions(graph: KnowledgeGraph, words: Sequence[str], linked: Iterable[LinkedName]) -> list[LinkedMention]:
    """One entry for each candidate of each name, in the order of the text; first NIL where it is most probable."""
    describer = Describer(graph)
    found = []
    for name in linked:
        text, p_nil = " ".join(words[name.start : name.end]), name.p_nil
        if name.node is None:
            found.append(LinkedMention(name.start, name.end, text, None, None, p_nil, None, p_nil))
        found += [
            LinkedMention(name.start, name.end, text, graph.id(node), graph.label(node), p, describer.of(node), p_nil)
            for node, p in name.candidates
        ]
    return found


@dataclass(frozen=True)
class Completion:
    """The distribution of the next word: its most probable words with their reasons, and the links it rests on."""

    prompt: tuple[str, ...]
    words: tuple[Word, ...]
    """The most probable words, best first."""
    rest: dict[str, float]
    """Probability that was not enumerated: of less probable `new` entities and `related` facts."""
    mentions: tuple[LinkedMention, ...]
    graph: KnowledgeGraph = field(repr=False)
    distribution: NextWords = field(repr=False)
    """The full distribution; its explanations have node numbers."""
    linked: tuple[LinkedName, ...] = field(default=(), repr=False)
    """The candidates of each name by node number."""

    @classmethod
    def of(
        cls,
        graph: KnowledgeGraph,
        prompt: Sequence[str],
        linked: Sequence[LinkedName],
        distribution: NextWords,
        *,
        top: int,
    ) -> Completion:
        """The completion of a prompt that was linked and whose next word was enumerated."""
        mentions = tuple(linked_mentions(graph, prompt, linked))
        completion = cls(tuple(prompt), (), distribution.rest, mentions, graph, distribution, tuple(linked))
        return completion.with_top(top)

    def with_top(self, count: int) -> Completion:
        """The same completion with this many words."""
        words = tuple(
            Word(word, p, Reasons(self.graph, self.distribution.derivations(word)))
            for word, p in self.distribution.top(count)
        )
        return Completion(self.prompt, words, self.rest, self.mentions, self.graph, self.distribution, self.linked)

    def __str__(self) -> str:
        """The best words with their probabilities and main reasons, one a line."""
        return "\n".join(f"{word.word}  {word.p:.1%}  {word.reasons[0]}" for word in self.words)

    def to_json(self, *, reasons: int = MAX_REASONS) -> dict[str, Any]:
        """The one JSON form of a completion; a word lists at most `reasons` reasons."""
        return {
            "prompt": list(self.prompt),
            "words": [word.to_json(reasons=reasons) for word in self.words],
            "rest": self.rest,
            "mentions": [mention.to_json() for mention in self.mentions],
        }


def _node(graph: KnowledgeGraph, node: int) -> Named | None:
    return Named(graph.id(node), graph.label(node)) if node >= 0 else None


__all__ = ["Completion", "GeneratedWord", "LinkedMention", "Named", "Reason", "Reasons", "Word", "linked_mentions"]
