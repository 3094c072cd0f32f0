"""Dates and quantities as the rest of the package sees them: ids that can be said, found and typed.

A literal is an entity whose id tells what it is, `T::…` a date and `V::…` a quantity. `render_literal` gives
the texts that say it, `LiteralIndex` finds ids for a text, `literal_from_text` reads what a person typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Literal

from kglm.errors import LiteralError
from kglm.kg.literals.dates import Date, DateKey, date_keys, date_words, parse_date, read_date, render_date
from kglm.kg.literals.quantities import (
    Quantity,
    begins_quantity,
    normal_unit,
    parse_quantity,
    render_quantity,
    unit_spellings,
)

LONGEST = 8
"""Words of a text that are looked at as one literal."""
UnitNames = Callable[[str], Sequence[str]]
"""From the id of a unit's item to its names, label first."""

# The common canonical ids; what else is canonical takes the long way.
_DAYS = r"(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31"
_CANONICAL = re.compile(
    rf"T::(?:11::[+-](?!0000)[0-9]{{4}}-(?:{_DAYS})|9::[+-](?!0000)[0-9]{{4}}-00-00)T00:00:00Z"
    r"|V::(?:-(?!0\.0000))?(?:0|[1-9][0-9]{0,20})\.[0-9]{4}::(?:1|http://www\.wikidata\.org/entity/Q[0-9]+)"
).fullmatch
_NUMBER = re.compile(r"[+-]?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?: (?:million|billion|trillion))?")
_BARE_YEAR = re.compile(r"[0-9]{3,4}")
_SIGNED_YEAR = re.compile(r"([+-])0*([1-9][0-9]*)")


def is_literal(id: str) -> bool:
    """Whether the id is of a date or a quantity, well-formed or not."""
    return id.startswith(("T::", "V::"))


def is_date(id: str) -> bool:
    """Whether the id is of a date."""
    return id.startswith("T::")


def is_quantity(id: str) -> bool:
    """Whether the id is of a quantity."""
    return id.startswith("V::")


def quantity_unit(id: str) -> str | None:
    """The item of a quantity's unit; None for a bare number and for what is no quantity."""
    unit = id.rpartition("::")[2].rpartition("/")[2] if is_quantity(id) else "1"
    return None if unit == "1" else unit


def canonical_literal(id: str) -> str:
    """The one id of the literal, so that equal literals have equal ids; ids of anything else pass unchanged.

    >>> canonical_literal("T::9::+1970-01-01T00:00:00Z")
    'T::9::+1970-00-00T00:00:00Z'
    """
    if _CANONICAL(id) or not is_literal(id):
        return id
    return Date.parse_id(id).id if is_date(id) else Quantity.parse_id(id).id


def render_literal(id: str, unit_names: UnitNames | None = None, locale: str = "en") -> list[str]:
    """All ways to say it, the most useful first; without `unit_names` a quantity is a bare number."""
    if is_date(id):
        return render_date(Date.parse_id(id), locale)
    quantity = Quantity.parse_id(id)
    return render_quantity(quantity, _names(quantity.unit, unit_names), locale)


def _names(unit: str, unit_names: UnitNames | None) -> tuple[str, ...]:
    return () if unit_names is None or unit == "1" else tuple(unit_names(unit))


class LiteralIndex:
    """Literals by what a text can say about them: from a text to the ids it can mean, without a scan.

    Ids are kept in canonical form. A quantity is found by its number alone or with its unit.
    """

    def __init__(self, unit_names: UnitNames | None = None, locale: str = "en") -> None:
        self._unit_names = unit_names
        self._locale = locale
        self._places: dict[str, int] = {}
        self._dates: dict[DateKey, list[str]] = {}
        self._amounts: dict[Decimal, list[tuple[str, str]]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, id: object) -> bool:
        try:
            return isinstance(id, str) and canonical_literal(id) in self._places
        except LiteralError:
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def add(self, id: str) -> None:
        """Take in a literal; one that is there already stays where it is."""
        id = canonical_literal(id)
        if id in self._places:
            return
        if is_date(id):
            for key in date_keys(Date.parse_id(id)):
                self._dates.setdefault(key, []).append(id)
        else:
            quantity = Quantity.parse_id(id)
            self._amounts.setdefault(quantity.amount, []).append((quantity.unit, id))
        self._places[id] = len(self._places)

    def find(self, text: str) -> list[str]:
        """The ids that the text, as a whole, can mean, in the order they were added."""
        found: set[str] = set()
        if self._dates:
            for key in parse_date(text, self._locale):
                found.update(self._dates.get(key, ()))
        if self._amounts:
            for amount, said in parse_quantity(text, self._locale):
                for unit, id in self._amounts.get(amount, ()):
                    if not said or normal_unit(said) in self._spellings(unit):
                        found.add(id)
        return sorted(found, key=self._places.__getitem__)

    def at(self, words: Sequence[str], start: int, limit: int) -> Iterator[tuple[int, str]]:
        """(end, id) of what is said by words [start, end) of a text, end ≤ limit; the longest first.

        The same as `find` of every part, without looking at parts that can be none.
        """
        limit = min(limit, start + LONGEST)
        ends = set(self._date_ends(words, start, limit)) | set(self._quantity_ends(words, start, limit))
        for end in sorted(ends, reverse=True):
            for id in self.find(" ".join(words[start:end])):
                yield end, id

    def _date_ends(self, words: Sequence[str], start: int, limit: int) -> Iterator[int]:
        """Where a date may end that begins at a word: as far as there are numbers, signs and words of dates."""
        known = date_words(self._locale)
        digits = False
        for place in range(start, limit) if self._dates else ():
            word = words[place].casefold()
            number = any(map(str.isdigit, word))
            if not (number or word in known or not word.isalnum()):
                return
            digits = digits or number or word in ("century", "millennium")
            if digits and word[-1:].isalnum():
                yield place + 1

    def _quantity_ends(self, words: Sequence[str], start: int, limit: int) -> Iterator[int]:
        """Where a quantity may end: anywhere after a number that one of these has."""
        if not self._amounts or not begins_quantity(words[start]):
            return
        numbers = (" ".join(words[start:end]) for end in range(start + 1, min(start + 4, limit) + 1))
        if any(amount in self._amounts for text in numbers for amount, _ in parse_quantity(text, self._locale)):
            yield from (end for end in range(start + 1, limit + 1))

    def _spellings(self, unit: str) -> frozenset[str]:
        return unit_spellings(_names(unit, self._unit_names), self._locale)


def literal_from_text(text: str, prefer: Literal["date", "quantity"] | None = None) -> str | None:
    """The id of the literal that a person typed in English, None when the text is none.

    A number of three or four digits is a year, any other a quantity, unless `prefer` says otherwise. A unit
    cannot be typed, as its item is not known here: give the id `V::<amount>::<address>` for that. A date that
    cannot be is a LiteralError.
    """
    text = " ".join(text.split())
    if is_literal(text):
        return canonical_literal(text)
    if _NUMBER.fullmatch(text):
        year = _typed_year(text, prefer)
        return Date(9, year).id if year else _typed_quantity(text)
    date = read_date(text)
    return None if date is None else date.id


def _typed_year(text: str, prefer: str | None) -> int | None:
    if prefer == "quantity":
        return None
    if signed := _SIGNED_YEAR.fullmatch(text):
        return int(signed[1] + signed[2]) if prefer == "date" else None
    keys = parse_date(text) if prefer == "date" or _BARE_YEAR.fullmatch(text) else []
    return keys[0].year if keys else None


def _typed_quantity(text: str) -> str | None:
    for amount, unit in parse_quantity(text):
        if not unit:
            return Quantity(amount).id
    return None
