"""Dates, quantities and texts as entities: their ids, the texts for them, and the ids for a text.

A literal is an entity whose id contains its value: `T::…` is a date, `V::…` a quantity, `S::…` a text. `render_literal`
gives its texts, `LiteralIndex` finds the ids that a text can mean, `literal_from_text` parses user input.
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
from kglm.kg.literals.texts import canonical_text, text_of

LONGEST = 8
"""Maximum number of words of a literal in a text."""
UnitNames = Callable[[str], Sequence[str]]
"""Names of a unit, label first, given the id of its item."""

# The common canonical ids, a fast path: any other id is parsed.
_DAYS = r"(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31"
_CANONICAL = re.compile(
    rf"T::(?:11::[+-](?!0000)[0-9]{{4}}-(?:{_DAYS})|9::[+-](?!0000)[0-9]{{4}}-00-00)T00:00:00Z"
    r"|V::(?:-(?!0\.0000))?(?:0|[1-9][0-9]{0,20})\.[0-9]{4}::(?:1|http://www\.wikidata\.org/entity/Q[0-9]+)"
).fullmatch
_NUMBER = re.compile(r"[+-]?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?: (?:million|billion|trillion))?")
_SIGNED_YEAR = re.compile(r"([+-])0*([1-9][0-9]*)")
YEAR_DIGITS = 16
"""Digits of a year in an id."""


def is_literal(id: str) -> bool:
    """True for the id of a date, quantity or text, even a malformed one."""
    return id.startswith(("T::", "V::", "S::"))


def is_date(id: str) -> bool:
    """True for the id of a date."""
    return id.startswith("T::")


def is_quantity(id: str) -> bool:
    """True for the id of a quantity."""
    return id.startswith("V::")


def is_text(id: str) -> bool:
    """True for the id of a text."""
    return id.startswith("S::")


def quantity_unit(id: str) -> str | None:
    """Id of the unit of a quantity; None for a bare number and for any other id."""
    unit = id.rpartition("::")[2].rpartition("/")[2] if is_quantity(id) else "1"
    return None if unit == "1" else unit


def canonical_literal(id: str) -> str:
    """The canonical id of a literal, so that equal literals have equal ids; any other id is returned unchanged.

    >>> canonical_literal("T::9::+1970-01-01T00:00:00Z")
    'T::9::+1970-00-00T00:00:00Z'
    """
    if _CANONICAL(id) or not is_literal(id):
        return id
    if is_text(id):
        return canonical_text(id)
    return Date.parse_id(id).id if is_date(id) else Quantity.parse_id(id).id


def render_literal(id: str, unit_names: UnitNames | None = None, locale: str = "en") -> list[str]:
    """All texts for a literal, the most useful first; without `unit_names` a quantity is rendered without its unit."""
    if is_date(id):
        return render_date(Date.parse_id(id), locale)
    if is_text(id):
        return [" ".join(text_of(id).split())]
    quantity = Quantity.parse_id(id)
    return render_quantity(quantity, _names(quantity.unit, unit_names), locale)


def _names(unit: str, unit_names: UnitNames | None) -> tuple[str, ...]:
    return () if unit_names is None or unit == "1" else tuple(unit_names(unit))


class LiteralIndex:
    """Index from texts to the ids of the literals that they can mean.

    Ids are canonical. A quantity is found by its number alone or with its unit. Texts are left out: they are not names.
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
        """Add a date or quantity; a known one keeps its place in the order."""
        id = canonical_literal(id)
        if id in self._places or is_text(id):
            return
        if is_date(id):
            for key in date_keys(Date.parse_id(id)):
                self._dates.setdefault(key, []).append(id)
        else:
            quantity = Quantity.parse_id(id)
            self._amounts.setdefault(quantity.amount, []).append((quantity.unit, id))
        self._places[id] = len(self._places)

    def find(self, text: str) -> list[str]:
        """Ids that the whole text can mean, in the order in which they were added."""
        found: set[str] = set()
        if self._dates:
            for key in parse_date(text, self._locale):
                found.update(self._dates.get(key, ()))
        if self._amounts:
            for amount, unit_text in parse_quantity(text, self._locale):
                for unit, id in self._amounts.get(amount, ()):
                    if not unit_text or normal_unit(unit_text) in self._spellings(unit):
                        found.add(id)
        return sorted(found, key=self._places.__getitem__)

    def at(self, words: Sequence[str], start: int, limit: int) -> Iterator[tuple[int, str]]:
        """(end, id) of the literals that words [start, end) of a text can mean, end ≤ limit, the longest first.

        Gives the same as `find` for every end, but skips spans that cannot be a literal.
        """
        limit = min(limit, start + LONGEST)
        ends = set(self._date_ends(words, start, limit)) | set(self._quantity_ends(words, start, limit))
        for end in sorted(ends, reverse=True):
            for id in self.find(" ".join(words[start:end])):
                yield end, id

    def _date_ends(self, words: Sequence[str], start: int, limit: int) -> Iterator[int]:
        """Possible ends of a date that begins at `start`: up to the first word that no date can have."""
        vocabulary = date_words(self._locale)
        digits = False
        for place in range(start, limit) if self._dates else ():
            word = words[place].casefold()
            number = any(map(str.isdigit, word))
            if not (number or word in vocabulary or not word.isalnum()):
                return
            digits = digits or number or word in ("century", "millennium")
            if digits and word[-1:].isalnum():
                yield place + 1

    def _quantity_ends(self, words: Sequence[str], start: int, limit: int) -> Iterator[int]:
        """Possible ends of a quantity that begins at `start`: all ends if an amount of the index begins there."""
        if not self._amounts or not begins_quantity(words[start]):
            return
        numbers = (" ".join(words[start:end]) for end in range(start + 1, min(start + 4, limit) + 1))
        if any(amount in self._amounts for text in numbers for amount, _ in parse_quantity(text, self._locale)):
            yield from (end for end in range(start + 1, limit + 1))

    def _spellings(self, unit: str) -> frozenset[str]:
        return unit_spellings(_names(unit, self._unit_names), self._locale)


def literal_from_text(text: str, prefer: Literal["date", "quantity"] | None = None) -> str | None:
    """Id of the literal that a user typed in English; None if the text is not a literal.

    A bare number is a quantity, or with `prefer="date"` a year. A unit needs the id `V::<amount>::<address>`, because
    names of units are unknown here. An impossible date is a LiteralError.
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
    if prefer != "date":
        return None
    if signed := _SIGNED_YEAR.fullmatch(text):
        if len(signed[2]) > YEAR_DIGITS:
            raise LiteralError(f"a year of {len(signed[2])} digits", remedy=f"give at most {YEAR_DIGITS}")
        return int(signed[1] + signed[2])
    keys = parse_date(text)
    return keys[0].year if keys else None


def _typed_quantity(text: str) -> str | None:
    for amount, unit in parse_quantity(text):
        if not unit:
            return Quantity(amount).id
    return None
