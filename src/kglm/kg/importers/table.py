"""Import the formats of this project (docs/formats.md): TSV for facts, JSONL for entities and facts, both with ids.

facts.tsv        head <tab> relation <tab> tail [<tab> rank [<tab> qualifiers, as in "P580 T::… P582 T::…"]]
                 id <tab> label, alias, description, page, name of relation or datatype <tab> text
relations.tsv    id <tab> name
redirects.tsv    title <tab> target title
entities.jsonl   {"id": "Q76", "label": "Barack Obama", "aliases": ["Obama"], "title": "Barack Obama"}
                 {"relation": "P_height", "label": "height", "datatype": "quantity:metre"}
facts.jsonl      {"head": "Q76", "relation": "P569", "tail": "1961-08-04", "qualifiers": {"P585": ["…"]}}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from kglm.errors import LiteralError
from kglm.kg.ids import SOURCE_PROPERTIES, is_entity_id, is_item_id, is_relation_id, mint, normalise_title
from kglm.kg.importers.records import Batch, Source, TermReader
from kglm.kg.importers.wikidata import RANKS

FACT_HEADER = ["head", "relation", "tail"]
LABEL, ALIAS, DESCRIPTION, PAGE, NAME, DATATYPE, REDIRECT = DESCRIBING_ROWS = (
    "label", "alias", "description", "page", "name of relation", "datatype", "redirect to"
)  # fmt: skip
"""What stands in the place of the relation in rows that describe an entity or a relation."""


def parse_facts(data: bytes, first_line: int, source: Source) -> Batch:
    """Parse facts and descriptions, one per line."""
    batch = Batch()
    terms = TermReader(batch, source.options)
    for number, cells in _cells(data, first_line, batch):
        if not 3 <= len(cells) <= 5:
            batch.problem(number, f"{len(cells)} columns where 3 to 5 are expected", "wrong number of columns")
        elif number == 1 and [cell.lower() for cell in cells[:3]] == FACT_HEADER:
            continue
        elif cells[1] in DESCRIBING_ROWS and not source.options.mint_ids:
            _add_description(cells, number, batch)
        elif len(cells) > 3 and cells[3] and cells[3] not in RANKS:
            if cells[3] == "deprecated":
                batch.skip("deprecated statement")
            else:
                batch.problem(number, f"unknown rank {cells[3]!r}", "unknown rank")
        else:
            qualifiers = cells[4].split() if len(cells) == 5 else []
            rank = RANKS.get(cells[3], 0) if len(cells) > 3 else 0
            key = f"{number}${cells[0]}${cells[1]}${cells[2]}" if qualifiers else None
            if terms.fact(number, *cells[:3], rank=rank, statement=key) and key:
                pairs = zip(qualifiers[::2], [*qualifiers, ""][1::2], strict=False)
                _add_qualifiers([(name, [value]) for name, value in pairs], number, key, batch, terms)
    return batch


def _add_description(cells: list[str], number: int, batch: Batch) -> None:
    id, what, text = cells[:3]
    if what == REDIRECT:
        batch.redirects.append((normalise_title(id), normalise_title(text)))
    elif not (is_relation_id(id) if what in (NAME, DATATYPE) else is_item_id(id)):
        batch.problem(number, f"{id[:60]!r} is not the id of the {what} {text[:60]!r}", "not an id")
    elif what in (LABEL, ALIAS):
        batch.name(id, text, int(what == ALIAS))
    elif what == NAME:
        batch.relations.append((id, text))
    elif what == DATATYPE:
        batch.relations.append((id, ""))
        batch.datatype(number, id, text)
    else:
        batch.entities.append((id, text or None, None) if what == DESCRIPTION else (id, None, text or None))


def parse_relations(data: bytes, first_line: int, source: Source) -> Batch:
    """Parse names of relations."""
    batch = Batch()
    for number, cells in _cells(data, first_line, batch):
        if len(cells) != 2:
            batch.problem(number, f"{len(cells)} columns where 2 are expected", "wrong number of columns")
        elif is_relation_id(cells[0]):
            batch.relations.append((cells[0], " ".join(cells[1].split())))
        elif source.options.mint_ids:
            batch.relations.append((mint(cells[0], "P"), " ".join(cells[1].split())))
        else:
            batch.problem(number, f"{cells[0][:60]!r} is not a relation id", "relation is not an id")
    return batch


def parse_redirects(data: bytes, first_line: int, source: Source) -> Batch:  # noqa: ARG001
    """Parse redirects between Wikipedia titles."""
    batch = Batch()
    for number, cells in _cells(data, first_line, batch):
        if len(cells) != 2 or not all(cells):
            batch.problem(number, f"{len(cells)} columns where 2 are expected", "wrong number of columns")
        else:
            batch.redirects.append((normalise_title(cells[0]), normalise_title(cells[1])))
    return batch


def _cells(data: bytes, first_line: int, batch: Batch) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line; blank lines and comments are skipped."""
    for number, line in enumerate(data.split(b"\n"), first_line):
        line = line.rstrip(b"\r")
        if not line.strip() or line.startswith(b"#"):
            continue
        try:
            yield number, [cell.strip() for cell in line.decode().split("\t")]
        except UnicodeDecodeError:
            batch.problem(number, "invalid UTF-8", "invalid UTF-8")


class _Line(msgspec.Struct):
    """A line of JSONL: an entity (`id`) or a fact (`head`, `relation`, `tail`)."""

    id: str | None = None
    label: str | None = None
    aliases: list[Any] = []
    description: str | None = None
    title: str | None = None
    head: str | None = None
    relation: str | None = None
    tail: str | None = None
    rank: str = "normal"
    page: str | None = None
    datatype: str | None = None
    redirect: str | None = None
    target: str | None = None
    qualifiers: dict[str, list[str]] = {}


_LINE = msgspec.json.Decoder(_Line)
_LINE_KEYS = frozenset(_Line.__struct_fields__)


def is_id_line(line: bytes) -> bool:
    """True if a line of JSON has the keys of this format and ids; malformed lines count, as they are reported."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return True
    if not isinstance(value, dict) or not value.keys() <= _LINE_KEYS:
        return False
    ids = [value.get("id", value.get("head", "Q0")), value.get("relation", "P0"), value.get("tail", "Q0")]
    return all(not isinstance(id, str) or is_entity_id(id) or is_relation_id(id) for id in ids)


def parse_jsonl(data: bytes, first_line: int, source: Source) -> Batch:
    """Parse entities and facts, one JSON object per line."""
    batch = Batch()
    terms = TermReader(batch, source.options)
    for number, line in enumerate(data.split(b"\n"), first_line):
        if not line.strip():
            continue
        try:
            record = _LINE.decode(line)
        except msgspec.ValidationError as error:
            batch.problem(number, str(error), "wrong type")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            batch.problem(number, f"not JSON ({error})", "not JSON")
        else:
            _add_line(record, number, batch, terms)
    return batch


def _add_line(record: _Line, number: int, batch: Batch, terms: TermReader) -> None:
    if record.redirect is not None and record.target is not None:
        batch.redirects.append((normalise_title(record.redirect), normalise_title(record.target)))
    elif record.relation is not None and record.head is None and (record.label is not None or record.datatype):
        _add_relation(record, number, batch, terms)
    elif record.id is not None:
        id = terms.item(record.id)
        if id is None:
            batch.problem(number, f"{record.id[:60]!r} is not an entity id", "not an entity id")
            return
        batch.entity(id, record.label, record.aliases, description=record.description, title=record.title)
        if record.page:  # unlike a title, it adds no alias
            batch.entities.append((id, None, record.page))
    elif record.head is None or record.relation is None or record.tail is None:
        batch.problem(number, "neither an entity (id) nor a fact (head, relation, tail)", "neither entity nor fact")
    elif record.rank not in RANKS:
        batch.skip(f"{record.rank} statement")
    else:
        key = f"{number}${record.head}${record.relation}${record.tail}" if record.qualifiers else None
        triple = record.head, record.relation, record.tail
        if terms.fact(number, *triple, rank=RANKS[record.rank], statement=key) and key:
            _add_qualifiers(record.qualifiers.items(), number, key, batch, terms)


def _add_relation(record: _Line, number: int, batch: Batch, terms: TermReader) -> None:
    id = terms.relation(record.relation or "")
    if id is None:
        batch.problem(number, f"{record.relation!r} is not a relation id", "relation is not an id")
        return
    batch.relations.append((id, " ".join((record.label or "").split())))
    if record.datatype:
        batch.datatype(number, id, record.datatype)


def _add_qualifiers(
    qualifiers: Iterable[tuple[str, list[str]]], number: int, key: str, batch: Batch, terms: TermReader
) -> None:
    for property, values in qualifiers:
        for value in values:
            if property in SOURCE_PROPERTIES:
                batch.source(key, value)
                continue
            try:
                parts = terms.relation(property), terms.tail(value)
            except LiteralError as error:
                batch.problem(number, str(error), "malformed literal")
                continue
            if parts[0] is None or parts[1] is None:
                batch.problem(
                    number, f"qualifier {property!r} = {value[:60]!r} is not given by ids", "tail is not an id"
                )
            else:
                batch.qualifiers.append((key, parts[0], parts[1]))
