"""Read JSON of one's own: one object per line, or an array of objects.

{"head": "Ada Lumen", "relation": "employer", "tail": "Orrery Works", "from": 1894}
{"name": "Orrery Works", "founded": 1889, "products": ["orrery", "astrolabe"]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from kglm.kg.importers.statements import NO_VALUE, Described, Place, Reading, Statement
from kglm.kg.importers.tables import ALIASES, KEYS, NAMES, read_text
from kglm.kg.literals.hints import label_of
from kglm.kg.literals.quantities import MOST_DIGITS

FACT = frozenset(["head", "relation", "tail"])
FACT_KEYS = FACT | {"rank", "qualifiers"}
DESCRIBING = KEYS | NAMES | ALIASES | {"description", "title"}
REMEDY = 'write {"head": …, "relation": …, "tail": …} or {"name": …, "relation": "value"}'

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class _Number(str):
    """A number of JSON as text; its decimal mark is a point."""


def read_objects(path: str, into: Reading, kind: str | None = None) -> None:
    """Add the facts and entities of a file."""
    facts = entities = 0
    for place, value in _objects(read_text(path), path, into):
        if not isinstance(value, dict):
            into.bad(place, f"a {type(value).__name__} where an object is expected", REMEDY)
        elif value.keys() >= FACT:
            facts += 1
            _fact(place, value, into)
        elif any(key in value for key in (*KEYS, *NAMES)):
            entities += 1
            _entity(place, value, into, kind)
        else:
            into.bad(place, "neither a fact (head, relation, tail) nor an entity (id or name)", REMEDY)
    into.notes.append(f"{path}: JSON, {facts:,} facts and {entities:,} entities with their facts")


def _objects(text: str, path: str, into: Reading) -> Iterator[tuple[Place, Any]]:
    """Each object with the line where it begins; a line that is not JSON is reported, and reading goes on after it."""
    decoder = json.JSONDecoder(parse_float=_Number, parse_int=_Number)
    position, line, counted = 0, 1, 0
    while True:
        while position < len(text) and (text[position].isspace() or text[position] in ",[]"):
            position += 1
        if position >= len(text):
            return
        line += text.count("\n", counted, position)
        counted = position
        place = Place(path, line)
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            into.bad(place, f"not JSON ({error})", REMEDY)
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
        else:
            if _SURROGATE.search(text, counted, position) and not _is_unicode(value):
                into.bad(place, "a text with a lone surrogate, which is no Unicode", "write the whole character")
            else:
                yield place, value


def _is_unicode(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(value: Any) -> str | None:
    """A value as it would stand in a table; None for an object or a list."""
    if isinstance(value, _Number):
        if abs(Decimal(value).adjusted()) > MOST_DIGITS:
            return str(value)  # no quantity is so large
        number = f"{Decimal(value):f}"
        return f"{number}0" if len(number.partition(".")[2]) == 3 else number  # 1.234 is not 1234
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else "" if value is None else None


def _fact(place: Place, value: dict[str, Any], into: Reading) -> None:
    parts = [_text(value[key]) for key in ("head", "relation", "tail")]
    if None in parts or not (parts[0] and parts[1]):
        into.bad(place, "head, relation and tail are not all texts or numbers", REMEDY)
        return
    extra = value.get("qualifiers") or {}
    if not isinstance(extra, dict):
        into.bad(place, "qualifiers are not an object", 'write {"qualifiers": {"from": 1894}}')
        return
    extra = {**extra, **{key: each for key, each in value.items() if key not in FACT_KEYS}}
    _add(place, str(parts[0]), str(parts[1]), str(parts[2]), extra, into, str(value.get("rank") or ""))


def _add(
    place: Place, head: str, relation: str, tail: str, extra: dict[str, Any], into: Reading, rank: str = ""
) -> None:
    if tail.strip() in NO_VALUE:
        into.skipped["no value"] += 1
        return
    statement = Statement(place, head, relation, tail, rank)
    for name, values in extra.items():
        for each in values if isinstance(values, list) else [values]:
            text = _text(each)
            if text is None:
                into.bad(place, f"the qualifier {name!r} is an object", "give a text or a number")
            elif text.strip() not in NO_VALUE:
                statement.qualifiers.append((name, text))
    into.statements.append(statement)


def _entity(place: Place, value: dict[str, Any], into: Reading, kind: str | None) -> None:
    named = {key: _text(each) for key, each in value.items() if key in DESCRIBING}
    key = next((text for name in KEYS if (text := named.get(name))), None)
    label = next((text for name in ("label", "name", "title", "entity") if (text := named.get(name))), "")
    head = key or label
    if not head:
        into.bad(place, "the entity has no name", REMEDY)
        return
    entity = Described(place, head, label or "", is_key=key is not None and bool(label))
    entity.description = named.get("description") or ""
    for name in ALIASES:
        listed = value.get(name) or []
        entity.aliases += [text for each in (listed if isinstance(listed, list) else [listed]) if (text := _text(each))]
    into.entities.append(entity)
    if kind:
        into.statements.append(Statement(place, head, "instance of", kind))
    for relation, values in value.items():
        if relation in DESCRIBING - {"description"} and not (relation == "title" and named.get("name")):
            continue
        for each in values if isinstance(values, list) else [values]:
            _relation_value(place, head, relation, each, into)


def _relation_value(place: Place, head: str, relation: str, value: Any, into: Reading) -> None:
    extra: dict[str, Any] = {}
    if isinstance(value, dict) and "value" in value:
        extra = {name: each for name, each in value.items() if name not in ("value", "rank")}
        rank, value = str(value.get("rank") or ""), value["value"]
    else:
        rank = ""
    text = _text(value)
    if text is None:
        into.bad(
            place,
            f"the value of {label_of(relation)!r} is {'an object' if isinstance(value, dict) else 'a list of lists'}",
            'give a text, a number, or {"value": …, "from": …}',
        )
    else:
        _add(place, head, relation, text, extra, into, rank)
