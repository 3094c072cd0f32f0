"""Types of columns: number and date columns in any writing are right or reported, never wrong."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kglm.errors import ConfigError
from kglm.kg.literals.column_types import ColumnType
from kglm.kg.literals.columns import Inference, infer
from kglm.kg.literals.dates import Date
from kglm.kg.literals.hints import header_unit, is_about_dates, is_about_texts, label_of, looks_like_text
from kglm.kg.literals.quantities import Quantity
from kglm.kg.literals.units import currency_of, unit_of

amounts = st.decimals(min_value=-(10**7), max_value=10**7, places=4).map(lambda amount: amount.normalize())
dates = st.dates().filter(lambda date: date.year >= 1000)
WRITINGS = {"point": (",", "."), "comma": (".", ",")}


def written(amount: Decimal, group: str, point: str) -> str:
    return f"{amount:,f}".replace(",", "\0").replace(".", point).replace("\0", group)


def read(inference: Inference, values: list[str]) -> dict[int, str | None]:
    """Ids of the values without a problem."""
    bad = {problem.place for problem in inference.problems}
    return {place: inference.type.read(value) for place, value in enumerate(values) if place not in bad}


@given(st.lists(amounts, min_size=1, max_size=8), st.sampled_from(sorted(WRITINGS)), st.sampled_from(["", "group"]))
def test_number_columns_are_right_or_reported(numbers: list[Decimal], mark: str, grouping: str) -> None:
    group, point = WRITINGS[mark]
    values = [written(number, group if grouping else "", point) for number in numbers]
    inference = infer("weight", values)
    assert inference.type.kind == "quantity"
    for place, id in read(inference, values).items():
        assert id == Quantity(numbers[place]).id
    decided = infer("weight", values, declared=ColumnType("quantity", mark=mark))  # type: ignore[arg-type]
    assert decided.problems == []
    assert list(read(decided, values).values()) == [Quantity(number).id for number in numbers]


@given(st.lists(dates, min_size=1, max_size=8), st.sampled_from(["dmy", "mdy"]), st.sampled_from("/-"), st.booleans())
def test_date_columns_are_right_or_reported(days: list[object], order: str, separator: str, padded: bool) -> None:
    parts = [(date.day, date.month, date.year) for date in days]  # type: ignore[attr-defined]
    width = 2 if padded else 1
    values = [
        separator.join(f"{part:0{width}d}" for part in ((d, m) if order == "dmy" else (m, d))) + f"{separator}{y}"
        for d, m, y in parts
    ]
    wanted = [Date(11, y, m, d).id for d, m, y in parts]
    inference = infer("opened", values)
    for place, id in read(inference, values).items():
        assert id == wanted[place]
    if any(day > 12 for day, _, _ in parts):  # one date decides for all
        assert inference.type == ColumnType("date", order) and not inference.problems
    elif any(day != month for day, month, _ in parts):
        assert {problem.place for problem in inference.problems} == {k for k, (d, m, _) in enumerate(parts) if d != m}
        assert all("--type" in problem.remedy for problem in inference.problems)
    assert list(read(infer("opened", values, declared=ColumnType("date", order)), values).values()) == wanted


@given(st.lists(st.integers(0, 9999), min_size=1, max_size=6))
def test_bare_numbers_are_years_only_by_the_name(numbers: list[int]) -> None:
    values = [str(number) for number in numbers]
    assert infer("employees", values).type.kind == "quantity"
    assert infer("seats", values).type.kind == "quantity"
    if 0 not in numbers:
        assert infer("founded", values).type.kind == "year"


@given(st.lists(st.text(max_size=20).filter(str.strip), min_size=1, max_size=6), st.text(max_size=12))
def test_any_column_is_typed_or_reported(values: list[str], name: str) -> None:
    inference = infer(name, values)
    assert len(read(inference, values)) + len({problem.place for problem in inference.problems}) == len(values)


@pytest.mark.parametrize(
    ("name", "values", "type"),
    [
        ("length", ["27 km", "3.5 km"], "quantity:kilometre:point"),
        ("height (m)", ["12", "3"], "quantity:metre"),
        ("length in km", ["12", "3"], "quantity:kilometre"),
        ("weight", ["12.5 kg", "800 g"], "quantity:point"),
        ("revenue", ["$3.2 million", "€ 1,200.50", "1200 EUR"], "money:point"),
        ("price_eur", ["12.50", "9"], "money:EUR:point"),
        ("share", ["45%", "12.5 %"], "percent:point"),
        ("share (%)", ["45", "12"], "percent"),
        ("visits", ["12 visitors", "40 visitors"], "quantity:visitors"),
        ("born", ["4 May 1871", "1872", "44 BC"], "date"),
        ("since", ["1990", "2001"], "year"),
        ("active", ["1914", "4 May 1915"], "date"),
        ("employees per year", ["312", "400"], "quantity"),
        ("works for", ["Acme", "Orrery Works"], "entity"),
        ("lives at", ["12 Harbour Street", "3 Mill Lane"], "text"),
        ("contact", ["a@b.example", "c@d.example"], "text"),
        ("said", ["We build what turns.", "Nobody was there, they said."], "text"),
        ("ticket", ["007", "112"], "text"),
        ("zip", ["12345", "99999"], "text"),
        ("part number", ["AB-12", "X7"], "text"),
    ],
)
def test_the_type_of_a_column(name: str, values: list[str], type: str) -> None:
    inference = infer(name, values)
    assert (str(inference.type), inference.problems) == (type, [])


@pytest.mark.parametrize(
    ("name", "values", "place", "what"),
    [
        ("employees", ["12", "1,234"], 1, "can mean 1234 or 1.234"),
        ("size", ["1.200,5", "12.75", "8"], 0, "the decimal comma"),
        ("opened", ["03/04/2021", "05/05/2021"], 0, "can mean 2021-04-03 or 2021-03-04"),
        ("length", ["27 km", "14"], 1, "has no unit"),
        ("length", ["27 km", "14 leagues"], 1, "is a name"),
        ("price", ["$12", "9"], 1, "has no unit"),
        ("employees", ["12", "about 40", "30"], 1, "'about 40' is a name, but 2 of 3 values"),
        ("friend", ["Ada", "312", "Bert"], 1, "'312' is a number, but 2 of 3"),
        ("mentor", ["Ada", "Bert", "Carl taught her to read."], 2, "looks like a text"),
        ("born", ["2001-02-30", "2001-02-03"], 0, "no day 30"),
        ("ratio", ["3.14159"], 0, "more than 4 decimals"),
    ],
)
def test_what_is_ambiguous_is_reported(name: str, values: list[str], place: int, what: str) -> None:
    [problem, *_] = (problem for problem in infer(name, values).problems if problem.place == place)
    assert what in problem.what and problem.remedy


@pytest.mark.parametrize("text", ["quantity:km:point", "date:dmy", "money:EUR", "text", "entity", "percent:comma"])
def test_a_type_is_written_as_it_is_parsed(text: str) -> None:
    assert str(ColumnType.parse(text)) == text


@pytest.mark.parametrize("text", ["number", "date:ydm", "text:long", "money:XXY", "quantity:a:b", ""])
def test_unknown_types_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        ColumnType.parse(text)


def test_names_of_columns() -> None:
    assert header_unit("height (m)") == ("height", "m") and header_unit("birth_year") == ("birth_year", "")
    assert label_of("Birth_date") == "Birth date" and label_of("weight_kg") == "weight"
    assert is_about_dates("year of birth") and not is_about_dates("visitors per year")
    assert is_about_texts("E-mail") and not is_about_texts("employer")
    assert looks_like_text("https://a.example/b") and not looks_like_text("Apollo 11")
    kilometre, euro = unit_of("kilometers"), currency_of("€")
    assert kilometre and euro and kilometre.id == "Q_kilometre" and euro.names[:2] == ("Euro", "EUR")
