"""Import the formats of this project (docs/formats.md): TSV for facts, JSONL for entities and facts.

facts.tsv        head <tab> relation <tab> tail [<tab> rank]
relations.tsv    id <tab> name
redirects.tsv    title <tab> target title
entities.jsonl   {"id": "Q76", "label": "Barack Obama", "aliases": ["Obama"], "title": "Barack Obama"}
facts.jsonl      {"head": "Q76", "relation": "P569", "tail": "1961-08-04", "qualifiers": {"P585": ["…"]}}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kglm.errors import LiteralError
from kglm.kg.ids import SOURCE_PROPERTIES, is_relation_id, mint, normalise_title
from kglm.kg.importers.records import Batch, Source, TermReader
from kglm.kg.importers.wikidata import RANKS


def parse_facts(data: bytes, first_line: int, source: Source) -> Batch:
    """Parse facts, one per line."""
    batch = Batch()
    terms = TermReader(batch, source.options)
    for number, cells in _cells(data, first_line, batch):
        if len(cells) not in (3, 4):
            batch.problem(number, f"{len(cells)} columns where 3 or 4 are expected", "wrong number of columns")
        elif number == 1 and [cell.lower() for cell in cells[:3]] == ["head", "relation", "tail"]:
            continue
        elif len(cells) == 4 and cells[3] and cells[3] not in RANKS:
            if cells[3] == "deprecated":
                batch.skip("deprecated statement")
            else:
                batch.problem(number, f"unknown rank {cells[3]!r}", "unknown rank")
        else:
            terms.fact(number, *cells[:3], rank=RANKS.get(cells[-1], 0) if len(cells) == 4 else 0)
    return batch


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
    qualifiers: dict[str, list[str]] = {}


_LINE = msgspec.json.Decoder(_Line)


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
    if record.id is not None:
        id = terms.item(record.id)
        if id is None:
            batch.problem(number, f"{record.id[:60]!r} is not an entity id", "not an entity id")
            return
        batch.entity(id, record.label, record.aliases, description=record.description, title=record.title)
    elif record.head is None or record.relation is None or record.tail is None:
        batch.problem(number, "neither an entity (id) nor a fact (head, relation, tail)", "neither entity nor fact")
    elif record.rank not in RANKS:
        batch.skip(f"{record.rank} statement")
    else:
        key = f"{number}${record.head}${record.relation}${record.tail}" if record.qualifiers else None
        triple = record.head, record.relation, record.tail
        if terms.fact(number, *triple, rank=RANKS[record.rank], statement=key) and key:
            _add_qualifiers(record, number, key, batch, terms)


def _add_qualifiers(record: _Line, number: int, key: str, batch: Batch, terms: TermReader) -> None:
    for property, values in record.qualifiers.items():
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
