"""Quantities: Wikidata's amounts with units, the texts for them, and the quantities that a text can mean.

An id is `V::<amount with four decimals>::<unit>`; the unit is `1` for a bare number, else the address of a Wikidata
item. The caller passes the names of the item (label first, then aliases). Units are not converted: 27 km is never
rendered in miles. Names of units are extended by plurals, British and American spellings and the symbols of pint;
names of currencies by the symbols and names of Babel.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import lru_cache
from typing import Any, NamedTuple

from babel import numbers

from kglm.errors import LiteralError
from kglm.kg.ids import WIKIDATA_ENTITY
from kglm.kg.literals.dates import babel_locale

_ID = re.compile(r"V::([^:]*)::(.*)", re.DOTALL)
_AMOUNT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_UNIT = re.compile(r"(?:https?://www\.wikidata\.org/entity/)?(Q(?:[0-9]+|_\S+))")
MOST_DIGITS = 127  # the limit of Wikidata
EXACT = Context(prec=2 * MOST_DIGITS, rounding=ROUND_HALF_EVEN)
_PLACES = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount, exact to four decimals (half-even), and its unit: `1` or the id of an item."""

    amount: Decimal
    unit: str = "1"

    def __post_init__(self) -> None:
        if not self.amount.is_finite() or self.amount.adjusted() >= MOST_DIGITS:
            raise LiteralError(f"{self.amount} is out of range", remedy=f"use at most {MOST_DIGITS} digits")
        amount = self.amount.quantize(_PLACES, context=EXACT)
        object.__setattr__(self, "amount", amount or amount.copy_abs())  # there is no -0
        if self.unit != "1":
            match = _UNIT.fullmatch(self.unit)
            if match is None:
                raise LiteralError(f"{self.unit!r} is not a unit", remedy=f"use 1 or {WIKIDATA_ENTITY}Q…")
            object.__setattr__(self, "unit", match[1])

    @classmethod
    def from_amount(cls, amount: str, unit: str = "1") -> Quantity:
        """Parse an amount of Wikidata's JSON, "+27.05", and a unit: `1`, an address or an id."""
        if not _AMOUNT.fullmatch(amount):
            raise LiteralError(f"{amount!r} is not an amount", remedy='write it like "27" or "-3.5"')
        return cls(Decimal(amount), unit)

    @classmethod
    def parse_id(cls, id: str) -> Quantity:
        """Parse an id `V::<amount>::<unit>`, canonical or not."""
        match = _ID.fullmatch(id)
        if match is None:
            raise LiteralError(f"{id!r} is not a quantity", remedy='write it like "V::27.0000::1"')
        try:
            return cls.from_amount(match[1], match[2])
        except LiteralError as error:
            raise LiteralError(error.what, place=id, remedy=error.remedy) from None

    @property
    def id(self) -> str:
        """The canonical id."""
        return f"V::{self.amount:.4f}::{'1' if self.unit == '1' else WIKIDATA_ENTITY + self.unit}"


def render_quantity(quantity: Quantity, unit_names: Sequence[str] = (), locale: str = "en") -> list[str]:
    """All texts for the quantity, the most useful first: the bare number, then the number with its unit."""
    written = _render_number(quantity.amount, locale)
    unit = _unit(tuple(unit_names), locale)
    one = quantity.amount.copy_abs() == 1
    names = [*unit.singular, *unit.plural] if one else [*unit.plural, *unit.singular]
    first = written[0]
    ways = [first, *(_before(sign, first) for sign in unit.before[:2])]
    for symbol in unit.symbols[:1]:
        ways += [f"{first} {symbol}"] if symbol[0].isalnum() else [f"{first} {symbol}", f"{first}{symbol}"]
    ways += [f"{first} {name}" for name in names[:4]]
    ways += written
    for number in written:
        if any(char.isdigit() for char in number):
            ways += [_before(sign, number, gap) for sign in unit.before for gap in ("", " ")]
            ways += [f"{number} {symbol}" for symbol in unit.symbols]
        if number[-1].isdigit():
            ways += [f"{number}{symbol}" for symbol in unit.symbols if not re.search(r" |^[-.,0-9]", symbol)]
        ways += [f"{number} {name}" for name in names]
        ways += [f"{number}-{name}" for name in unit.singular if name[0].isalpha()]
    return list(dict.fromkeys(ways))


def unit_spellings(unit_names: Sequence[str], locale: str = "en") -> frozenset[str]:
    """All spellings of a unit: case-folded with single blanks, and normalised by `normal_unit`."""
    return _spellings(tuple(unit_names), locale)


def normal_unit(text: str) -> str:
    """Normalise case and blanks in the text of a unit: "km / H" becomes "km/h"."""
    return re.sub(r" ?([^\w ]) ?", r"\1", " ".join(text.casefold().split()))


def parse_quantity(text: str, locale: str = "en") -> list[tuple[Decimal, str]]:
    """Quantities that a text can mean: (amount, text of its unit or ""); empty if it does not begin with a number."""
    plain = " ".join(text.split())
    if len(plain) > _LONGEST or not _START.match(plain):
        return []
    marks, patterns = _grammar(locale)
    found: dict[tuple[Decimal, str], None] = {}
    for pattern in patterns:
        match = pattern.fullmatch(plain)
        if match is None or (match["before"] and match["unit"]):
            continue
        number = match["number"].lower()
        if number in _WORDS:
            amount = Decimal(_WORDS.index(number))
        else:
            amount = Decimal(_NOISE.sub("", number.replace(marks[0], "").replace(marks[1], ".")))
        if match["scale"]:
            amount = EXACT.multiply(amount, _SCALES[match["scale"].lower()])
        unit = match["before"] or match["unit"] or ""
        found[amount.copy_negate() if match["sign"] else amount, unit] = None
    return list(found)


def begins_quantity(word: str) -> bool:
    """True if a quantity can begin with this word: a number, in digits or words, or a sign."""
    return any(char.isdigit() for char in word) or word.casefold() in _FIRST or not word.isalnum()


# Numbers

_LONGEST = 160  # characters of the longest text that can be a quantity
_TO_TWENTY = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty"""
_WORDS = _TO_TWENTY.split()
_FIRST = frozenset([*_WORDS, "minus"])
_SCALES = {"trillion": Decimal(10**12), "billion": Decimal(10**9), "million": Decimal(10**6)}
_START = re.compile(rf"[^0-9]{{0,14}}[0-9]|(?:minus )?(?:{'|'.join(_WORDS)})", re.IGNORECASE)
_NOISE = re.compile(r"[^0-9.]")
_MONEY = r"[^\W\d_]{0,3}[$¢-¥֏؋৲৳৻૱௹฿៛₠-⃀﷼﹩＄￠￡￥￦]|[A-Z]{3}"  # currency signs and codes that may precede a number


@lru_cache(maxsize=16)
def _grammar(locale: str) -> tuple[tuple[str, str], list[re.Pattern[str]]]:
    """Group and decimal marks of a locale, and patterns for its numbers; "1 , 000" and "1 @,@ 000" match too."""
    where = babel_locale(locale)
    marks = " ".join(numbers.get_group_symbol(where).split()) or " ", numbers.get_decimal_symbol(where)
    group, point = (" " if mark == " " else rf" ?@?{re.escape(mark)}@? ?" for mark in marks)
    ends = rf"(?![0-9]|{point}[0-9]|{group}[0-9])" if group != " " else rf"(?![0-9]|{point}[0-9])"
    decimals = rf"(?:{point}[0-9]+)?{ends}"
    grouped = rf"[0-9]{{1,3}}(?:{group}[0-9]{{2,3}})*{group}[0-9]{{3}}{decimals}"
    spelled = rf"(?i:{'|'.join(reversed(_WORDS))})(?!\w)"
    sign = r"(?P<sign>[-−–] ?|(?i:minus) )?\+?"
    scale = rf"(?: ?(?P<scale>(?i:{'|'.join(_SCALES)}))(?!\w))?"
    unit = r"(?:(?: ?[-‑] ?(?=[^\W\d])| |(?![0-9]))(?P<unit>.+))?"
    return marks, [
        re.compile(rf"{sign}(?:(?P<before>{_MONEY}) ?)?(?P<number>{number}){scale}{unit}")
        for number in (grouped, rf"[0-9]+{decimals}", spelled)
    ]


def _render_number(amount: Decimal, locale: str) -> list[str]:
    where = babel_locale(locale)
    with localcontext(EXACT):
        size = amount.copy_abs().normalize()
        ways = [
            numbers.format_decimal(size, locale=where, decimal_quantization=False, group_separator=group)
            for group in (True, False)
        ]
        if where.language == "en":
            scale = next((name for name, value in _SCALES.items() if size >= value), None)
            if scale and (shown := (size / _SCALES[scale]).normalize()) == round(shown, 3):
                ways.append(f"{shown:f} {scale}")
            if size <= 20 and size == int(size):
                ways.append(_WORDS[int(size)])
    ways = list(dict.fromkeys(ways))
    if amount >= 0:
        return ways
    return [sign + way for way in ways for sign in ("-", "−", "minus ") if way[0].isdigit() or len(sign) > 1]


def _before(sign: str, number: str, gap: str = "") -> str:
    """The number with a currency sign before its digits: $27, -$27, USD 27."""
    start = next(place for place, char in enumerate(number) if char.isdigit())
    return f"{number[:start]}{sign}{' ' if sign.isalpha() else gap}{number[start:]}"


# Units

_PERCENT = ("percent", "per cent")
_PREFIX = "yotta|zetta|exa|peta|tera|giga|mega|kilo|hecto|deca|deka|deci|centi|milli|micro|nano|pico|femto|atto"
_RESPELT = rf"\b((?:{_PREFIX})?(?:met(?=re|er)|lit(?=re|er)|gram(?=me)))(re|er|me)(s?)\b"
_SPELLING = re.compile(_RESPELT, re.IGNORECASE)
_SWAP = {"re": "er", "er": "re", "me": ""}
_HEAD = re.compile(r"degrees?(?= )|.+?(?= (?:per|of|old|sterling|squared|cubed|to)\b| \(|$)")
_PLURALS = {"foot": "feet", "person": "people", "man": "men", "woman": "women", "child": "children"}
_INVARIANT = "percent cent feet people men women children hertz lux yen yuan renminbi won baht rand millennia"
_SAME = frozenset(_INVARIANT.split())
_SYMBOLS = {"year": "yr", "degree": "°"}  # pint has other symbols, which texts do not use


class _Unit(NamedTuple):
    """Spellings of a unit: signs before the number ($), symbols after it (km), singular and plural names."""

    before: tuple[str, ...]
    symbols: tuple[str, ...]
    singular: tuple[str, ...]
    plural: tuple[str, ...]


@lru_cache(maxsize=4096)
def _unit(names: tuple[str, ...], locale: str) -> _Unit:
    names = tuple(name for name in (" ".join(name.split()) for name in names) if _is_readable(name, locale))
    signs = [name for name in names if _is_symbol(name)]
    words = [form for name in names if name not in signs for form in (name, _respelled(name))]
    pairs = [(word, _plural(word)) for word in words]
    code = _currency(names, locale)
    if any(name.casefold() in (*_PERCENT, "%") for name in names):
        signs.insert(0, "%")
        pairs[:0] = [(name, name) for name in _PERCENT]
    elif code:
        known = [numbers.get_currency_symbol(code, babel_locale(name)) for name in (locale, "en", "en_001")]
        signs[:0] = [*known, code]
        one, many = (numbers.get_currency_name(code, count, babel_locale(locale)) for count in (1, 2))
        pairs[2:2] = [(one, many), (one.split()[-1], many.split()[-1])]
        pairs = [pair for pair in pairs if pair[0] != "unit"]  # of the European Currency Unit
    elif names:
        signs[:0] = _pint_symbols(names[0])
    before = [sign for sign in signs if re.fullmatch(_MONEY, sign) and (code or not sign.isalpha())]
    singular = [one for one, many in pairs if one != many or one.split()[-1].casefold() in _SAME]
    forms = (before, signs, singular, [many for _, many in pairs])
    return _Unit(*(tuple(dict.fromkeys(form)) for form in forms))


@lru_cache(maxsize=4096)
def _spellings(names: tuple[str, ...], locale: str) -> frozenset[str]:
    spelled = {" ".join(name.casefold().split()) for form in _unit(names, locale) for name in form}
    return frozenset(spelled | {normal_unit(name) for name in spelled})


def _is_readable(name: str, locale: str) -> bool:
    """True if "7 NAME" is parsed as a quantity with this unit; "a", an alias of year, is usually the article."""
    found = [normal_unit(unit) for _, unit in parse_quantity(f"7 {name}", locale)]
    return bool(name) and name != "a" and normal_unit(name) in found


def _is_symbol(name: str) -> bool:
    """True if a name is a sign or an abbreviation (km², sq mi, $, USD), which has no plural."""
    plain = "".join(char for char in unicodedata.normalize("NFKD", name) if not unicodedata.combining(char))
    if re.search(r"[0-9]|[^-\w\s.,'’()]", plain) or not re.search(r"\w", plain):
        return True
    last = plain.split()[-1].rstrip(".")
    return not re.search(r"[aeiouy]", last.lower()) or not re.match(r"\(?(?:\w-)?\w[^\WA-Z]{2}", last)


def _respelled(name: str) -> str:
    """The name in American spelling if it is British, and the other way round."""
    return _SPELLING.sub(lambda found: found[1] + _SWAP.get(found[2].lower(), "") + found[3], name)


def _plural(name: str) -> str:
    """Plural of the name of a unit, "kilometres per hour"; the name itself if it is a plural or has none."""
    match = _HEAD.match(name)
    head = match[0] if match else name
    stem, blank, last = head.rpartition(" ")
    if last.casefold() in _SAME or last.endswith("s") or not last[-1:].isalpha():
        return name
    if last in _PLURALS:
        many = _PLURALS[last]
    elif re.search(r"[^aeiou]y$", last):
        many = last[:-1] + "ies"
    else:
        many = last + ("es" if last.endswith(("ch", "sh", "x", "z")) else "s")
    return stem + blank + many + name[len(head) :]


@lru_cache(maxsize=16)
def _currencies(locale: str) -> dict[str, str]:
    """Currency codes by code and by case-folded name."""
    where = babel_locale(locale)
    codes = sorted(numbers.list_currencies(where))
    names = {numbers.get_currency_name(code, locale=where).casefold(): code for code in codes}
    return names | {code: code for code in codes}


def _currency(names: Sequence[str], locale: str) -> str | None:
    """Currency code of a unit: found by its label, or by a code among its names that another name confirms."""
    codes = _currencies(locale)
    for label in names[:1]:
        if code := codes.get(label) or codes.get(label.casefold()):
            return code
    words = {word for name in names for word in name.casefold().split()}
    for code in (codes[name] for name in names if name in codes):
        if numbers.get_currency_name(code, locale=babel_locale(locale)).casefold().split()[-1] in words:
            return code
    return None


@lru_cache(maxsize=1)
def _registry() -> Any:
    import pint  # imported late: its import and its registry are slow

    return pint.UnitRegistry()


def _pint_symbols(label: str) -> Iterator[str]:
    """Symbols of a unit from its English name: km², km2, km^2 and sq km for square kilometre."""
    parts = [_factors(part) for part in label.split(" per ")]
    if not all(parts) or any(len(part) > 1 for part in parts[1:]):
        return
    top = parts[0]
    for squared, cubed in (("²", "³"), ("2", "3"), ("^2", "^3")):
        marks = {1: "", 2: squared, 3: cubed}
        for joint in ("", "·") if len(top) > 1 else ("",):
            yield "/".join(joint.join(symbol + marks[power] for symbol, power in part) for part in parts)
    if len(parts) == len(top) == 1 and top[0][1] > 1:
        yield f"{'sq' if top[0][1] == 2 else 'cu'} {top[0][0]}"


def _factors(part: str) -> list[tuple[str, int]]:
    """Symbols and powers in a product of units, "square metre" or "watt hour"; [] if one is unknown."""
    if symbol := _symbol(part.replace(" ", "_")):
        return [(symbol, 1)]
    factors: list[tuple[str, int]] = []
    power = 1
    for word in part.split():
        if word in ("squared", "cubed") and factors:
            factors[-1] = (factors[-1][0], 2 if word == "squared" else 3)
        elif word in ("square", "cubic"):
            power = 2 if word == "square" else 3
        elif symbol := _symbol(word):
            factors.append((symbol, power))
            power = 1
        else:
            return []
    return factors


def _symbol(word: str) -> str | None:
    """pint's symbol for the full name of a unit; abbreviations are excluded, because pint reads "act" as attocarat."""
    if word in _SYMBOLS:
        return _SYMBOLS[word]
    registry = _registry()
    try:
        (prefix, name, _), *_ = registry.parse_unit_name(word)
    except ValueError:
        return None
    symbol = str(registry.get_symbol(word))
    full = len(word) > 2 and word.startswith(prefix) and name not in registry.get_group("Printer").members
    return symbol if full and symbol != word and "_" not in symbol else None
