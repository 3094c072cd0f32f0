"""Edits as people ask for them: from the command line or a file, by names, with new entities and relations.

All requests are resolved before anything is changed. New things need `create`, because a name that the graph lacks is
mostly a slip. Values are read as an import reads them: by the type of the relation, which a new relation gets from its
name and its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kglm.errors import ConfigError, DataError, GraphError, KglmError, LiteralError, UnknownIdError
from kglm.kg.edits import FactEdit, NewEntity, RelationType
from kglm.kg.ids import REVERSE, is_item_id, is_relation_id, mint
from kglm.kg.importers.statements import Place, Reading
from kglm.kg.importers.tables import find_delimiter, read_rows, read_text
from kglm.kg.literals.column_types import ColumnType
from kglm.kg.literals.columns import infer
from kglm.kg.literals.hints import label_of, words_of
from kglm.kg.literals.literal import is_literal
from kglm.kg.literals.units import Unit
from kglm.kg.resolve import parse_fact, resolve_entity, resolve_relation, resolve_tail

if TYPE_CHECKING:
    from kglm.kg.graph import KnowledgeGraph

ACTIONS = ("set", "add", "remove")
COLUMNS = ("action", "head", "relation", "tail")
Edit = FactEdit | NewEntity | RelationType


class Request(NamedTuple):
    """An edit in words; without `relation` and `tail`, `head` is the whole fact."""

    action: str
    head: str
    relation: str = ""
    tail: str = ""
    place: Place | None = None

    @classmethod
    def parse(cls, action: str, fact: str) -> Request:
        """Divide a fact at its bars; a fact without bars is divided later, by the names of the graph."""
        parts = [part.strip() for part in fact.split("|" if "|" in fact else "\t")]
        if len(parts) == 1:
            return cls(action, fact)
        if len(parts) != 3 or not all(parts):
            raise GraphError(f"{fact!r} has {len(parts)} parts", remedy="write HEAD | RELATION | TAIL")
        head, relation, tail = parts
        return cls(action, head, relation, tail)


class RefusedEdits(GraphError):
    """Edits of a file that are not possible; none was made."""

    def __init__(self, problems: list[str]) -> None:
        lines = "1 edit is" if len(problems) == 1 else f"{len(problems):,} edits are"
        super().__init__(f"{lines} not possible, so none was made: {problems[0]}", remedy="correct the file")
        self.problems = problems


def read_requests(path: str | Path) -> list[Request]:
    """Read a table with the columns action (set, add or remove), head, relation, tail."""
    text = read_text(str(path))
    reading = Reading()
    rows = list(read_rows(text, find_delimiter(text) or ",", str(path), reading))
    names = [" ".join(words_of(name)) for name in rows[0].cells] if rows else []
    if not set(COLUMNS) <= set(names):
        raise DataError(
            f"has no columns {', '.join(sorted(set(COLUMNS) - set(names)))}",
            place=path,
            remedy=f"name the columns in the first row: {','.join(COLUMNS)}",
        )
    found, problems = [], [str(wrong) for wrong in reading.wrong]
    for row in rows[1:]:
        place = Place(str(path), row.line)
        if len(row.cells) != len(names):
            problems.append(f"{place}: {len(row.cells)} columns where {len(names)} are expected; keep empty cells")
            continue
        action, *fact = (row.cells[names.index(name)] for name in COLUMNS)
        if action not in ACTIONS or not all(fact):
            problems.append(f"{place}: no action or no fact; write one of {', '.join(ACTIONS)}, and all three parts")
            continue
        head, relation, tail = fact
        found.append(Request(action, head, relation, tail, place))
    if problems:
        raise RefusedEdits(problems)
    return found


def resolve_requests(
    graph: KnowledgeGraph, requests: Sequence[Request], *, create: bool = False, types: Mapping[str, str] | None = None
) -> list[Edit]:
    """Edits by ids that carry out the requests, with the entities and relations that they need; `graph` is unchanged.

    `types` are types of relations by name, as in `--type`.
    """
    return _Resolution(graph.fork(), requests, types or {}, create=create).run()


class _Resolution:
    def __init__(
        self, draft: KnowledgeGraph, requests: Sequence[Request], types: Mapping[str, str], *, create: bool
    ) -> None:
        self._draft = draft
        self._requests = requests
        self._create = create
        self._given = {" ".join(words_of(name)): ColumnType.parse(type) for name, type in types.items()}
        self._edits: list[Edit] = []
        self._problems: list[tuple[int, KglmError]] = []

    def run(self) -> list[Edit]:
        divided = [self._divided(index, request) for index, request in enumerate(self._requests)]
        relations: dict[int, str] = {}
        for index, request in enumerate(divided):
            if request is not None:
                try:
                    relations[index] = self._relation(request.relation)
                except KglmError as error:
                    self._problems.append((index, error))
        self._set_types(divided, relations)
        for index, relation in relations.items():
            request = divided[index]
            assert request is not None
            try:
                self._edits.append(self._fact(request, relation))
            except KglmError as error:
                self._problems.append((index, error))
        if self._problems:
            self._refuse()
        return self._edits

    def _refuse(self) -> None:
        problems = sorted(self._problems, key=lambda problem: problem[0])
        if self._requests[problems[0][0]].place is None:
            raise problems[0][1]
        raise RefusedEdits([f"{self._requests[index].place}: {error}" for index, error in problems])

    def _divided(self, index: int, request: Request) -> Request | None:
        """The request with its three parts; names divide a fact that is written without bars."""
        if request.relation:
            return request
        try:
            return Request(request.action, *parse_fact(self._draft, request.head), place=request.place)
        except KglmError as error:
            hint = "" if self._create is False else "; new names need bars: HEAD | RELATION | TAIL"
            error.remedy = f"{error.remedy}{hint}" if error.remedy else None
            self._problems.append((index, error))
            return None

    def _new(self, id: str, names: tuple[str, ...]) -> str:
        """Create an entity in the draft, under an id that no other has."""
        free, number = id, 2
        while free in self._draft:
            free, number = f"{id}_{number}", number + 1
        self._edits.append(NewEntity(free, names))
        self._draft.edit([self._edits[-1]])
        return free

    def _relation(self, text: str) -> str:
        try:
            return resolve_relation(self._draft, text)
        except UnknownIdError as error:
            label = label_of(text)
            made = mint(label, "P") if not is_relation_id(text) else text
            if made in self._draft and list(self._draft.names(self._draft.number(made)))[:1] == [label]:
                return made  # created by an earlier request
            if not self._create or text.startswith(REVERSE):
                raise _with_create(error) from error
            return self._new(made, (label,))

    def _entity(self, text: str) -> str:
        try:
            return resolve_entity(self._draft, text)
        except UnknownIdError as error:
            if not self._create:
                raise _with_create(error) from error
            name = " ".join(text.split())
            return self._new(text if is_item_id(text) else mint(name, "Q"), (name.removeprefix("Q_"),))

    def _set_types(self, divided: Sequence[Request | None], relations: Mapping[int, str]) -> None:
        """Store the types that are given, and those that new relations get from all their values."""
        new = {edit.id for edit in self._edits if isinstance(edit, NewEntity)}
        for relation in dict.fromkeys([*relations.values(), *self._given_relations()]):
            label = self._label(relation)
            values = [
                request.tail for index, request in enumerate(divided) if request and relations.get(index) == relation
            ]
            type = self._given.get(" ".join(words_of(label)))
            if type is None and relation in new and not all(map(_is_id, values)):
                try:
                    type = infer(
                        label, [value for value in values if not _is_id(value)], is_entity=self._is_entity
                    ).type
                except LiteralError:
                    continue
            if type is not None and str(type) != self._draft.datatype(relation):
                self._edits.append(RelationType(relation, str(type)))
                self._draft.edit([self._edits[-1]])

    def _given_relations(self) -> list[str]:
        found = []
        for name in self._given:
            try:
                found.append(self._relation(name))
            except UnknownIdError as error:
                raise ConfigError(
                    f"no relation is called {name!r}", remedy="list them: kglm kg relations KG"
                ) from error
        return found

    def _label(self, relation: str) -> str:
        return self._draft.relation_name(relation)

    def _is_entity(self, text: str) -> bool:
        try:
            resolve_entity(self._draft, text)
        except KglmError:
            return False
        return True

    def _fact(self, request: Request, relation: str) -> FactEdit:
        head, tail = request.head, request.tail
        if relation.startswith(REVERSE):
            relation, head, tail = relation.removeprefix(REVERSE), tail, head
        head = resolve_entity(self._draft, head) if request.action == "remove" else self._entity(head)
        type = self._draft.datatype(relation)
        if type and not _is_id(tail) and ColumnType.parse(type).kind not in ("entity", "id"):
            tail = str(ColumnType.parse(type).read(tail, self._use_unit))
        else:
            try:
                tail = resolve_tail(self._draft, head, relation, tail)
            except UnknownIdError:
                if request.action == "remove":
                    raise
                tail = self._entity(tail)
        return FactEdit(request.action, head, relation, tail)  # type: ignore[arg-type]

    def _use_unit(self, unit: Unit) -> None:
        if unit.id not in self._draft:
            self._new(unit.id, unit.names)


def _is_id(text: str) -> bool:
    return is_literal(text) or is_item_id(text)


def _with_create(error: UnknownIdError) -> UnknownIdError:
    remedy = "to create it: --create"
    return UnknownIdError(error.what, place=error.place, remedy=f"{error.remedy}; {remedy}" if error.remedy else remedy)
