"""Import Wikidata's JSON dump: an array with one entity per line. The decoder skips fields that are not imported.

Imported: labels, aliases, description and article title in one language; statements with entities, dates and
quantities, their rank, qualifiers and sources (the work that a statement is stated in, the address of a reference).
Left out and counted: deprecated statements, `novalue` and `somevalue`,
identifiers, URLs, media, coordinates and other data types. A text in the chosen language under a naming property
(official name, nickname, …) is an alias.
"""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import msgspec

from kglm.errors import LiteralError
from kglm.kg.ids import REFERENCE_URL, STATED_IN, is_item_id, is_relation_id
from kglm.kg.importers.records import Batch, ImportOptions, Source, without_surrogates
from kglm.kg.literals.dates import Date
from kglm.kg.literals.quantities import Quantity
from kglm.kg.schema import RANKS as RANK_NAMES

NAMING_PROPERTIES = frozenset({"P1448", "P1449", "P1476", "P1477", "P1559", "P1635", "P1705", "P1813", "P2561"})
"""Properties whose text is a name of the entity: official, nick-, birth-, native and short names, titles."""
MAX_SOURCES = 3
"""Sources of a statement that are imported."""
RANKS = {name: number for number, name in enumerate(RANK_NAMES)}


class _Value(msgspec.Struct):
    """A data value of any type: the fields of all types in one struct, so that one pass decodes them."""

    id: str | None = None
    entity_type: str | None = msgspec.field(default=None, name="entity-type")
    numeric_id: int | None = msgspec.field(default=None, name="numeric-id")
    time: str | None = None
    precision: int | float | None = None
    amount: str | int | float | None = None
    unit: str | None = None
    text: str | None = None
    language: str | None = None


class _DataValue(msgspec.Struct):
    type: str
    value: _Value | str


class _Snak(msgspec.Struct):
    snaktype: str
    datatype: str = ""
    datavalue: _DataValue | None = None


class _SourceSnaks(msgspec.Struct):
    """The parts of a reference that are imported; the decoder skips all others."""

    stated_in: list[_Snak] = msgspec.field(default_factory=list, name=STATED_IN)
    address: list[_Snak] = msgspec.field(default_factory=list, name=REFERENCE_URL)


class _Reference(msgspec.Struct):
    snaks: _SourceSnaks | list[Any] = msgspec.field(default_factory=list)


class _Statement(msgspec.Struct):
    mainsnak: _Snak
    rank: str = "normal"
    id: str | None = None
    qualifiers: dict[str, list[_Snak]] | list[Any] = msgspec.field(default_factory=dict)
    references: list[_Reference] = []


class _Text(msgspec.Struct):
    value: str


class _Site(msgspec.Struct):
    title: str


@cache
def _decoder(language: str) -> msgspec.json.Decoder[Any]:
    """Decoder that skips all other languages and wikis. These dumps write empty objects as `[]`.

    `mul` has texts that are the same in all languages; names of people are often given only there.
    """
    texts = msgspec.defstruct(
        "_Texts", [("wanted", _Text | None, None), ("mul", _Text | None, None)], rename={"wanted": language}
    )
    aliases = msgspec.defstruct(
        "_Aliases", [("wanted", list[_Text], []), ("mul", list[_Text], [])], rename={"wanted": language}
    )
    sites = msgspec.defstruct("_Sites", [("wanted", _Site | None, None)], rename={"wanted": f"{language}wiki"})
    entity = msgspec.defstruct(
        "_Entity",
        [
            ("id", str),
            ("labels", texts | list[Any], []),
            ("aliases", aliases | list[Any], []),
            ("descriptions", texts | list[Any], []),
            ("sitelinks", sites | list[Any], []),
            ("claims", dict[str, list[_Statement]] | list[Any] | None, None),
        ],
    )
    return msgspec.json.Decoder(entity)


def parse_dump(data: bytes, first_line: int, source: Source) -> Batch:
    """Parse the entities in some lines of a dump."""
    batch, options = Batch(), source.options
    decoder = _decoder(options.language)
    for number, line in enumerate(data.split(b"\n"), first_line):
        line = line.strip().rstrip(b",").rstrip()
        if line in (b"", b"[", b"]"):
            continue
        line = line.removeprefix(b"[") if line.startswith(b"[{") else line
        line = line.removesuffix(b"]") if line.endswith(b"}]") else line
        entity = _decode(line, decoder, number, batch)
        if entity is None:
            continue
        if not is_item_id(entity.id):
            batch.skip("not an item or property")
            continue
        _add_entity(entity, batch, options)
    return batch


def _decode(line: bytes, decoder: msgspec.json.Decoder[Any], number: int, batch: Batch) -> Any:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # unexpected structure, or not JSON; unlike msgspec, the standard library accepts lone surrogates
        try:
            loose = _clean(json.loads(line.decode("utf-8", "replace")))
        except (ValueError, RecursionError):
            batch.problem(number, f"not JSON ({error})", "not JSON")
            return None
        return _valid_parts(loose, str(error), decoder.type, number, batch)


def _valid_parts(loose: Any, complaint: str, type: Any, number: int, batch: Batch) -> Any:
    """A malformed entity without its malformed parts, which are reported; None if it has no id."""
    if not isinstance(loose, dict) or not isinstance(loose.get("id"), str):
        batch.problem(number, f"not an entity: {complaint}", "malformed entity")
        return None
    entity = {"id": loose["id"]}
    for name in ("labels", "aliases", "descriptions", "sitelinks"):
        try:
            msgspec.convert({"id": "Q0", name: loose.get(name, [])}, type)
            entity[name] = loose.get(name, [])
        except msgspec.ValidationError as error:
            batch.problem(number, f"{loose['id']}: {error}", f"malformed {name}")
    claims = loose.get("claims")
    entity["claims"] = {
        relation: [statement for statement in statements if _is_statement(statement, loose["id"], number, batch)]
        for relation, statements in (claims.items() if isinstance(claims, dict) else ())
        if isinstance(statements, list)
    }
    return msgspec.convert(entity, type)


def _is_statement(value: Any, id: str, number: int, batch: Batch) -> bool:
    try:
        msgspec.convert(value, _Statement)
    except msgspec.ValidationError as error:
        batch.problem(number, f"{id}: {error}", "malformed statement")
        return False
    return True


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return value


def _add_entity(entity: Any, batch: Batch, options: ImportOptions) -> None:
    label = _wanted(entity.labels) or _multilingual(entity.labels)
    aliases = [*(_wanted(entity.aliases) or ()), *(_multilingual(entity.aliases) or ())]
    about, site = _wanted(entity.descriptions), _wanted(entity.sitelinks)
    batch.entity(
        entity.id,
        label.value if label else None,
        [alias.value for alias in aliases],
        description=about.value if about else None,
        title=site.title if site else None,
    )
    claims = entity.claims if isinstance(entity.claims, dict) else {}
    for relation, statements in claims.items():
        for place, statement in enumerate(statements):
            _add_statement(entity.id, relation, place, statement, batch, options)


def _wanted(texts: Any) -> Any:
    return None if isinstance(texts, list) else texts.wanted


def _multilingual(texts: Any) -> Any:
    return None if isinstance(texts, list) else texts.mul


def _add_statement(
    head: str, relation: str, place: int, statement: _Statement, batch: Batch, options: ImportOptions
) -> None:
    if not is_relation_id(relation):
        batch.skip("not a property")
        return
    if statement.rank not in RANKS:
        batch.skip(f"{statement.rank} statement")
        return
    tail = _tail(statement.mainsnak, head, relation, batch, options)
    if tail is None:
        return
    qualifiers = statement.qualifiers if isinstance(statement.qualifiers, dict) else {}
    sources = _sources(statement)
    key = (statement.id or f"{head}${relation}${place}") if qualifiers or sources else None
    batch.fact(head, relation, tail, rank=RANKS[statement.rank], statement=key)
    if key is None:
        return
    for source in sources:
        batch.source(key, source)
    for property, snaks in qualifiers.items():
        for snak in snaks:
            value = _tail(snak, head, "", batch, options)
            if value is not None and is_relation_id(property):
                batch.qualifiers.append((key, property, value))


def _sources(statement: _Statement) -> list[str]:
    """Works that the statement is stated in, and addresses of references; at most `MAX_SOURCES`, without duplicates."""
    found: dict[str, None] = {}
    for reference in statement.references:
        if isinstance(reference.snaks, list):
            continue
        for snak in (*reference.snaks.stated_in, *reference.snaks.address):
            value = snak.datavalue.value if snak.snaktype == "value" and snak.datavalue else None
            text = value if value is None or isinstance(value, str) else value.id or _numeric_id(value)
            if text:
                found[text] = None
    return list(found)[:MAX_SOURCES]


def _tail(snak: _Snak, head: str, relation: str, batch: Batch, options: ImportOptions) -> str | None:
    """Id of an entity, date or quantity value; None, and the reason counted, for any other value."""
    if snak.snaktype != "value" or snak.datavalue is None:
        batch.skip(snak.snaktype if snak.snaktype != "value" else "no data value")
        return None
    kind, value = snak.datavalue.type, snak.datavalue.value
    try:
        if isinstance(value, str):
            batch.skip(snak.datatype or kind)
        elif kind == "wikibase-entityid":
            id = value.id or _numeric_id(value)
            if id is not None and is_item_id(id):
                return id
            batch.skip("not an item or property")
        elif kind == "time":
            if value.time is None or value.precision is None or not math.isfinite(value.precision):
                raise LiteralError("a time without a precision")
            return Date.from_time(value.time, int(value.precision)).id
        elif kind == "quantity":
            return Quantity.from_amount(str(value.amount), value.unit or "1").id
        elif kind == "monolingualtext" and value.language != options.language:
            batch.skip("text in another language")
        elif kind == "monolingualtext" and relation in NAMING_PROPERTIES:
            batch.name(head, value.text, 1)
        else:
            batch.skip(snak.datatype or kind)
    except LiteralError:
        batch.skip(f"malformed {kind}")
    return None


def _numeric_id(value: _Value) -> str | None:
    """Id from number and type: older dumps have no id field."""
    letter = {"item": "Q", "property": "P"}.get(value.entity_type or "")
    return None if letter is None or value.numeric_id is None else f"{letter}{value.numeric_id}"
