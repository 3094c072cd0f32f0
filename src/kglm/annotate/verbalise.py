"""Facts of a graph put into words: short texts about its entities, annotated by construction.

A model learns from them what a relation sounds like, and that after "The capital of X is" a fact is due. Nothing is
written for particular relations: a relation's name and aliases are sorted by their shape (a noun, "born in", "is in the
state of", "works for"), and each shape has frames in which it is English. So a graph of one's own works as well.

documents = list(verbalise(graph, 1000, seed=0))
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from kglm.errors import GraphError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import NEW, REFLEXIVE, REVERSE
from kglm.kg.literals import is_literal
from kglm.text.document import END, START, Document, Mention
from kglm.text.tokenizer import tokenizer

Shape = Literal["noun", "participle", "predicate", "verb", "preposition"]
_PREPOSITION = "in|on|at|by|to|of|from|with|for|as|after|under|into|near|against|about|through"
_ENDS_IN_PREPOSITION = re.compile(rf".* (?:{_PREPOSITION})")
_PARTICIPLE = re.compile(
    rf"(?:\w+ed|\w+wn|\w+en|born|set|made|sung|led|won|held|built|found|fought|put|cut|sold|told|spoken)"
    rf"(?: \w+)?(?: (?:{_PREPOSITION}))"
)
_PREDICATE = re.compile(r"(?:is|was|are|were|has|had) .+")
_VERB = re.compile(rf"\w+s (?:{_PREPOSITION})|\w+ed (?:{_PREPOSITION})")
_IS = re.compile(r"^(?:is|was|are|were) ")
_NOUN = re.compile(r"[^\W\d_][^\W\d_]+(?:[ -][^\W\d_]+){0,4}")
_COUNTRY_LIKE = re.compile(r"\b(?:States|Kingdom|Republic|Islands|Emirates|Union|Federation|Netherlands|Isles)\b")
CLASS_RELATIONS = ("P106", "P31", "P279")
"""What kind of thing an entity is, best first: occupation, instance of, subclass of."""


class Phrase(NamedTuple):
    """A way to name a relation, and what kind of words it is."""

    text: str
    shape: Shape


FRAMES: dict[Shape, tuple[str, ...]] = {
    "noun": (
        "The {r} of {x} is {y}",
        "The {r} of {x} was {y}",
        "The {r} of {the_x} is {y}",
        "{x} 's {r} is {y}",
        "{x} 's {r} was {y}",
        "{y} is the {r} of {x}",
        "{y} was the {r} of {x}",
        "{y} , the {r} of {x}",
        "{x} is {a_kind} whose {r} is {y}",
        "{x} is {a_kind} with the {r} {y}",
        "The {r} of the {kind} {x} is {y}",
        "{x} ( {r} : {y} )",
        "{x} has {y} as its {r}",
        "{x} has the {r} {y}",
        "As {r} of {x} , one finds {y}",
        "The {kind} {x} has {y} as {r}",
        "For {x} , the {r} is {y}",
    ),
    "participle": (
        "{x} was {r} {y}",
        "{x} is {r} {y}",
        "{x} , {r} {y}",
        "{x} , who was {r} {y}",
        "{x} , which was {r} {y}",
        "{x} is {a_kind} that was {r} {y}",
        "{x} is {a_kind} which was {r} {y}",
        "{x} is {a_kind} {r} {y}",
        "{x} was {a_kind} {r} {y}",
        "The {kind} {x} was {r} {y}",
        "The {kind} {x} is {r} {y}",
        "{x} has been {r} {y}",
    ),
    "predicate": (
        "{x} {r} {y}",
        "{x} , which {r} {y}",
        "The {kind} {x} {r} {y}",
        "{x} is {a_kind} that {r} {y}",
        "{x} is {a_kind} {r_without_is} {y}",
        "{x} was {a_kind} {r_without_is} {y}",
    ),
    "verb": (
        "{x} {r} {y}",
        "{x} , who {r} {y}",
        "The {kind} {x} {r} {y}",
        "{x} is {a_kind} that {r} {y}",
    ),
    "preposition": (
        "{x} is {r} {y}",
        "{x} is {a_kind} {r} {y}",
        "{x} was {a_kind} {r} {y}",
        "The {kind} {x} {r} {y}",
    ),
}
"""By shape; {y} is what the sentence is about to say, {kind} what kind of thing x is."""
ENDINGS = (".", ".", ".", ".", ", as is well known .", ", according to most sources .", ";", ".")


@dataclass(frozen=True)
class VerbaliseConfig:
    """What is said."""

    sentences: int = 4
    """At most so many in one text."""
    hold_out_relations: Collection[str] = ()
    """Relations that are never put into words: to see whether a model generalises to them."""
    hold_out_frames: Collection[str] = ()
    """Frames that are never used."""
    smooth: float = 0.5
    """Relations are drawn in proportion to the number of their facts to this power."""


class Question(NamedTuple):
    """Words up to where the tail of a fact is due; words [start, end) name its head."""

    words: tuple[str, ...]
    start: int
    end: int
    frame: str


class _Choice(NamedTuple):
    frame: str
    values: dict[str, str]
    names: dict[str, list[str]]
    fact: tuple[int, int, int]


@dataclass
class _Text:
    """Words and mentions as they are put down."""

    tokens: list[str] = field(default_factory=lambda: [START])
    mentions: list[Mention] = field(default_factory=list)


def shape_of(text: str) -> Shape | None:
    """What kind of words the name of a relation is; None if it cannot stand in a sentence."""
    text = text.strip()
    if re.fullmatch(_PREPOSITION, text):
        return "preposition"
    if _PREDICATE.fullmatch(text):
        return "predicate"
    if _PARTICIPLE.fullmatch(text):
        return "participle"
    if _VERB.fullmatch(text):
        return "verb"
    if text.isupper() or _ENDS_IN_PREPOSITION.fullmatch(text) or not _NOUN.fullmatch(text):
        return None
    return "noun"


class Verbaliser:
    """Puts facts of one graph into words."""

    def __init__(self, graph: KnowledgeGraph, config: VerbaliseConfig | None = None) -> None:
        self.graph = graph
        self.config = config or VerbaliseConfig()
        self._kind = lru_cache(1 << 16)(self._find_kind)
        self._phrases: dict[int, list[Phrase]] = {}
        base = graph.overlay.base
        forward = (base.edge_relation % 2 == 0) & (base.edge_relation > 0)
        place = np.flatnonzero(forward)
        self._head = np.searchsorted(base.edge_offsets, place, side="right") - 1
        self._relation, self._tail = base.edge_relation[place], base.edge_tail[place]
        order = np.argsort(self._relation, kind="stable")
        self._relations, first, count = np.unique(self._relation[order], return_index=True, return_counts=True)
        self._of = {int(r): order[a : a + n] for r, a, n in zip(self._relations, first, count, strict=True)}
        sayable = [bool(self.phrases(int(r))) for r in self._relations]
        self._weights = count.astype(np.float64) ** self.config.smooth * np.array(sayable)
        if not self._weights.any():
            raise GraphError(
                "no fact can be put into words",
                place=graph.store.path,
                remedy='give its relations names: nouns, or words like "born in"',
            )

    def phrases(self, relation: int) -> list[Phrase]:
        """The ways to name a relation that can stand in a sentence."""
        found = self._phrases.get(relation)
        if found is None:
            id = self.graph.relation_id(relation)
            names = [self.graph.relation_name(id)]
            if (entity := self.graph.find(id)) is not None:
                names += self.graph.names(entity)
            shaped = [(name, shape_of(name)) for name in dict.fromkeys(names)] if ":" not in id else []
            found = [Phrase(name, shape) for name, shape in shaped if shape is not None]
            self._phrases[relation] = [] if id in self.config.hold_out_relations else found
        return self._phrases[relation]

    def frames(self, shape: Shape) -> list[str]:
        return [frame for frame in FRAMES[shape] if frame not in self.config.hold_out_frames]

    # Entities in words

    def name(self, node: int, rng: random.Random) -> list[str]:
        """One of the names of an entity, mostly the first; a date or quantity in one of its usual forms."""
        names = self.graph.aliases(node)[:4]
        if not names:
            return []
        others = [name for name in names if name[:1].isupper() or names[0][:1].islower()]
        chosen = names[0] if rng.random() < 0.8 or not others else rng.choice(others)
        return tokenizer().words(chosen)

    def _find_kind(self, node: int) -> tuple[str, ...]:
        """What kinds of thing an entity is, in one or two words."""
        found = []
        for id in CLASS_RELATIONS:
            relation = self.graph.find_relation(id)
            for tail in [] if relation is None else self.graph.tails(node, relation).tolist()[:4]:
                names = self.graph.names(tail)
                head = re.split(r" (?:of|in|for|or|with) |,| \(", names[0])[0] if names else ""
                if head and len(head.split()) <= 3 and head.islower():
                    found.append(head)
            if found:
                break
        return tuple(found)

    # Sentences

    def _choose(self, rng: random.Random, fact: tuple[int, int, int], *, asks: bool) -> _Choice | None:
        """A frame for a fact and what stands in it; None if it cannot be said. One that `asks` ends in {y}."""
        head, relation, tail = fact
        names = {"x": self.name(head, rng), "y": self.name(tail, rng)}
        options = self.phrases(relation)
        if not all(names.values()) or not options:
            return None
        shape = rng.choice(sorted({phrase.shape for phrase in options}))
        phrase = rng.choice([phrase for phrase in options if phrase.shape == shape])
        kinds = self._kind(head)
        frames = [frame for frame in self.frames(shape) if kinds or "kind" not in frame]
        if asks:
            frames = [frame for frame in frames if frame.endswith("{y}")]
        if not _IS.match(phrase.text):
            frames = [frame for frame in frames if "{r_without_is}" not in frame]
        if is_literal(self.graph.id(tail)):  # a date cannot come first: it is nobody before its entity is there
            frames = [frame for frame in frames if not frame.startswith("{y}")]
        if not frames:
            return None
        kind = rng.choice(kinds) if kinds else ""
        values = {
            "r": phrase.text,
            "r_without_is": _IS.sub("", phrase.text),
            "kind": kind,
            "a_kind": f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}",
        }
        return _Choice(rng.choice(frames), values, names, fact)

    def sentence(self, text: _Text, rng: random.Random, fact: tuple[int, int, int]) -> bool:
        """Put one fact into words; False if it cannot be."""
        choice = self._choose(rng, fact, asks=False)
        if choice is None:
            return False
        self._write(text, choice)
        text.tokens += [*tokenizer().words(rng.choice(ENDINGS)), END]
        return True

    def question(self, rng: random.Random, fact: tuple[int, int, int]) -> Question | None:
        """A sentence that lacks its last part, the tail of the fact."""
        choice = self._choose(rng, fact, asks=True)
        if choice is None:
            return None
        text = _Text()
        self._write(text, choice)
        [subject, tail] = text.mentions
        return Question(tuple(text.tokens[1 : tail.start]), subject.start - 1, subject.end - 1, choice.frame)

    def _write(self, text: _Text, choice: _Choice) -> None:
        frame, values, names, (head, relation, tail) = choice
        seen = {mention.id for mention in text.mentions}
        graph = self.graph
        first = "y" if frame.startswith("{y}") else "x"
        for part in frame.split():
            key = part.strip("{}")
            if key in ("x", "the_x", "y"):
                if key == "the_x" and _COUNTRY_LIKE.search(" ".join(names["x"])):
                    text.tokens.append("the")
                who = "y" if key == "y" else "x"
                node, other = (tail, head) if who == "y" else (head, tail)
                id, start = graph.id(node), len(text.tokens)
                text.tokens += names[who]
                if who != first:
                    stored = graph.relation_id(relation)
                    why = ((stored if who == "y" else REVERSE + stored,), (graph.id(other),))
                elif id in seen:
                    why = ((REFLEXIVE,), (id,))
                else:
                    why = ((NEW,), (id,))
                text.mentions.append(Mention(start, len(text.tokens), id, "KG", *why))
            elif part.startswith("{"):
                text.tokens += tokenizer().words(values[key])
            else:
                text.tokens.append(part)

    # Texts

    def document(self, number: int, seed: int) -> Document:
        """A text about one entity."""
        rng = random.Random(f"{seed} {number}")
        while True:
            text = _Text()
            first = self.draw(rng)
            if not self.sentence(text, rng, first):
                continue
            others = self._about(first[0], rng)
            for fact in others[: rng.randrange(self.config.sentences)]:
                if fact != first:
                    self.sentence(text, rng, fact)
            return Document(f"facts {number}", text.tokens, text.mentions)

    def draw(self, rng: random.Random, relation: int | None = None) -> tuple[int, int, int]:
        """A fact (head, relation, tail) of the stored graph, of this relation or of any that can be said."""
        if relation is None:
            [relation] = rng.choices(self._relations.tolist(), self._weights.tolist())
        place = int(rng.choice(self._of[relation]))
        return int(self._head[place]), int(relation), int(self._tail[place])

    def tail_of(self, rng: random.Random, relation: int) -> int:
        """A tail that the relation has somewhere."""
        return self.draw(rng, relation)[2]

    def _about(self, node: int, rng: random.Random) -> list[tuple[int, int, int]]:
        """Facts of an entity, each relation once, in any order."""
        relation, tail = self.graph.edges(node)
        by_relation: dict[int, list[int]] = {}
        for r, e in zip(relation.tolist(), tail.tolist(), strict=True):
            if r > 0 and r % 2 == 0 and self.phrases(r):
                by_relation.setdefault(r, []).append(e)
        facts = [(node, r, rng.choice(tails)) for r, tails in by_relation.items()]
        rng.shuffle(facts)
        return facts


def verbalise(
    graph: KnowledgeGraph, count: int, *, seed: int = 0, config: VerbaliseConfig | None = None
) -> Iterator[Document]:
    """So many texts, the same for a seed."""
    verbaliser = Verbaliser(graph, config)
    for number in range(count):
        yield verbaliser.document(number, seed)
