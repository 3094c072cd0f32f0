"""Structure-aware mutations of valid inputs: JSON and TOML trees, tables of fields, markup, and raw bytes."""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Mutation = Callable[[bytes, random.Random], bytes]
DEPTH = 100_000
LONG = 100_000
LARGEST = 1e300
"""Larger numbers are not changed further: their quotient is no float, their text too long for Python."""
DIGITS = "9" * 5000
"""More digits than Python converts to a number (4300)."""


class Token(str):
    """Text that is written as it is, whether it is valid or not."""

    __slots__ = ()


class Pairs(list[tuple[Any, Any]]):
    """A JSON object as (key, value) pairs, so that a key can occur twice."""


NUMBERS = (
    "0", "-1", "1", "2", "7", "1.5", "-0.0", "1e308", "1e-320", "1e400", "-1e400", "4294967296", "9223372036854775807",
    "9223372036854775808", "-9223372036854775809", "1000000000000", "1e12", "65537", DIGITS, f"-{DIGITS}",
    f"0.{DIGITS}",
    "1e999999999",
)  # fmt: skip
STRINGS = (
    "", " ", "\0", "\n", "a" * LONG, "é", "\U0001f600", "\u2028", "@@START@@", "@@END@@", "@@NEW@@", "Q76", "P569",
    "P19",
    "R:P19", "Q" + DIGITS, "P" + DIGITS, "Q0", "../x", "/", ".", "a/b", "T::11::+1961-08-04T00:00:00Z",
    "T::11::+99999999999999-13-45T00:00:00Z", "T::99::x", "T::9::-0000-00-00T00:00:00Z", "V::1e999999999::1",
    "V::NaN::1", f"V::{DIGITS}::1", "V::::", '"1961-08-04"', '"-999999-02-30"', "0000000000000000", "kglm", "auto",
    "{X}", "{Y}", "{", "}", "{X} is {Y}", "(((", "(a+)+$", "٣", "²", "１", "🯱", "½", "nan", "inf", "1" * 400,
)  # fmt: skip
JSON_TOKENS = (
    *NUMBERS, "null", "true", "false", "NaN", "Infinity", "-Infinity", "[]", "{}", "[[]]", '{"":{}}', '"\\ud800"',
    '"\\udc00\\ud800"', '"\\x"', "", "'a'", "[1,]", "[" * DEPTH + "]" * DEPTH, '{"a":' * DEPTH + "1" + "}" * DEPTH,
    "[" * 900 + "]" * 900, '[' + "1," * 20_000 + "1]", '["a","a"]', "[0,1]", "[1,0]", "[-1,3]", '[["a"],"b"]',
)  # fmt: skip
TOML_TOKENS = (
    *(n for n in NUMBERS if n != "-0.0"), "true", "false", "nan", "inf", "-inf", "[]", "{}", "[[]]", "1979-05-27",
    "1979-05-27T07:32:00Z", "07:32:00", "[" * DEPTH + "]" * DEPTH, "{a=" * DEPTH + "1" + "}" * DEPTH,
    "[" * 300 + "]" * 300, '"\\ud800"', "0x" + "f" * 5000, "", "'", '[""]', "[1, 'a']", "{a = 1}", "1_000", "+1",
)  # fmt: skip
FIELDS = (
    *STRINGS, *NUMBERS, "<http://www.wikidata.org/entity/Q1>", "<http://www.wikidata.org/prop/direct/P1>", "<", "<>",
    "_:b", '"a"@en', '"a"@', '"1961-08-04"^^<http://www.w3.org/2001/XMLSchema#date>', '"\\uD800"@en',
    '"\\U0011FFFF"@en',
    f'"{DIGITS}"^^<http://www.w3.org/2001/XMLSchema#gYear>', '"1"^^<http://www.w3.org/2001/XMLSchema#decimal>',
    "^1961-08-04T00:00:00Z/11", f"^{DIGITS}-01-01T00:00:00Z/9", "^1961/", "^//", "+12Q11573", "+1e99999999",
    "'a'@en", "'",
    "'a'@", "node1", "label", "node2", "alias", "preferred", "deprecated", "June 2001", "1961-08-04",
    "30 February 2000",
    "12 km", "999999999999999999999 BC", "13th century", "-5 °C", "1,2,3", "Q1|P1|Q2",
    "date of birth " * 2000, "1 " * 2000, "312", "1,250.5", "1.234", "$3.2 million", "€ 1.234,5", "1e999 EUR",
    "12.5 %", "04/03/1880", "25/12/1871", "27 furlongs", "yes", "n/a", "a; b;; c", "x" * 200_000, "=1+1", '"', '""',
    '"a""b"', "id", "name", "head", "relation", "tail", "rank", "source", "height (m)", "height_m", ":ID", ":START_ID",
    "x:int[]",
    "x:float{a:b}", "x:datetime", ":LABEL", "_id", "@prefix", "@base", "a", "[", "]", ";", '"1"^^xsd:gYear', "[]", "()",
    "<http://example.org/a b>", "http://example.org/%zz", "S::a%20b", "S::", "S::%", "urn:kglm:Q_a", "Q_", "P_", "set",
    "<<", ">>",
)  # fmt: skip
TYPES = (
    *STRINGS, "entity", "date", "date:dmy", "date:mdy", "date:ymd", "year", "quantity", "quantity:", "quantity:m",
    "quantity:m:comma", "quantity:comma", "quantity:point", "quantity:comma:point", "quantity:nonsense", "money",
    "money:EUR", "money:XXX", "money:eur:comma", "percent", "percent:comma", "text", "id", "number", "quantity:1",
    "quantity:km:km", ":", "::", "quantity: m ", "quantity:a b", "quantity:" + "x" * 5000, "quantity:%",
    "quantity:\u00e9",
)  # fmt: skip
MARKUP = (
    "[[", "]]", "{{", "}}", "{|", "|}", "|", "||", "!", "==", "'''", "<ref", "<ref>", "</ref>", "<ref/>", "<!--", "-->",
    "<nowiki>", "</nowiki>", "<math>", "&#xD800;", "&#99999999999;", "&amp", "&#0;", "#REDIRECT [[A]]", "[[File:",
    "[[:",
    "[[Category:x]]", "{{" * 2000, "[[" * 5000, "'" * 3000, "<div>" * 3000, "<table><tr><td>" * 500, "{{{a|" * 500,
    "<a href=", '"', "'", "<![CDATA[", "]]>", "<?xml version='1.0' encoding='x'?>", "<meta charset=idna>",
    "<meta charset=undefined>", "<meta charset=rot13>", "<meta charset=zlib>", "<meta charset=utf-7>", "</page>",
    "<page>",
    "<text>", "</text>", "<ns>", "<ns>x</ns>", f"<ns>{DIGITS}</ns>", "<title>", "</title>", "<redirect title=''/>",
    "<!DOCTYPE x [<!ENTITY a 'b'>]>", "&a;", "{{convert|1|", "{{convert|1e9999|km}}", "{{birth date|1|2|3}}", "\n*",
    "\n#",
    "\n;", "\n:" * 2000, "\n=", "= = = =", "~~~~", "__TOC__", "<br", "<p><p>" * 1000, "<a><b></a></b>", "\ufeff", "\0",
)  # fmt: skip


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip bits, cut, insert, delete, repeat or swap pieces."""
    content = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(content) + 1)
        length = rng.choice((1, 1, 2, 8, 64, 1000))
        match rng.randrange(6):
            case 0 if at < len(content):
                content[at] ^= 1 << rng.randrange(8)
            case 1:
                del content[at:]
            case 2:
                content[at:at] = rng.randbytes(length)
            case 3:
                del content[at : at + length]
            case 4:
                content[at:at] = content[at : at + length] * rng.choice((1, 2, 50))
            case _:
                content[at:at] = rng.choice(
                    (b"\0", b"\xff", b"\xed\xa0\x80", b"\n", b"\r", b"\t", b'"', b"\\", b"\xc0\x80")
                )
    return bytes(content)


def mutate_json(data: bytes, rng: random.Random) -> bytes:
    """Mutate values, keys and structure of a JSON value; sometimes its bytes."""
    if rng.random() < 0.15:
        return mutate_bytes(data, rng)
    tree = json.loads(data, object_pairs_hook=Pairs)
    return _json(_mutated_tree(tree, rng, JSON_TOKENS)).encode("utf-8", "surrogatepass")


def mutate_json_lines(data: bytes, rng: random.Random) -> bytes:
    """Mutate one to three lines of JSON; sometimes repeat or drop lines."""
    lines = data.splitlines()
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(lines))
        match rng.randrange(12):
            case 0:
                lines.insert(at, lines[at])
            case 1 if len(lines) > 1:
                del lines[at]
            case _:
                try:
                    lines[at] = mutate_json(lines[at], rng)
                except (ValueError, RecursionError):  # it has been damaged before
                    lines[at] = mutate_bytes(lines[at], rng)
    return b"\n".join(lines) + b"\n"


def mutate_toml(data: bytes, rng: random.Random) -> bytes:
    """Mutate values, keys and structure of a TOML file; sometimes its bytes."""
    if rng.random() < 0.15:
        return mutate_bytes(data, rng)
    tree = _pairs(tomllib.loads(data.decode()))
    tree = _mutated_tree(tree, rng, TOML_TOKENS)
    if not isinstance(tree, Pairs):
        return _toml(tree).encode("utf-8", "surrogatepass")
    return "\n".join(f"{_quoted(key)} = {_toml(value)}" for key, value in tree).encode("utf-8", "surrogatepass")


def mutate_override(data: bytes, rng: random.Random) -> bytes:
    """Mutate one `key=value`."""
    key, _, value = data.decode().partition("=")
    match rng.randrange(6):
        case 0:
            key = rng.choice((*STRINGS[:8], f"{key}.x", key.split(".")[0], "." + key, key + ".", "a." * 3000 + "b"))
        case 1:
            return mutate_bytes(data, rng)
        case 2:
            value = rng.choice(STRINGS)
        case _:
            value = rng.choice(TOML_TOKENS)
    return f"{key}={value}".encode("utf-8", "surrogatepass")


def mutate_fields(separator: str) -> Mutation:
    """Mutation of the fields of lines."""

    def mutate(data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.15:
            return mutate_bytes(data, rng)
        rows = [line.split(separator) for line in data.decode().split("\n")]
        for _ in range(rng.choice((1, 1, 2, 4))):
            row = rng.choice(rows)
            at = rng.randrange(len(row) + 1)
            match rng.randrange(6):
                case 0:
                    row.insert(at, rng.choice(FIELDS))
                case 1:
                    del row[at : at + 1]
                case 2:
                    rng.shuffle(row)
                case 3:
                    rows.append(list(row))
                case 4 if at < len(row):
                    row[at] = _mutated_string(row[at], rng)
                case _:
                    row[at : at + 1] = [rng.choice(FIELDS)]
        return "\n".join(separator.join(row) for row in rows).encode("utf-8", "surrogatepass")

    return mutate


def mutate_markup(data: bytes, rng: random.Random) -> bytes:
    """Insert, remove, repeat or move pieces of markup."""
    if rng.random() < 0.15:
        return mutate_bytes(data, rng)
    parts = re.split(r"(\[\[|\]\]|\{\{|\}\}|<[^<>]{0,80}>|\||\n)", data.decode())
    for _ in range(rng.choice((1, 2, 4, 8))):
        at = rng.randrange(len(parts) + 1)
        match rng.randrange(5):
            case 0:
                del parts[at : at + rng.choice((1, 2, 5))]
            case 1:
                parts[at:at] = parts[at : at + rng.choice((1, 3, 10))] * rng.choice((1, 2, 20))
            case 2:
                parts.insert(at, parts[rng.randrange(len(parts))] if parts else "")
            case _:
                parts.insert(at, rng.choice(MARKUP))
    return "".join(parts).encode("utf-8", "surrogatepass")


def _mutated_tree(tree: Any, rng: random.Random, tokens: Sequence[str]) -> Any:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if rng.random() < 0.02:
            return _new_value(tree, tree, rng, tokens)
        spots = list(_spots(tree))
        if not spots:
            return _new_value(tree, tree, rng, tokens)
        holder, at = rng.choice(spots)
        key, value = holder[at] if isinstance(holder, Pairs) else (None, holder[at])
        match rng.randrange(10):
            case 0:
                del holder[at]
            case 1 if isinstance(holder, Pairs):
                holder.insert(at, (key, _new_value(value, tree, rng, tokens)))  # the key occurs twice
            case 2 if isinstance(holder, Pairs):
                holder[at] = (rng.choice((*STRINGS, str(key) + "x", str(key)[:-1])), value)
            case 3 if isinstance(holder, Pairs):
                holder.append((rng.choice(STRINGS), _new_value(value, tree, rng, tokens)))
            case 4:
                holder.insert(at, holder[rng.randrange(len(holder))])
            case _:
                new = _new_value(value, tree, rng, tokens)
                holder[at] = (key, new) if isinstance(holder, Pairs) else new
    return tree


def _new_value(value: Any, tree: Any, rng: random.Random, tokens: Sequence[str]) -> Any:
    match rng.randrange(8):
        case 0 if isinstance(value, str):
            return _mutated_string(value, rng)
        case 1 if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST:
            return rng.choice((-value, value + 1, value - 1, value * 2**40, value / 3, str(value)))
        case 2:
            return [value]
        case 3:
            return rng.choice(STRINGS)
        case 4 if spots := list(_spots(tree)):
            holder, at = rng.choice(spots)
            return Token(_json(holder[at][1] if isinstance(holder, Pairs) else holder[at]))
        case _:
            return Token(rng.choice(tokens))


def _mutated_string(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    new = rng.choice((*STRINGS, text, text[:3], *(chr(rng.randrange(0xD800)) for _ in range(3))))
    return rng.choice((text[:at] + new + text[at:], text[:at], text[at:], text.upper(), text * 50, new))


def _spots(tree: Any) -> Iterator[tuple[Any, int]]:
    """Every place of a tree: (list or object, index)."""
    if isinstance(tree, list):
        for at, item in enumerate(tree):
            yield tree, at
            yield from _spots(item[1] if isinstance(tree, Pairs) else item)


def _pairs(value: Any) -> Any:
    if isinstance(value, dict):
        return Pairs((key, _pairs(item)) for key, item in value.items())
    return [_pairs(item) for item in value] if isinstance(value, list) else value


def _json(value: Any) -> str:
    if isinstance(value, Token):
        return str(value)
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(str(key))}:{_json(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _toml(value: Any) -> str:
    if isinstance(value, Token):
        return str(value)
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{_quoted(key)} = {_toml(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    """A TOML string; its escapes are a superset of those of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
