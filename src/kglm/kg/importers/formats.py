"""The formats of sources, and how a file's format is recognised from its first lines."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from pathlib import Path

from kglm.errors import DataError, KglmError
from kglm.files import reading
from kglm.kg.ids import is_entity_id, is_item_id, is_relation_id
from kglm.kg.importers.kgtk import REQUIRED as KGTK_COLUMNS
from kglm.kg.importers.kgtk import parse_kgtk
from kglm.kg.importers.neo4j import is_neo4j
from kglm.kg.importers.ntriples import OWN, parse_ntriples
from kglm.kg.importers.own import FORMATS as OWN_FORMATS
from kglm.kg.importers.rdf import SUFFIXES
from kglm.kg.importers.records import Batch, ImportOptions, Source
from kglm.kg.importers.table import (
    DESCRIBING_ROWS,
    FACT_HEADER,
    is_id_line,
    parse_facts,
    parse_jsonl,
    parse_redirects,
    parse_relations,
)
from kglm.kg.importers.tables import find_delimiter
from kglm.kg.importers.wikidata import parse_dump
from kglm.packed import open_binary

Parser = Callable[[bytes, int, Source], Batch]
PARSERS: dict[str, Parser] = {
    "wikidata": parse_dump,
    "kgtk": parse_kgtk,
    "ntriples": parse_ntriples,
    "facts": parse_facts,
    "jsonl": parse_jsonl,
    "relations": parse_relations,
    "redirects": parse_redirects,
}
"""Formats of lines that are parsed one by one, in blocks."""
AUTHORS = "authors"
FORMATS = (*PARSERS, AUTHORS, *OWN_FORMATS)
SAMPLE = 1 << 16
"""Bytes from which the format is recognised."""
_ITEM = re.compile(rb'"id"\s*:\s*"[QPL][0-9]+"')


def describe_source(path: str | Path, options: ImportOptions, format: str | None = None) -> Source:
    """Detect the format of a file from its first lines."""
    if format is not None and format not in FORMATS:
        raise KglmError(f"unknown format {format!r}", remedy=f"use one of {', '.join(FORMATS)}")
    with reading(path), open_binary(path) as stream:
        start = stream.read(SAMPLE)
    if not start.strip():
        raise DataError("is empty", place=path, remedy="name a file with facts")
    number, first = _first_line(start)
    columns = tuple(first.decode("utf-8", "replace").split("\t"))
    if format is None:
        format = _sniff(start, first, columns, Path(path).suffix)
        if format == "ntriples" and not (options.mint_ids or OWN.encode() in start or b"wikidata.org/" in start):
            format = "rdf-ntriples"
    if format is None:
        raise DataError(
            "has an unknown format",
            place=path,
            remedy=f"give --format, one of {', '.join(FORMATS)}",
        )
    if format == "kgtk" and not set(KGTK_COLUMNS) <= set(columns):
        raise DataError(f"has no columns {', '.join(KGTK_COLUMNS)}", place=f"{path}, line {number}")
    return Source(str(path), format, options, *((columns, number) if format == "kgtk" else ()))


def _first_line(start: bytes) -> tuple[int, bytes]:
    """Number and content of the first line that is neither blank nor a comment."""
    for number, line in enumerate(start.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        if line.strip() and not line.startswith(b"#"):
            return number, line.strip(b"\r")
    return 1, b""


def _sniff(start: bytes, first: bytes, columns: tuple[str, ...], suffix: str) -> str | None:
    if start[:1] == b"\x80" or start[:2] in (b"(d", b"cc"):
        return AUTHORS
    if set(KGTK_COLUMNS) <= set(columns):
        return "kgtk"
    if first.startswith((b"<?xml", b"<rdf:RDF")):
        return "rdfxml"
    if re.match(rb"(?i)@?(?:prefix|base)\s", first) or suffix in (".ttl", ".trig", ".nq"):
        return SUFFIXES.get(suffix, "turtle")
    if first.startswith((b"<", b"_:")):
        return "ntriples"
    if first.startswith((b"[", b"{")):
        return _sniff_json(start, first, suffix)
    if is_neo4j(first.decode("utf-8", "replace")):
        return "neo4j"
    lines = start.removeprefix(codecs.BOM_UTF8).split(b"\n")[: -1 if len(start) == SAMPLE else None]
    if len(columns) in (3, 4, 5) and _has_ids(lines):
        return "facts"
    text = start.decode("utf-8", "replace")
    return "csv" if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or find_delimiter(text) else None


def _sniff_json(start: bytes, first: bytes, suffix: str) -> str:
    if b'"@context"' in start or b'"@id"' in start or suffix == ".jsonld":
        return "jsonld"
    if b'"claims"' in start or b'"labels"' in start:
        return "wikidata"
    if first.startswith(b"["):
        return "objects" if b"{" in start and not _ITEM.search(start) else "wikidata"
    lines = [line for line in start.split(b"\n")[: -1 if len(start) == SAMPLE else None] if line.strip()]
    return "jsonl" if all(map(is_id_line, lines)) else "objects"


def _has_ids(lines: list[bytes]) -> bool:
    """True if head, relation and tail of most lines are ids: a table that needs no reading of names."""
    facts = ids = 0
    for line in lines:
        cells = [cell.strip() for cell in line.decode("utf-8", "replace").split("\t")]
        if line.strip() and not line.startswith(b"#") and [cell.lower() for cell in cells[:3]] != FACT_HEADER:
            facts += 1
            ids += len(cells) > 2 and is_item_id(cells[0]) and (
                cells[1] in DESCRIBING_ROWS or (is_relation_id(cells[1]) and is_entity_id(cells[2]))
            )  # fmt: skip
    return ids * 2 >= facts > 0
