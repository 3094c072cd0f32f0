"""Dates: Wikidata's times, the texts for them, and the dates that a text can mean.

An id is `T::<precision>::<time>`. Precision is Wikidata's: 11 day, 10 month, 9 year, 8 decade, 7 century, 6 millennium.
Years are those of Wikidata's JSON: there is no year 0, and -44 is 44 BC; a year 0 in the data is taken as 1 BC.

Rendering and parsing share one table of patterns per locale. Rendering fills in a pattern. Parsing reduces a text to
its *shape* (N for a number, O for an ordinal, M for a month name, anything else unchanged, no blanks) and looks it up
among the shapes of the filled-in patterns. So every rendering can be parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from babel import Locale, UnknownLocaleError, localedata

from kglm.errors import ConfigError, LiteralError

MILLENNIUM, CENTURY, DECADE, YEAR, MONTH, DAY = range(6, 12)

_ID = re.compile(r"T::([0-9]{1,2})::(.*)", re.DOTALL)
_TIME = re.compile(r"([+-]?)([0-9]{1,16})-([0-9]{2})-([0-9]{2})(?:T[0-9]{2}:[0-9]{2}:[0-9]{2}Z?)?")
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_BARE_DIGITS = 5  # a longer number is a year only with an era
_LONGEST = 64  # characters of the longest text that can be a date


class DateKey(NamedTuple):
    """The fields of a date that a text states: "July 4" has no year."""

    precision: int
    year: int | None
    month: int | None = None
    day: int | None = None


@dataclass(frozen=True, slots=True)
class Date:
    """A date with Wikidata's precision; fields beyond the precision are 0, so that equal dates compare equal.

    A coarse date has one canonical year: the year in the name of a decade (1950 for the 1950s, -40 for the 40s BC, ±1
    for the years before 10), the last year of a century (1900 for the 19th, -100 for the 1st BC) or millennium (2000
    for the 2nd). Without a day or month, precision 11 or 10 is lowered.
    """

    precision: int
    year: int
    month: int = 0
    day: int = 0

    def __post_init__(self) -> None:
        precision, year, month, day = min(self.precision, DAY), self.year or -1, self.month, self.day
        if precision < MILLENNIUM:
            raise LiteralError(f"precision {precision} is coarser than a millennium", remedy="use 6 to 11")
        _check(year, month, day)
        precision = min(precision, DAY if month and day else MONTH if month else YEAR)
        year = year if precision >= YEAR else _coarse_year(precision, year)
        month, day = month if precision >= MONTH else 0, day if precision == DAY else 0
        for field, value in (("precision", precision), ("year", year), ("month", month), ("day", day)):
            object.__setattr__(self, field, value)

    @classmethod
    def from_time(cls, time: str, precision: int) -> Date:
        """Parse a time of Wikidata's JSON, "+1957-07-04T00:00:00Z"; the time of day is dropped."""
        match = _TIME.fullmatch(time)
        if match is None:
            raise LiteralError(f"{time!r} is not a time", remedy='write it like "+1957-07-04T00:00:00Z"')
        sign, year, month, day = match.groups()
        return cls(precision, -int(year) if sign == "-" else int(year), int(month), int(day))

    @classmethod
    def parse_id(cls, id: str) -> Date:
        """Parse an id `T::<precision>::<time>`, canonical or not."""
        match = _ID.fullmatch(id)
        if match is None:
            raise LiteralError(f"{id!r} is not a date", remedy='write it like "T::11::+1957-07-04T00:00:00Z"')
        try:
            return cls.from_time(match[2], int(match[1]))
        except LiteralError as error:
            raise LiteralError(error.what, place=id, remedy=error.remedy) from None

    @property
    def id(self) -> str:
        """The canonical id; month and day are 00 beyond the precision."""
        sign = "-" if self.year < 0 else "+"
        return f"T::{self.precision}::{sign}{abs(self.year):04d}-{self.month:02d}-{self.day:02d}T00:00:00Z"


def date_keys(date: Date) -> frozenset[DateKey]:
    """All keys under which an index lists the date."""
    precision, year, month, day = date.precision, date.year, date.month, date.day
    if precision < YEAR:
        return frozenset((DateKey(precision, year),))
    keys = [DateKey(YEAR, year)]
    if precision >= MONTH:
        keys.append(DateKey(MONTH, year, month))
    if precision == DAY:
        keys += (DateKey(DAY, year, month, day), DateKey(DAY, None, month, day))
    return frozenset(keys)


def render_date(date: Date, locale: str = "en") -> list[str]:
    """All texts for the date, the most useful first, without duplicates.

    Locales other than English use their own names of months and eras; decades, centuries and millennia, for which there
    is no locale data, are in English.
    """
    if date.precision < YEAR:
        return list(dict.fromkeys(_render_coarse(date)))
    tables = _tables(locale)
    years = list(_render_year(date.year, tables.eras[date.year > 0]))
    ways = [tables.fill(pattern, date, years[0]) for pattern in tables.lead[date.precision]]
    ways += [tables.fill(pattern, date, year) for year in years for pattern in tables.rest[date.precision]]
    if 100 <= date.year < 10**_BARE_DIGITS:  # 4-7-79 would be another year
        ways += [tables.fill(pattern, date, years[0]) for pattern in _NUMERIC[date.precision]]
    if not tables.english:  # some locales join words so that they cannot be parsed
        keys = date_keys(date)
        ways = [way for way in ways if not keys.isdisjoint(parse_date(way, locale))]
    return list(dict.fromkeys(ways))


def parse_date(text: str, locale: str = "en") -> list[DateKey]:
    """Dates that the whole text (or tokens joined with blanks) can mean, the most specific first."""
    return _readings(text, locale)[0]


@lru_cache(maxsize=16)
def date_words(locale: str = "en") -> frozenset[str]:
    """Case-folded words that a date can contain, besides numbers and signs."""
    return frozenset([*_tables(locale).words, *_ORDINAL_WORDS, "the", "of", "century", "millennium", "bc", "bce"])


def read_date(text: str, locale: str = "en") -> Date | None:
    """The date in user input; None if it is not a date, LiteralError if impossible or ambiguous (4/7/1957)."""
    keys, errors = _readings(text, locale)
    if not keys and errors:
        raise LiteralError(errors[0].what, place=repr(text), remedy=errors[0].remedy)
    precision, year, month, day = keys[0] if keys else DateKey(0, None)
    if year is None:
        return None
    if any(key.precision == precision for key in keys[1:]):
        raise LiteralError("can mean two dates", place=repr(text), remedy='write it like "1957-07-04"')
    return Date(precision, year, month or 0, day or 0)


@lru_cache(maxsize=64)
def babel_locale(name: str) -> Locale:
    """Babel's data for a locale such as "en", "en-GB" or "pt_BR"."""
    try:
        return Locale.parse(name.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        raise ConfigError(f"locale {name!r} is unknown", remedy='use one like "en" or "pt_BR"') from None


# The calendar


def _check(year: int, month: int, day: int) -> None:
    """Refuse a day that is in no calendar. Julian leap years count up to 1752, the year of the English reform."""
    if not 0 <= month <= 12:
        raise LiteralError(f"there is no month {month}", remedy="months are 1 to 12")
    counted = year if year > 0 else year + 1
    leap = counted % 4 == 0 and (year <= 1752 or counted % 100 != 0 or counted % 400 == 0)
    days = 28 if month == 2 and not leap else _MONTH_DAYS[month - 1]
    if not 0 <= day <= days:
        raise LiteralError(f"there is no day {day} in month {month}", remedy=f"its last day is {days}")


def _coarse_year(precision: int, year: int) -> int:
    sign, size, span = (1 if year > 0 else -1), abs(year), 100 if precision == CENTURY else 1000
    return sign * (size // 10 * 10 or 1) if precision == DECADE else sign * -(-size // span) * span


# Decades, centuries, millennia

_ORDINALS = """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth twentyfirst"""
_ORDINAL_WORDS = _ORDINALS.split()
_COARSE = re.compile(
    r"(?:([0-9]+)(?:'?s|(?:st|nd|rd|th)-?(century|millennium))"
    rf"|({'|'.join(_ORDINAL_WORDS)})-?(century|millennium))(?:(bce?)|ad|ce)?"
)
_SPANS = {"century": (CENTURY, 100), "millennium": (MILLENNIUM, 1000)}


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _render_coarse(date: Date) -> Iterator[str]:
    size = abs(date.year)
    if date.precision == DECADE:
        names, others = [f"{size // 10 * 10}s"], [f"{size // 10 * 10}'s"]
    else:
        unit = "century" if date.precision == CENTURY else "millennium"
        number = size // _SPANS[unit][1]
        counts = [_ordinal(number), *_ORDINAL_WORDS[number - 1 : number]]
        counts = [count.replace("twentyfirst", "twenty-first") for count in counts]
        names = [f"{count} {unit}" for count in counts]
        others = [f"{count}-{unit}" for count in counts]
        if date.precision == CENTURY and number > 1:
            others += [f"{number - 1}00s", f"the {number - 1}00s", f"{number - 1}00's"]
    later = ["", " AD", " CE"] if size <= 1000 else [""]
    for era in later if date.year > 0 else [" BC", " BCE"]:
        for name in names:
            yield from (f"{name}{era}", f"the {name}{era}")
    if date.year > 0:
        yield from others


def _read_coarse(text: str) -> list[DateKey]:
    """Decades, centuries and millennia; "1900s" is a decade or a century."""
    joined = text.removeprefix("the ").replace(" ", "").replace(".", "").replace("’", "'").replace("twenty-", "twenty")
    match = _COARSE.fullmatch(joined)
    if match is None:
        return []
    digits, counted, word, unit, before = match.groups()
    number, sign = int(digits) if digits else _ORDINAL_WORDS.index(word) + 1, -1 if before else 1
    if counted or unit:
        precision, span = _SPANS[counted or unit]
        return [DateKey(precision, sign * number * span)] if number else []
    keys = [] if number % 10 else [DateKey(DECADE, sign * (number or 1))]
    return [*keys, DateKey(CENTURY, number + 100)] if number and number % 100 == 0 and sign > 0 else keys


# Years, months, days. Patterns are separated by |; `alone` is the name of a month without a day.

_FULL = "{month} {d}, {y}|{d} {month} {y}|{mon} {d}, {y}|{d} {mon} {y}"
_FULL_ENGLISH = "|{month} {o}, {y}|{o} {month} {y}|{o} of {month} {y}|{d} {month}, {y}|{o} {month}, {y}"
_MONTH_DAY = "{month} {d}|{d} {month}|{mon} {d}|{d} {mon}"
_MONTH_DAY_ENGLISH = "|{month} {o}|{o} {month}|{o} of {month}"
_MONTH_YEAR = "{alone} {y}|{mon} {y}|{month} {y}|{alone}, {y}"
_READ_ONLY = "{d}/{m}/{y}|{m}/{d}/{y}|{y}/{m}/{d}|{d}.{m}.{y}|{y} {month} {d}|{month} of {y}"
_READ_ONLY += "|{month} {d} {y}|{month} {o} {y}|{o} of {month}, {y}"
_READ_ONLY += "|the {o} of {month}|the {o} of {month}, {y}|the {o} of {month} {y}"
_NUMERIC = {DAY: ["{y:0>4}-{m:02d}-{d:02d}", "{d:02d}-{m:02d}-{y}", "{d}-{m}-{y}"]}
_NUMERIC |= {MONTH: ["{y:0>4}-{m:02d}", "{m:02d}-{y}"], YEAR: []}
_HINT = re.compile(r"[0-9]|centur|millenni", re.IGNORECASE)
_BRACKETED = re.compile(r"@([^\w\s])@")  # WikiText writes "1957 @-@ 58"
_CLDR_FIELD = re.compile(r"'([^']*)'|(y+|M+|L+|d+)|([A-Za-z]+)|(.)", re.DOTALL)
_CLDR = {"y": "y", "yyyy": "y", "M": "m", "L": "m", "MM": "m:02d", "LL": "m:02d", "d": "d", "dd": "d:02d"}
_CLDR |= {"MMM": "mon", "LLL": "mon", "MMMM": "month", "LLLL": "alone"}


class _Token(NamedTuple):
    kind: str  # N number, O ordinal, Y year with its era, M month, E era, or the word or character itself
    value: int = 0
    digits: int = 0


@dataclass(frozen=True)
class _Tables:
    """Data of one locale: names, patterns, and the shapes of the filled-in patterns."""

    english: bool
    months: dict[str, list[str]]
    eras: tuple[tuple[str, ...], tuple[str, ...]]
    lead: dict[int, list[str]]
    rest: dict[int, list[str]]
    words: dict[str, tuple[str, int]]
    token: re.Pattern[str]
    shapes: dict[str, tuple[str, ...]]

    def fill(self, pattern: str, date: Date, year: str) -> str:
        names = {kind: names[date.month - 1] for kind, names in self.months.items()}
        return pattern.format(d=date.day, o=_ordinal(date.day), m=date.month, y=year, **names)

    def shape(self, text: str) -> tuple[str, list[_Token]]:
        """Shape of a case-folded text, and its tokens that have a value; a year and its era are one token."""
        tokens: list[_Token] = []
        for word, number, suffix, other in self.token.findall(text):
            if number:
                tokens.append(_Token("O" if suffix else "N", int(number.replace(",", "")), len(number)))
            elif word or other:
                tokens.append(_Token(*self.words[word]) if word else _Token(other))
        shape = "".join([token.kind for token in tokens])
        if "E" in shape:
            at = next(place for place, token in enumerate(tokens) if token.kind == "E")
            near = [i for i in (at - 1, at + 1) if 0 <= i < len(tokens) and tokens[i].kind == "N"]
            if near:
                tokens[near[0]] = _Token("Y", tokens[at].value * tokens[near[0]].value)
                shape = shape.replace("E", "", 1)
        return shape, [token for token in tokens if token.kind in "NOYM"]


@lru_cache(maxsize=16)
def _tables(name: str) -> _Tables:
    locale = babel_locale(name)
    english = locale.language == "en"
    raw = localedata.load(str(locale))
    # A copy: Babel resolves aliases in place, in data that locales share.
    parts = ("months", "eras", "date_formats", "datetime_skeletons")
    data = localedata.LocaleDataDict({part: deepcopy(raw[part]) for part in parts})
    uses = (("month", "format", "wide"), ("alone", "stand-alone", "wide"), ("mon", "format", "abbreviated"))
    months = {kind: [data["months"][use][width][m] for m in range(1, 13)] for kind, use, width in uses}
    full, month_day, month_year = _FULL.split("|"), _MONTH_DAY.split("|"), _MONTH_YEAR.split("|")
    eras: tuple[tuple[str, ...], tuple[str, ...]] = (("BC", "BCE"), ("AD", "CE"))
    if english:
        full, month_day = (_FULL + _FULL_ENGLISH).split("|"), (_MONTH_DAY + _MONTH_DAY_ENGLISH).split("|")
    else:
        widths = [data["eras"][width] for width in ("abbreviated", "wide")]
        eras = (tuple(width[0] for width in widths), tuple(width[1] for width in widths))
        full = _cldr(data["date_formats"], "long", "medium") + full
        month_day = _cldr(data["datetime_skeletons"], "MMMMd", "MMMd") + month_day
        month_year = _cldr(data["datetime_skeletons"], "yMMMM", "yMMM") + month_year
    lead = {DAY: [*full[:2], "{y}", month_year[0], *month_day], MONTH: [month_year[0], "{y}"], YEAR: []}
    rest = {DAY: ["{y}", *full, *month_year], MONTH: ["{y}", *month_year], YEAR: ["{y}"]}
    words = {_word(name): ("M", month + 1) for names in months.values() for month, name in enumerate(names)}
    words |= {_word(name): ("E", 2 * side - 1) for side in (0, 1) for name in eras[side]}
    if english:
        words |= {"sept": ("M", 9)} | dict.fromkeys(("b.c", "b.c.e", "b. c", "b. c. e"), ("E", -1))
        words |= dict.fromkeys(("a.d", "c.e", "a. d", "c. e"), ("E", 1))
    names = "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))
    number = r"[0-9]{1,3}(?:,[0-9]{3})+(?=\s*b\.?\s?c)|[0-9]+"
    token = re.compile(rf"\s+|({names})\.?(?!\w)|({number})((?:st|nd|rd|th)(?!\w))?|([^\W\d_]+|.)", re.DOTALL)
    tables = _Tables(english, months, eras, lead, rest, words, token, {})
    fields = {28: "d", 3456: "y"}  # any other number of the sample is its month
    for pattern in (*lead[DAY], *rest[DAY], *_NUMERIC[DAY], *_NUMERIC[MONTH], *_READ_ONLY.split("|")):
        for month in range(1, 13):
            sample = tables.fill(pattern, Date(DAY, 3456, month, 28), "3456")
            shape, tokens = tables.shape(sample.casefold())
            order = "".join(fields.get(token.value, "m") for token in tokens)
            orders = tables.shapes.get(shape, ())
            tables.shapes[shape] = orders if order in orders else (*orders, order)
    return tables


def _word(name: str) -> str:
    return " ".join(name.casefold().split()).rstrip(".")


def _cldr(formats: Mapping[str, object], *names: str) -> list[str]:
    """Convert CLDR date formats to patterns; a format with other fields than day, month and year is left out."""
    patterns = []
    for format in filter(None, map(formats.get, names)):
        parts = _CLDR_FIELD.findall(str(getattr(format, "pattern", format)))
        if not any(other or (field and field not in _CLDR) for _, field, other, _ in parts):
            patterns.append("".join(f"{{{_CLDR[f]}}}" if f else quoted + char for quoted, f, _, char in parts))
    return patterns


def _render_year(year: int, eras: tuple[str, ...]) -> Iterator[str]:
    size, bare = abs(year), 0 < year < 10**_BARE_DIGITS
    if bare:
        yield str(size)
    if not bare or size < 1000:
        yield from (f"AD {size}" for era in eras if era == "AD")
        yield from (f"{size} {era}" for era in eras)
    if size >= 10_000 and "BC" in eras:
        yield from (f"{size:,} {era}" for era in eras)


def _readings(text: str, locale: str) -> tuple[list[DateKey], list[LiteralError]]:
    """Dates that a text can mean, the most specific first, and the errors of its impossible readings."""
    if len(text) > _LONGEST or not _HINT.search(text):
        return [], []
    plain = _BRACKETED.sub(r"\1", " ".join(text.casefold().split()))
    tables = _tables(locale)
    shape, tokens = tables.shape(plain)
    if shape not in tables.shapes:
        return _read_coarse(plain), []
    found, errors = set(), []
    for order in tables.shapes[shape]:
        try:
            if key := _reading(order, tokens, "M" in shape):
                found.add(key)
        except LiteralError as error:
            errors.append(error)
    return sorted(found, key=lambda key: (-key.precision, key.year is None, key[2:])), errors


def _reading(order: str, tokens: list[_Token], named: bool) -> DateKey | None:
    year, month, day = None, 0, 0
    for field, (kind, value, digits) in zip(order, tokens, strict=True):
        if field == "y":
            short = not named and len(order) > 1 and digits < 3  # 4-7-79 could be any of three years
            padded = digits > len(str(value)) and digits != 4  # 0079 is a year, 007 is not
            if kind == "O" or not value or (kind == "N" and (short or padded or digits > _BARE_DIGITS)):
                return None
            year = value
            continue
        if kind == "Y" or digits > 2:
            return None
        if value == 0:
            raise LiteralError("there is no month or day 0", remedy="leave out an unknown month or day")
        month, day = (value, day) if field == "m" else (month, value)
    if day and not month:
        return None
    _check(year or 4, month, day)
    precision = DAY if day else MONTH if month else YEAR
    return DateKey(precision, year, month or None, day or None)
