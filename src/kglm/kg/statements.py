"""What Wikidata says about a statement besides its fact: rank, start and end time, point in time, and sources.

`Statement` is read from the store, with full dates and sources. `StatementColumns` are arrays for the model, by the
place of an edge among all edges, with years only. They list the edges that have such data: a graph without any has
empty arrays. A statement that was made several times (president from 1885 to 1889 and from 1893 to 1897) has its first
start and its last end; it has ended if as many ends as starts are known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.errors import LiteralError
from kglm.kg.ids import END_TIME, POINT_IN_TIME, START_TIME
from kglm.kg.literals.dates import DAY, MONTH, YEAR, Date, render_date
from kglm.kg.schema import PREFERRED

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
Column = npt.NDArray[Any]
NO_YEAR = -(1 << 31)
"""Stands for an unknown year in arrays."""
START, END, POINT, RANK, SOURCED = range(5)
"""Kinds of data, as `build_columns` reads them."""
TIMES = {START_TIME: START, END_TIME: END, POINT_IN_TIME: POINT}
"""Qualifiers that give the time of a statement."""


class Statement(NamedTuple):
    """Rank, times and sources of a fact; times are ids of dates."""

    rank: int = 0
    start: str | None = None
    end: str | None = None
    point: str | None = None
    sources: tuple[str, ...] = ()
    """Ids of works, addresses, or texts."""

    @property
    def preferred(self) -> bool:
        return self.rank == PREFERRED

    @property
    def ended(self) -> bool:
        return self.end is not None

    @property
    def period(self) -> str:
        """When it holds, in years: "since 1790", "1985–1989", "until 1989", "1969"; "" if that is unknown."""
        start, end, point = (None if id is None else _year_text(id) for id in (self.start, self.end, self.point))
        if start and end:
            return start if start == end else f"{start}–{end}"
        if start or end:
            return f"since {start}" if start else f"until {end}"
        return point or ""

    @property
    def order(self) -> tuple[bool, bool, float]:
        """Sorts the current values first: preferred, then not ended, then the latest."""
        year = next((date_year(id) for id in (self.end, self.start, self.point) if id is not None), None)
        return not self.preferred, self.ended, -(year if year is not None else -np.inf)

    def to_json(self) -> dict[str, str | None]:
        """When it holds: in words, and as in ISO 8601."""
        times = {"since": self.start, "until": self.end, "at": self.point}
        return {"period": self.period or None} | {
            key: None if id is None else iso_date(id) for key, id in times.items()
        }

    @classmethod
    def of(cls, rank: int, qualifiers: Iterable[tuple[str, str]], sources: Iterable[str] = ()) -> Statement:
        """From the property and the value of each qualifier."""
        dates: dict[int, list[Date]] = {START: [], END: [], POINT: []}
        for property, value in qualifiers:
            if property in TIMES and (date := _date(value)) is not None:
                dates[TIMES[property]].append(date)
        start, end, point = dates[START], dates[END], dates[POINT]
        ended = has_ended(len(start), len(end))
        return cls(
            rank,
            min(start, key=_order).id if start else None,
            max(end, key=_order).id if ended else None,
            max(point, key=_order).id if point else None,
            tuple(sources),
        )


NOTHING_KNOWN = Statement()


def has_ended(starts: npt.ArrayLike, ends: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """True if a statement with this number of start and end times has ended; numbers or arrays."""
    return np.asarray(ends) >= np.maximum(starts, 1)


def iso_date(id: str) -> str:
    """A date as ISO 8601 writes it, to its precision: 1790, 1790-07, 1790-07-16; a coarser one in words: 1790s."""
    date = _date(id)
    if date is None:
        return id
    if date.precision < YEAR:
        return render_date(date)[0]
    year = f"{'-' if date.year < 0 else ''}{abs(date.year):04d}"
    month = f"-{date.month:02d}" if date.precision >= MONTH else ""
    return year + month + (f"-{date.day:02d}" if date.precision == DAY else "")


def date_year(id: str) -> int | None:
    """Year of the id of a date; None if it is malformed."""
    date = _date(id)
    return None if date is None else date.year


def _date(id: str) -> Date | None:
    try:
        return Date.parse_id(id)
    except LiteralError:
        return None


def _order(date: Date) -> tuple[int, int, int]:
    return date.year, date.month, date.day


def _year_text(id: str) -> str | None:
    date = _date(id)
    return None if date is None else render_date(date if date.precision < YEAR else Date(YEAR, date.year))[0]


COLUMN_TYPES: tuple[npt.DTypeLike, ...] = (np.int64, np.int8, np.bool_, np.int32, np.int32, np.int32)
_EMPTY = (0, False, NO_YEAR, NO_YEAR, NO_YEAR)
"""Rank, ended and years of an edge without data."""


class StatementColumns(NamedTuple):
    """Statements of edges: the place of each edge (sorted), and its data."""

    place: Column
    rank: Column
    ended: Column
    start: Column
    end: Column
    point: Column
    """Years; `NO_YEAR` if unknown."""

    @classmethod
    def none(cls) -> StatementColumns:
        return cls(*(np.zeros(0, dtype) for dtype in COLUMN_TYPES))

    def at(self, place: LongArray) -> StatementColumns:
        """The statements of some edges, in their order; those without data have no times and a normal rank."""
        index = np.searchsorted(self.place, place)
        found = index < len(self.place)
        found[found] = self.place[index[found]] == place[found]
        columns: list[Column] = [place]
        for stored, fill in zip(self[1:], _EMPTY, strict=True):
            column = np.full(len(place), fill, stored.dtype)
            column[found] = stored[index[found]]
            columns.append(column)
        return StatementColumns(*columns)

    def between(self, first: int, last: int) -> bool:
        """True if an edge at the places [first, last) has data."""
        a, b = np.searchsorted(self.place, [first, last])
        return bool(a < b)


def columns_of(statements: Iterable[Statement]) -> StatementColumns:
    """Columns of statements; their places are 0, 1, 2 …"""
    rows = [
        (place, each.rank, each.ended, *(_stored_year(id) for id in (each.start, each.end, each.point)))
        for place, each in enumerate(statements)
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * len(COLUMN_TYPES)
    return StatementColumns(*(np.array(column, dtype) for column, dtype in zip(columns, COLUMN_TYPES, strict=True)))


def _stored_year(id: str | None) -> int:
    year = None if id is None else date_year(id)
    return NO_YEAR if year is None or abs(year) >= -NO_YEAR else year


def build_columns(place: LongArray, kind: npt.NDArray[np.int8], value: IntArray) -> StatementColumns:
    """Columns from single pieces of data: of the edge at `place`, a year or a rank, in any order."""
    edges, row = np.unique(place, return_inverse=True)

    def reduced(of: int, reduce: np.ufunc, fill: int) -> IntArray:
        result = np.full(len(edges), fill, np.int32)
        chosen = kind == of
        reduce.at(result, row[chosen], value[chosen])
        return result

    last = np.iinfo(np.int32).max
    starts, ends = (np.bincount(row[kind == of], minlength=len(edges)) for of in (START, END))
    ended = has_ended(starts, ends)
    start, end = reduced(START, np.minimum, last), reduced(END, np.maximum, NO_YEAR)
    return StatementColumns(
        edges.astype(np.int64),
        reduced(RANK, np.maximum, 0).astype(np.int8),
        ended,
        np.where(start == last, NO_YEAR, start).astype(np.int32),
        np.where(ended, end, NO_YEAR).astype(np.int32),
        reduced(POINT, np.maximum, NO_YEAR),
    )
