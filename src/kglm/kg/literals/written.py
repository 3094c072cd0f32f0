"""Numbers and dates as people write them in tables, with all their meanings.

"1,234" is 1234 where a comma separates thousands, and 1.234 where it is the decimal mark; 03/04/2021 is in March or in
April. A single value does not tell which: the other values of its column do (`columns`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Literal, NamedTuple

from kglm.errors import LiteralError
from kglm.kg.literals.dates import Date, date_words, read_date
from kglm.kg.literals.quantities import EXACT, MOST_DIGITS
from kglm.kg.literals.units import currency_signs

Mark = Literal["point", "comma"]
"""The decimal mark."""
Order = Literal["", "dmy", "mdy"]
"""Order of day, month and year; empty if the writing leaves no doubt."""
DECIMALS = 4
"""Decimals that an id keeps."""

_GAP = "[ \u00a0\u202f'’]"
_POINT = re.compile(
    rf"[0-9]{{1,3}}(?:,[0-9]{{3}})+(?:\.[0-9]+)?|[0-9]{{1,2}}(?:,[0-9]{{2}})+,[0-9]{{3}}(?:\.[0-9]+)?"
    rf"|[0-9]{{1,3}}(?:{_GAP}[0-9]{{3}})+(?:\.[0-9]+)?|[0-9]*\.[0-9]+|[0-9]+"
)
_SWAPPED = str.maketrans(".,", ",.")
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALES |= {"mio": 10**6, "mio.": 10**6, "mrd": 10**9, "mrd.": 10**9, "bn": 10**9}
_MONEY_SCALES = {"k": 10**3, "m": 10**6, "mn": 10**6, "b": 10**9, "tn": 10**12}
_MONTH_YEAR = re.compile(r"(?:0?[1-9]|1[0-2])[-/.][0-9]{4}")
_TIME_OF_DAY = r"[T ][0-9]{1,2}:[0-9]{2}(?::[0-9.]+)?(?:Z|[+-][0-9:]+)?"
_ISO = re.compile(rf"([0-9]{{4}})-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:{_TIME_OF_DAY})?)?")
_YEAR_FIRST = re.compile(r"([0-9]{4})([/.])([0-9]{1,2})\2([0-9]{1,2})")
_YEAR_LAST = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4}|[0-9]{2})")
_YEAR = re.compile(r"[-−]?[0-9]{1,5}")
_WORDS = re.compile(r"[^\W\d_]+")


class Number(NamedTuple):
    """A number, and what stands beside it."""

    amounts: Mapping[Mark, Decimal]
    """The amount for each decimal mark with which it can be read."""
    unit: str
    """The text after it: a unit, or a currency."""
    sign: str
    """The currency before it."""

    @property
    def is_ambiguous(self) -> bool:
        """True if the decimal mark decides the amount."""
        return len(set(self.amounts.values())) > 1


def read_number(text: str) -> Number | None:
    """The number that the whole text is; None if it is none. "007" is a code, not a number."""
    match = _pattern().fullmatch(text)
    if match is None:
        return None
    sign, rest = match["before"] or "", match["rest"].strip()
    word, _, others = rest.partition(" ")
    scale = _SCALES.get(word.casefold())
    if scale is None and sign:
        scale = _MONEY_SCALES.get(word.casefold())
    if scale is not None:
        rest = others.strip()
    if rest[:1].isdigit() or (sign and rest) or len(match["digits"]) > MOST_DIGITS:
        return None
    amounts: dict[Mark, Decimal] = {}
    digits = match["digits"].strip()
    for mark, plain in (("point", digits), ("comma", digits.translate(_SWAPPED))):
        if _POINT.fullmatch(plain) and not re.match("0[0-9]", plain):
            amount = EXACT.multiply(Decimal(re.sub(rf",|{_GAP}", "", plain)), Decimal(scale or 1))
            amounts[mark] = amount.copy_negate() if match["minus"] else amount  # type: ignore[index]
    return Number(amounts, rest, sign) if amounts else None


@cache
def _pattern() -> re.Pattern[str]:
    signs = "|".join(map(re.escape, currency_signs()))
    minus = r"(?P<minus>[-−–]) ?"
    return re.compile(
        rf"(?:{minus}|\+)?(?:(?P<before>{signs}) ?)?(?P<digits>[0-9.,](?:[0-9.,]|{_GAP}(?=[0-9]))*)(?P<rest>\D.*|)"
    )


def read_dates(text: str) -> dict[Order, Date]:
    """The dates that the whole text can mean, by the order of day and month; empty if it is no date.

    A bare number is none: `read_year`. An impossible date, or a year of two digits, is a LiteralError.
    """
    if match := _ISO.fullmatch(text):
        year, month, day = int(match[1]), int(match[2]), int(match[3] or 0)
        if not match[3] and month > 12:
            return {}  # 1914-18
        return {"": Date(11, year, month, day)}
    if match := _YEAR_FIRST.fullmatch(text):
        return {"": Date(11, int(match[1]), int(match[3]), int(match[4]))}
    if match := _YEAR_LAST.fullmatch(text):
        return _ordered(int(match[1]), int(match[3]), match[4], match[2])
    letters = {word.casefold() for word in _WORDS.findall(text)}
    if not _MONTH_YEAR.fullmatch(text) and (not letters or not any(map(str.isdigit, text))):
        return {}
    if len(text) > 60 or not letters <= date_words() | {"st", "nd", "rd", "th", "s", "ad", "ce"}:
        return {}
    date = read_date(text)
    return {} if date is None else {"": date}


def _ordered(first: int, second: int, year: str, separator: str) -> dict[Order, Date]:
    if len(year) == 2:
        raise LiteralError("a year of two digits", remedy='write the year in full, like "2021-04-03"')
    found: dict[Order, Date] = {}
    problems: list[str] = []
    for order, day, month in (("dmy", first, second), ("mdy", second, first)):
        if month == 0 or day == 0:
            problems.append(f"there is no {'month' if month == 0 else 'day'} 0")
            continue
        try:
            found[order] = Date(11, int(year), month, day)  # type: ignore[index]
        except LiteralError as error:
            problems.append(error.what)
        if separator == ".":
            break
    if not found:
        raise LiteralError(" and ".join(dict.fromkeys(problems)), remedy='write it like "2021-04-03"')
    values = list(found.values())
    if separator == "." or (len(values) == 2 and values[0] == values[1]):
        return {"": values[0]}
    return found


def read_year(text: str) -> Date | None:
    """The year that a bare number is: 1871, 312, -44."""
    if _YEAR.fullmatch(text) is None or not (year := int(text.replace("−", "-"))):
        return None
    return Date(9, year)
