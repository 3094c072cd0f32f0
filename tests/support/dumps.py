"""Generated Wikidata dumps of any size for tests and benchmarks, in the official JSON format."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any


def _snak(datatype: str, kind: str, value: Any) -> dict[str, Any]:
    return {"snaktype": "value", "datatype": datatype, "datavalue": {"type": kind, "value": value}}


def item(id: str) -> dict[str, Any]:
    kind = "item" if id[0] == "Q" else "property"
    value = {"entity-type": kind, "numeric-id": int(id[1:]), "id": id}
    return _snak(f"wikibase-{kind}", "wikibase-entityid", value)


def time(time: str, precision: int = 11) -> dict[str, Any]:
    value = {"time": time, "precision": precision, "timezone": 0, "before": 0, "after": 0, "calendarmodel": "x"}
    return _snak("time", "time", value)


def quantity(amount: str, unit: str = "1") -> dict[str, Any]:
    value = {"amount": amount, "unit": unit, "upperBound": amount}
    return _snak("quantity", "quantity", value)


def text(text: str, language: str = "en") -> dict[str, Any]:
    value = {"text": text, "language": language}
    return _snak("monolingualtext", "monolingualtext", value)


def string(value: str, datatype: str = "string") -> dict[str, Any]:
    return _snak(datatype, "string", value)


def coordinate() -> dict[str, Any]:
    value = {"latitude": 1.0, "longitude": 2.0, "altitude": None, "precision": 0.1, "globe": "x"}
    return _snak("globe-coordinate", "globecoordinate", value)


def statement(snak: dict[str, Any], rank: str = "normal", **qualifiers: list[dict[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {"mainsnak": snak, "type": "statement", "rank": rank, "references": []}
    return made | ({"qualifiers": qualifiers} if qualifiers else {})


def entity(id: str, label: str | None = None, claims: Any = None, **more: Any) -> dict[str, Any]:
    labels = {"en": {"language": "en", "value": label}, "de": {"language": "de", "value": f"{label} auf Deutsch"}}
    return {
        "type": "item" if id[0] == "Q" else "property",
        "id": id,
        "labels": labels if label else [],
        "descriptions": {},
        "aliases": {},
        "claims": {} if claims is None else claims,
        "sitelinks": {},
    } | more


def lines(entities: list[dict[str, Any]]) -> bytes:
    """A dump: an array with one entity per line."""
    return b"[\n" + b",\n".join(json.dumps(one).encode() for one in entities) + b"\n]\n"


def generated(count: int, seed: int = 0) -> Iterator[bytes]:
    """Lines of a dump of `count` entities; as in real ones, most of the content is not imported."""
    generator = random.Random(seed)
    languages = ["en", "de", "fr", "es", "it", "nl", "pl", "ru", "ja", "zh", "sv", "pt", "ca", "uk", "ar"]
    yield b"[\n"
    for number in range(1, count + 1):
        name = f"thing {number}"
        claims = {
            f"P{generator.randrange(1, 300)}": [
                statement(item(f"Q{generator.randrange(1, count + 1)}"), P580=[time("+2001-02-03T00:00:00Z")])
                if generator.random() < 0.2
                else statement(item(f"Q{generator.randrange(1, count + 1)}"))
                for _ in range(generator.randrange(1, 3))
            ]
            for _ in range(4)
        }
        claims["P569"] = [statement(time(f"+{generator.randrange(1000, 2020)}-05-06T00:00:00Z"))]
        claims["P1082"] = [statement(quantity(f"+{generator.randrange(10**6)}"))]
        claims["P214"] = [statement(string(f"{generator.randrange(10**9)}", "external-id")) for _ in range(3)]
        made = entity(
            f"Q{number}",
            name,
            claims,
            labels={code: {"language": code, "value": f"{name} {code}"} for code in languages},
            descriptions={code: {"language": code, "value": f"a thing in {code}"} for code in languages},
            aliases={code: [{"language": code, "value": f"{name} alias {k}"} for k in range(2)] for code in languages},
            sitelinks={f"{code}wiki": {"site": f"{code}wiki", "title": name, "badges": []} for code in languages[:6]},
        )
        yield json.dumps(made, separators=(",", ":")).encode() + (b",\n" if number < count else b"\n")
    yield b"]\n"
