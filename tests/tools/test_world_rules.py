"""The rules that clean the source of the bundled world."""

from __future__ import annotations

from pathlib import Path

import pytest

from world_rules import cleaning, names
from world_rules.corrections import (
    Resolver,
    apply_countries,
    apply_facts,
    apply_names,
    date,
    read_corrections,
    read_rows,
)
from world_rules.descriptions import Descriptions
from world_rules.kinds import add_classes, is_named, kind
from world_rules.literals import choose_dates, choose_quantities
from world_rules.source import Graph, Names, Statement

KM2, METRE = "http://www.wikidata.org/entity/Q712226", "http://www.wikidata.org/entity/Q11573"
RULES = Path(__file__).parents[2] / "tools" / "world_rules"
RELATIONS = {
    "P31": "instance of", "P36": "capital", "P1376": "capital of", "P38": "currency", "P26": "spouse", "P40": "child",
    "P22": "father", "P25": "mother", "P21": "sex or gender", "P17": "country", "P569": "date of birth",
    "P47": "border",
    "P570": "date of death", "P1082": "population", "P19": "place of birth", "P106": "occupation", "P30": "continent",
    "P27": "country of citizenship", "P57": "director", "P577": "publication date", "P37": "official language",
    "P576": "dissolved", "P131": "located in", "P279": "subclass of",
}  # fmt: skip


def day(year: int, month: int = 0, of_month: int = 0) -> str:
    return date(f"{year}" + (f"-{month:02d}" if month else "") + (f"-{of_month:02d}" if of_month else ""))


def graph_of(labels: dict[str, str], *facts: str) -> Graph:
    """A graph of entities and facts such as "Q1 P36 Q2"."""
    graph = Graph()
    graph.relations = dict(RELATIONS)
    graph.names = {id: Names(label) for id, label in labels.items()}
    for fact in facts:
        head, relation, tail = fact.split()
        graph.add(head, relation, tail)
    return graph


class TestNames:
    @pytest.mark.parametrize(
        ("text", "cleaned"),
        [
            ("Lan\\u0161kroun", "Lanškroun"),
            ("Dido , Queen of Carthage", "Dido, Queen of Carthage"),
            ("I ca n't Take ( It )", "I can't Take (It)"),
            ('"kavan"', "kavan"),
            ("seventh - generation video game consoles", "seventh-generation video game consoles"),
            ("chess.", "chess"),
            ("lin\u00adguistics  of\u00a0today", "linguistics of today"),
        ],
    )
    def test_cleaned(self, text: str, cleaned: str) -> None:
        assert names.clean(text) == cleaned

    @pytest.mark.parametrize(
        "name",
        ["Joe Jackson", "Messier 100", "NGC 447", "J. K. Rowling", "Friedrich von Bülow", "William Hastings, 1st Baron "
         "Hastings", "Henry IV of Saxony", "Chain of Rocks Bridge", "Motörhead", "McDonald", "Jean-Paul Sartre",
         "The Winds of War"],
    )  # fmt: skip
    def test_capitals(self, name: str) -> None:
        assert names.with_capitals(name.lower()) == name

    @pytest.mark.parametrize(
        "label", ["third season", "in 1962", "the original game", "26th", "september 1927", "novel of the same name"]
    )
    def test_words_that_name_nothing(self, label: str) -> None:
        assert names.is_generic(label)

    @pytest.mark.parametrize("label", ["Second Life", "The Game of Thrones", "1984", "In Utero", "One Piece", "season"])
    def test_words_that_name_something(self, label: str) -> None:
        assert not names.is_generic(label)

    @pytest.mark.parametrize(
        ("alias", "label"),
        [
            ("III JX es el presidente de asia", "Asia"),
            (".", "Amazon"),
            ("Detroiit", "Detroit"),
            ("Detroit fin", "Detroit"),
            ("🇧🇪", "Belgium"),
            ("be", "Belgium"),
            ("BE", "Belgium"),
            ("Ulm/Donau", "Ulm"),
            ("Game_of_Thrones", "Game of Thrones"),
            ("Category:Minsk", "Minsk"),
        ],
    )
    def test_junk(self, alias: str, label: str) -> None:
        assert names.junk_alias(alias, label, named=True)

    @pytest.mark.parametrize(
        ("alias", "label"),
        [
            ("BHO", "Barack Obama"),
            ("US", "United States of America"),
            ("Motor City", "Detroit"),
            ("9/11", "September 11 attacks"),
            ("Kingdom of Belgium", "Belgium"),
            ("Amazon.com", "Amazon"),
        ],
    )
    def test_good_aliases(self, alias: str, label: str) -> None:
        assert names.junk_alias(alias, label, named=True) is None

    def test_a_concept_may_have_aliases_in_lower_case(self) -> None:
        assert names.junk_alias("car", "Automobile", named=False) is None

    def test_names_that_differ_by_case_only(self) -> None:
        assert names.distinct(["joe Jackson", "Joe Jackson", "MJ"]) == ["Joe Jackson", "MJ"]


class TestDates:
    def test_a_year_beside_a_day(self) -> None:
        assert choose_dates("P569", [day(1990, 5, 3), day(1990), day(1990, 5)])[0] == [day(1990, 5, 3)]

    def test_one_exact_date_wins_over_a_year_near_it(self) -> None:
        assert choose_dates("P569", [day(1981, 12, 2), day(1982)])[0] == [day(1981, 12, 2)]

    def test_two_days_of_one_year_leave_the_year(self) -> None:
        assert choose_dates("P570", [day(1725, 1, 28), day(1725, 2, 8)])[0] == [day(1725)]

    def test_two_days_of_one_month_leave_the_month(self) -> None:
        assert choose_dates("P570", [day(1903, 5, 8), day(1903, 5, 9)])[0] == [day(1903, 5)]

    def test_two_years_leave_nothing(self) -> None:
        assert choose_dates("P569", [day(1908, 7, 25), day(1909, 7, 25)])[0] == []

    def test_the_same_year_in_two_spellings(self) -> None:
        twice = ["T::9::+1701-00-00T00:00:00Z", "T::9::+1701-01-01T00:00:00Z"]
        assert len(choose_dates("P571", twice)[0]) == 1

    def test_the_first_of_several_publications(self) -> None:
        assert choose_dates("P577", [day(2014, 12, 17), day(2014, 12, 1), day(2014)])[0] == [day(2014, 12, 1)]


class TestQuantities:
    def test_numbers_without_dates_that_are_far_apart_say_nothing(self) -> None:
        assert choose_quantities("P1082", ["V::1849568.0000::1", "V::205876.0000::1"])[0] == []

    def test_numbers_that_are_near_leave_the_middle_one(self) -> None:
        assert choose_quantities("P1082", ["V::103.0000::1", "V::100.0000::1", "V::101.0000::1"])[0] == [
            "V::101.0000::1"
        ]

    def test_a_number_without_its_unit(self) -> None:
        assert choose_quantities("P2046", ["V::30528.0000::1", f"V::30528.0000::{KM2}"])[0] == [f"V::30528.0000::{KM2}"]
        assert choose_quantities("P2048", ["V::1.8500::1"])[0] == [f"V::1.8500::{METRE}"]
        assert choose_quantities("P2048", ["V::42.0000::1"])[0] == []

    def test_one_area_in_two_units(self) -> None:
        metres = "V::226260000.0000::http://www.wikidata.org/entity/Q25343"
        assert choose_quantities("P2046", [f"V::226.4300::{KM2}", metres])[0] == [f"V::226.4300::{KM2}"]


class TestCleaning:
    def test_capitals_by_kind(self) -> None:
        graph = graph_of(
            {"Q5": "human", "Q1": "joe jackson", "Q2": "lemmy", "Q3": "bridge", "Q4": "tower bridge", "Q6": "Tower"},
            "Q1 P31 Q5", "Q2 P569 T::9::+1945-00-00T00:00:00Z", "Q4 P31 Q3", "Q4 P131 Q6", "Q6 P19 Q4",
        )  # fmt: skip
        add_classes(graph)
        cleaning.clean_names(graph)
        assert [graph.label(id) for id in ("Q1", "Q2", "Q3")] == ["Joe Jackson", "Lemmy", "bridge"]
        assert "Q5" in graph.tails("Q2", "P31") and is_named(graph, "Q1")

    def test_a_label_that_misspells_the_title(self) -> None:
        graph = graph_of({"Q5": "human", "Q1": "Merryl Streep", "Q2": "Portland"}, "Q1 P31 Q5", "Q2 P17 Q5")
        graph.names["Q1"].title, graph.names["Q2"].title = "Meryl Streep", "Portland, Oregon"
        cleaning.clean_names(graph)
        assert (graph.label("Q1"), graph.label("Q2")) == ("Meryl Streep", "Portland")

    def test_facts_about_the_encyclopedia_and_of_lost_entities(self) -> None:
        graph = graph_of({"Q1": "A", "Q2": "Category:A"}, "Q1 P31 Q2", "Q1 P17 Q1", "Q1 P36 Q404", "Q1 P36:P580 Q1")
        cleaning.clean_names(graph)
        cleaning.clean_facts(graph)
        assert not list(graph.facts()) and "Q2" not in graph.names
        assert graph.left_out["entities: a page about the encyclopedia"] == 1

    def test_a_life_that_cannot_be(self) -> None:
        graph = graph_of({"Q5": "human", "Q1": "A"}, "Q1 P31 Q5", f"Q1 P569 {day(1900)}", f"Q1 P570 {day(1890)}")
        cleaning.clean_facts(graph)
        assert not graph.tails("Q1", "P569") and not graph.tails("Q1", "P570")

    def test_borders_with_states_that_are_no_more(self) -> None:
        graph = graph_of(
            {"Q1": "France", "Q2": "Prussia", "Q3": "Spain"}, f"Q2 P576 {day(1947)}", "Q1 P47 Q2", "Q1 P47 Q3"
        )
        cleaning.clean_facts(graph)
        assert graph.tails("Q1", "P47") == ["Q3"]

    def test_reverse_facts(self) -> None:
        graph = graph_of(
            {"Q1": "France", "Q2": "Paris", "Q3": "Ann", "Q4": "Bob", "Q5": "Cy", "Q6": "Bonn", "Q7": "Berlin",
             "Q8": "D"},
            "Q2 P1376 Q1", "Q3 P26 Q4", "Q4 P40 Q5", "Q4 P21 Q6581097", "Q6 P1376 Q8", "Q7 P1376 Q8",
        )  # fmt: skip
        added = cleaning.add_reverse(graph)
        assert graph.tails("Q1", "P36") == ["Q2"] and graph.tails("Q4", "P26") == ["Q3"]
        assert graph.tails("Q5", "P22") == ["Q4"]
        assert not graph.tails("Q8", "P36")  # two cities say so: which one it is today is not known
        assert added == {"P36": 1, "P26": 1, "P22": 1}

    def test_the_country_of_today_is_marked(self) -> None:
        graph = graph_of(
            {"Q1": "Ulm", "Q2": "Germany", "Q3": "Württemberg"}, f"Q3 P576 {day(1918)}", "Q1 P17 Q2", "Q1 P17 Q3"
        )
        assert cleaning.mark_current(graph) == 1
        assert {tail: each.rank for tail, each in graph.of["Q1"]["P17"].items()} == {"Q2": 1, "Q3": 0}


class TestCorrections:
    def write(self, folder: Path, *lines: str) -> Path:
        path = folder / "corrections.tsv"
        path.write_text("# a comment\n" + "\n".join("\t".join(line.split("|")) for line in lines) + "\n")
        return path

    def test_each_action(self, tmp_path: Path) -> None:
        graph = graph_of(
            {"Q1": "France", "Q2": "franc", "Q3": "euro", "Q4": "junk", "Q5": "Ann"},
            "Q1 P38 Q2",
            "Q5 P26 Q4",
            "Q1 P36 Q4",
        )
        path = self.write(
            tmp_path, "new|Q_paris||Paris|||why", "label|Q3||Euro|||why", "set|France|capital|Paris|||why",
            "current|France|currency|Euro|1999-01-01||why", "add|Ann|date of birth|1990-05|||why", "drop|junk|||||why",
            "set|Ann|spouse|+Bob Öz|2001|2004|why", "set|France|population|67400000|||why",
        )  # fmt: skip
        lines, resolver = read_corrections(path), Resolver(graph)
        assert apply_names(resolver, lines) == {"new": 1, "label": 1, "drop": 1}
        assert apply_facts(resolver, lines) == {"set": 3, "current": 1, "add": 1}
        assert graph.of["Q1"]["P36"] == {"Q_paris": Statement()}
        assert graph.of["Q1"]["P38"] == {"Q2": Statement(), "Q3": Statement(1, day(1999, 1, 1))}
        assert graph.of["Q5"]["P26"] == {"Q_Bob_Oz": Statement(0, day(2001), day(2004))}
        assert graph.tails("Q1", "P1082") == ["V::67400000.0000::1"] and graph.label("Q_Bob_Oz") == "Bob Öz"
        assert "Q4" not in graph.names

    def test_all_mistakes_are_told_with_their_lines(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "set|Atlantis|capital|Paris|||why", "set|France|capitol|France|||why")
        with pytest.raises(ValueError, match=r"line 2: no entity.*'Atlantis'\n.*line 3: no relation.*'capitol'"):
            apply_facts(Resolver(graph_of({"Q1": "France"})), read_corrections(path))

    def test_a_correction_needs_a_reason(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="line 2"):
            read_corrections(self.write(tmp_path, "drop|junk"))

    def test_countries(self) -> None:
        graph = graph_of(
            {"Q1": "France", "Q2": "Paris", "Q3": "Paris", "Q4": "euro", "Q5": "franc", "Q6": "Europe", "Q7": "French"},
            "Q2 P1376 Q1", "Q3 P17 Q4", "Q3 P17 Q5", "Q1 P38 Q5", "Q1 P1082 V::4.0000::1",
        )  # fmt: skip
        row = ["France", "French", "Paris", "euro", "Europe", "French", "67400000", "2020"]
        assert apply_countries(Resolver(graph), [row], "a.tsv") == (5, {"Q1": "French"})
        assert graph.tails("Q1", "P36") == ["Q2"]  # the Paris that is said to be the capital, though Q3 has more facts
        assert graph.tails("Q1", "P38") == ["Q4"]
        assert graph.of["Q1"]["P1082"] == {"V::67400000.0000::1": Statement(1, None, None, day(2020))}

    def test_the_files_can_be_read(self) -> None:
        lines = [each for path in RULES.glob("corrections*.tsv") for each in read_corrections(path)]
        assert len(lines) > 200 and all(each.reason for each in lines)
        assert all(len(row) == 8 for row in read_rows(RULES / "countries.tsv"))
        assert all(len(row) == 6 for row in read_rows(RULES / "offices.tsv"))


class TestDescriptions:
    def test_made_from_facts(self) -> None:
        graph = graph_of(
            {"Q5": "human", "Q1": "Ann", "Q2": "singer", "Q30": "United States of America", "Q6256": "country",
             "Q49": "North America", "Q11424": "film", "Q7": "Heat", "Q8": "Bob", "Q9": "tower", "Q10": "Big Tower"},
            "Q1 P31 Q5", "Q1 P106 Q2", "Q1 P27 Q30", "Q30 P31 Q6256", "Q30 P30 Q49", "Q7 P31 Q11424", "Q7 P57 Q8",
            f"Q7 P577 {day(1995, 12, 15)}", f"Q8 P569 {day(1943)}", "Q8 P31 Q5", "Q10 P31 Q9", "Q10 P17 Q30",
        )  # fmt: skip
        describe = Descriptions(graph, {"Q30": "American"})
        assert describe.of("Q1") == "American singer"
        assert describe.of("Q30") == "country in North America"
        assert describe.of("Q7") == "1995 film directed by Bob"
        assert describe.of("Q8") == "person born in 1943"
        assert describe.of("Q10") == "tower in United States"
        assert [kind(graph, id) for id in ("Q1", "Q30", "Q7", "Q2")] == ["people", "countries", "films", "concepts"]
