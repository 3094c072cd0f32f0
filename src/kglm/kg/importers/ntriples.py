"""Import N-Triples: Wikidata's truthy dump, and with `mint_ids` any other RDF graph.

The truthy dump has no precisions: a first of January is read as a year, any other date as a day. It has no units
either. Its years before Christ are astronomical (0000 is 1 BC); they are converted.

`kglm kg export` writes ids of one's own as `urn:kglm:Q_…`, literals that XML Schema has no type for with datatypes of
its own, and ranks and qualifiers as statements about quoted triples (RDF-star).
"""

from __future__ import annotations

import re
import zlib
from urllib.parse import unquote

from kglm.errors import LiteralError
from kglm.kg.ids import WIKIDATA_ENTITY, is_item_id, is_relation_id, mint
from kglm.kg.importers.records import Batch, Source, TermReader, without_surrogates
from kglm.kg.literals.dates import Date
from kglm.kg.literals.literal import canonical_literal
from kglm.kg.literals.quantities import Quantity
from kglm.kg.literals.texts import text_id

DIRECT = "http://www.wikidata.org/prop/direct/"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"
DESCRIPTION = "http://schema.org/description"
ABOUT = "http://schema.org/about"
SAME_AS_LABEL = frozenset({"http://schema.org/name", "http://www.w3.org/2004/02/skos/core#prefLabel"})
XSD = "http://www.w3.org/2001/XMLSchema#"
OWN = "urn:kglm:"
"""Beginning of the addresses of ids of one's own."""
OWN_LITERAL, OWN_TEXT, OWN_ENTITY = OWN + "literal", OWN + "text", OWN + "Entity"
PAGE, NAME, DATATYPE, REDIRECT, RANK = (OWN + name for name in ("page", "name", "datatype", "redirect", "rank"))
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

_TRIPLE = re.compile(r"\s*(<[^>]*>|_:\S+)\s+<([^>]*)>\s+(.+?)\s*\.\s*\Z", re.DOTALL)
_QUOTED = re.compile(r"\s*<<\s*(.+)\s>>\s+<([^>]*)>\s+(.+?)\s*\.\s*\Z", re.DOTALL)
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@([\w-]+)|\^\^<([^>]*)>)?\Z', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}
_TIME = re.compile(r"([+-]?)(\d+)-(\d\d)-(\d\d)(?:T.*)?\Z")
_NUMBERS = frozenset(XSD + name for name in ("decimal", "integer", "double", "float", "int", "nonNegativeInteger"))
_DATES = frozenset(XSD + name for name in ("dateTime", "date"))
_YEARS = {XSD + "gYear": "-00-00", XSD + "gYearMonth": "-00"}


def parse_ntriples(data: bytes, first_line: int, source: Source) -> Batch:
    """Parse triples, one per line."""
    batch = Batch()
    terms = TermReader(batch, source.options)
    for number, raw in enumerate(data.split(b"\n"), first_line):
        if not raw.strip() or raw.startswith(b"#"):
            continue
        try:
            text = raw.decode()
            quoted = _QUOTED.match(text)
            match = _TRIPLE.match(f"{quoted[1]} ." if quoted else text)
        except UnicodeDecodeError:
            batch.problem(number, "invalid UTF-8", "invalid UTF-8")
            continue
        if match is None:
            batch.problem(number, "not a triple", "not a triple")
            continue
        try:
            if quoted:
                _add_statement(match, quoted[2], quoted[3], batch, terms)
            else:
                _add_triple(match[1], match[2], match[3], number, batch, terms)
        except LiteralError:
            batch.skip("malformed literal")
    return batch


def _add_triple(subject: str, predicate: str, value: str, line: int, batch: Batch, terms: TermReader) -> None:
    language = terms.options.language
    if predicate == ABOUT:
        site = f"<https://{language}.wikipedia.org/wiki/"
        if subject.startswith(site) and (id := _term(value, "", terms)):
            batch.entity(id, None, (), title=unquote(subject[len(site) : -1]))
        return
    if predicate.startswith(OWN) and _add_own(subject, predicate, value, line, batch):
        return
    head = _term(subject, "Q", terms)
    if predicate == RDF_TYPE and value == f"<{OWN_ENTITY}>" and head is not None:
        batch.entities.append((head, None, None))
    elif head is None:
        batch.skip("subject is not an entity")
    elif predicate in (LABEL, ALIAS, DESCRIPTION):
        literal = _LITERAL.match(value)
        if literal is None or literal[2] not in (language, None):
            batch.skip("text in another language")
        elif predicate == DESCRIPTION:
            batch.entities.append((head, _unescaped(literal[1]), None))
        else:
            batch.name(head, _unescaped(literal[1]), int(predicate == ALIAS))
    elif predicate in SAME_AS_LABEL:
        return
    else:
        _add_fact(head, predicate, value, line, batch, terms)


def _add_own(subject: str, predicate: str, value: str, line: int, batch: Batch) -> bool:
    """Add what `kglm kg export` writes besides facts; False for a fact."""
    literal = _LITERAL.match(value)
    id = own_id(subject.strip("<>"))
    if predicate == REDIRECT and literal:
        batch.redirects.append((unquote(subject.strip("<>")[len(OWN) :]), _unescaped(literal[1])))
    elif id is None or literal is None or predicate not in (PAGE, NAME, DATATYPE):
        return False
    elif predicate == PAGE:
        batch.entities.append((id, None, _unescaped(literal[1])))
    elif predicate == NAME:
        batch.relations.append((id, _unescaped(literal[1])))
    else:
        batch.relations.append((id, ""))
        batch.datatype(line, id, _unescaped(literal[1]))
    return True


def own_id(address: str) -> str | None:
    """The id of an address of Wikidata or of `kglm kg export`; None for any other address."""
    if address.startswith(OWN):
        id = unquote(address.removeprefix(OWN))
    elif address.startswith(DIRECT):
        id = address.removeprefix(DIRECT)
    else:
        id = address.rpartition("/")[2] if "wikidata.org/entity/" in address else ""
    return id if is_item_id(id) or is_relation_id(id) else None


def _add_statement(match: re.Match[str], predicate: str, value: str, batch: Batch, terms: TermReader) -> None:
    """Add the rank or a qualifier of a fact; the fact itself is a triple of its own, too."""
    head, relation = own_id(match[1].strip("<>")), own_id(match[2])
    tail = _literal(match[3], batch) if match[3].startswith('"') else _term(match[3], "Q", terms)
    property = own_id(predicate)
    if head is None or relation is None or tail is None or not (property or predicate == RANK):
        batch.skip("statement about a triple")
    elif predicate == RANK:
        batch.fact(head, relation, tail, rank=int(value == '"preferred"'))
    else:
        key = f"{head}${relation}${tail}${value}"
        qualifier = _literal(value, batch) if value.startswith('"') else _term(value, "Q", terms)
        if qualifier is not None and property is not None:
            batch.fact(head, relation, tail, statement=key)
            batch.qualifiers.append((key, property, qualifier))


def _add_fact(head: str, predicate: str, value: str, line: int, batch: Batch, terms: TermReader) -> None:
    if predicate.startswith(DIRECT):
        relation: str | None = predicate.removeprefix(DIRECT)
    elif predicate.startswith(OWN):
        relation = own_id(predicate)
    elif terms.options.mint_ids:
        relation = terms.relation(_split_address(predicate)[1])
    else:
        batch.skip("not a direct claim")
        return
    tail = _literal(value, batch) if value.startswith('"') else _term(value, "Q", terms)
    if tail is None:
        if not value.startswith('"'):
            batch.skip("value is not an entity")
    elif relation is not None:
        terms.fact(line, head, relation, tail)


def _term(iri: str, letter: str, terms: TermReader) -> str | None:
    address = iri.strip("<>")
    if address.startswith(OWN):
        id = own_id(address)
        return id if id and is_item_id(id) else None
    if address.startswith((WIKIDATA_ENTITY, "https" + WIKIDATA_ENTITY[4:])):
        id = address.rpartition("/")[2]
        return id if is_item_id(id) else None
    if letter and terms.options.mint_ids and not iri.startswith("_:"):
        # …/people/1 and …/places/1 are different entities: a hash of the namespace is part of the id
        namespace, name = _split_address(address)
        return terms.minted(f"{mint(name, letter)}.{zlib.crc32(namespace.encode()) & 0xFFFF:04x}", name)
    return None


def _split_address(address: str) -> tuple[str, str]:
    """Split an IRI after the last `#` or `/` into namespace and name; underscores in the name become blanks."""
    cut = max(address.rstrip("/#").rfind(mark) for mark in "/#") + 1
    return address[:cut], unquote(address[cut:].rstrip("/#")).replace("_", " ")


def _literal(value: str, batch: Batch) -> str | None:
    match = _LITERAL.match(value)
    if match is None:
        raise LiteralError("not a literal")
    text, language, datatype = match.groups()
    if datatype == OWN_LITERAL:
        id = _unescaped(text)
        canonical_literal(id)  # validates it; its spelling is kept
        return id
    if datatype == OWN_TEXT:
        return text_id(_unescaped(text))
    if datatype == XSD + "date":  # unlike Wikidata's times, it has a precision
        return Date.from_time(f"+{text}", 11).id
    if datatype in _DATES:
        return _date(text)
    if datatype in _YEARS:
        return Date.from_time(f"+{text}{_YEARS[datatype]}", 11).id
    if datatype and (unit := own_id(datatype)):
        return Quantity.from_amount(text, unit).id
    if datatype in _NUMBERS:
        return Quantity.from_amount(text, "1").id
    batch.skip("text" if language else f"literal {(datatype or 'string').rpartition('#')[2]}")
    return None


def _date(text: str) -> str:
    match = _TIME.match(text)
    if match is None:
        raise LiteralError(f"not a date: {text!r}")
    sign, digits, month, day = match.groups()
    year = -int(digits) if sign == "-" else int(digits)
    year = year - 1 if year <= 0 else year  # astronomical to historical: 0 is 1 BC, -43 is 44 BC
    precision = 9 if (month, day) == ("01", "01") else 11
    return Date.from_time(f"{'-' if year < 0 else '+'}{abs(year):04d}-{month}-{day}T00:00:00Z", precision).id


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code:
            return chr(int(code, 16)) if int(code, 16) <= 0x10FFFF else "\ufffd"
        return _CONTROLS.get(match[3], match[3])

    return without_surrogates(_ESCAPE.sub(replace, text))
