"""Render the template `{{convert}}`: an amount, and the same amount in another unit.

    {{convert|27|km|mi}}            27 kilometres (17 mi)
    {{convert|5|to|10|ft|abbr=on}}  5 to 10 ft (1.5 to 3.0 m)

Rounding follows the template: as precise as the given amount, with at least two significant figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: value in base units of its `kind` = `factor` * value + `offset`."""

    code: str
    kind: str
    factor: float
    symbol: str
    name: str
    names: str
    default: str
    offset: float = 0.0


_UNITS = """
km      length  1000       km      kilometre  kilometres  mi
m       length  1          m       metre      metres      ftin
cm      length  0.01       cm      centimetre centimetres in
mm      length  0.001      mm      millimetre millimetres in
mi      length  1609.344   mi      mile       miles       km
yd      length  0.9144     yd      yard       yards       m
ft      length  0.3048     ft      foot       feet        m
in      length  0.0254     in      inch       inches      mm
nmi     length  1852       nmi     nautical_mile nautical_miles km
furlong length  201.168    furlong furlong    furlongs    m
km2     area    1e6        km_2    square_kilometre square_kilometres sqmi
m2      area    1          m_2     square_metre square_metres sqft
cm2     area    1e-4       cm_2    square_centimetre square_centimetres sqin
ha      area    1e4        ha      hectare    hectares    acre
sqmi    area    2589988.11 sq_mi   square_mile square_miles km2
acre    area    4046.8564  acre    acre       acres       ha
sqft    area    0.09290304 sq_ft   square_foot square_feet m2
sqin    area    0.00064516 sq_in   square_inch square_inches cm2
sqyd    area    0.83612736 sq_yd   square_yard square_yards m2
m3      volume  1          m_3     cubic_metre cubic_metres cuft
km3     volume  1e9        km_3    cubic_kilometre cubic_kilometres cumi
cumi    volume  4.168182e9 cu_mi   cubic_mile cubic_miles km3
cuft    volume  0.02831685 cu_ft   cubic_foot cubic_feet  m3
cuyd    volume  0.76455486 cu_yd   cubic_yard cubic_yards m3
L       volume  0.001      L       litre      litres      USgal
ml      volume  1e-6       ml      millilitre millilitres USoz
USgal   volume  0.00378541 US_gal  US_gallon  US_gallons  L
impgal  volume  0.00454609 imp_gal imperial_gallon imperial_gallons L
USoz    volume  2.95735e-5 US_fl_oz US_fluid_ounce US_fluid_ounces ml
oilbbl  volume  0.15898729 bbl     barrel     barrels     m3
kg      mass    1          kg      kilogram   kilograms   lb
g       mass    0.001      g       gram       grams       oz
mg      mass    1e-6       mg      milligram  milligrams  gr
lb      mass    0.45359237 lb      pound      pounds      kg
oz      mass    0.02834952 oz      ounce      ounces      g
gr      mass    6.479891e-5 gr     grain      grains      mg
st      mass    6.35029318 st      stone      stone       kg
t       mass    1000       t       tonne      tonnes      ST
LT      mass    1016.04691 long_tons long_ton long_tons   t
ST      mass    907.18474  short_tons short_ton short_tons t
km/h    speed   0.27777778 km/h    kilometre_per_hour kilometres_per_hour mph
mph     speed   0.44704    mph     mile_per_hour miles_per_hour km/h
kn      speed   0.51444444 kn      knot       knots       km/h
m/s     speed   1          m/s     metre_per_second metres_per_second ft/s
ft/s    speed   0.3048     ft/s    foot_per_second feet_per_second m/s
kW      power   1000       kW      kilowatt   kilowatts   hp
MW      power   1e6        MW      megawatt   megawatts   hp
hp      power   745.69987  hp      horsepower horsepower  kW
PS      power   735.49875  PS      metric_horsepower metric_horsepower kW
kPa     pressure 1000      kPa     kilopascal kilopascals psi
psi     pressure 6894.757  psi     pound_per_square_inch pounds_per_square_inch kPa
atm     pressure 101325    atm     standard_atmosphere standard_atmospheres kPa
Nm      torque  1          N⋅m     newton-metre newton-metres lbft
lbft    torque  1.3558179  lb⋅ft   pound-foot pound_force-feet Nm
kJ      energy  1000       kJ      kilojoule  kilojoules  kcal
kcal    energy  4184       kcal    kilocalorie kilocalories kJ
/km2    density 1e-6       /km_2   per_square_kilometre per_square_kilometre /sqmi
/sqmi   density 3.861e-7   /sq_mi  per_square_mile per_square_mile /km2
K       temperature  1          K       kelvin     kelvins     C
"""
_OTHER_CODES = {
    "mile": "mi", "miles": "mi", "foot": "ft", "feet": "ft", "inch": "in", "inches": "in", "yard": "yd", "metre": "m",
    "meter": "m", "kilometre": "km", "kilometer": "km", "kilometres": "km", "metres": "m", "meters": "m",
    "acres": "acre", "sqkm": "km2", "sqm": "m2", "hectare": "ha", "hectares": "ha", "l": "L", "litre": "L",
    "liter": "L", "litres": "L", "mL": "ml", "U.S.gal": "USgal", "usgal": "USgal", "gal": "USgal", "tonne": "t",
    "tonnes": "t", "MT": "t", "LTlb": "LT", "lbs": "lb", "pound": "lb", "kph": "km/h", "kmh": "km/h", "km/hr": "km/h",
    "knot": "kn", "knots": "kn", "bhp": "hp", "°C": "C", "°F": "F", "PD/km2": "/km2", "PD/sqmi": "/sqmi", "NM": "nmi",
    "oilbarrel": "oilbbl", "lb.ft": "lbft", "lbf.ft": "lbft", "pers/km2": "/km2", "inhab/km2": "/km2",
}  # fmt: skip


def _units() -> dict[str, Unit]:
    units = {
        "C": Unit("C", "temperature", 1.0, "°C", "degree Celsius", "degrees Celsius", "F", 273.15),
        "F": Unit("F", "temperature", 5 / 9, "°F", "degree Fahrenheit", "degrees Fahrenheit", "C", 459.67 * 5 / 9),
    }
    for line in _UNITS.strip().splitlines():
        code, kind, factor, *names, default = line.split()
        symbol, name, plural = (text.replace("_", " ") for text in names)
        units[code] = Unit(code, kind, float(factor), symbol, name, plural, default)
    return units | {other: units[code] for other, code in _OTHER_CODES.items()}


UNITS = _units()
# Pairs of units for one amount: six feet two inches.
_MIXED = {("ft", "in"), ("lb", "oz"), ("st", "lb"), ("mi", "ft"), ("mi", "yd"), ("yd", "ft")}
_RANGES = {
    "-": "–", "–": "–", "to": " to ", "to(-)": " to ", "to-": " to ", "and": " and ", "and(-)": " and ", "or": " or ",
    "x": " by ", "×": " by ", "by": " by ", "*": " by ", "xx": " by ", "±": " ± ", "+/-": " ± ", "+": " + ",
    ",": ", ", "to about": " to about ", "up to": " up to ",
}  # fmt: skip
_SINGULAR = (1, 0.5, 0.25, 0.75, 0.125)
_YES = frozenset(("on", "y", "yes", "1"))


@dataclass(frozen=True, slots=True)
class _Amount:
    """A number: its text, its value and its precision."""

    text: str
    value: float
    decimals: int
    """Digits after the point; negative for the trailing zeros of a round number."""


def converted(positional: Sequence[str], named: Mapping[str, str]) -> str:
    """Text of `{{convert|…}}`; an amount that cannot be converted is shown as given."""
    words = [word.strip() for word in positional]
    amounts, joints, rest = _amounts(words)
    if not amounts or not rest:
        return " ".join(words[:2])
    given = UNITS.get(rest[0])
    if given is None:
        return _joined([amount.text for amount in amounts], joints) + " " + rest[0]
    rest = rest[1:]
    options = _Options.read(named)
    second = UNITS.get(rest[1]) if len(rest) > 1 else None
    if second and (given.code, second.code) in _MIXED and (more := _amount(rest[0])) and len(amounts) == 1:
        total = amounts[0].value + more.value * second.factor / given.factor
        original = f"{options.with_unit(amounts[0], given)} {options.with_unit(more, second)}"
        amounts = [_Amount("", total, 0 if given.code == "st" else 2)]
        rest = rest[2:]
    else:
        original = _joined([amount.text for amount in amounts], joints)
        original += options.unit(given, amounts[-1].value, options.first)
    results = _results(amounts, joints, given, rest, options)
    if options.display in ("out", "output only", "output number only"):
        return results or original
    if not results:
        return original
    return f"{original} or {results}" if options.display == "or" else f"{original} ({results})"


@dataclass(frozen=True, slots=True)
class _Options:
    """Options of the template."""

    first: bool
    """True if the given unit is shown as a symbol."""
    second: bool
    """True if the unit of the result is shown as a symbol."""
    adjective: bool
    american: bool
    display: str
    figures: int | None

    @classmethod
    def read(cls, named: Mapping[str, str]) -> _Options:
        short, adjective = named.get("abbr", "").strip(), named.get("adj", "").strip()
        figures = named.get("sigfig", "").strip()
        display = named.get("disp", "").strip()
        return cls(
            first=short in (*_YES, "in", "mos"),
            second=short not in ("off", "none", "no", "in") and (display != "or" or short in _YES),
            adjective=adjective in (*_YES, "mid", "pre"),
            american=named.get("sp", "").strip() == "us",
            display=display,
            figures=int(figures) if figures in tuple("123456789") else None,
        )

    def unit(self, unit: Unit, value: float, symbol: bool) -> str:
        """A unit after its number, with the blank or hyphen between them."""
        if unit.kind == "temperature" or (symbol and unit.symbol != unit.name):
            return unit.symbol if unit.symbol.startswith("/") else f" {unit.symbol}"
        name = unit.name if self.adjective or abs(value) in _SINGULAR else unit.names
        if self.american:
            name = name.replace("metre", "meter").replace("litre", "liter")
        return f"-{name.replace(' ', '-')}" if self.adjective else f" {name}"

    def with_unit(self, amount: _Amount, unit: Unit) -> str:
        return amount.text + self.unit(unit, amount.value, self.first)


def _results(
    amounts: Sequence[_Amount], joints: Sequence[str], given: Unit, rest: Sequence[str], options: _Options
) -> str:
    """The amounts in the other units; "" if no unit is known."""
    wanted = [code for word in rest[:1] for code in word.replace("+", " ").split()]
    targets = [UNITS[code] for code in wanted if code in UNITS and UNITS[code].kind == given.kind]
    if not targets and (default := given.default.replace("ftin", "ft")) in UNITS:
        targets = [UNITS[default]]
    digits = next((int(word) for word in rest if word.lstrip("-").isdigit() and len(word) < 3), None)
    texts = []
    for unit in targets:
        values = [_value(amount.value, given, unit) for amount in amounts]
        numbers = [
            _rounded(value, _precision(amount, value, given, unit, options.figures) if digits is None else digits)
            for amount, value in zip(amounts, values, strict=True)
        ]
        texts.append(_joined(numbers, joints) + options.unit(unit, values[-1], options.second))
    return "; ".join(texts)


def _amounts(words: Sequence[str]) -> tuple[list[_Amount], list[str], list[str]]:
    """Numbers at the start of the arguments, the texts that join them, and the remaining arguments."""
    amounts, joints, at = list[_Amount](), list[str](), 0
    while at < len(words) and (amount := _amount(words[at])):
        amounts.append(amount)
        at += 1
        if at + 1 < len(words) and words[at] in _RANGES and _amount(words[at + 1]):
            joints.append(_RANGES[words[at]])
            at += 1
        else:
            break
    return amounts, joints, list(words[at:])


def _amount(word: str) -> _Amount | None:
    plain = word.replace(",", "").replace("−", "-").replace("⁄", "/")
    if not plain or len(plain) > 30 or not any(character.isdigit() for character in plain):
        return None
    try:
        if "/" in plain:
            whole, _, part = plain.rpartition("+")
            value = float(Fraction(part) + (Fraction(whole) if whole else 0))
            return _Amount(f"{whole} {part}".strip(), value, 2)
        number = Decimal(plain)
    except (InvalidOperation, ValueError, ZeroDivisionError, OverflowError):
        return None
    digits = number.as_tuple().exponent
    if not isinstance(digits, int) or not -30 < digits < 30:
        return None
    zeros = len(plain) - len(plain.rstrip("0")) if digits == 0 and number else 0
    text = plain if "e" in plain.lower() else f"{number:,}"
    return _Amount(text.replace("-", "−"), float(number), -digits if digits else -zeros)


def _value(value: float, given: Unit, unit: Unit) -> float:
    return (value * given.factor + given.offset - unit.offset) / unit.factor


def _precision(amount: _Amount, value: float, given: Unit, unit: Unit, figures: int | None) -> int:
    """Digits after the point of a converted amount; a negative number rounds to tens or hundreds."""
    if not value:
        return max(0, amount.decimals)
    size = math.floor(math.log10(abs(value)))
    if figures:
        return figures - 1 - size
    if given.kind == "temperature":
        return max(0, amount.decimals)
    alike = amount.decimals - math.floor(math.log10(given.factor / unit.factor) + math.log10(5))
    return max(alike, 1 - size)


def _rounded(value: float, digits: int) -> str:
    with localcontext() as context:
        context.prec = 60
        number = Decimal(repr(value)).quantize(Decimal(1).scaleb(-min(max(digits, -20), 20)), ROUND_HALF_UP)
        return f"{Decimal(int(number)) if digits <= 0 else number:,f}".replace("-", "−")


def _joined(texts: Sequence[str], joints: Sequence[str]) -> str:
    return "".join(text + joint for text, joint in zip(texts, [*joints, ""], strict=True))
