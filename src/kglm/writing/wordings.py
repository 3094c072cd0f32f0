"""Read wordings from TOML: sentence templates with slots for facts.

    [[relation.P36]]
    of = ["country"]
    objects = "one"
    say = ["{X's} capital is {Y}"]
    held = ["The capital of {X} is {Y}"]
    aside = ["whose capital is {Y}"]

`say` lists wordings for training texts, `held` those held out for evaluation texts and questions; `aside` and
`held_aside` list wordings that follow a name between commas. No wording ends in a full stop. Slots:

    {X} {X's} {x}           the entity that the sentence is about: as subject, possessive, object
    {Y} {P36} {R:P36}       tails of the relation of the group, or of another relation; several are joined with "and"
    {a Y} {on Y} {day Y} {year Y} {unit Y}
                            with "a" or "an", a date with "on" or "in", a date in full, a year, an amount with its unit
    {kind} {a kind}         a noun for X: an occupation or a class
    {is} {has} {shares} …   a verb that agrees with X; past tense if X is in the past, {is both} also if Y is,
                            {has always} never
    {one|many} {P37:one|many}         choice by the number of objects
    {X:he|she|other} {Y:he|she|other} choice by gender
    {who}                   "who" or "which"
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from kglm import config
from kglm.bundled import WORDINGS, checked
from kglm.errors import ConfigError, DataError, misfit
from kglm.kg.ids import is_document_relation

Objects = Literal["one", "all", "some", "any"]
"""Objects that a wording takes: the only one of its relation, all of them, some of them, or any one of them."""
Role = Literal["sentence", "aside", "opening", "together", "filler"]
SLOTS = "{X}, {X's}, {x}, {Y}, {a Y}, {on Y}, {day Y}, {year Y}, {unit Y}, {kind}, {a kind}, {who}, {is}, {one|many}"
_BRACES = re.compile(r"\{([^{}]*)\}")
_OBJECT = re.compile(r"(?:(a|on|day|year|unit) )?(Y|(?:R:)?P(?:\d+|_[^\s:|]+))")
_CHOICE = re.compile(r"(?:(X|Y|(?:R:)?P(?:\d+|_[^\s:|]+)):)?([^|:]*(?:\|[^|:]*)+)")
_VERB = re.compile(r"([a-z]+s)(?: (both|always))?")
_SUBJECTS = {"X": "subject", "X's": "possessive", "x": "object", "kind": "kind", "a kind": "kind", "who": "who"}


class Slot(NamedTuple):
    """A slot of a wording: what fills it, of which relation, in which form."""

    kind: str
    """subject, possessive, object, kind, who; fact; verb; number, gender."""
    of: str = ""
    """Relation of a fact or number; for a gender, X or the relation whose tail decides."""
    form: str = ""
    """For a fact: a, on, day, year or unit; for a verb: the verb; for a kind: "a" or nothing."""
    options: tuple[str, ...] = ()


Piece = str | Slot


@dataclass(frozen=True)
class Wording:
    """A sentence or clause with slots."""

    text: str
    pieces: tuple[Piece, ...]
    role: Role
    held: bool = False
    of: frozenset[str] = frozenset()
    """X must have one of these sorts; empty: any X."""
    to: frozenset[str] = frozenset()
    """The same for the objects."""
    alive: bool | None = None
    proper: bool | None = None
    """True: objects must have proper names; False: they must not; None: any."""
    objects: Objects = "some"

    @property
    def relations(self) -> tuple[str, ...]:
        """Relations whose facts the wording states, each once."""
        slots = (piece for piece in self.pieces if isinstance(piece, Slot))
        return tuple(dict.fromkeys(slot.of for slot in slots if slot.kind == "fact"))

    @property
    def ends_in_object(self) -> bool:
        """True if the wording ends in the object of its only relation, so that it can be a question."""
        last = self.pieces[-1]
        return isinstance(last, Slot) and last.kind == "fact" and len(self.relations) == 1


class Heading(NamedTuple):
    """Titles for a section about some relations."""

    titles: tuple[str, ...]
    of: frozenset[str]
    relations: frozenset[str]


@dataclass(frozen=True)
class Wordings:
    """Everything that a file of wordings defines."""

    place: str
    sentences: dict[str, tuple[Wording, ...]]
    asides: dict[str, tuple[Wording, ...]]
    openings: tuple[Wording, ...]
    together: tuple[Wording, ...]
    fillers: tuple[Wording, ...]
    """Sentences without facts."""
    headings: tuple[Heading, ...]
    connectives: tuple[str, ...]
    contrasts: tuple[str, ...]
    sorts: dict[str, str]
    """Sort by the name of a class."""
    kinds: dict[str, tuple[str, ...]]
    """Nouns for an entity of a sort, as in "the game"."""
    silent: frozenset[str]
    """Names that are never used."""
    the_names: re.Pattern[str]
    the_sorts: frozenset[str]
    """Names with "the": those that match `the_names`, and those of entities of these sorts."""
    without_the: frozenset[str]
    same: dict[str, tuple[str, ...]]
    """For each relation, those that state the same fact: "father of" and, from the other end, "child of"."""

    def all(self) -> Iterator[Wording]:
        """Every wording."""
        for role in (self.sentences, self.asides):
            for wordings in role.values():
                yield from wordings
        yield from (*self.openings, *self.together)


# Records of the file: msgspec checks the types, `_Builder` checks the values.


class _Group(msgspec.Struct, forbid_unknown_fields=True):
    of: list[str] = []
    to: list[str] = []
    alive: bool | None = None
    proper: bool | None = None
    objects: Objects = "some"
    say: list[str] = []
    held: list[str] = []
    aside: list[str] = []
    held_aside: list[str] = []


class _Heading(msgspec.Struct, forbid_unknown_fields=True):
    titles: list[str]
    relations: list[str]
    of: list[str] = []


class _The(msgspec.Struct, forbid_unknown_fields=True):
    patterns: list[str] = []
    sorts: list[str] = []
    never: list[str] = []


class _File(msgspec.Struct, forbid_unknown_fields=True):
    sorts: dict[str, list[str]]
    relation: dict[str, list[_Group]]
    opening: list[_Group]
    families: dict[str, list[str]] = {}
    together: list[_Group] = []
    filler: list[_Group] = []
    heading: list[_Heading] = []
    kinds: dict[str, list[str]] = {}
    connectives: list[str] = []
    contrasts: list[str] = []
    silent: list[str] = []
    same: list[list[str]] = []
    the: _The = msgspec.field(default_factory=_The)


def read_wordings(path: Path = WORDINGS) -> Wordings:
    """Read a file of wordings; an error names the place in the file."""
    if path == WORDINGS:
        checked(path)
    try:
        record = msgspec.convert(config.read(path), _File, strict=True)
    except msgspec.ValidationError as error:
        raise DataError(
            misfit(error, "the file"),
            place=path,
            remedy="see kglm/writing/wordings.py for the format of the file",
        ) from error
    except ConfigError as error:
        raise DataError(error.what, place=path, remedy="correct the syntax of the file") from error
    return _Builder(record, path).wordings()


class _Builder:
    """Checks the records of a file and builds `Wordings`."""

    def __init__(self, record: _File, path: Path) -> None:
        self._record = record
        self._path = path
        self._sorts = frozenset(record.sorts)
        self._families: dict[str, frozenset[str]] = {}
        self._families = {
            name: self._known_sorts(members, f"families.{name}", self._sorts)
            for name, members in record.families.items()
        }

    def wordings(self) -> Wordings:
        record = self._record
        sentences, asides = {}, {}
        for relation, groups in record.relation.items():
            place = f"relation.{relation}"
            self._check_relation(relation, place)
            every = [w for k, g in enumerate(groups, 1) for w in self._group(g, f"{place} {k}", "sentence", relation)]
            self._check_duplicates(every, place)
            sentences[relation] = tuple(wording for wording in every if wording.role == "sentence")
            asides[relation] = tuple(wording for wording in every if wording.role == "aside")
        return Wordings(
            place=str(self._path),
            sentences=sentences,
            asides=asides,
            openings=self._groups(record.opening, "opening"),
            together=self._groups(record.together, "together"),
            fillers=self._groups(record.filler, "filler"),
            headings=tuple(
                Heading(tuple(each.titles), self._families_of(each.of, f"heading {k}"), frozenset(each.relations))
                for k, each in enumerate(record.heading, 1)
            ),
            connectives=tuple(record.connectives),
            contrasts=tuple(record.contrasts),
            sorts={name.casefold(): sort for sort, names in record.sorts.items() for name in names},
            kinds={sort: tuple(names) for sort, names in record.kinds.items()},
            silent=frozenset(record.silent),
            the_names=self._pattern(record.the.patterns),
            the_sorts=self._families_of(record.the.sorts, "the.sorts"),
            without_the=frozenset(record.the.never),
            same=_mutual(record.same),
        )

    def _groups(self, groups: Sequence[_Group], role: Role) -> tuple[Wording, ...]:
        found = [w for k, group in enumerate(groups, 1) for w in self._group(group, f"{role} {k}", role, "")]
        self._check_duplicates(found, role)
        return tuple(found)

    def _group(self, group: _Group, place: str, role: Role, relation: str) -> Iterator[Wording]:
        of, to = self._families_of(group.of, place), self._families_of(group.to, place)
        parts: list[tuple[str, list[str], Role, bool]] = [
            ("say", group.say, role, False),
            ("held", group.held, role, True),
            ("aside", group.aside, "aside", False),
            ("held_aside", group.held_aside, "aside", True),
        ]
        for name, texts, part, held in parts:
            for number, text in enumerate(texts, 1):
                where = f"{place}, {name} {number}"
                pieces = tuple(self._pieces(text, relation, where))
                wording = Wording(text, pieces, part, held, of, to, group.alive, group.proper, group.objects)
                self._check(wording, relation, where)
                yield wording

    def _pieces(self, text: str, relation: str, place: str) -> Iterator[Piece]:
        """Split a wording into texts and slots."""
        at = 0
        for match in _BRACES.finditer(text):
            if before := text[at : match.start()]:
                yield before
            yield self._slot(match[1], relation, place)
            at = match.end()
        if text[at:]:
            yield text[at:]
        if "{" in _BRACES.sub("", text) or "}" in _BRACES.sub("", text):
            raise self._error(f"a brace without its partner in {text!r}", place, "close every {slot}")

    def _slot(self, name: str, relation: str, place: str) -> Slot:
        if kind := _SUBJECTS.get(name):
            return Slot(kind, form="a" if name == "a kind" else "")
        if match := _OBJECT.fullmatch(name):
            return Slot("fact", self._relation_of(match[2], relation, name, place), match[1] or "")
        if match := _CHOICE.fullmatch(name):
            whose, options = match[1] or "Y", tuple(match[2].split("|"))
            of = "X" if whose == "X" else self._relation_of(whose, relation, name, place)
            if len(options) == 3:
                return Slot("gender", of, options=options)
            if len(options) == 2 and of != "X":
                return Slot("number", of, options=options)
        elif match := _VERB.fullmatch(name):
            return Slot("verb", match[2] or "", match[1])
        raise self._error(f"unknown slot {{{name}}}", place, f"use {SLOTS}")

    def _relation_of(self, name: str, relation: str, slot: str, place: str) -> str:
        """Relation of a slot; {Y} stands for the relation of the group."""
        if name != "Y":
            return name
        if not relation:
            raise self._error(f"{{{slot}}} without a relation", place, "name it, as in {P36}")
        return relation

    def _check(self, wording: Wording, relation: str, place: str) -> None:
        slots = [piece for piece in wording.pieces if isinstance(piece, Slot)]
        about = any(slot.kind in ("subject", "possessive", "object") for slot in slots)
        if not wording.relations and wording.role not in ("opening", "filler"):
            raise self._error(f"{wording.text!r} states no fact", place, "give it a slot for an object, such as {Y}")
        if relation and relation not in wording.relations:
            raise self._error(f"{wording.text!r} does not state {relation}", place, "give it the slot {Y}")
        if wording.role == "aside" and any(slot.kind == "subject" for slot in slots):
            raise self._error(f"{wording.text!r} names X", place, "leave {X} out: an aside follows the name")
        if wording.relations and wording.role != "aside" and not about:
            raise self._error(f"{wording.text!r} has no subject", place, "give it the slot {X}")
        if wording.text.endswith("."):
            raise self._error(f"{wording.text!r} ends in a full stop", place, "leave it out: it is added automatically")

    def _check_duplicates(self, wordings: Sequence[Wording], place: str) -> None:
        held = {wording.text for wording in wordings if wording.held}
        for wording in wordings:
            if not wording.held and wording.text in held:
                what = f"{wording.text!r} is both held out and used for training"
                raise self._error(what, place, "remove one of the two")

    def _check_relation(self, relation: str, place: str) -> None:
        if not is_document_relation(relation):
            raise self._error(f"{relation!r} is not a relation id", place, "write P… or R:P…")

    def _families_of(self, names: Sequence[str], place: str) -> frozenset[str]:
        return self._known_sorts(names, place, self._sorts | frozenset(self._families))

    def _known_sorts(self, names: Sequence[str], place: str, known: frozenset[str]) -> frozenset[str]:
        """Sorts of the given names, where the name of a family stands for all its sorts."""
        for name in names:
            if name not in known:
                raise self._error(f"unknown sort {name!r}", place, f"use one of {', '.join(sorted(known))}")
        return frozenset(sort for name in names for sort in self._families.get(name, (name,)))

    def _pattern(self, patterns: Sequence[str]) -> re.Pattern[str]:
        try:
            return re.compile("|".join(f"(?:{pattern})" for pattern in patterns) or r"(?!)")
        except re.error as error:
            raise self._error(f"is not a regular expression ({error})", "the.patterns", "correct it") from error

    def _error(self, what: str, place: str, remedy: str) -> DataError:
        return DataError(what, place=f"{self._path}, {place}", remedy=remedy)


def _mutual(groups: Sequence[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """For each member of the groups, all other members of its groups."""
    found: dict[str, tuple[str, ...]] = {}
    for group in groups:
        for each in group:
            found[each] = (*found.get(each, ()), *(other for other in group if other != each))
    return found
