"""Read RDF: Turtle, TriG, JSON-LD, RDF/XML, N-Triples and N-Quads, parsed by pyoxigraph (extra `rdf`).

Labels (rdfs:label, skos:prefLabel, schema:name, foaf:name) name entities and relations; further names are aliases.
Typed literals keep their type: xsd:date, xsd:gYear, numbers. Texts in another language are left out.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from urllib.parse import unquote

from kglm.errors import ConfigError, DataError, LiteralError
from kglm.files import reading as reading_file
from kglm.kg.ids import WIKIDATA_ENTITY, is_item_id
from kglm.kg.importers.ntriples import ALIAS, DESCRIPTION, DIRECT, LABEL, SAME_AS_LABEL, XSD
from kglm.kg.importers.records import ImportOptions
from kglm.kg.importers.statements import Described, Place, Reading, Statement, plain_value
from kglm.kg.literals.column_types import ColumnType, check_decimals
from kglm.kg.literals.dates import DAY, Date
from kglm.kg.literals.quantities import Quantity
from kglm.kg.literals.texts import text_id
from kglm.packed import open_binary

SYNTAXES = {"turtle": "TURTLE", "trig": "TRIG", "jsonld": "JSON_LD", "rdfxml": "RDF_XML", "rdf-ntriples": "N_TRIPLES",
            "nquads": "N_QUADS"}  # fmt: skip
SUFFIXES = {".ttl": "turtle", ".trig": "trig", ".jsonld": "jsonld", ".rdf": "rdfxml", ".owl": "rdfxml", ".nq": "nquads"}
"""Names of files by which a syntax is recognised if the content does not show it."""
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LABELS = SAME_AS_LABEL | {LABEL, "https://schema.org/name", "http://xmlns.com/foaf/0.1/name"}
ALIASES = frozenset([ALIAS, "http://schema.org/alternateName", "https://schema.org/alternateName"])
DESCRIPTIONS = frozenset([DESCRIPTION, "https://schema.org/description", "http://www.w3.org/2000/01/rdf-schema#comment",
                          "http://purl.org/dc/terms/description"])  # fmt: skip
_NUMBERS = frozenset(XSD + name for name in ("decimal", "double", "float"))
_TIMES = frozenset(XSD + name for name in ("date", "dateTime", "dateTimeStamp"))
_YEARS = {XSD + "gYear": 9, XSD + "gYearMonth": 10}
_TEXTS = frozenset([TYPE.replace("#type", "#langString"), *(XSD + name for name in ("string", "anyURI", "boolean"))])
_YEAR = re.compile(r"(-?[0-9]{4,16})(?:-([0-9]{2}))?(?:Z|[+-][0-9:]+)?")
_DAY = re.compile(r"(-?[0-9]{4,16})-([0-9]{2})-([0-9]{2})(?:T[0-9:.]+)?(?:Z|[+-][0-9:]+)?")


class _Triple(NamedTuple):
    place: Place
    subject: Any
    predicate: str
    object: Any


def read_rdf(path: str, syntax: str, options: ImportOptions, into: Reading) -> None:
    """Add the statements of a file."""
    triples = list(_triples(path, syntax))
    names = _Names(triples, options.language)
    into.notes.append(f"{path}: RDF ({syntax}), {len(triples):,} triples, texts in {options.language!r}")
    for entity in names.entities():
        into.entities.append(entity)
    for triple in triples:
        _add(triple, names, into)


def _triples(path: str, syntax: str) -> Iterator[_Triple]:
    try:
        import pyoxigraph
    except ImportError:
        raise ConfigError(
            "RDF needs the package pyoxigraph", place=path, remedy="install it: pip install 'kglm[rdf]'"
        ) from None
    with reading_file(path), open_binary(path) as stream:
        data = stream.read()
    format = getattr(pyoxigraph.RdfFormat, SYNTAXES[syntax])
    number = 0
    try:
        for number, quad in enumerate(pyoxigraph.parse(data, format=format, base_iri="urn:kglm:base:"), 1):
            yield _Triple(Place(path, number, "triple"), quad.subject, quad.predicate.value, quad.object)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f"{path}, line {line}" if line else f"{path}, after triple {number}"
        raise DataError(f"is not {syntax} ({error})", place=place, remedy="correct it, or give --format") from error


class _Names:
    """Names and keys of the resources of a file."""

    def __init__(self, triples: list[_Triple], language: str) -> None:
        self._language = language
        self._labels: dict[str, list[tuple[bool, str]]] = defaultdict(list)
        self._aliases: dict[str, list[str]] = defaultdict(list)
        self._about: dict[str, str] = {}
        self._places: dict[str, Place] = {}
        self._keys: dict[str, str] = {}
        self._of_key: dict[str, str] = {}
        predicates = {triple.predicate for triple in triples}
        self._entities: dict[str, None] = {}
        for triple in triples:
            iri = str(triple.subject.value)
            self._places.setdefault(iri, triple.place)
            if triple.predicate in LABELS | ALIASES | DESCRIPTIONS and hasattr(triple.object, "language"):
                self._describe(iri, triple)
            if iri not in predicates:
                self._entities[iri] = None

    def _describe(self, iri: str, triple: _Triple) -> None:
        text, language = triple.object.value, triple.object.language
        if language and language.partition("-")[0] != self._language.partition("-")[0]:
            return
        if triple.predicate in LABELS:
            self._labels[iri].append((not language, text))
        elif triple.predicate in ALIASES:
            self._aliases[iri].append(text)
        else:
            self._about.setdefault(iri, text)

    def entities(self) -> Iterator[Described]:
        for iri in self._entities:
            if iri.startswith("_:") and not self._labels.get(iri):
                continue
            labels = [text for _, text in sorted(self._labels.get(iri, ()), key=lambda each: each[0])]
            entity = Described(self._places[iri], self.key(iri), is_key=True)
            entity.label = labels[0] if labels else _local(iri)
            entity.aliases = [*labels[1:], *self._aliases.get(iri, ())]
            entity.description = self._about.get(iri, "")
            yield entity

    def is_known(self, node: Any) -> bool:
        """True for an IRI, and for a blank node that has a name."""
        return type(node).__name__ == "NamedNode" or bool(self._labels.get(str(node.value)))

    def key(self, iri: str) -> str:
        """A Wikidata id, or the last part of the address; with a hash where two addresses end alike."""
        if iri not in self._keys:
            key = iri.rpartition("/")[2]
            if not (is_item_id(key) and WIKIDATA_ENTITY.partition("://")[2] in iri):
                key = _local(iri)
                if self._of_key.setdefault(key, iri) != iri:
                    key = f"{key}.{zlib.crc32(iri.encode()) & 0xFFFF:04x}"
            self._keys[iri] = key
        return self._keys[iri]

    def relation(self, iri: str) -> str:
        if iri.startswith(DIRECT):
            return iri.removeprefix(DIRECT)
        if iri == TYPE:
            return "instance of"
        labels = self._labels.get(iri)
        return min(labels)[1] if labels else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", _local(iri)).lower()


def _local(iri: str) -> str:
    """The last part of an address: "Ada Lumen" for …/Ada_Lumen."""
    address = iri.rstrip("/#")
    return " ".join(unquote(address[max(address.rfind(mark) for mark in "/#:") + 1 :]).replace("_", " ").split())


def _add(triple: _Triple, names: _Names, into: Reading) -> None:
    if triple.predicate in LABELS | ALIASES | DESCRIPTIONS:
        return
    if not names.is_known(triple.subject):
        into.skipped["blank node"] += 1
        return
    relation = names.relation(triple.predicate)
    if type(triple.object).__name__ == "Literal":
        try:
            value = _literal(triple.object, relation, names, into)
        except (LiteralError, InvalidOperation, ValueError) as error:
            what = error.what if isinstance(error, LiteralError) else f"{triple.object.value!r} is malformed"
            into.bad(triple.place, what, "correct it")
            return
    elif names.is_known(triple.object):
        value = names.key(str(triple.object.value))
        if str(triple.object.value) not in names._entities:
            into.entities.append(Described(triple.place, value, _local(str(triple.object.value)), is_key=True))
            names._entities[str(triple.object.value)] = None
    else:
        into.skipped["blank node"] += 1
        return
    if value is not None:
        statement = Statement(triple.place, names.key(str(triple.subject.value)), relation, value)
        statement.type = None if type(triple.object).__name__ == "Literal" else ColumnType("entity")
        into.statements.append(statement)


def _historical(year: int) -> int:
    """A year of RDF, where 0 is 1 BC, as a graph numbers it."""
    return year if year > 0 else year - 1


def _literal(literal: Any, relation: str, names: _Names, into: Reading) -> str | None:
    text, datatype = literal.value, literal.datatype.value
    if literal.language and literal.language.partition("-")[0] != names._language.partition("-")[0]:
        into.skipped["text in another language"] += 1
        return None
    if datatype in _TIMES:
        match = _DAY.fullmatch(text)
        if match is None:
            raise LiteralError(f"{text!r} is no date")
        return Date(DAY, _historical(int(match[1])), int(match[2]), int(match[3])).id
    if datatype in _YEARS and (match := _YEAR.fullmatch(text)):
        return Date(_YEARS[datatype], _historical(int(match[1])), int(match[2] or 0)).id
    if datatype in _NUMBERS:
        amount = Decimal(text)
        check_decimals(text, amount)
        return Quantity(amount).id
    if datatype.startswith(XSD) and datatype not in _TEXTS and re.fullmatch(r"[+-]?[0-9]+", text):
        return str(text)  # an integer may be a year: the relation decides
    if datatype in _TEXTS:
        return text_id(text) if literal.language else plain_value(relation, text)
    into.skipped[f"literal {datatype.rpartition('#')[2]}"] += 1
    return None
