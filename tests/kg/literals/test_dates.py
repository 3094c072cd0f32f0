"""Dates: ids, rendering, parsing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kglm.errors import ConfigError, LiteralError
from kglm.kg.literals.dates import Date, DateKey, date_keys, parse_date, read_date, render_date

DAYS_PER_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@st.composite
def dates(draw: st.DrawFn) -> Date:
    year = draw(st.one_of(st.integers(-9999, -1), st.integers(1, 1100), st.integers(1, 9999)))
    month = draw(st.integers(1, 12))
    return Date(draw(st.integers(6, 11)), year, month, draw(st.integers(1, DAYS_PER_MONTH[month - 1])))


def day(year: int, month: int, day: int) -> Date:
    return Date(11, year, month, day)


# Ids


@pytest.mark.parametrize(
    ("id", "canonical"),
    [
        ("T::11::+1957-07-04T00:00:00Z", "T::11::+1957-07-04T00:00:00Z"),
        ("T::14::+1957-07-04T12:30:05Z", "T::11::+1957-07-04T00:00:00Z"),
        ("T::11::1957-07-04T00:00:00Z", "T::11::+1957-07-04T00:00:00Z"),
        ("T::11::+00000001957-07-04T00:00:00Z", "T::11::+1957-07-04T00:00:00Z"),
        ("T::11::+1957-07-00T00:00:00Z", "T::10::+1957-07-00T00:00:00Z"),
        ("T::11::+1957-00-00T00:00:00Z", "T::9::+1957-00-00T00:00:00Z"),
        ("T::10::+1957-00-00T00:00:00Z", "T::9::+1957-00-00T00:00:00Z"),
        ("T::10::+2012-01-01T00:00:00Z", "T::10::+2012-01-00T00:00:00Z"),
        ("T::9::+1970-01-01T00:00:00Z", "T::9::+1970-00-00T00:00:00Z"),
        ("T::9::+330-00-00T00:00:00Z", "T::9::+0330-00-00T00:00:00Z"),
        ("T::9::+10000-00-00T00:00:00Z", "T::9::+10000-00-00T00:00:00Z"),
        ("T::9::-44-00-00T00:00:00Z", "T::9::-0044-00-00T00:00:00Z"),
        ("T::9::+0000-00-00T00:00:00Z", "T::9::-0001-00-00T00:00:00Z"),
        ("T::8::+1957-00-00T00:00:00Z", "T::8::+1950-00-00T00:00:00Z"),
        ("T::8::+1950-00-00T00:00:00Z", "T::8::+1950-00-00T00:00:00Z"),
        ("T::8::+0007-00-00T00:00:00Z", "T::8::+0001-00-00T00:00:00Z"),
        ("T::8::-0044-00-00T00:00:00Z", "T::8::-0040-00-00T00:00:00Z"),
        ("T::8::-0040-00-00T00:00:00Z", "T::8::-0040-00-00T00:00:00Z"),
        ("T::8::-0009-00-00T00:00:00Z", "T::8::-0001-00-00T00:00:00Z"),
        ("T::7::+1900-00-00T00:00:00Z", "T::7::+1900-00-00T00:00:00Z"),
        ("T::7::+1801-00-00T00:00:00Z", "T::7::+1900-00-00T00:00:00Z"),
        ("T::7::+1901-01-01T00:00:00Z", "T::7::+2000-00-00T00:00:00Z"),
        ("T::7::-0001-00-00T00:00:00Z", "T::7::-0100-00-00T00:00:00Z"),
        ("T::7::-0101-00-00T00:00:00Z", "T::7::-0200-00-00T00:00:00Z"),
        ("T::6::+1900-01-01T00:00:00Z", "T::6::+2000-00-00T00:00:00Z"),
        ("T::6::+1000-01-01T00:00:00Z", "T::6::+1000-00-00T00:00:00Z"),
        ("T::6::-0800-00-00T00:00:00Z", "T::6::-1000-00-00T00:00:00Z"),
    ],
)
def test_canonical_id(id: str, canonical: str) -> None:
    assert Date.parse_id(id).id == canonical
    assert Date.parse_id(canonical).id == canonical


def test_dates_that_differ_only_beyond_their_precision_are_equal() -> None:
    assert Date(9, 1970, 1, 1) == Date(9, 1970) and hash(Date(9, 1970, 1, 1)) == hash(Date(9, 1970))
    assert Date(8, 1957) == Date(8, 1950)
    assert Date(9, 1970) != Date(9, 1971)


@pytest.mark.parametrize(
    "id",
    [
        "T::11::+1957-13-04T00:00:00Z",
        "T::11::+1957-02-30T00:00:00Z",
        "T::11::+1957-02-29T00:00:00Z",
        "T::11::+1900-02-29T00:00:00Z",
        "T::11::+1957-04-31T00:00:00Z",
        "T::11::+1957-01-32T00:00:00Z",
        "T::5::+1957-00-00T00:00:00Z",
        "T::0::-13798000000-00-00T00:00:00Z",
        "T::11::yesterday",
        "T::11::",
        "T::x::+1957-07-04T00:00:00Z",
        "T::+1957-07-04T00:00:00Z",
        "T::11::+1957-07-04T00:00:00Z and more",
        "V::27.0000::1",
        "",
    ],
)
def test_invalid_id_is_an_error_with_a_remedy(id: str) -> None:
    with pytest.raises(LiteralError) as caught:
        Date.parse_id(id)
    assert caught.value.remedy


def test_leap_days_of_both_calendars() -> None:
    for year in (2000, 2024, 1600, 1500, 1700, -1, -5):  # 1 BC and every fourth year before it
        assert Date.parse_id(Date(11, year, 2, 29).id) == Date(11, year, 2, 29)
    for year in (1800, 1900, 2023, 1501, -4, -44):
        with pytest.raises(LiteralError):
            Date(11, year, 2, 29)


@given(dates())
def test_canonical_id_is_parsed_as_the_same_date(date: Date) -> None:
    assert Date.parse_id(date.id) == date


# Rendering


def test_day_is_rendered_in_every_usual_form() -> None:
    texts = render_date(day(1957, 7, 4))
    assert texts[:4] == ["July 4, 1957", "4 July 1957", "1957", "July 1957"]
    expected = """4 Jul 1957|Jul 4, 1957|July 4|4 July|1957-07-04|04-07-1957|4-7-1957|4th July 1957
|July 4th, 1957|4th of July|Jul 4""".replace("\n", "")
    assert set(expected.split("|")) <= set(texts)
    assert "7-12-1941" in render_date(day(1941, 12, 7))  # day first, as in the paper
    assert "12-7-1941" not in render_date(day(1941, 12, 7))


@pytest.mark.parametrize(
    ("date", "expected", "absent"),
    [
        (Date(10, 1957, 7), "July 1957|1957|Jul 1957|1957-07", "July|July 1|1957-07-00"),
        (Date(9, 1957), "1957", "1950s|1957 AD|AD 1957"),
        (Date(9, 79), "79|AD 79|79 AD|79 CE", "0079|79 BC"),
        (Date(9, -44), "44 BC|44 BCE", "44|-44|0044 BC"),
        (day(-44, 3, 15), "15 March 44 BC|March 15, 44 BCE|March 15|44 BC", "March 15, 44|44|15-3-44"),
        (day(79, 8, 24), "24 August 79 AD|August 24, AD 79|August 24, 79|79", "24-8-79"),
        (Date(8, 1957), "1950s|the 1950s", "1957|1957s|1950"),
        (Date(8, -44), "40s BC|the 40s BCE", "40s|44 BC"),
        (Date(8, 5), "0s|the 0s AD", "1s"),
        (Date(7, 1900), "19th century|the 19th century|nineteenth century", "20th century|1900|1900s"),
        (Date(7, 1901), "20th century|1900s", "19th century"),
        (Date(7, 2001), "21st century|twenty-first century", "20th century"),
        (Date(7, 2201), "23rd century", "twenty-third century"),
        (Date(7, -50), "1st century BC|first century BCE", "1st century"),
        (Date(7, 1), "1st century|1st century AD", "1st century BC"),
        (Date(7, 1150), "12th century", "12nd century"),
        (Date(6, 1900), "2nd millennium|second millennium", "1st millennium|3rd millennium"),
        (Date(6, -800), "1st millennium BC", "1st millennium"),
    ],
)
def test_dates_of_other_precisions_are_rendered(date: Date, expected: str, absent: str) -> None:
    texts = render_date(date)
    assert set(expected.split("|")) <= set(texts)
    assert not set(absent.split("|")) & set(texts)


@given(dates())
def test_renderings_are_distinct_and_deterministic(date: Date) -> None:
    texts = render_date(date)
    assert texts and len(texts) == len(set(texts))
    assert texts == render_date(date)


@pytest.mark.parametrize(
    ("locale", "expected"),
    [
        ("de", "4. Juli 1957|04.07.1957|Juli 1957|4. Juli"),
        ("fr", "4 juillet 1957|juillet 1957"),
        ("es", "4 de julio de 1957|julio de 1957"),
        ("ja", "1957年7月4日|1957年7月"),
        ("ru", "4 июля 1957|июль 1957"),
        ("en-GB", "4 July 1957|July 4, 1957"),
    ],
)
def test_names_follow_the_locale(locale: str, expected: str) -> None:
    assert set(expected.split("|")) <= set(render_date(day(1957, 7, 4), locale))


def test_one_locale_does_not_change_another() -> None:
    render_date(day(1957, 7, 4), "ja")
    assert not any("月" in way for way in render_date(day(1957, 7, 4), "es"))


def test_eras_of_other_locales() -> None:
    assert "44 v. Chr." in render_date(Date(9, -44), "de")
    assert DateKey(9, -44) in parse_date("44 v. Chr.", "de")


def test_unknown_locale_is_refused() -> None:
    with pytest.raises(ConfigError):
        render_date(day(1957, 7, 4), "xx-nowhere")


# Parsing


@given(dates())
def test_every_rendering_is_parsed_as_the_same_date(date: Date) -> None:
    keys = date_keys(date)
    for way in render_date(date):
        assert keys & set(parse_date(way)), way


@given(dates(), st.sampled_from(["de", "fr", "es", "ja", "ru", "vi", "pt_BR", "eu"]))
def test_every_rendering_of_a_locale_is_parsed_as_the_same_date(date: Date, locale: str) -> None:
    keys = date_keys(date)
    for way in render_date(date, locale):
        assert keys & set(parse_date(way, locale)), way


@given(dates(), dates())
def test_first_rendering_distinguishes_dates(one: Date, other: Date) -> None:
    if one != other and one.precision == other.precision:
        assert not set(parse_date(render_date(one)[0])) & date_keys(other)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("July 4 , 1957", DateKey(11, 1957, 7, 4)),
        ("1957 - 07 - 04", DateKey(11, 1957, 7, 4)),
        ("july 4th , 1957", DateKey(11, 1957, 7, 4)),
        ("the 4th of July, 1957", DateKey(11, 1957, 7, 4)),
        ("Sept. 3, 1939", DateKey(11, 1939, 9, 3)),
        ("7-12-1941", DateKey(11, 1941, 12, 7)),
        ("March 15, 44 B.C.", DateKey(11, -44, 3, 15)),
        ("A.D. 79", DateKey(9, 79)),
        ("10,000 BC", DateKey(9, -10000)),
        ("July 4", DateKey(11, None, 7, 4)),
        ("February 29", DateKey(11, None, 2, 29)),
        ("July 1957", DateKey(10, 1957, 7)),
        ("1957", DateKey(9, 1957)),
        ("1950 's", DateKey(8, 1950)),
        ("19th @-@ century", DateKey(7, 1900)),
        ("twenty - first century", DateKey(7, 2100)),
        ("1st century B.C.", DateKey(7, -100)),
        ("second millennium", DateKey(6, 2000)),
    ],
)
def test_texts_are_parsed(text: str, key: DateKey) -> None:
    assert parse_date(text)[0] == key


def test_all_meanings_are_listed_the_most_specific_first() -> None:
    assert parse_date("1900s") == [DateKey(8, 1900), DateKey(7, 2000)]
    assert parse_date("August 24") == [DateKey(11, None, 8, 24), DateKey(10, 24, 8)]
    assert set(parse_date("4/7/1957")) == {DateKey(11, 1957, 7, 4), DateKey(11, 1957, 4, 7)}
    assert parse_date("July 40") == [DateKey(10, 40, 7)]


@pytest.mark.parametrize(
    "text",
    """Paris||the|12 Monkeys|Boeing 747-400|27.05|1,957|May|March|July|century|on July 4|in 1957|1957s|1955s
|2013-13-45|30 February 2013|31 April|007|1234567|1957-58|0|00|0th century|BC|the 1|July July 4|4 4 July|AD|-44
|1957 1958|July 4, 1957, 1958|³|٣|4th 1957""".replace("\n", "").split("|"),
)
def test_text_without_a_date_is_not_parsed(text: str) -> None:
    assert parse_date(text) == []


@given(st.text(max_size=70))
def test_any_text_is_parsed_without_an_exception(text: str) -> None:
    parse_date(text)


def test_dates_in_user_input_and_their_errors() -> None:
    assert read_date("21 March 2013") == day(2013, 3, 21)
    assert read_date("Paris") is None
    assert read_date("July 4") is None  # no year
    with pytest.raises(LiteralError, match="no month 13"):
        read_date("2013-13-45")
    with pytest.raises(LiteralError, match="no day 30"):
        read_date("30 February 2013")
    with pytest.raises(LiteralError, match="two dates"):
        read_date("4/7/1957")
    assert read_date("24/7/1957") == day(1957, 7, 24)
    assert read_date("1957-07-04") == day(1957, 7, 4)


def test_keys_of_a_date() -> None:
    assert date_keys(day(1957, 7, 4)) == {
        DateKey(11, 1957, 7, 4),
        DateKey(11, None, 7, 4),
        DateKey(10, 1957, 7),
        DateKey(9, 1957),
    }
    assert date_keys(Date(8, 1957)) == {DateKey(8, 1950)}
