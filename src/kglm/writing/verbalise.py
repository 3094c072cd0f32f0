"""Verbalise the facts of a graph: short texts about its entities, annotated by construction.

A model learns from them how a relation is expressed, and that a fact follows "The capital of X is". The names and
aliases of any relation are put into frames that fit them (see `phrases`), so this works for every graph.

documents = list(verbalise(graph, 1000, seed=0))
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.errors import GraphError
from kglm.kg.arrays import is_fact
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import INSTANCE_OF, NEW, REFLEXIVE, REVERSE
from kglm.kg.literals.dates import YEAR, Date, render_date
from kglm.kg.literals.literal import is_date, is_literal
from kglm.text.document import END, START, Document, Mention
from kglm.text.tokenizer import tokenizer
from kglm.writing.main_values import MainValues
from kglm.writing.phrases import FRAMES, Phrase, Shape, phrases_of

Ints = npt.NDArray[np.int64]
_COUNTRY_LIKE = re.compile(r"\b(?:States|Kingdom|Republic|Islands|Emirates|Union|Federation|Netherlands|Isles)\b")
_IS = re.compile(r"^(?:is|was|are|were) ")
_KIND_END = re.compile(r" (?:of|in|for|with) |,| \(")
HUMAN = "human"
ATTEMPTS = 10_000
"""Number of texts tried before the graph is rejected because none of its facts can be verbalised."""
CLASS_RELATIONS = ("P106", INSTANCE_OF, "P279")
"""Relations that give the kind of an entity, best first: occupation, instance of, subclass of."""
ENDINGS = (".", ".", ".", ".", ", as is well known .", ", according to most sources .", ";", ".")


@dataclass(frozen=True)
class VerbaliseConfig:
    """Contents of the generated texts."""

    sentences: int = 4
    """Maximum number of sentences about one entity."""
    more_subjects: tuple[float, float, float] = (0.5, 0.3, 0.2)
    """Probabilities that a text is about one, two or three entities."""
    headings: float = 0.25
    """Probability that a text begins with a heading: the name of one of its entities."""
    hold_out_relations: Collection[str] = ()
    """Relations that are never verbalised, to measure how a model generalises to them."""
    hold_out_frames: Collection[str] = ()
    """Frames that are never used."""
    smooth: float = 0.5
    """Exponent: a relation is drawn in proportion to the number of its facts to this power."""


class Question(NamedTuple):
    """A sentence that ends before the tail of its fact; words [start, end) name the head."""

    words: tuple[str, ...]
    start: int
    end: int
    frame: str


class _Choice(NamedTuple):
    """A frame for a fact and the words for its slots."""

    frame: str
    values: dict[str, str]
    names: dict[str, list[str]]
    fact: tuple[int, int, int]


@dataclass
class _Text:
    """An unfinished text: its tokens and mentions."""

    tokens: list[str] = field(default_factory=lambda: [START])
    mentions: list[Mention] = field(default_factory=list)


class Verbaliser:
    """Writes sentences for the facts of one graph."""

    def __init__(self, graph: KnowledgeGraph, config: VerbaliseConfig | None = None) -> None:
        self.graph = graph
        self.config = config or VerbaliseConfig()
        self._kind = lru_cache(1 << 16)(self._find_kind)
        self._values = MainValues(graph)
        self._phrases: dict[int, list[Phrase]] = {}
        ids = (graph.relation_id(relation) for relation in range(2, graph.relation_count, 2))
        self._owners = Counter(
            name for id in ids if ":" not in id for name in {each.casefold() for each in graph.relation_names(id)}
        )
        self._head, relation_N, _ = graph_facts(graph)
        order = np.argsort(relation_N, kind="stable")
        relations, first, count = np.unique(relation_N[order], return_index=True, return_counts=True)
        self._of = {int(r): order[a : a + n] for r, a, n in zip(relations, first, count, strict=True)}
        self.relations: list[int] = relations.tolist()
        """All relations that have facts."""
        self._weights = [self.weight(relation) for relation in self.relations]
        if not any(self._weights):
            raise GraphError(
                "no fact can be put into words",
                place=graph.store.path,
                remedy='give its relations names: nouns, or words like "born in"',
            )

    def weight(self, relation: int) -> float:
        """Unnormalised probability of drawing a relation; 0 if it has no usable name."""
        return float(len(self._of[relation]) ** self.config.smooth) if self.phrases(relation) else 0.0

    def phrases(self, relation: int) -> list[Phrase]:
        """Names of a relation that fit a frame."""
        found = self._phrases.get(relation)
        if found is None:
            id = self.graph.relation_id(relation)
            excluded = ":" in id or id in self.config.hold_out_relations
            names = [] if excluded else self.graph.relation_names(id)
            # an alias shared by several relations is ambiguous and left out; a label is always used
            own = [name for place, name in enumerate(names) if place == 0 or self._owners[name.casefold()] == 1]
            self._phrases[relation] = phrases_of(own) or phrases_of(names)
        return self._phrases[relation]

    def frames(self, shape: Shape) -> list[str]:
        return [frame for frame in FRAMES[shape] if frame not in self.config.hold_out_frames]

    # Names and kinds of entities

    def name(self, node: int, rng: random.Random) -> list[str]:
        """Tokens of a name of an entity, mostly the first one; a date or quantity in one of its usual forms."""
        names = self.graph.aliases(node)[:4]
        if not names:
            return []
        others = [name for name in names if name[:1].isupper() or names[0][:1].islower()]
        chosen = names[0] if rng.random() < 0.8 or not others else rng.choice(others)
        return tokenizer().words(chosen)

    def _find_kind(self, node: int) -> tuple[str, ...]:
        """Kinds of an entity, in up to three words each."""
        found = []
        for id in CLASS_RELATIONS:
            relation = self.graph.find_relation(id)
            for tail in [] if relation is None else self.graph.tails(node, relation).tolist()[:4]:
                names = self.graph.names(tail)
                head = _KIND_END.split(names[0])[0] if names else ""
                if head.islower() and len(head.split()) <= 3 and head != HUMAN and " or " not in names[0]:
                    found.append(head)
            if found:
                break
        return tuple(found)

    def _is_human(self, node: int) -> bool:
        relation = self.graph.find_relation(INSTANCE_OF)
        tails = [] if relation is None else self.graph.tails(node, relation).tolist()
        return any(HUMAN in self.graph.names(tail)[:1] for tail in tails)

    def _is_true(self, phrase: Phrase, tail: int) -> bool:
        """True if the tail is of the kind that the phrase requires."""
        wanted = phrase.tail_kind
        return wanted is None or any(kind.split()[-1] == wanted.split()[-1] for kind in self._kind(tail))

    # Sentences

    def _choose(
        self, rng: random.Random, fact: tuple[int, int, int], *, asks: bool, others: Collection[int] = ()
    ) -> _Choice | None:
        """Choose a frame and names for a fact; None if it cannot be verbalised.

        With `asks`, the frame ends in {y}. Its phrase fits the `others` as tails too.
        """
        head, relation, tail = fact
        names = {"x": self.name(head, rng), "y": self.name(tail, rng)}
        tails = (tail, *others)
        options = [phrase for phrase in self.phrases(relation) if all(self._is_true(phrase, each) for each in tails)]
        if not all(names.values()) or not options:
            return None
        shape = rng.choice(sorted({phrase.shape for phrase in options}))
        phrase = rng.choice([phrase for phrase in options if phrase.shape == shape])
        kinds = self._kind(head)
        frames = [frame for frame in self.frames(shape) if kinds or "kind" not in frame]
        if asks:
            frames = [frame for frame in frames if frame.endswith("{y}")]
        if phrase.says_year and is_date(self.graph.id(tail)):
            names["y"] = tokenizer().words(render_date(Date(YEAR, Date.parse_id(self.graph.id(tail)).year))[0])
        if not _IS.match(phrase.text):
            frames = [frame for frame in frames if "{r_without_is}" not in frame]
        if is_literal(self.graph.id(tail)):  # a date cannot be the first mention: it is no new entity
            frames = [frame for frame in frames if not frame.startswith("{y}")]
        if not frames:
            return None
        kind = rng.choice(kinds) if kinds else ""
        values = {
            "r": phrase.text,
            "r_without_is": _IS.sub("", phrase.text),
            "kind": kind,
            "who": "who" if self._is_human(head) else "which",
            "a_kind": f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}",
        }
        return _Choice(rng.choice(frames), values, names, fact)

    def sentence(self, text: _Text, rng: random.Random, fact: tuple[int, int, int]) -> bool:
        """Append a sentence for a fact; False if the fact cannot be verbalised."""
        choice = self._choose(rng, fact, asks=False)
        if choice is None:
            return False
        self._write(text, choice)
        text.tokens += [*tokenizer().words(rng.choice(ENDINGS)), END]
        return True

    def _heading(self, text: _Text, rng: random.Random, node: int) -> None:
        """Append a line with the name of an entity."""
        if name := self.name(node, rng):
            mark = ["="] if rng.random() < 0.5 else []
            start = len(text.tokens) + len(mark)
            text.tokens += [*mark, *name, *mark, END]
            text.mentions.append(
                Mention(start, start + len(name), self.graph.id(node), "KG", (NEW,), (self.graph.id(node),))
            )

    def question(self, rng: random.Random, fact: tuple[int, int, int], others: Collection[int] = ()) -> Question | None:
        """A sentence without its last part, the tail of the fact; `others` are further possible tails."""
        choice = self._choose(rng, fact, asks=True, others=others)
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
                role = "y" if key == "y" else "x"
                node, other = (tail, head) if role == "y" else (head, tail)
                id, start = graph.id(node), len(text.tokens)
                text.tokens += names[role]
                if role != first:
                    stored = graph.relation_id(relation)
                    derivation = ((stored if role == "y" else REVERSE + stored,), (graph.id(other),))
                elif id in seen:
                    derivation = ((REFLEXIVE,), (id,))
                else:
                    derivation = ((NEW,), (id,))
                text.mentions.append(Mention(start, len(text.tokens), id, "KG", *derivation))
            elif part.startswith("{"):
                text.tokens += tokenizer().words(values[key])
            else:
                text.tokens.append(part)

    # Texts

    def document(self, number: int, seed: int) -> Document:
        """A text about one entity, or about two or three in random order."""
        rng = random.Random(f"{seed} {number}")
        for _ in range(ATTEMPTS):
            text = _Text()
            facts = self._topic(rng)
            if rng.random() < self.config.headings:
                self._heading(text, rng, rng.choice(facts)[0])
            written = [self.sentence(text, rng, fact) for fact in facts]
            if any(written):
                return Document(f"facts {number}", text.tokens, text.mentions)
        raise GraphError(
            f"none of {ATTEMPTS:,} texts has a fact that can be put into words",
            place=self.graph.store.path,
            remedy="give its entities names, and its relations names that fit their tails",
        )

    def _topic(self, rng: random.Random) -> list[tuple[int, int, int]]:
        """Draw the facts of one text.

        A further entity is the tail of the first fact, one with the same relation, or any: a model learns that the
        subject of a sentence decides the fact, not the first entity of the text.
        """
        first = self.draw(rng)
        firsts = [first]
        for _ in range(rng.choices((0, 1, 2), self.config.more_subjects)[0]):
            choice = rng.randrange(3)
            about_tail = [] if is_literal(self.graph.id(first[2])) else self._about(first[2], rng)
            if choice == 0 and about_tail:
                firsts.append(about_tail[0])
            else:
                firsts.append(self.draw(rng, first[1] if choice == 1 else None))
        facts = list(firsts)
        for fact in firsts:
            others = [other for other in self._about(fact[0], rng) if other != fact]
            facts += others[: rng.randrange(self.config.sentences) // len(firsts)]
        if len(firsts) > 1:
            rng.shuffle(facts)
        return list(dict.fromkeys(facts))

    def draw(self, rng: random.Random, relation: int | None = None) -> tuple[int, int, int]:
        """Draw a fact (head, relation, tail), mostly with a main value, of a relation or of any that has words."""
        if relation is None:
            [relation] = rng.choices(self.relations, self._weights)
        head = int(self._head[int(rng.choice(self._of[relation]))])
        return head, int(relation), self._values.draw(rng, head, relation, self.graph.tails(head, relation).tolist())

    def tail_of(self, rng: random.Random, relation: int) -> int:
        """Draw the tail of some fact of the relation."""
        return self.draw(rng, relation)[2]

    def _about(self, node: int, rng: random.Random) -> list[tuple[int, int, int]]:
        """Facts of an entity, one per relation, in random order."""
        relation, tail = self.graph.edges(node)
        forward = is_fact(relation)
        by_relation: dict[int, list[int]] = {}
        for r, e in zip(relation[forward].tolist(), tail[forward].tolist(), strict=True):
            if self.phrases(r):
                by_relation.setdefault(r, []).append(e)
        facts = [(node, r, self._values.draw(rng, node, r, tails)) for r, tails in by_relation.items()]
        rng.shuffle(facts)
        return facts


def graph_facts(graph: KnowledgeGraph) -> tuple[Ints, Ints, Ints]:
    """Heads, relations and tails of all current facts, edits included."""
    base, touched = graph.overlay.base, graph.overlay.touched
    place = np.flatnonzero(is_fact(base.edge_relation))
    head = np.searchsorted(base.edge_offsets, place, side="right") - 1
    kept = ~np.isin(head, np.fromiter(touched, np.int64, len(touched)))
    parts = [(head[kept], base.edge_relation[place[kept]], base.edge_tail[place[kept]])]
    for node in touched:
        relation, tail = graph.edges(node)
        forward = is_fact(relation)
        parts.append((np.full(int(forward.sum()), node), relation[forward], tail[forward]))
    heads, relations, tails = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
    return heads, relations, tails


def verbalise(
    graph: KnowledgeGraph, count: int, *, seed: int = 0, config: VerbaliseConfig | None = None
) -> Iterator[Document]:
    """Generate `count` texts, reproducible by the seed."""
    verbaliser = Verbaliser(graph, config)
    for number in range(count):
        yield verbaliser.document(number, seed)
