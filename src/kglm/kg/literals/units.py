"""Common units and currencies: from what people write after or before a number to the entity of the unit.

A unit of a table becomes an entity of the graph, `Q_kilometre`, whose names are the ones listed here, so that the model
can write "27 km" and "27 kilometres". A word that is not listed may still be a unit: the column decides.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from kglm.kg.ids import mint

_UNITS = """
metre: m; kilometre: km; centimetre: cm; millimetre: mm; micrometre: µm, μm; nanometre: nm
inch: in; foot: ft; yard: yd; mile: mi; nautical mile: nmi; light-year: ly
square metre: m², m2, m^2, sqm, sq m; square kilometre: km², km2, km^2, sq km; square mile: sq mi
square foot: sq ft, ft², ft2; hectare: ha; acre:; cubic metre: m³, m3, m^3; cubic centimetre: cm³, cm3
litre: l, L; millilitre: ml, mL; hectolitre: hl; gallon: gal
gram: g; kilogram: kg; milligram: mg; microgram: µg, μg; tonne: t; pound: lb, lbs; ounce: oz
second: s, sec; minute: min; hour: h, hr, hrs; day:; week:; month:; year: yr, yrs; millisecond: ms
kilometre per hour: km/h, kph; metre per second: m/s; mile per hour: mph; knot: kn
watt: W; kilowatt: kW; megawatt: MW; gigawatt: GW; kilowatt hour: kWh; megawatt hour: MWh; horsepower: hp
volt: V; ampere: A; ohm: Ω; hertz: Hz; kilohertz: kHz; megahertz: MHz; gigahertz: GHz; joule: J; kilojoule: kJ
calorie: cal; kilocalorie: kcal; newton: N; pascal: Pa; bar:; decibel: dB
degree Celsius: °C, ℃; degree Fahrenheit: °F; kelvin: K; degree: °
byte: B; kilobyte: kB, KB; megabyte: MB; gigabyte: GB; terabyte: TB; bit:; pixel: px
percent: %, per cent, pct
"""
_CURRENCIES = {
    "$": "USD", "US$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY",
    "₴": "UAH", "₪": "ILS", "₫": "VND", "₦": "NGN", "₱": "PHP", "฿": "THB", "CA$": "CAD", "C$": "CAD", "A$": "AUD",
    "AU$": "AUD", "NZ$": "NZD", "HK$": "HKD", "S$": "SGD", "R$": "BRL", "zł": "PLN", "Kč": "CZK", "Ft": "HUF",
    "dollar": "USD", "dollars": "USD", "euro": "EUR", "euros": "EUR", "pounds sterling": "GBP", "yen": "JPY",
    "rupees": "INR", "Swiss francs": "CHF", "Fr.": "CHF", "SFr.": "CHF",
}  # fmt: skip
PERCENT = "percent"
_IRREGULAR = {"foot": "feet", "inch": "inches", "nautical mile": "nautical miles", "hertz": "hertz"}


class Unit(NamedTuple):
    """A unit, and the names of its entity, label first."""

    id: str
    names: tuple[str, ...]


def unit_of(text: str) -> Unit | None:
    """The unit that a text names: "km", "kilometres", "%"; None if it is not a common one."""
    table = _units()
    return table.get(text) or table.get(text.casefold())


def currency_of(text: str) -> Unit | None:
    """The unit of money that a sign, code or name means: "€", "EUR", "euros"."""
    code = _CURRENCIES.get(text) or _CURRENCIES.get(text.casefold()) or (text if text.isupper() else None)
    label = _currency_names().get(code) if code else None
    if label is None:
        return None
    signs = [sign for sign, of in _CURRENCIES.items() if of == code and not sign.isalpha()]
    return Unit(mint(label, "Q"), (label, str(code), *signs))


def own_unit(word: str) -> Unit:
    """A unit that only this column has: "visitors"."""
    return Unit(mint(word, "Q"), (word,))


def currency_signs() -> list[str]:
    """Signs and codes that may stand before a number, the longest first."""
    signs = [sign for sign in _CURRENCIES if not sign[-1].isalpha() or len(sign) < 3]
    return sorted([*signs, *_currency_names()], key=len, reverse=True)


@cache
def _units() -> dict[str, Unit]:
    table: dict[str, Unit] = {}
    for entry in _UNITS.replace("\n", ";").split(";"):
        name, colon, symbols = (part.strip() for part in entry.partition(":"))
        if not colon:
            continue
        signs = [symbol.strip() for symbol in symbols.split(",") if symbol.strip()]
        unit = Unit(mint(name, "Q"), (name, *signs))
        for way in (*signs, *_written(name)):
            table.setdefault(way, unit)
    return table


def _written(name: str) -> list[str]:
    """Singular and plural in British and American spelling, in lower case."""
    head, per, rest = name.partition(" per ")
    plural = _IRREGULAR.get(head) or (head.replace("degree ", "degrees ") if "degree " in head else f"{head}s")
    ways = [f"{each}{per}{rest}".lower() for each in (head, plural)]
    american = [way.replace("metre", "meter").replace("litre", "liter") for way in ways]
    return [*ways, *american]


@cache
def _currency_names() -> dict[str, str]:
    from babel import Locale  # its data takes a moment to load

    return {code: name for code, name in Locale("en").currencies.items() if len(code) == 3 and "(" not in name}
