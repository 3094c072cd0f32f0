"""Quantities: ids, rendering, parsing."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kglm.errors import LiteralError
from kglm.kg.literals.quantities import Quantity, normal_unit, parse_quantity, render_quantity, unit_spellings

KILOMETRE = "http://www.wikidata.org/entity/Q828224"
UNITS = [
    (),
    ("kilometre", "kilometer", "kilometers", "kilometres", "klick", "km"),
    ("square kilometre",),
    ("square mile", "mi2", "sq mi"),
    ("cubic metre per second", "m3 per sec", "m³/s"),
    ("percent", "%", "pct."),
    ("United States dollar", "$", "U. S. Dollar", "US $", "US-$", "USD", "dollars"),
    ("Swedish krona", "SEK"),
    ("minute", "60 seconds", "min"),
    ("78",),
    ("years old", "year", "year old", "years of age"),
    ("metre / second squared", "m s^(-2)"),
    ("-odd", ".5", ",5", " ", "million", "@", "a"),
]
amounts = st.one_of(
    st.integers(-25, 25).map(Decimal),
    st.integers(-(10**15), 10**15).map(Decimal),
    st.decimals(-(10**9), 10**9, places=4),
    st.integers(-5000, 5000).map(lambda thousands: Decimal(thousands) * 1000000),
)
quantities = st.builds(Quantity, amounts, st.just("Q828224"))


def renderings(amount: str, *names: str, locale: str = "en") -> list[str]:
    return render_quantity(Quantity.from_amount(amount, "Q1" if names else "1"), names, locale)


# Ids


@pytest.mark.parametrize(
    ("id", "canonical"),
    [
        ("V::27.0000::1", "V::27.0000::1"),
        ("V::+27::1", "V::27.0000::1"),
        ("V::8382993.0000::1", "V::8382993.0000::1"),
        (f"V::27.0000::{KILOMETRE}", f"V::27.0000::{KILOMETRE}"),
        (f"V::27.0000::{KILOMETRE.replace('http', 'https')}", f"V::27.0000::{KILOMETRE}"),
        ("V::27.0000::Q828224", f"V::27.0000::{KILOMETRE}"),
        ("V::27.0000::Q_my_unit", "V::27.0000::http://www.wikidata.org/entity/Q_my_unit"),
        ("V::-0.0000::1", "V::0.0000::1"),
        ("V::-0.00001::1", "V::0.0000::1"),
        ("V::0.00005::1", "V::0.0000::1"),  # half to even
        ("V::0.00015::1", "V::0.0002::1"),
        ("V::1e3::1", "V::1000.0000::1"),
        ("V::0.1::1", "V::0.1000::1"),
        (
            "V::123456789012345678901234567890123456.7::1",
            "V::123456789012345678901234567890123456.7000::1",
        ),
    ],
)
def test_canonical_id(id: str, canonical: str) -> None:
    assert Quantity.parse_id(id).id == canonical
    assert Quantity.parse_id(canonical).id == canonical


@pytest.mark.parametrize(
    "id",
    """V::NaN::1|V::inf::1|V::-Infinity::1|V::::1|V::27|V::1_000::1|V::1,000::1|V::٣::1|V::27 ::1|V::1e999::1
|V::27::2|V::27::|V::27::P31|V::27::http://example.org/Q1|V::27::Q|V::27::km|T::9::+1970-00-00T00:00:00Z||V::27::Q1 x
""".replace("\n", "").split("|"),
)
def test_invalid_id_is_an_error_with_a_remedy(id: str) -> None:
    with pytest.raises(LiteralError) as caught:
        Quantity.parse_id(id)
    assert caught.value.remedy


def test_amounts_of_wikidata_are_parsed() -> None:
    assert Quantity.from_amount("+27.05", KILOMETRE) == Quantity(Decimal("27.05"), "Q828224")
    assert Quantity.from_amount("-3", "1").id == "V::-3.0000::1"
    assert Quantity(Decimal(27)) == Quantity(Decimal("27.0000"))


def test_nan_infinity_and_huge_amounts_are_refused() -> None:
    for amount in ("NaN", "Infinity", "1e200"):
        with pytest.raises(LiteralError):
            Quantity(Decimal(amount))


@given(quantities)
def test_canonical_id_is_parsed_as_the_same_quantity(quantity: Quantity) -> None:
    assert Quantity.parse_id(quantity.id) == quantity
    assert Quantity.parse_id(quantity.id).id == quantity.id


# Rendering


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ("8382993", ["8,382,993", "8382993"]),
        ("27", ["27"]),
        ("27.05", ["27.05"]),
        ("305.151", ["305.151"]),
        ("0.1", ["0.1"]),
        ("7", ["7", "seven"]),
        ("0", ["0", "zero"]),
        ("20", ["20", "twenty"]),
        ("21", ["21"]),
        ("7.5", ["7.5"]),
        ("-5", ["-5", "−5", "minus 5", "minus five"]),
        ("-7.5", ["-7.5", "−7.5", "minus 7.5"]),
        ("1500000", ["1,500,000", "1500000", "1.5 million"]),
        ("1500001", ["1,500,001", "1500001"]),
    ],
)
def test_bare_numbers_are_rendered(amount: str, expected: list[str]) -> None:
    assert renderings(amount) == expected


def test_long_number_is_rendered_exactly() -> None:
    assert "123456789012345678901234567890123.4567" in renderings("123456789012345678901234567890123.4567")


def test_length_is_rendered_with_symbol_and_both_spellings() -> None:
    texts = renderings("27", "kilometre")
    assert texts[:3] == ["27", "27 km", "27 kilometres"]
    assert {"27 kilometers", "27 kilometer", "27 kilometre", "27km", "27-kilometre"} <= set(texts)
    assert renderings("27", "kilometer")[:3] == ["27", "27 km", "27 kilometers"]
    assert "27 kilometres" in renderings("27", "kilometer")
    assert renderings("1", "kilometre")[2] == "1 kilometre"
    assert {"seven kilometres", "7 km"} <= set(renderings("7", "kilometre"))
    assert "seven km" not in renderings("7", "kilometre")
    assert "27.05-mile" in renderings("27.05", "mile")  # a token of the corpus


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["square kilometre"], "27 km²|27 km2|27 sq km|27 square kilometres|27 square kilometer"),
        (["square mile"], "27 mi²|27 sq mi|27 square miles"),
        (["cubic metre per second"], "27 m³/s|27 m3/s|27 cubic metres per second|27 cubic meters per second"),
        (["kilometre per hour"], "27 km/h|27 kilometres per hour"),
        (["foot"], "27 ft|27 feet|27 foot"),
        (["inch"], "27 in|27 inches"),
        (["degree Celsius"], "27 °C|27°C|27 degrees Celsius"),
        (["gigawatt hour"], "27 GWh|27 gigawatt hours"),
        (["litre"], "27 l|27 litres|27 liters"),
        (["country"], "27 countries|27 country"),
        (["person"], "27 people|27 person"),
        (["Euro", "€"], "€27|27 €|27 Euros|27 euros"),
        (["pound sterling", "GBP"], "£27|27 pounds|27 pounds sterling|GBP 27"),
        (["Canadian dollar", "CAD"], "CA$27|27 Canadian dollars|27 dollars|27 CAD"),
        (["Swedish krona", "SEK"], "27 SEK|SEK 27|27 kronor|27 Swedish kronor"),
        (["dollar", "$"], "$27|$ 27|27 $|27$|27 dollars"),
    ],
)
def test_units_are_rendered(names: list[str], expected: str) -> None:
    texts = renderings("27", *names)
    assert set(expected.split("|")) <= set(texts)


def test_percentages_are_rendered() -> None:
    for names in (["percent"], ["percentage", "%"], ["per cent"]):
        assert renderings("27", *names)[:5] == ["27", "27 %", "27%", "27 percent", "27 per cent"]
    assert "27 percents" not in renderings("27", "percent")


def test_dollars_are_rendered() -> None:
    for names in (["USD"], ["United States dollar", "USD"]):
        texts = renderings("27", *names)
        assert texts[:3] == ["27", "$27", "US$27"]
        assert {"27 dollars", "27 US dollars", "27 USD", "USD 27", "$ 27"} <= set(texts)
        assert "27 USDs" not in texts
    assert "-$27" in renderings("-27", "USD")
    assert "$1.5 million" in renderings("1500000", "USD")


def test_names_that_only_look_like_units_get_no_symbols() -> None:
    assert renderings("27", "act") == ["27", "27 acts", "27 act", "27-act"]  # pint knows the attocarat
    assert renderings("27", "point") == ["27", "27 points", "27 point", "27-point"]  # no printer's points
    gas = renderings("27", "tonne of carbon dioxide equivalent", "GWP")  # also the code of an old currency
    assert not any("peso" in way for way in gas)


def test_numbers_follow_the_locale() -> None:
    assert renderings("1234567.5", locale="de") == ["1.234.567,5", "1234567,5"]
    assert renderings("1234567", locale="en_IN")[0] == "12,34,567"
    assert renderings("7", locale="de") == ["7"]


@given(quantities, st.sampled_from(UNITS))
def test_renderings_are_distinct_and_deterministic(quantity: Quantity, names: tuple[str, ...]) -> None:
    texts = render_quantity(quantity, names)
    assert len(texts) == len(set(texts))
    assert texts == render_quantity(quantity, names)


# Parsing


@given(quantities, st.sampled_from(UNITS), st.sampled_from(["en", "en", "de", "fr", "ru", "en_IN"]))
def test_every_rendering_is_parsed_as_the_same_quantity(
    quantity: Quantity, names: tuple[str, ...], locale: str
) -> None:
    spellings = unit_spellings(names, locale)
    for way in render_quantity(quantity, names, locale):
        found = [unit for amount, unit in parse_quantity(way, locale) if amount == quantity.amount]
        assert any(not unit or " ".join(unit.casefold().split()) in spellings for unit in found), way
        assert any(not unit or normal_unit(unit) in spellings for unit in found), way


@given(st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=12))
def test_any_name_can_be_a_unit(label: str, alias: str) -> None:
    spellings = unit_spellings((label, alias))
    for way in render_quantity(Quantity(Decimal(27), "Q1"), (label, alias)):
        units = [unit for amount, unit in parse_quantity(way) if amount == 27]
        assert any(not unit or normal_unit(unit) in spellings for unit in units), way


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("27", ("27", "")),
        ("8,382,993", ("8382993", "")),
        ("8 , 382 , 993", ("8382993", "")),
        ("1 @,@ 000", ("1000", "")),
        ("27 @.@ 05", ("27.05", "")),
        ("27.05-mile", ("27.05", "mile")),
        ("27 - mile", ("27", "mile")),
        ("27 km / h", ("27", "km / h")),
        ("27%", ("27", "%")),
        ("27 %", ("27", "%")),
        ("$27", ("27", "$")),
        ("US$ 27", ("27", "US$")),
        ("-$27.5 million", ("-27500000", "$")),
        ("seven people", ("7", "people")),
        ("Seven", ("7", "")),
        ("minus five", ("-5", "")),
        ("1.5 billion", ("1500000000", "")),
        ("27 60 seconds", ("27", "60 seconds")),
    ],
)
def test_texts_are_parsed(text: str, expected: tuple[str, str]) -> None:
    assert (Decimal(expected[0]), expected[1]) in parse_quantity(text)


@pytest.mark.parametrize("text", ["", "Paris", "July 4", "NaN", "1,00", "1,2,3", "km 27", "the 27", "twentyish", "٣"])
def test_text_without_a_quantity_is_not_parsed(text: str) -> None:
    assert parse_quantity(text) == []


@given(st.text(max_size=170))
def test_any_text_is_parsed_without_an_exception(text: str) -> None:
    parse_quantity(text)


def test_units_are_compared_without_case_and_blanks_around_signs() -> None:
    assert normal_unit("KM / h") == "km/h" in unit_spellings(["kilometre per hour"])
    assert "square kilometres" in unit_spellings(["square kilometre"])
    assert unit_spellings([]) == frozenset()


def test_the_registry_of_units_is_not_built_on_import() -> None:
    code = "import sys, kglm.kg.literals.quantities; sys.exit('pint' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
