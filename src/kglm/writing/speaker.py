"""Turn entities and facts of a graph into words: names, pronouns, and wordings with their slots filled.

speaker = Speaker(graph, wordings)
segments = speaker.fill(wording, node, speaker.by_name(node), tails, rng)
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import INSTANCE_OF, REVERSE
from kglm.kg.literals.dates import YEAR, Date
from kglm.kg.literals.literal import is_date, is_literal, is_text, quantity_unit
from kglm.linking.traits import TraitReader
from kglm.writing.english import Pronoun, indefinite, possessive_mark, pronoun_for, say_date, say_quantity, separators
from kglm.writing.english import verb as conjugated
from kglm.writing.main_values import MainValues
from kglm.writing.wordings import Slot, Wording, Wordings

BIRTH, DEATH, DEATH_PLACE, DISSOLVED, OCCUPATION = "P569", "P570", "P20", "P576", "P106"
OLDEST_BIRTH = 1908
"""A person born before this year counts as dead even if the graph has no date of death."""
MOST_OBJECTS = 4
"""Maximum number of objects joined with "and" in one sentence."""
_KIND_END = re.compile(r" (?:of|in|for|with|from) |,| \(")
_PREPOSITION = re.compile(r"\b(?:of|by|in|for|to|with|on|about|from|at|behind|than|like) $", re.IGNORECASE)
Fact = tuple[int, str, int]
"""Head, relation as stored, tail."""
Tails = Mapping[str, Sequence[int]]
"""Objects of a sentence by relation."""


class Segment(NamedTuple):
    """A piece of a sentence; for a mention, with the entity and the source of the annotation."""

    text: str
    node: int = -1
    source: str = ""


class Subject(NamedTuple):
    """Words for the entity that a sentence is about."""

    form: str
    """name, short, kind or pronoun."""
    text: str
    plural: bool = False


def forward(head: int, relation: str, tail: int) -> Fact:
    """A fact as stored, given from either end: a reversed relation is turned around."""
    if relation.startswith(REVERSE):
        return tail, relation.removeprefix(REVERSE), head
    return head, relation, tail


class Speaker:
    """Gives words for the entities and facts of one graph."""

    def __init__(self, graph: KnowledgeGraph, wordings: Wordings) -> None:
        self.graph = graph
        self.wordings = wordings
        self.traits = TraitReader(graph).of
        self.facts = lru_cache(1 << 14)(self._facts)
        self.values = MainValues(graph)
        self.sorts = lru_cache(1 << 16)(self._sorts)
        self.is_past = lru_cache(1 << 16)(self._is_past)

    # Facts and classes

    def label(self, node: int) -> str:
        """The name of an entity; "" if it has none or the wordings exclude it."""
        names = self.graph.names(node)
        return names[0] if names and names[0] not in self.wordings.silent else ""

    def has_words(self, node: int) -> bool:
        return is_literal(self.graph.id(node)) or bool(self.label(node))

    def is_proper(self, node: int) -> bool:
        """True if the entity has a proper name: "Paris", "iPod", not "city" or "U.S. state"."""
        first = self.label(node).split(" ")[0]
        of_class = self.graph.find_relation(REVERSE + INSTANCE_OF)
        is_class = of_class is not None and len(self.graph.tails(node, of_class)) > 0
        return not is_class and any(char.isupper() or char.isdigit() for char in first)

    def _facts(self, node: int) -> dict[str, tuple[int, ...]]:
        """Tails of each relation of an entity, as far as they have words."""
        found: dict[str, list[int]] = {}
        relations, tails = self.graph.edges(node)
        for relation, tail in zip(relations.tolist(), tails.tolist(), strict=True):
            id = self.graph.relation_id(relation) if relation else ""
            if id and ":" not in id.removeprefix(REVERSE) and tail != node and self.has_words(tail):
                found.setdefault(id, []).append(tail)
        return {id: tuple(dict.fromkeys(tails)) for id, tails in found.items()}

    def classes(self, node: int, relation: str = INSTANCE_OF) -> list[str]:
        """The head nouns of its classes: "city" for a "city in the United States"."""
        index = self.graph.find_relation(relation)
        tails = [] if index is None else self.graph.tails(node, index).tolist()
        names = [self.graph.names(tail)[0] for tail in tails if self.graph.names(tail)]
        return [_KIND_END.split(name)[0] for name in names]

    def _sorts(self, node: int) -> frozenset[str]:
        """Sorts of an entity, as the wordings define them: by the longest suffix of each class name that has a sort."""
        found = {"person"} if self.traits(node).human else set()
        for name in self.classes(node):
            words = name.casefold().split()
            ends = (" ".join(words[at:]) for at in range(len(words)))
            found.update([sort for end in ends if (sort := self.wordings.sorts.get(end))][:1])
        return frozenset(found)

    def _is_past(self, node: int) -> bool:
        """True if sentences about the entity are in the past tense."""
        facts = self.facts(node)
        if DISSOLVED in facts:
            return True
        if not self.traits(node).human:
            return False
        years = [Date.parse_id(self.graph.id(tail)).year for tail in facts.get(BIRTH, ()) if self._has_year(tail)]
        return DEATH in facts or DEATH_PLACE in facts or (bool(years) and min(years) < OLDEST_BIRTH)

    def _has_year(self, node: int) -> bool:
        id = self.graph.id(node)
        return is_date(id) and Date.parse_id(id).precision >= YEAR

    def kinds(self, node: int) -> list[str]:
        """Nouns for the entity, as in "a novel": occupations of a person, classes of anything else."""
        relation = OCCUPATION if self.traits(node).human else INSTANCE_OF
        silent = self.wordings.silent
        return [name for name in self.classes(node, relation) if name[-1:].islower() and name not in silent]

    # Words for an entity

    def plural(self, node: int) -> bool:
        """True if the name takes "are": "The Beatles", "Chicago Bulls"."""
        last = self.label(node).rsplit(" ", 1)[-1]
        many = not self.sorts(node).isdisjoint(("band", "team"))
        return many and last.endswith("s") and not last.endswith("ss")

    def by_name(self, node: int) -> Subject:
        return Subject("name", self.label(node), self.plural(node))

    def by_short_name(self, node: int) -> Subject | None:
        """The last word of a person's name, if the graph has it as an alias."""
        words = self.label(node).split()
        splits = self.traits(node).human and len(words) > 1 and all(word[:1].isupper() for word in words)
        last = words[-1] if splits else ""
        return Subject("short", last) if len(last) > 2 and last in self.graph.names(node) else None

    def by_kind(self, node: int) -> list[Subject]:
        """Definite nouns for the entity, such as "the game"."""
        trait_kinds = self.traits(node).kinds
        if self.traits(node).human:
            words = [name for name in self.kinds(node) if len(name.split()) <= 2 and name in trait_kinds]
        else:
            nouns = (word for sort in sorted(self.sorts(node)) for word in self.wordings.kinds.get(sort, ()))
            words = [word for word in nouns if word in trait_kinds]
        return [Subject("kind", f"the {word}") for word in dict.fromkeys(words)]

    def pronoun(self, node: int) -> Pronoun | None:
        if "character" in self.sorts(node):  # Sherlock Holmes is neither human nor "it"
            return None
        return pronoun_for(self.traits(node), plural=self.plural(node))

    def by_pronoun(self, node: int) -> Subject | None:
        found = self.pronoun(node)
        return None if found is None else Subject("pronoun", found.subject, found.subject == "they")

    def named(self, node: int) -> list[Segment]:
        """The name of an entity, with "the" if it takes one."""
        label = self.label(node)
        the = [Segment("the ")] if self._takes_the(node, label) else []
        return [*the, Segment(label, node, "WIKI" if self.is_proper(node) else "KG")]

    def _takes_the(self, node: int, label: str) -> bool:
        wordings = self.wordings
        if label in wordings.without_the or label.casefold().startswith(("the ", "a ", "an ")):
            return False
        return wordings.the_names.search(label) is not None or not wordings.the_sorts.isdisjoint(self.sorts(node))

    # Wordings

    def fits(self, wording: Wording, node: int) -> bool:
        """True if the entity has the sort and tense that the wording requires."""
        has_sort = not wording.of or not wording.of.isdisjoint(self.sorts(node))
        return has_sort and wording.alive in (None, not self.is_past(node))

    def choose_objects(
        self, wording: Wording, node: int, rng: random.Random, excluded: Collection[Fact], limit: int = 3
    ) -> dict[str, list[int]] | None:
        """Choose objects for a wording about an entity, without the `excluded` facts; None if it has no fitting ones.

        `limit` is the maximum for a wording that takes some objects. No object occurs twice: not "developed by Nintendo
        and published by Nintendo".
        """
        chosen: dict[str, list[int]] = {}
        for relation in wording.relations:
            every = self.facts(node).get(relation, ())
            fitting = [tail for tail in every if self._fits_object(wording, tail)]
            free = [tail for tail in fitting if forward(node, relation, tail) not in excluded]
            if wording.objects in ("one", "all"):
                allowed = 1 if wording.objects == "one" else MOST_OBJECTS
                if not 0 < len(free) == len(every) <= allowed:
                    return None
                chosen[relation] = free
            elif not free:
                return None
            else:
                single = wording.objects == "any" or relation == INSTANCE_OF or is_literal(self.graph.id(free[0]))
                count = 1 if single else min(len(free), rng.choice((1, 1, 2, limit)))
                chosen[relation] = self._draw_objects(node, relation, free, count, rng)
        every_tail = [tail for tails in chosen.values() for tail in tails]
        return chosen if len(set(every_tail)) == len(every_tail) else None

    def _draw_objects(self, node: int, relation: str, free: Sequence[int], count: int, rng: random.Random) -> list[int]:
        """Draw this many objects, mostly the main value; several of them at random."""
        index = self.graph.find_relation(relation)
        assert index is not None
        return [self.values.draw(rng, node, index, free)] if count == 1 else rng.sample(free, count)

    def _fits_object(self, wording: Wording, tail: int) -> bool:
        if wording.to and wording.to.isdisjoint(self.sorts(tail)):
            return False
        return wording.proper is None or is_literal(self.graph.id(tail)) or self.is_proper(tail) == wording.proper

    def fill(
        self,
        wording: Wording,
        node: int,
        subject: Subject,
        tails: Tails,
        rng: random.Random,
        *,
        american: bool = True,
    ) -> list[Segment] | None:
        """Fill the slots of a wording; None if one cannot be filled. `american` puts the month before the day."""
        segments: list[Segment] = []
        subject_done = agrees = wording.role == "aside"
        for piece in wording.pieces:
            if isinstance(piece, str):
                segments.append(Segment(piece))
                continue
            if piece.kind in ("subject", "possessive", "object"):
                made = self._subject_segments(piece, node, subject, again=subject_done)
                agrees = piece.kind == "subject" and not (segments and _PREPOSITION.search(segments[-1].text))
                subject_done = True
            elif piece.kind == "fact":
                made = self._object_segments(piece, tails, rng, american=american)
            else:
                made = self._word_segments(piece, node, tails, rng, plural=agrees and subject.plural)
            if made is None:
                return None
            segments += made
        return segments

    def _subject_segments(self, slot: Slot, node: int, subject: Subject, *, again: bool) -> list[Segment] | None:
        """Words for X: those of `subject`, or a pronoun if X occurs `again`."""
        pronoun = self.pronoun(node)
        if again and pronoun is None:
            return None
        if pronoun is not None and (again or subject.form == "pronoun"):
            return [Segment(getattr(pronoun, slot.kind), node, "COREF")]
        if subject.form == "name":
            segments = self.named(node)
        else:
            segments = [Segment(subject.text, node, "COREF")]
        return [*segments, Segment(possessive_mark(subject.text))] if slot.kind == "possessive" else segments

    def _object_segments(self, slot: Slot, tails: Tails, rng: random.Random, *, american: bool) -> list[Segment] | None:
        segments: list[Segment] = []
        nodes = tails[slot.of]
        for before, node in zip(separators(len(nodes)), nodes, strict=True):
            made = self._object(node, slot.form, rng, american=american)
            if made is None:
                return None
            segments += [Segment(before), *made] if before else made
        return segments

    def _object(self, node: int, form: str, rng: random.Random, *, american: bool) -> list[Segment] | None:
        """Words for one object, in the form of its slot."""
        id = self.graph.id(node)
        if is_date(id):
            date = say_date(Date.parse_id(id), rng, form=form, american=american) if form != "a" else None
            if date is None:
                return None
            return [*([Segment(f"{date.preposition} ")] if form == "on" else []), Segment(date.text, node, "KG")]
        if is_text(id):
            return [Segment(self.graph.aliases(node)[0], node, "KG")] if not form else None
        if is_literal(id):
            text = say_quantity(self.graph.aliases(node), rng)
            measured = quantity_unit(id) is not None and text is not None and text[-1].isalpha()
            fits = form == "unit" if measured else form == "" and quantity_unit(id) is None
            return [Segment(text, node, "KG")] if fits and text else None
        if form == "a":
            *_, name = self.named(node)
            return [Segment(f"{indefinite(name.text)} "), name]
        return self.named(node) if not form else None

    def _word_segments(
        self, slot: Slot, node: int, tails: Tails, rng: random.Random, *, plural: bool
    ) -> list[Segment] | None:
        """Words for a slot that mentions no entity."""
        if slot.kind == "kind":
            kinds = self.kinds(node)
            kind = rng.choice(kinds) if kinds else ""
            return [Segment(f"{indefinite(kind)} {kind}" if slot.form else kind)] if kind else None
        if slot.kind == "who":
            return [Segment("who" if self.traits(node).human else "which")]
        if slot.kind == "number":
            return [Segment(slot.options[len(tails[slot.of]) > 1])]
        if slot.kind == "gender":
            whose = [node] if slot.of == "X" else tails[slot.of]
            return [Segment(slot.options[self._gender(whose)])] if len(whose) == 1 else None
        past = slot.of != "always" and self.is_past(node)
        past |= slot.of == "both" and any(self.is_past(tail) for nodes in tails.values() for tail in nodes)
        return [Segment(conjugated(slot.form, plural=plural, past=past))]

    def _gender(self, nodes: Iterable[int]) -> int:
        """Index of the option for the gender: 0 male, 1 female, 2 otherwise."""
        genders = {self.traits(node).gender for node in nodes}
        return 0 if genders == {"male"} else 1 if genders == {"female"} else 2


@lru_cache(1 << 12)
def takes_pronoun(wording: Wording) -> bool:
    """True if a pronoun can replace X: not in "the capital of he", nor in "he, the author"."""
    for place, piece in enumerate(wording.pieces):
        before, after = wording.pieces[max(place - 1, 0) : place], wording.pieces[place + 1 : place + 2]
        if isinstance(piece, Slot) and piece.kind == "subject":
            begins = not before or (isinstance(before[0], str) and before[0].endswith((", ", "that ")))
            goes_on = bool(after) and not (isinstance(after[0], str) and after[0].startswith((",", " (")))
            if not (begins and goes_on):
                return False
    return True


def begins_with_subject(wording: Wording) -> bool:
    """True if the wording begins with {X} or {X's}."""
    first = wording.pieces[0]
    return isinstance(first, Slot) and first.kind in ("subject", "possessive")


def is_plain(wording: Wording) -> bool:
    """True if the wording states facts and can follow a connective: it begins with a slot or with "The"."""
    first = wording.pieces[0]
    return bool(wording.relations) and (isinstance(first, Slot) or first.startswith("The "))


def is_relative(wording: Wording) -> bool:
    """True if the wording begins with a relative pronoun: "who", "which", "whose", "where"."""
    first = wording.pieces[0]
    if isinstance(first, Slot):
        return first.kind == "who"
    return first.split(" ")[0] in ("who", "which", "whose", "where")
