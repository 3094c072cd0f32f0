"""Rules for dates and quantities: of several values of one fact, which are kept."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kglm.errors import LiteralError
from kglm.kg.literals.dates import DAY, MONTH, YEAR, Date

LIFE = ("P569", "P570")
"""Dates of which there is one."""
BEGINNINGS = ("P571", "P577", "P1619", "P575", "P1191", "P580", "P2031", "P729", "P1249")
"""Dates of which the earliest counts."""
ENDINGS = ("P576", "P582", "P2032", "P3999", "P730")
"""Dates of which the latest counts."""
SERIES = frozenset(
    "P1082 P1081 P2250 P4841 P1198 P2573 P8476 P8477 P8687 P1661 P3864 P2219 P8843 P8328 P5167 P1125 P2196 P1128 P2139"
    " P2295 P2403 P2137 P3362 P2226 P2769 P1174 P3872 P1538 P4080 P1539 P1540 P6343 P6344 P6498 P6499 P5982 P1831 P2124"
    " P6794 P2661 P2218 P6589 P1603 P1120 P1352 P1342 P3529 P4442 P6801 P1373 P2257 P1971 P1098 P1114 P1436 P1110"
    " P2299 P4010 P2131 P2132 P2134 P2855 P1279 P2927 P2884 P3001 P3000 P2997 P2999 P3270 P3271 P6897 P1083".split()
)
"""Quantities that change with time, or differ by source: several values without a date say nothing."""
SPREAD = 1.25
"""Values of a series at most this far apart, as a ratio, are one value: the middle one."""
PER_PERSON = frozenset("P1081 P2250 P4841 P1198 P3864 P2219".split())
"""Series in which even near values are different things: the trend is what counts."""
_UNIT = "http://www.wikidata.org/entity/"
SQUARE_KM, METRE, CENTIMETRE, KILOGRAM = f"{_UNIT}Q712226", f"{_UNIT}Q11573", f"{_UNIT}Q174728", f"{_UNIT}Q11570"
AREA, HEIGHT, MASS, LENGTH, ELEVATION = "P2046", "P2048", "P2067", "P2043", "P2044"
NEAR = 0.03
"""Share by which two measurements of one thing may differ."""
_IN_BASE = {
    f"{_UNIT}Q712226": 1e6, f"{_UNIT}Q25343": 1.0, f"{_UNIT}Q232291": 2.589988e6, f"{_UNIT}Q35852": 1e4,
    f"{_UNIT}Q81292": 4046.86, f"{_UNIT}Q857027": 0.092903, METRE: 1.0, CENTIMETRE: 0.01, f"{_UNIT}Q828224": 1000.0,
    f"{_UNIT}Q3710": 0.3048, f"{_UNIT}Q218593": 0.0254, f"{_UNIT}Q253276": 1609.344, KILOGRAM: 1.0,
    f"{_UNIT}Q100995": 0.453592, f"{_UNIT}Q191118": 1000.0,
}  # fmt: skip
"""Units of area, length and mass in square metres, metres and kilograms."""


def parse_dates(ids: Sequence[str]) -> list[Date]:
    """Distinct dates; those that cannot be read, or in year 0, are left out."""
    found: dict[Date, None] = {}
    for id in ids:
        with suppress(LiteralError):
            if "+0000" not in id:
                found[Date.parse_id(id)] = None
    return list(found)


def choose_dates(relation: str, ids: Sequence[str]) -> tuple[list[str], str]:
    """The dates to keep of one head and relation, and the reason if others are left out."""
    dates = refined(parse_dates(ids))
    if len(dates) < 2:
        return [date.id for date in dates], "the same date again"
    if relation in LIFE:
        return _one_date(dates)
    exact = [date for date in dates if date.precision >= YEAR] or dates
    key = lambda date: (date.year, date.month or 13, date.day or 32)  # noqa: E731
    if relation in BEGINNINGS:
        return [min(exact, key=key).id], "a later date of a beginning"
    if relation in ENDINGS:
        return [max(exact, key=key).id], "an earlier date of an end"
    return [date.id for date in dates], "the same date again"


def refined(dates: Sequence[Date]) -> list[Date]:
    """Dates without those that a more precise one repeats: no 1990 beside 3 May 1990."""
    return [date for date in dates if not any(_refines(other, date) for other in dates)]


def _refines(fine: Date, coarse: Date) -> bool:
    if fine.precision <= coarse.precision or coarse.precision < YEAR:
        return fine.precision > coarse.precision and coarse.precision < YEAR and _in_period(fine, coarse)
    return fine.year == coarse.year and (coarse.precision < MONTH or fine.month == coarse.month)


def _in_period(fine: Date, coarse: Date) -> bool:
    """True if a date is in a decade, century or millennium, which is written by any of its years."""
    size = {8: 10, 7: 100, 6: 1000}.get(coarse.precision, 0)
    return bool(size) and abs(fine.year - coarse.year) < size


def _one_date(dates: list[Date]) -> tuple[list[str], str]:
    """Of several births or deaths: the only exact one, what all agree on, or none."""
    days = [date for date in dates if date.precision == DAY]
    years = {date.year for date in dates}
    if len(days) == 1 and max(years) - min(years) <= 2:
        return [days[0].id], "a coarser date that contradicts an exact one"
    if len(years) == 1:
        months = {date.month for date in dates}
        precision = MONTH if len(months) == 1 and months != {0} else YEAR
        month = dates[0].month if precision == MONTH else 0
        common = Date(precision, dates[0].year, month, 0)
        return [common.id], "dates that contradict each other: what they agree on is kept"
    return [], "dates that contradict each other"


def choose_quantities(relation: str, ids: Sequence[str]) -> tuple[list[str], str]:
    """The quantities to keep of one head and relation, and the reason if others are left out."""
    values = [(float(amount), unit, id) for id in ids for _, amount, unit in [id.split("::", 2)]]
    if relation in SERIES:
        return _of_series(relation, [value for value in values if value[0] > 0])
    with_unit = [value for value in values if value[1] != "1"]
    if with_unit and len(with_unit) < len(values):
        return _measured(with_unit), "a number without its unit"
    if not with_unit:
        guesses = (_guess_unit(relation, amount, id) for amount, _, id in values)
        return [guess for guess in guesses if guess], "a number without its unit"
    return _measured(values), "the same measurement again"


def _of_series(relation: str, values: list[tuple[float, str, str]]) -> tuple[list[str], str]:
    values.sort()
    if len(values) < 2:
        return [id for _, _, id in values], "a number that cannot be"
    near = values[-1][0] <= SPREAD * values[0][0]
    if relation in PER_PERSON or not near or len({unit for _, unit, _ in values}) > 1:
        return [], "a series of numbers without dates"
    return [values[len(values) // 2][2]], "a series of numbers without dates, all near the one that is kept"


def _measured(values: list[tuple[float, str, str]]) -> list[str]:
    """Measurements without those that repeat another within `NEAR`, in any unit."""
    kept: list[tuple[float, str, str]] = []
    for amount, unit, id in values:
        size = amount * _IN_BASE.get(unit, 1.0)
        if not any(abs(size - other * _IN_BASE.get(same, 1.0)) <= NEAR * abs(size) for other, same, _ in kept):
            kept.append((amount, unit, id))
    return [id for _, _, id in kept]


def _guess_unit(relation: str, amount: float, id: str) -> str | None:
    """A measurement with the unit it must have: the source lost it. None if it could be another."""
    unit = None
    if relation == HEIGHT:
        unit = METRE if 1.0 <= amount <= 2.6 else CENTIMETRE if 100 <= amount <= 260 else None
    elif relation == MASS:
        unit = KILOGRAM if 30 <= amount <= 200 else None
    elif relation == AREA:
        unit = SQUARE_KM if amount < 2e7 else None
    else:
        return id
    return None if unit is None else f"V::{amount:.4f}::{unit}"
