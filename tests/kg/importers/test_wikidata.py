"""The importer of the JSON dump of Wikidata."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from kglm.kg.importers.records import Batch, ImportOptions, Source
from kglm.kg.importers.wikidata import parse_dump
from support.dumps import coordinate, entity, item, lines, quantity, statement, string, text, time


def parse(data: bytes, language: str = "en") -> Batch:
    return parse_dump(data, 1, Source("dump.json", "wikidata", ImportOptions(language=language)))


def facts(*statements: dict[str, Any], relation: str = "P1") -> list[tuple[str, str, str]]:
    return [fact[:3] for fact in parse(lines([entity("Q1", "one", {relation: list(statements)})])).facts]


class TestLines:
    def test_first_and_last_entity_are_kept(self) -> None:
        batch = parse(lines([entity("Q1", "a"), entity("Q2", "b"), entity("Q3", "c")]))
        assert [id for id, _, _ in batch.entities] == ["Q1", "Q2", "Q3"] and not batch.skipped

    def test_brackets_on_the_lines_of_the_first_and_last_entity(self) -> None:
        one, two = json.dumps(entity("Q1", "a")).encode(), json.dumps(entity("Q2", "b")).encode()
        assert len(parse(b"[" + one + b",\n" + two + b"]").entities) == 2

    @pytest.mark.parametrize("ending", [b"\r\n", b",\r\n", b" , \n", b"\n\n\n"])
    def test_line_ends_commas_and_empty_lines(self, ending: bytes) -> None:
        data = ending.join(json.dumps(entity(f"Q{n}", "x")).encode() for n in (1, 2)) + ending
        assert [id for id, _, _ in parse(b"[\r\n" + data + b"]").entities] == ["Q1", "Q2"]

    def test_truncated_last_line_is_skipped_and_reported(self) -> None:
        data = lines([entity("Q1", "a"), entity("Q2", "b")])
        batch = parse(data[: data.index(b'"Q2"') + 30])
        assert [id for id, _, _ in batch.entities] == ["Q1"]
        assert batch.skipped == {"not JSON": 1} and batch.problems[0][0] == 3

    def test_line_that_is_not_json_is_reported_with_its_number(self) -> None:
        data = (
            b"[\n" + json.dumps(entity("Q1", "a")).encode() + b",\nrubbish,\n" + json.dumps(entity("Q2", "b")).encode()
        )
        batch = parse(data)
        assert len(batch.entities) == 2 and batch.skipped == {"not JSON": 1}
        [(line, what)] = batch.problems
        assert line == 3 and "not JSON" in what

    @pytest.mark.parametrize("line", [b'"oops" x', b'{"id":"Q1","labels":5,"cl', b"{", b'{"id": "Q1", "labels": nan}'])
    def test_malformed_entity_that_is_not_json_for_msgspec(self, line: bytes) -> None:
        batch = parse(b"[\n" + line + b",\n" + json.dumps(entity("Q2", "b")).encode() + b"\n]")
        assert [id for id, _, _ in batch.entities] == ["Q2"] and batch.skipped == {"not JSON": 1}

    def test_line_numbers_continue_in_later_blocks(self) -> None:
        batch = parse_dump(b"rubbish\n", 41, Source("d", "wikidata", ImportOptions()))
        assert batch.problems[0][0] == 41

    def test_json_that_is_not_an_entity_is_reported(self) -> None:
        batch = parse(b'[\n{"id": 5},\n[1],\n"x",\n{"type": "item"}\n]')
        assert not batch.entities and batch.skipped == {"malformed entity": 4}

    def test_malformed_statement_is_skipped_and_the_entity_kept(self) -> None:
        odd = statement(item("Q3"))
        odd["mainsnak"]["datavalue"]["value"] = 17
        batch = parse(lines([entity("Q1", "x", {"P1": [odd, statement(item("Q2"))]}, aliases=5)]))
        assert [fact[2] for fact in batch.facts] == ["Q2"] and batch.names == [("Q1", 0, "x")]
        assert batch.skipped == {"malformed statement": 1, "malformed aliases": 1}
        assert {line for line, _ in batch.problems} == {2}

    def test_lexemes_are_counted(self) -> None:
        assert parse(lines([entity("L7", "x")])).skipped == {"not an item or property": 1}

    def test_lone_surrogates_are_replaced(self) -> None:
        data = json.dumps(entity("Q1", "x")).replace('"x"', '"broken \\ud83d name"').encode()
        [name] = parse(data).names
        assert name[2].startswith("broken") and name[2].encode()

    def test_entity_of_ten_megabytes(self) -> None:
        many = [statement(item(f"Q{n}")) for n in range(40_000)]
        data = lines([entity("Q1", "huge", {"P1": many}), entity("Q2", "after")])
        assert len(data) > 8 << 20
        batch = parse(data)
        assert len(batch.facts) == 40_000 and batch.entities[-1][0] == "Q2"


class TestEntities:
    def test_names_of_one_language_are_imported(self) -> None:
        one = entity(
            "Q1",
            "one",
            aliases={"en": [{"value": "uno"}, {"value": " "}], "de": [{"value": "eins"}]},
            descriptions={"en": {"value": "a number"}},
            sitelinks={"enwiki": {"site": "enwiki", "title": "one thing"}, "dewiki": {"title": "Eins"}},
        )
        batch = parse(lines([one]))
        assert batch.names == [("Q1", 0, "one"), ("Q1", 1, "uno"), ("Q1", 1, "one thing")]
        assert batch.entities == [("Q1", "a number", "One_thing")]
        assert batch.skipped == {"empty name": 1}
        german = parse(lines([one]), language="de")
        assert german.names == [("Q1", 0, "one auf Deutsch"), ("Q1", 1, "eins"), ("Q1", 1, "Eins")]

    def test_multilingual_names_are_imported(self) -> None:
        shared = entity(
            "Q1", labels={"mul": {"value": "Ada"}}, aliases={"mul": [{"value": "A."}], "en": [{"value": "L."}]}
        )
        assert parse(lines([shared])).names == [("Q1", 0, "Ada"), ("Q1", 1, "L."), ("Q1", 1, "A.")]
        own = entity("Q1", labels={"mul": {"value": "Ada"}, "en": {"value": "Ada L."}})
        assert parse(lines([own])).names == [("Q1", 0, "Ada L.")]

    def test_claim_without_a_property_id_is_skipped(self) -> None:
        batch = parse(lines([entity("Q1", "x", {"P1 x": [statement(item("Q2"))]})]))
        assert not batch.facts and batch.skipped == {"not a property": 1}

    @pytest.mark.parametrize("claims", [[], {}, None])
    def test_missing_or_empty_claims(self, claims: Any) -> None:
        one = entity("Q1", "one", claims)
        one["claims"] = claims
        assert not parse(lines([one])).facts
        del one["claims"]
        assert parse(lines([one])).names == [("Q1", 0, "one")]

    def test_empty_objects_written_as_arrays(self) -> None:
        one = entity("Q1", claims=[], aliases=[], descriptions=[], sitelinks=[])
        batch = parse(lines([one]))
        assert batch.entities == [("Q1", None, None)] and not batch.skipped


class TestValues:
    def test_entities_dates_quantities(self) -> None:
        unit = "http://www.wikidata.org/entity/Q828224"
        made = facts(
            statement(item("Q5")),
            statement(item("P31")),
            statement(time("+1961-08-04T00:00:00Z")),
            statement(time("+1970-00-00T00:00:00Z", 9)),
            statement(quantity("+27.05", unit)),
            statement(quantity("-3")),
        )
        assert [tail for _, _, tail in made] == [
            "Q5",
            "P31",
            "T::11::+1961-08-04T00:00:00Z",
            "T::9::+1970-00-00T00:00:00Z",
            f"V::27.0500::{unit}",
            "V::-3.0000::1",
        ]

    def test_numeric_ids_of_old_dumps(self) -> None:
        old = item("Q5")
        del old["datavalue"]["value"]["id"]
        assert facts(statement(old)) == [("Q1", "P1", "Q5")]

    def test_ranks_of_statements(self) -> None:
        batch = parse(
            lines([entity("Q1", "x", {"P1": [statement(item(f"Q{n}"), r) for n, r in
                   ((2, "normal"), (3, "preferred"), (4, "deprecated"))]})])
        )  # fmt: skip
        assert [(tail, rank) for _, _, tail, rank, _ in batch.facts] == [("Q2", 0), ("Q3", 1)]
        assert batch.skipped == {"deprecated statement": 1}

    @pytest.mark.parametrize("kind", ["novalue", "somevalue"])
    def test_statements_without_a_value_are_skipped(self, kind: str) -> None:
        batch = parse(lines([entity("Q1", "x", {"P1": [statement({"snaktype": kind, "property": "P1"})]})]))
        assert not batch.facts and batch.skipped == {kind: 1}

    @pytest.mark.parametrize(
        ("snak", "reason"),
        [
            (string("x", "external-id"), "external-id"),
            (string("http://x", "url"), "url"),
            (string("x.jpg", "commonsMedia"), "commonsMedia"),
            (string("x^2", "math"), "math"),
            (string("{c4}", "musical-notation"), "musical-notation"),
            (coordinate(), "globe-coordinate"),
            (string("x"), "string"),
            (text("motto", "fr"), "text in another language"),
            (text("a motto"), "monolingualtext"),
            (time("+1961-99-04T00:00:00Z"), "malformed time"),
            (time("yesterday"), "malformed time"),
            (time("+13798000000-00-00T00:00:00Z", 3), "malformed time"),
            (time("+1961-08-04T00:00:00Z", math.inf), "malformed time"),
            (quantity("much"), "malformed quantity"),
        ],
    )
    def test_other_data_types_are_skipped(self, snak: dict[str, Any], reason: str) -> None:
        batch = parse(lines([entity("Q1", "x", {"P1": [statement(snak), statement(item("Q2"))]})]))
        assert [fact[2] for fact in batch.facts] == ["Q2"] and batch.skipped == {reason: 1}

    def test_precision_finer_than_a_day_becomes_a_day(self) -> None:
        assert facts(statement(time("+1961-08-04T10:00:00Z", 13))) == [("Q1", "P1", "T::11::+1961-08-04T00:00:00Z")]

    def test_naming_property_gives_an_alias(self) -> None:
        claims = {"P1448": [statement(text("The Official Name")), statement(text("Der Name", "de"))]}
        batch = parse(lines([entity("Q1", "x", claims)]))
        assert batch.names == [("Q1", 0, "x"), ("Q1", 1, "The Official Name")] and not batch.facts

    def test_qualifiers_of_statements(self) -> None:
        one = statement(item("Q2"), P580=[time("+2001-01-02T00:00:00Z")], P1=[string("x", "url")])
        batch = parse(lines([entity("Q1", "x", {"P54": [one, statement(item("Q3"))]})]))
        (_, _, _, _, key), (_, _, _, _, none) = batch.facts
        assert batch.qualifiers == [(key, "P580", "T::11::+2001-01-02T00:00:00Z")] and none is None
        empty = one | {"qualifiers": []}
        assert not parse(lines([entity("Q1", "x", {"P54": [empty]})])).qualifiers
