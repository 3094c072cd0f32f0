"""Read Neo4j's CSV: nodes (`:ID`, `:LABEL`) and relationships (`:START_ID`, `:END_ID`, `:TYPE`) with typed properties.

Both headers are read: that of `neo4j-admin database import` (`personId:ID(Person),name,born:int,:LABEL`) and that of
APOC's export (`_id,_labels,name,_start,_end,_type`). Properties of relationships are qualifiers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from kglm.errors import DataError
from kglm.kg.importers.statements import Described, Place, Reading, Statement, plain_value
from kglm.kg.importers.tables import NAMES, Row, find_delimiter, read_rows, read_text
from kglm.kg.literals.column_types import ColumnType
from kglm.kg.literals.hints import words_of

_FIELD = re.compile(r"([^:]*)(?::([A-Za-z_]+(?:\{[^}]*\})?)(?:\(([^)]*)\))?(\[\])?(?:\{[^}]*\})?)?")
_APOC = {"_id": "ID", "_labels": "LABEL", "_start": "START_ID", "_end": "END_ID", "_type": "TYPE"}
_NUMBERS = frozenset(["float", "double"])
_INTEGERS = frozenset(["int", "long", "short", "byte"])
_DATES = frozenset(["date", "datetime", "localdatetime"])
_LEFT_OUT = frozenset(["point", "duration", "time", "localtime", "IGNORE", "vector"])


class _Field(NamedTuple):
    name: str
    type: str
    group: str
    is_list: bool


def is_neo4j(header: str) -> bool:
    """True if the first line of a file is a header of Neo4j."""
    return bool(re.search(r":(?:ID|START_ID)\b", header)) or {"_id", "_start"} <= set(re.findall(r"\w+", header))


def read_neo4j(path: str, into: Reading, delimiter: str | None = None) -> None:
    """Add the nodes or relationships of a file."""
    text = read_text(path)
    rows = list(read_rows(text, delimiter or find_delimiter(text) or ",", path, into))
    if not rows:
        raise DataError("has no rows", place=path, remedy="name a file with nodes or relationships")
    fields = [_field(cell) for cell in rows[0].cells]
    types = [field.type for field in fields]
    if not {"ID", "START_ID"}.intersection(types):
        raise DataError(
            "has neither a column :ID nor :START_ID", place=f"{path}, line {rows[0].line}", remedy="use --format table"
        )
    what = [name for type, name in (("ID", "nodes"), ("START_ID", "relationships")) if type in types]
    into.notes.append(f"{path}: Neo4j's CSV with {' and '.join(what)} (otherwise: --format table)")
    for row in rows[1:]:
        place = Place(path, row.line)
        if len(row.cells) != len(fields):
            into.bad(place, f"{len(row.cells)} columns where {len(fields)} are expected", "keep empty cells")
        elif "START_ID" in types and row.cells[types.index("START_ID")]:
            _relationship(place, row, fields, into)
        elif "ID" in types and row.cells[types.index("ID")]:
            _node(place, row, fields, into)
        else:
            into.bad(place, "neither a node nor a relationship: its ids are empty", "give them, or delete the line")


def _field(cell: str) -> _Field:
    if cell in _APOC:
        return _Field("", _APOC[cell], "", is_list=False)
    match = _FIELD.fullmatch(cell)
    if match is None:
        return _Field(cell, "", "", is_list=False)
    return _Field(match[1], (match[2] or "").partition("{")[0], match[3] or "", is_list=bool(match[4]))


def _key(field: _Field, id: str) -> str:
    return f"{field.group}.{id}" if field.group else id


def _node(place: Place, row: Row, fields: Sequence[_Field], into: Reading) -> None:
    cells = list(zip(fields, row.cells, strict=True))
    key = next(_key(field, cell) for field, cell in cells if field.type == "ID")
    names = [cell for field, cell in cells if _is_name(field) and cell]
    id_value = next(cell for field, cell in cells if field.type == "ID")
    into.entities.append(Described(place, key, names[0] if names else id_value, is_key=True))
    for field, cell in cells:
        if field.type == "LABEL":
            for label in filter(None, re.split("[;:]", cell)):
                into.statements.append(Statement(place, key, "instance of", " ".join(label.replace("_", " ").split())))
        elif field.name and field.type != "ID" and cell and not _is_name(field):
            for name, value, type in _values(field, cell, into):
                into.statements.append(Statement(place, key, name, value, type=type))


def _is_name(field: _Field) -> bool:
    return " ".join(words_of(field.name)) in NAMES and field.type in ("", "string") and not field.is_list


def _values(field: _Field, cell: str, into: Reading) -> list[tuple[str, str, ColumnType | None]]:
    """Name, value and type of a property; an array gives several."""
    if field.type in _LEFT_OUT:
        into.skipped[field.type] += 1
        return []
    found: list[tuple[str, str, ColumnType | None]] = []
    for value in cell.split(";") if field.is_list else [cell]:
        if not value.strip():
            continue
        if field.type in _NUMBERS:
            found.append((field.name, value, ColumnType("quantity", mark="point")))
        elif field.type in _INTEGERS:
            found.append((field.name, value, None))
        elif field.type in _DATES:
            found.append((field.name, value, ColumnType("date")))
        else:
            found.append((field.name, plain_value(field.name, value), None))
    return found


def _relationship(place: Place, row: Row, fields: Sequence[_Field], into: Reading) -> None:
    start = end = name = ""
    extra: list[tuple[str, str]] = []
    for field, cell in zip(fields, row.cells, strict=True):
        if field.type == "START_ID":
            start = _key(field, cell)
        elif field.type == "END_ID":
            end = _key(field, cell)
        elif field.type == "TYPE":
            name = cell.lower() if cell.isupper() else cell
        elif field.type != "ID" and field.name and cell:
            extra += [(name, value) for name, value, _ in _values(field, cell, into)]
    if not (end and name):
        into.bad(place, f"the {'end' if not end else 'type'} of the relationship is empty", "give it")
        return
    into.statements.append(Statement(place, start, name, end, qualifiers=extra, type=ColumnType("entity")))
