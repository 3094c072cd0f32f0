"""Write a graph as a file that `kglm kg import` reads: TSV, JSON lines or N-Triples.

The file has all facts with rank, qualifiers and sources, names, descriptions, titles, types of relations and
redirects, in the order of the graph. Importing it gives the same graph, with the same numbers. The history of edits is
left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from kglm.errors import ConfigError, LiteralError
from kglm.files import atomic_file
from kglm.kg.ids import REFERENCE_URL, STATED_IN, WIKIDATA_ENTITY, is_item_id
from kglm.kg.importers import ntriples
from kglm.kg.importers.table import ALIAS, DATATYPE, DESCRIPTION, LABEL, NAME, PAGE, REDIRECT
from kglm.kg.literals.dates import DAY, MONTH, Date
from kglm.kg.literals.literal import canonical_literal, is_date, is_literal, is_quantity, is_text
from kglm.kg.literals.quantities import Quantity
from kglm.kg.literals.texts import text_id, text_of
from kglm.kg.schema import DATATYPE as DATATYPE_KEY
from kglm.kg.schema import RANKS
from kglm.kg.store import Store
from kglm.progress import progress

_UNFIT = re.compile(r'[\x00-\x20<>"{}|^`\\%]')


class _Entity(NamedTuple):
    id: str
    names: list[str]
    description: str | None
    page: str | None
    alone: bool
    """True if it has neither names nor facts."""


class _Relation(NamedTuple):
    id: str
    name: str | None
    """Empty if it has neither a name nor facts."""
    datatype: str | None


class _Fact(NamedTuple):
    head: str
    relation: str
    tail: str
    rank: int
    qualifiers: list[tuple[str, str]]
    """Property and value of each."""
    sources: list[str]

    @property
    def remarks(self) -> list[tuple[str, str]]:
        """The qualifiers, and the sources as values of the properties that name one."""
        cited = [
            (STATED_IN, text) if is_item_id(text) else (_source_property(text), text_id(text)) for text in self.sources
        ]
        return [*self.qualifiers, *cited]


def _source_property(text: str) -> str:
    return REFERENCE_URL if text.startswith(("http://", "https://")) else STATED_IN


def export_graph(kg: str | Path, to: str | Path) -> dict[str, int]:
    """Write the graph to a file, whose ending decides the format; return the numbers of facts and entities."""
    to = Path(to)
    if to.suffix not in WRITERS:
        raise ConfigError(
            f"{to.suffix or to.name!r} is no format of an export", place=to, remedy=f"end it in {', '.join(WRITERS)}"
        )
    with Store.open(kg) as store, store.snapshot():
        store.check()
        language = str(dict(store.rows("SELECT key, value FROM meta")).get("language", "en"))
        writer = WRITERS[to.suffix](language)
        counts = {"facts": 0, "entities": 0}
        [[facts]] = store.rows("SELECT count(*) FROM fact")
        with atomic_file(to) as stream, progress(f"writing {to.name}", int(facts), "facts") as advance:
            for record in _records(store):
                for line in writer(record):
                    stream.write(line.encode() + b"\n")
                if isinstance(record, _Fact):
                    counts["facts"] += 1 + len(record.qualifiers)
                    advance(1 + len(record.qualifiers))
                elif isinstance(record, _Entity):
                    counts["entities"] += 1
    return counts


Record = _Entity | _Relation | _Fact | tuple[str, str]
"""A pair is a redirect."""


def _records(store: Store) -> Iterator[Record]:
    datatypes = {key[len(DATATYPE_KEY) :]: value for key, value in store.rows("SELECT key, value FROM meta")
                 if key.startswith(DATATYPE_KEY)}  # fmt: skip
    for id, label, used in store.rows(
        "SELECT id, label, EXISTS (SELECT 1 FROM fact WHERE relation = r.number) FROM relation r WHERE number > 0"
        " ORDER BY number"
    ):
        yield _Relation(id, label if label or used else "", datatypes.get(id))
    for number, id, about, title, used in store.stream(
        "SELECT number, id, description, title, EXISTS (SELECT 1 FROM fact WHERE head = e.number)"
        " OR EXISTS (SELECT 1 FROM fact WHERE tail = e.number) FROM entity e ORDER BY number"
    ):
        if not is_literal(id):
            names = store.rows("SELECT text FROM name WHERE entity = ? ORDER BY position", (number,))
            yield _Entity(id, [name for [name] in names], about, title, not (used or names))
    for number, head, relation, tail, rank in store.stream(
        "SELECT f.number, h.id, r.id, t.id, f.rank FROM fact f JOIN entity h ON h.number = f.head"
        " JOIN relation r ON r.number = f.relation JOIN entity t ON t.number = f.tail"
        " WHERE NOT EXISTS (SELECT 1 FROM qualifier q WHERE q.fact = f.number) ORDER BY f.number"
    ):
        qualifiers = store.rows(
            "SELECT r.id, t.id FROM qualifier q JOIN fact f ON f.number = q.fact JOIN relation r"
            " ON r.number = f.relation JOIN entity t ON t.number = f.tail WHERE q.statement = ? ORDER BY f.number",
            (number,),
        )
        sources = (
            [] if store.version == 1 else store.rows("SELECT text FROM source WHERE fact = ? ORDER BY text", (number,))
        )
        parts = [(id.partition(":")[2], value) for id, value in qualifiers]
        yield _Fact(head, relation, tail, rank, parts, [text for [text] in sources])
    yield from store.stream("SELECT source, target FROM redirect ORDER BY source")


def _tsv(language: str) -> Callable[[Record], Iterator[str]]:  # noqa: ARG001
    def lines(record: Record) -> Iterator[str]:
        if isinstance(record, _Relation):
            if record.name is not None:
                yield f"{record.id}\t{NAME}\t{record.name}"
            if record.datatype:
                yield f"{record.id}\t{DATATYPE}\t{record.datatype}"
        elif isinstance(record, _Entity):
            yield from (f"{record.id}\t{ALIAS if k else LABEL}\t{name}" for k, name in enumerate(record.names))
            if record.description or record.alone:
                yield f"{record.id}\t{DESCRIPTION}\t{' '.join((record.description or '').split())}"
            if record.page:
                yield f"{record.id}\t{PAGE}\t{record.page}"
        elif isinstance(record, _Fact):
            qualifiers = " ".join(f"{property} {value}" for property, value in record.remarks)
            rank = RANKS[record.rank] if record.rank or qualifiers else ""
            yield "\t".join(filter(None, (*record[:3], rank, qualifiers)))
        else:
            yield f"{record[0]}\t{REDIRECT}\t{record[1]}"

    return lines


def _jsonl(language: str) -> Callable[[Record], Iterator[str]]:  # noqa: ARG001
    def lines(record: Record) -> Iterator[str]:
        values: dict[str, Any]
        if isinstance(record, _Relation):
            values = {"relation": record.id, "label": record.name or "", "datatype": record.datatype}
        elif isinstance(record, _Entity):
            values = {"id": record.id, "label": record.names[0] if record.names else None, "aliases": record.names[1:],
                      "description": record.description, "page": record.page}  # fmt: skip
        elif isinstance(record, _Fact):
            values = dict(zip(("head", "relation", "tail"), record[:3], strict=True))
            values["rank"] = RANKS[record.rank] if record.rank else None
            qualifiers: dict[str, list[str]] = {}
            for property, value in record.remarks:
                qualifiers.setdefault(property, []).append(value)
            values["qualifiers"] = qualifiers
        else:
            values = {"redirect": record[0], "target": record[1]}
        yield msgspec.json.encode({key: value for key, value in values.items() if value or key == "label"}).decode()

    return lines


def _nt(language: str) -> Callable[[Record], Iterator[str]]:
    def named(text: str) -> str:
        return f"{_string(text)}@{language}"

    def lines(record: Record) -> Iterator[str]:
        if isinstance(record, _Relation):
            subject = f"<{_address(record.id)}>"
            if record.name is not None:
                yield f"{subject} <{ntriples.NAME}> {_string(record.name)} ."
            if record.datatype:
                yield f"{subject} <{ntriples.DATATYPE}> {_string(record.datatype)} ."
        elif isinstance(record, _Entity):
            subject = f"<{_address(record.id)}>"
            for k, name in enumerate(record.names):
                yield f"{subject} <{ntriples.ALIAS if k else ntriples.LABEL}> {named(name)} ."
            if record.description:
                yield f"{subject} <{ntriples.DESCRIPTION}> {named(record.description)} ."
            if record.page:
                yield f"{subject} <{ntriples.PAGE}> {_string(record.page)} ."
            if record.alone:
                yield f"{subject} <{ntriples.RDF_TYPE}> <{ntriples.OWN_ENTITY}> ."
        elif isinstance(record, _Fact):
            fact = f"<{_address(record.head)}> <{_address(record.relation, direct=True)}> {_object(record.tail)}"
            yield f"{fact} ."
            if record.rank:
                yield f"<< {fact} >> <{ntriples.RANK}> {_string(RANKS[record.rank])} ."
            for property, value in record.remarks:
                yield f"<< {fact} >> <{_address(property, direct=True)}> {_object(value)} ."
        else:
            yield f"<{ntriples.OWN}{_quoted(record[0])}> <{ntriples.REDIRECT}> {_string(record[1])} ."

    return lines


WRITERS = {".tsv": _tsv, ".jsonl": _jsonl, ".nt": _nt}


def _quoted(id: str) -> str:
    return _UNFIT.sub(lambda match: quote(match[0], safe=""), id)


def _address(id: str, *, direct: bool = False) -> str:
    """Address of an entity, or with `direct` of a relation: of Wikidata if the id is."""
    if re.fullmatch("[QP][0-9]+", id):
        return (ntriples.DIRECT if direct else WIKIDATA_ENTITY) + id
    return ntriples.OWN + _quoted(id)


def _object(id: str) -> str:
    """An id as the object of a triple; a literal keeps its type where XML Schema has one for it."""
    if not is_literal(id):
        return f"<{_address(id)}>"
    if is_text(id):
        return f"{_string(text_of(id))}^^<{ntriples.OWN_TEXT}>"
    try:
        exact = canonical_literal(id) == id
    except LiteralError:
        exact = False
    if exact and is_date(id):
        date = Date.parse_id(id)
        if date.precision == DAY and 0 < date.year < 10_000:
            return f'"{date.year:04d}-{date.month:02d}-{date.day:02d}"^^<{ntriples.XSD}date>'
        if date.precision == MONTH and 0 < date.year < 10_000:
            return f'"{date.year:04d}-{date.month:02d}"^^<{ntriples.XSD}gYearMonth>'
    if exact and is_quantity(id):
        quantity = Quantity.parse_id(id)
        unit = f"{ntriples.XSD}decimal" if quantity.unit == "1" else _address(quantity.unit)
        return f'"{quantity.amount:f}"^^<{unit}>'
    return f"{_string(id)}^^<{ntriples.OWN_LITERAL}>"


def _string(text: str) -> str:
    """A string of N-Triples; `>` is escaped too, so that the end of a quoted triple is found by its brackets."""

    def escaped(match: re.Match[str]) -> str:
        return f"\\u{ord(match[0]):04X}"

    return '"' + re.sub(r'[\x00-\x1f"\\>\x7f\x85\u2028\u2029]', escaped, text) + '"'
