"""The type of the values of a column or relation, and how a value of each type is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, get_args

from kglm.errors import ConfigError, LiteralError
from kglm.kg.literals.dates import Date
from kglm.kg.literals.literal import canonical_literal, is_literal
from kglm.kg.literals.quantities import EXACT, Quantity
from kglm.kg.literals.texts import text_id
from kglm.kg.literals.units import PERCENT, Unit, currency_of, own_unit, unit_of
from kglm.kg.literals.written import DECIMALS, Mark, Number, Order, read_dates, read_number, read_year

Kind = Literal["entity", "date", "year", "quantity", "money", "percent", "text", "id"]
KINDS: tuple[str, ...] = get_args(Kind)
NUMBERS = ("quantity", "money", "percent")
SPELLINGS = "entity, date[:dmy|:mdy], year, quantity[:UNIT], money[:CURRENCY], percent, text, id"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of the values of a column; written like "quantity:kilometre" or "date:dmy"."""

    kind: Kind
    detail: str = ""
    """Order of day and month of dates; unit of bare numbers."""
    mark: Mark | None = None
    """Decimal mark of numbers that could be read with either."""

    @classmethod
    def parse(cls, text: str) -> ColumnType:
        """Parse a type as in `--type "height=quantity:m"`; numbers may end in `:point` or `:comma`."""
        kind, *details = (part.strip() for part in text.split(":"))
        wrong = ConfigError(f"{text!r} is not a type", remedy=f"use one of {SPELLINGS}")
        if kind not in KINDS:
            raise wrong
        mark: Mark | None = None
        if kind in NUMBERS:
            for each in ("point", "comma"):
                if each in details:
                    details.remove(each)
                    mark = each
        detail = details[0] if details else ""
        if len(details) > 1 or (detail and kind in ("entity", "year", "percent", "text", "id")):
            raise wrong
        if kind == "date" and detail not in ("", "dmy", "mdy", "ymd"):
            raise wrong
        if kind == "money" and detail and currency_of(detail) is None:
            raise ConfigError(f"{detail!r} is not a currency", remedy="give a code, like money:EUR")
        return cls(kind, detail, mark)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return ":".join(filter(None, [self.kind, self.detail, self.mark]))

    @property
    def unit(self) -> Unit | None:
        """Unit of a bare number."""
        if self.kind == "percent":
            return unit_of(PERCENT)
        if not self.detail or self.kind not in NUMBERS:
            return None
        known = currency_of(self.detail) if self.kind == "money" else unit_of(self.detail)
        return known or own_unit(self.detail)

    def read(self, text: str, unit_used: Callable[[Unit], object] = lambda _: None) -> str | None:
        """The id of a value; None for an entity. `unit_used` is called with the unit of a quantity."""
        if is_literal(text):
            return canonical_literal(text)
        if self.kind in ("entity", "id"):
            return None
        if self.kind == "text":
            return text_id(text)
        text = " ".join(text.split())
        if self.kind in ("date", "year"):
            return self._date(text).id
        return self._quantity(text, unit_used).id

    def _date(self, text: str) -> Date:
        if year := read_year(text):
            return year
        dates = read_dates(text)
        if not dates:
            raise LiteralError(f"{text!r} is not a date", remedy='write it like "2021-04-03" or "3 April 2021"')
        wanted: Order = self.detail if self.detail in ("dmy", "mdy") else ""  # type: ignore[assignment]
        if "" in dates:
            return dates[""]
        if wanted in dates:
            return dates[wanted]
        if wanted:
            raise LiteralError(f"{text!r} is not a date in the order {wanted}", remedy="correct it")
        if len(dates) > 1:
            raise LiteralError(f"{text!r} can mean two dates", remedy='write it like "2021-04-03"')
        return next(iter(dates.values()))

    def _quantity(self, text: str, unit_used: Callable[[Unit], object]) -> Quantity:
        number = read_number(text)
        if number is None:
            raise LiteralError(f"{text!r} is not a number", remedy='write it like "1250.5" or "27 km"')
        if self.mark and self.mark not in number.amounts:
            raise LiteralError(f"{text!r} has not the decimal {self.mark}", remedy="correct it")
        if self.mark is None and number.is_ambiguous:
            raise LiteralError(f"{text!r} can mean two numbers", remedy='write it like "1234" or "1.2340"')
        amount = number.amounts[self.mark] if self.mark else next(iter(number.amounts.values()))
        check_decimals(text, amount)
        unit = self._unit_of(number, text) or self.unit
        if unit is None:
            return Quantity(amount)
        unit_used(unit)
        return Quantity(amount, unit.id)

    def _unit_of(self, number: Number, text: str) -> Unit | None:
        """The unit that is written beside the number; None if there is none."""
        if self.kind == "percent":
            if number.sign or (number.unit and unit_of(number.unit) != unit_of(PERCENT)):
                raise LiteralError(f"{text!r} is not a percentage", remedy='write it like "12.5" or "12.5 %"')
            return None
        written = number.sign or number.unit
        if not written:
            return None
        unit = currency_of(written) or (None if self.kind == "money" else unit_of(written))
        if unit is None and self.unit is not None and written in self.unit.names:
            unit = self.unit
        if unit is None:
            what = "currency" if self.kind == "money" else "unit"
            raise LiteralError(f"{written!r} in {text!r} is not a known {what}", remedy="correct it")
        return unit


def check_decimals(text: str, amount: Decimal) -> None:
    """Refuse an amount that the id of a quantity would round."""
    if amount != amount.quantize(Decimal(1).scaleb(-DECIMALS), context=EXACT):
        raise LiteralError(
            f"{text!r} has more than {DECIMALS} decimals, which would be lost", remedy="round it, or keep it as a text"
        )
