"""From statements in people's own words to records with ids: the part that all tables of one's own share.

The readers of each format (`tables`, `objects`, `neo4j`, `rdf`) list statements as they are written. `assemble` sees
all statements of all files of an import: it finds the entities that a name means, decides the type of each relation
from its name and all its values (`literals.columns`), and gives one `Batch` for each file. Every value that it cannot
read is a problem with the place, the finding and the remedy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kglm.errors import ConfigError, KglmError, LiteralError
from kglm.kg.ids import is_item_id, is_relation_id, mint
from kglm.kg.importers.records import Batch
from kglm.kg.importers.wikidata import RANKS
from kglm.kg.literals.column_types import ColumnType
from kglm.kg.literals.columns import infer
from kglm.kg.literals.hints import is_about_dates, label_of, words_of
from kglm.kg.literals.literal import is_literal, is_text
from kglm.kg.literals.texts import text_id
from kglm.kg.literals.units import Unit
from kglm.kg.literals.written import Mark, read_dates, read_year

NO_VALUE = frozenset(["", "-", "–", "—", "?", "n/a", "N/A", "null", "NULL", "None", "none", "unknown"])
"""Cells without a value; they are left out and counted."""
QUALIFIERS = {
    "from": "P580", "since": "P580", "start": "P580", "start time": "P580", "start date": "P580", "valid from": "P580",
    "until": "P582", "to": "P582", "till": "P582", "end": "P582", "end time": "P582", "end date": "P582",
    "valid to": "P582", "valid until": "P582",
    "source": "P248", "sources": "P248", "reference": "P248", "stated in": "P248",
}  # fmt: skip
"""Columns beside head, relation and tail that say when a fact holds and who says so."""
QUALIFIER_LABELS = {"P580": "start time", "P582": "end time", "P248": "stated in"}
EXAMPLE = 60
"""Characters of an example in the report of an import."""
DESCRIPTION = frozenset(["description", "about", "summary"])


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written."""

    path: str
    line: int
    unit: str = "line"

    def __str__(self) -> str:
        return f"{self.path}, {self.unit} {self.line}"


@dataclass(slots=True)
class Statement:
    """A fact as it is written."""

    place: Place
    head: str
    relation: str
    value: str
    rank: str = ""
    qualifiers: list[tuple[str, str]] = field(default_factory=list)
    """Name and value of each."""
    type: ColumnType | None = None
    """Type that the format itself gives the value."""
    is_cell: bool = False
    """True if the value may be several, divided by a character."""


@dataclass(slots=True)
class Described:
    """An entity with names of its own."""

    place: Place
    key: str
    """What the file calls it in its facts: a key, or a name."""
    label: str = ""
    aliases: list[str] = field(default_factory=list)
    description: str = ""
    is_key: bool = False
    """True if `key` is an id of the file's own, not a name."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """A line that cannot be imported."""

    place: Place
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}; {self.remedy}"


@dataclass(slots=True)
class Reading:
    """What the readers found in the files of one import."""

    statements: list[Statement] = field(default_factory=list)
    entities: list[Described] = field(default_factory=list)
    wrong: list[Wrong] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    """How each file was understood, and how to say otherwise."""

    def bad(self, place: Place, what: str, remedy: str) -> None:
        self.wrong.append(Wrong(place, what, remedy))


def plain_value(name: str, text: str) -> str:
    """Id of a text of a format that has types: a date if it is one beyond doubt, else a text."""
    try:
        date = read_dates(" ".join(text.split())).get("")
    except LiteralError:
        date = None
    date = date or (read_year(text) if is_about_dates(name) else None)
    return date.id if date else text_id(text)


@dataclass(frozen=True, slots=True)
class RelationSummary:
    """What was understood of a relation."""

    id: str
    label: str
    type: str
    reason: str
    values: int
    example: str


@dataclass(slots=True)
class Assembled:
    """Records of each file, and what they mean."""

    batches: dict[str, Batch]
    relations: list[RelationSummary]
    wrong: list[Wrong]


def assemble(
    reading: Reading, paths: Sequence[str], types: Mapping[str, ColumnType], *, mark: Mark | None = None,
    split: str = ";",
) -> Assembled:  # fmt: skip
    """Turn statements into records with ids. `types` are those that the user gives, by the name of the relation."""
    return _Assembly(reading, paths, types, mark, split).run()


class _Assembly:
    def __init__(
        self, reading: Reading, paths: Sequence[str], types: Mapping[str, ColumnType], mark: Mark | None, split: str
    ) -> None:
        self._reading = reading
        self._batches = {path: Batch() for path in dict.fromkeys(paths)}
        self._types = {" ".join(words_of(name)): type for name, type in types.items()}
        self._names = {" ".join(words_of(name)): name for name in types}
        self._mark = mark
        self._split = split
        self._wrong = list(reading.wrong)
        self._ids: dict[str, str] = {}
        """Ids of entities by key, label or other name."""
        self._heads: set[str] = set()
        self._summaries: list[RelationSummary] = []

    def run(self) -> Assembled:
        self._describe()
        groups: dict[str, list[tuple[Statement, str]]] = defaultdict(list)
        labels: dict[str, str] = {}
        for statement in self._reading.statements:
            self._heads.add(statement.head)
            relation = statement.relation if is_relation_id(statement.relation) else label_of(statement.relation)
            if not relation:
                self._bad(statement.place, "the relation is empty", "name it")
                continue
            id = relation if is_relation_id(relation) else mint(relation, "P")
            labels.setdefault(id, relation)
            groups[id].append((statement, relation))
        qualifiers: dict[str, list[tuple[Statement, str]]] = defaultdict(list)
        for statement in self._reading.statements:
            for name, value in statement.qualifiers:
                qualifiers[name].append((Statement(statement.place, statement.head, name, value), value))
        qualifier_types = {name: self._type_of(name, values)[0] for name, values in qualifiers.items()}
        for id, group in groups.items():
            self._add_relation(id, labels[id], [statement for statement, _ in group], qualifier_types)
        self._check_types(groups, labels, qualifiers)
        for path, batch in self._batches.items():
            batch.skipped.update(self._reading.skipped if path == next(iter(self._batches)) else {})
        self._wrong.sort(key=lambda wrong: (list(self._batches).index(wrong.place.path), wrong.place.line))
        return Assembled(self._batches, self._summaries, self._wrong)

    def _bad(self, place: Place, what: str, remedy: str) -> None:
        self._wrong.append(Wrong(place, what, remedy))

    # Entities

    def _describe(self) -> None:
        for entity in self._reading.entities:
            id = entity.key if is_item_id(entity.key) else mint(entity.key, "Q")
            batch = self._batches[entity.place.path]
            named = entity.label or ("" if is_item_id(entity.key) or entity.is_key else entity.key)
            batch.entity(id, named or None, entity.aliases, description=entity.description or None)
            self._ids.setdefault(entity.key, id)
            for name in filter(None, (named, *entity.aliases)):
                self._ids.setdefault(name, id)

    def _entity(self, name: str, place: Place) -> str:
        """Id of the entity that a name means; a new one gets the name."""
        name = " ".join(name.split())
        if is_item_id(name):
            return name
        if is_literal(name):
            raise LiteralError(f"{name!r} is not an entity", remedy="give an entity here")
        id = self._ids.get(name)
        if id is None:
            id = self._ids[name] = mint(name, "Q")
            batch = self._batches[place.path]
            batch.entity(id, None, ())
            batch.name(id, name, 2)
        return id

    def _is_entity(self, name: str) -> bool:
        return name in self._ids or name in self._heads or is_item_id(name)

    # Relations

    def _given_type(self, label: str) -> ColumnType | None:
        return self._types.get(" ".join(words_of(label)))

    def _type_of(
        self, name: str, values: Sequence[tuple[Statement, str]], own: ColumnType | None = None
    ) -> tuple[ColumnType, str, set[int]]:
        """Type of a column, the reason, and the indices of the values that cannot be used; these are reported."""
        given = self._given_type(name) or own
        open_ = [index for index, (statement, value) in enumerate(values) if given or not _is_decided(statement, value)]
        if not open_:
            return _type_of_ids([value for _, value in values]), "its ids", set()
        texts = [values[index][1] for index in open_]
        inference = infer(name, texts, is_entity=self._is_entity, declared=given, mark=self._mark)
        for problem in inference.problems:
            self._bad(values[open_[problem.place]][0].place, problem.what, problem.remedy)
        return inference.type, inference.reason, {open_[problem.place] for problem in inference.problems}

    def _add_relation(
        self, id: str, label: str, statements: list[Statement], qualifier_types: Mapping[str, ColumnType]
    ) -> None:
        name = next((each.relation for each in statements if label_of(each.relation) != each.relation), label)
        own = {statement.type for statement in statements}
        only = next(iter(own)) if len(own) == 1 else None
        parts = [
            (statement, value)
            for statement in statements
            for value in self._parts(statement, only or self._given_type(name))
        ]
        type, reason, bad = self._type_of(name, [(statement, value) for statement, value in parts], only)
        if type.kind == "text":  # a text is not divided
            parts, bad = [(statement, statement.value) for statement in statements], set()
        first = self._batches[statements[0].place.path]
        if not is_relation_id(label):
            first.relations.append((id, label))
        first.datatypes.append((id, str(type)))
        example = ""
        count = 0
        for place, (statement, value) in enumerate(parts):
            if place not in bad and self._add_fact(id, statement, value, type, qualifier_types):
                count, example = count + 1, example or value
        self._summaries.append(RelationSummary(id, label, str(type), reason, count, _short(example)))

    def _parts(self, statement: Statement, type: ColumnType | None) -> list[str]:
        """The values of a cell that has several, "Ada Lumen; Tomas Brandt"."""
        value = statement.value
        if not (statement.is_cell and self._split) or is_literal(value) or (type and type.kind == "text"):
            return [value]
        return [part.strip() for part in value.split(self._split) if part.strip() not in NO_VALUE] or [value]

    def _add_fact(
        self,
        relation: str,
        statement: Statement,
        value: str,
        type: ColumnType,
        qualifier_types: Mapping[str, ColumnType],
    ) -> bool:
        place, batch = statement.place, self._batches[statement.place.path]
        if statement.rank and statement.rank not in RANKS:
            if statement.rank == "deprecated":
                batch.skip("deprecated statement")
            else:
                self._bad(place, f"unknown rank {statement.rank!r}", "use preferred, normal or deprecated")
            return False
        try:
            head = self._entity(statement.head, place)
            is_entity = statement.type is not None and statement.type.kind == "entity"
            tail = self._value(value, type, place, is_entity=is_entity)
            qualifiers = [
                (QUALIFIERS.get(name.casefold()) or mint(label_of(name), "P"), name, text)
                for name, text in statement.qualifiers
            ]
            read = [(id, name, self._value(text, qualifier_types[name], place)) for id, name, text in qualifiers]
        except LiteralError as error:
            if not statement.qualifiers:  # else it was reported with its column
                self._bad(place, error.what, error.remedy or "correct it")
            return False
        except KglmError as error:
            self._bad(place, error.what, error.remedy or "correct it")
            return False
        if head == tail:
            self._bad(place, f"head and tail of the fact are both {statement.head!r}", "give two different entities")
            return False
        if type.kind == "text" and " ".join(words_of(statement.relation)) in DESCRIPTION:
            batch.entities.append((head, " ".join(value.split()), None))
        key = f"{place}:{relation}:{head}:{tail}" if read else None
        batch.fact(head, relation, tail, rank=RANKS.get(statement.rank, 0), statement=key)
        for id, name, qualifier in read:
            assert key is not None
            batch.qualifiers.append((key, id, qualifier))
            batch.entity(id, QUALIFIER_LABELS.get(id, label_of(name)), ())
        return True

    def _value(self, value: str, type: ColumnType, place: Place, *, is_entity: bool = False) -> str:
        """Id of a tail; units that it uses become entities."""
        if is_item_id(value) and type.kind != "text":
            return value
        if is_entity:
            return self._entity(value, place)
        batch = self._batches[place.path]

        def add_unit(unit: Unit) -> None:
            batch.entity(unit.id, unit.names[0], unit.names[1:])

        return type.read(value, add_unit) or self._entity(value, place)

    def _check_types(self, groups: Iterable[str], labels: Mapping[str, str], qualifiers: Iterable[str]) -> None:
        """Refuse a type for a relation that does not exist, which is a slip of the pen."""
        present = {" ".join(words_of(labels[id])) for id in groups} | {" ".join(words_of(name)) for name in qualifiers}
        for words, name in self._names.items():
            if words not in present:
                known = ", ".join(sorted(present)[:12])
                raise ConfigError(f"no column or relation is called {name!r}", remedy=f"there are: {known}")


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= EXAMPLE else f"{plain[: EXAMPLE - 1]}…"


def _is_decided(statement: Statement, value: str) -> bool:
    """True if a value is an id, or an entity for the format itself."""
    return is_literal(value) or is_item_id(value) or (statement.type is not None and statement.type.kind == "entity")


def _type_of_ids(values: Sequence[str]) -> ColumnType:
    kinds = Counter("entity" if not is_literal(value) else "text" if is_text(value) else value[0] for value in values)
    [(kind, _)] = kinds.most_common(1)
    return ColumnType({"T": "date", "V": "quantity"}.get(kind, kind))  # type: ignore[arg-type]
