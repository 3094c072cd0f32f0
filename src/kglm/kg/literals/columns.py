"""What the values of a column, or of a relation, are: decided once for all of them.

`infer` decides from the name of the column and all its values. A value that could mean two things, or that does not fit
the others, is reported instead of guessed: `312` is a year only where the name says so, 03/04/2021 needs another date
of the column that is unambiguous. `ColumnType.read` then turns each value into the id of a literal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kglm.errors import LiteralError
from kglm.kg.literals.column_types import NUMBERS, ColumnType
from kglm.kg.literals.dates import Date
from kglm.kg.literals.hints import (
    header_unit,
    is_about_dates,
    is_about_texts,
    looks_like_text,
)
from kglm.kg.literals.literal import is_literal
from kglm.kg.literals.units import PERCENT, currency_of, unit_of
from kglm.kg.literals.written import Mark, Number, Order, read_dates, read_number, read_year

FEW_YEARS = range(1000, 2101)
"""Bare numbers that are years beside written dates of the same column."""


class Problem(NamedTuple):
    """A value that cannot be used as it is."""

    place: int
    """Index of the value."""
    what: str
    remedy: str


@dataclass(slots=True)
class Inference:
    """The type of a column, why, and the values that do not fit."""

    type: ColumnType
    reason: str
    problems: list[Problem] = field(default_factory=list)


class _Reading(NamedTuple):
    """All that one value could be."""

    text: str
    number: Number | None
    dates: dict[Order, Date]
    wrong_date: LiteralError | None

    @property
    def sort(self) -> str:
        """ "date", "number" or "other"."""
        if self.dates or self.wrong_date:
            return "date"
        return "number" if self.number else "other"


def _read(text: str) -> _Reading:
    plain = " ".join(text.split())
    try:
        dates, wrong = read_dates(plain), None
    except LiteralError as error:
        dates, wrong = {}, error
    return _Reading(text, None if dates or wrong else read_number(plain), dates, wrong)


def infer(
    name: str,
    values: Sequence[str],
    *,
    is_entity: Callable[[str], bool] = lambda _: False,
    declared: ColumnType | None = None,
    mark: Mark | None = None,
) -> Inference:
    """Decide the type of a column. `is_entity` knows the names of the entities that have facts or names of their own.

    `declared` is what the user says it is, `mark` the decimal mark where that leaves it open.
    """
    if declared is not None:
        type = replace(declared, mark=mark) if declared.kind in NUMBERS and declared.mark is None else declared
        inference = Inference(type, "as given")
    else:
        inference = _infer(name, values, is_entity, mark)
    if inference.type.kind in (*NUMBERS, "date", "year"):
        _settle(name, inference, values)
    return inference


def _infer(name: str, values: Sequence[str], is_entity: Callable[[str], bool], mark: Mark | None) -> Inference:
    if is_about_texts(name):
        return Inference(ColumnType("text"), "its name")
    readings = [_read(value) for value in values]
    if _are_codes(values):
        return Inference(ColumnType("text"), "its values are codes")
    unit_in_name = header_unit(name)[1]
    common = _common_word(readings)
    readings = [reading if _is_measure(reading, common) else reading._replace(number=None) for reading in readings]
    about_dates = is_about_dates(name)
    written = any(reading.sort == "date" for reading in readings)

    def sort(reading: _Reading) -> str:
        year = read_year(" ".join(reading.text.split()))
        if year and (about_dates or (written and year.year in FEW_YEARS)):
            return "date"
        return reading.sort

    sorts = Counter(map(sort, readings))
    [(main, _)] = sorts.most_common(1)
    if main == "other":
        inference = _names_or_texts(values, is_entity)
        if inference.type.kind == "text":
            return inference
    elif main == "date":
        kind = "date" if written else "year"
        inference = Inference(ColumnType(kind), "its values" if written else "its name")  # type: ignore[arg-type]
    else:
        inference = Inference(_number_type(readings, unit_in_name, common, mark), "its values")
    what = {"other": "name", "date": "date", "number": "number"}
    for place, reading in enumerate(readings):
        if sort(reading) != main and not (main == "other" and is_entity(reading.text)):
            inference.problems.append(
                Problem(
                    place,
                    f"{_short(reading.text)} is a {what[sort(reading)]}, but {sorts[main]} of {len(values)} values of"
                    f" {name!r} are {what[main]}s",
                    f'correct it, or say what they are, as in --type "{name}=text"',
                )
            )
    return inference


def _are_codes(values: Sequence[str]) -> bool:
    """True if all are single words of digits, and one begins with a zero that a number would lose: 007, 01069."""
    plain = [value.strip() for value in values]
    return all(re.fullmatch(r"[0-9]+", value) for value in plain) and any(re.match("0[0-9]", value) for value in plain)


def _common_word(readings: Sequence[_Reading]) -> str:
    """A word after all numbers that is no known unit: "visitors"."""
    units = {reading.number.unit for reading in readings if reading.number}
    word = next(iter(units)) if len(units) == 1 and len(readings) > 1 else ""
    return word if re.fullmatch(r"[^\W\d_]+", word) and unit_of(word) is None else ""


def _is_measure(reading: _Reading, common: str) -> bool:
    """True if the number stands alone or with a unit: "12 Main Street" is no number."""
    if reading.number is None:
        return False
    unit = reading.number.unit
    return not unit or unit == common or unit_of(unit) is not None or currency_of(unit) is not None


def _number_type(readings: Sequence[_Reading], unit_in_name: str, common: str, mark: Mark | None) -> ColumnType:
    """Money if any value has a currency, percent if all units are %, else a quantity."""
    numbers = [reading.number for reading in readings if reading.number]
    written = [number.sign or number.unit for number in numbers]
    currencies = {currency_of(text) for text in (*filter(None, written), *([unit_in_name] if unit_in_name else []))}
    if currencies - {None}:
        money = currency_of(unit_in_name)
        return ColumnType("money", money.names[1] if money else "", mark)
    units = {unit_of(text) for text in filter(None, written)}
    in_name = unit_of(unit_in_name) if unit_in_name else None
    percent = unit_of(PERCENT)
    if units | {in_name} - {None} == {percent} or (units == {percent} and in_name is None):
        return ColumnType("percent", "", mark)
    detail = in_name.names[0] if in_name else common
    return ColumnType("quantity", detail, mark)


def _names_or_texts(values: Sequence[str], is_entity: Callable[[str], bool]) -> Inference:
    texts = [place for place, value in enumerate(values) if looks_like_text(value) and not is_entity(value)]
    if len(texts) * 2 >= len(values):
        return Inference(ColumnType("text"), "its values")
    inference = Inference(ColumnType("entity"), "its values")
    inference.problems += [
        Problem(
            place,
            f"{_short(values[place])} looks like a text, but most values are names",
            "say what they are with --type, as text or entity",
        )
        for place in texts
    ]
    return inference


def _settle(name: str, inference: Inference, values: Sequence[str]) -> None:
    """Decide the decimal mark, the order of dates and the unit of bare numbers from all values; report what is open."""
    known = {problem.place for problem in inference.problems}
    places = [place for place in range(len(values)) if place not in known and not is_literal(values[place])]
    readings = {place: _read(values[place]) for place in places}
    type = inference.type
    if type.kind in NUMBERS:
        for place, value in ((place, " ".join(values[place].split())) for place in places):
            readings[place] = readings[place]._replace(number=read_number(value), dates={}, wrong_date=None)
        type = _settle_mark(name, inference, readings, type)
        type = _settle_unit(name, inference, readings, type)
    elif type.kind == "date":
        type = _settle_order(name, inference, readings, type)
    inference.type = type
    known = {problem.place for problem in inference.problems}
    for place in places:
        if place not in known:
            try:
                type.read(values[place])
            except LiteralError as error:
                shown = "" if repr(values[place]) in error.what else f"{_short(values[place])}: "
                inference.problems.append(Problem(place, shown + error.what, error.remedy or "correct it"))
    inference.problems.sort()


def _settle_mark(name: str, inference: Inference, readings: dict[int, _Reading], type: ColumnType) -> ColumnType:
    if type.mark is not None:
        return type
    numbers = {place: reading.number for place, reading in readings.items() if reading.number}
    certain = {next(iter(number.amounts)) for number in numbers.values() if len(number.amounts) == 1}
    if len(certain) == 1:
        return replace(type, mark=next(iter(certain)))
    for place, number in numbers.items():
        if len(certain) == 2 and len(number.amounts) == 1:
            what = f"{_short(readings[place].text)} has the decimal {next(iter(number.amounts))}, other values of"
            what += f" {name!r} the other mark"
        elif number.is_ambiguous:
            meanings = " or ".join(f"{amount.normalize():f}" for amount in number.amounts.values())
            what = f"{_short(readings[place].text)} can mean {meanings}"
        else:
            continue
        remedy = f'say which, with --type "{name}={type.kind}:point" or {type.kind}:comma'
        inference.problems.append(Problem(place, what, remedy))
    return type


def _settle_unit(name: str, inference: Inference, readings: dict[int, _Reading], type: ColumnType) -> ColumnType:
    if type.unit is not None:
        return type
    numbers = {place: reading.number for place, reading in readings.items() if reading.number}
    bare = dict.fromkeys(place for place, number in numbers.items() if not (number.sign or number.unit))
    find = currency_of if type.kind == "money" else (lambda text: currency_of(text) or unit_of(text))
    units = {find(number.sign or number.unit) for place, number in numbers.items() if place not in bare} - {None}
    if not units:
        return type
    for place in bare:
        example = next(iter(units))
        assert example is not None
        unit = example.names[1] if type.kind == "money" else example.names[0]
        inference.problems.append(
            Problem(
                place,
                f"{_short(readings[place].text)} has no unit, other values of {name!r} have one",
                f'write it, or say which with --type "{name}={type.kind}:{unit}"',
            )
        )
    if len(units) == 1 and type.kind != "percent":
        [only] = units
        assert only is not None
        return replace(type, detail=only.names[1] if type.kind == "money" else only.names[0])
    return type


def _settle_order(name: str, inference: Inference, readings: dict[int, _Reading], type: ColumnType) -> ColumnType:
    if type.detail:
        return type
    certain = {next(iter(reading.dates)) for reading in readings.values() if len(reading.dates) == 1} - {""}
    if len(certain) == 1:
        return replace(type, detail=next(iter(certain)))
    for place, reading in readings.items():
        if reading.dates and "" not in reading.dates:
            both = " or ".join(f"{date.year:04d}-{date.month:02d}-{date.day:02d}" for date in reading.dates.values())
            what = f"{_short(reading.text)} can mean {both}"
            if len(reading.dates) == 1:
                what = f"{_short(reading.text)} has the order {next(iter(reading.dates))}, other dates of {name!r} not"
            remedy = f'say which, with --type "{name}=date:dmy" or date:mdy, or write it like "2021-04-03"'
            inference.problems.append(Problem(place, what, remedy))
    return type


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return repr(plain if len(plain) <= 60 else f"{plain[:57]}…")
