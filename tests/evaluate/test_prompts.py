"""Fact completion prompts: how they are read, and what counts as right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kglm.errors import DataError
from kglm.evaluate.prompts import SCORERS, Prompt, answer, date_words, read_prompts
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.dates import Date
from support.worlds import make_store

BIRTH = "T::11::+1961-08-04T00:00:00Z"
FACTS = (
    ("Q76", "P569", BIRTH),
    ("Q76", "P19", "Q18094"),
    ("Q30", "P36", "Q61"),
    ("Q1", "P26", "Q2"),
    ("Q60", "P131", "Q1384"),
    ("Q1384", "P36", "Q60"),
)
NAMES = {
    "Q76": ("Barack Obama",),
    "Q18094": ("Honolulu", "Sandwich Islands", "the City of Honolulu"),
    "Q30": ("United States of America",),
    "Q61": ("Washington, D.C.", "District of Columbia"),
    "Q1": ("Ann",),
    "Q60": ("New York City", "New York", "The Big Apple"),
    "Q1384": ("New York", "Empire State"),
    "Q2": ("The Count of Monte Cristo",),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg"), FACTS, NAMES))


def write(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n")
    return path


def row(**changes: Any) -> dict[str, Any]:
    plain = {
        "prefix": ["Barack", "Obama", "was", "born", "on"],
        "entity_indices": [0, 2],
        "entity_id": "Q76",
        "expected_tail": '"1961-08-04"',
    }
    return plain | changes


def one(tmp_path: Path, **changes: Any) -> Prompt:
    [prompt] = read_prompts(write(tmp_path / "p.jsonl", row(**changes)))
    return prompt


class TestReading:
    def test_a_row(self, tmp_path: Path) -> None:
        found = one(tmp_path, shortlist=["Q76", "Q1", "Q76"])
        assert found.words == ("Barack", "Obama", "was", "born", "on")
        assert (found.start, found.end, found.id, found.relation) == (0, 2, "Q76", "birthdate")
        assert found.shortlist == ("Q76", "Q1")
        assert found.date == Date(11, 1961, 8, 4)

    def test_start_may_be_there(self, tmp_path: Path) -> None:
        prefix = ["@@START@@", "Barack", "Obama", "was", "born", "on"]
        assert one(tmp_path, prefix=prefix, entity_indices=[1, 3]) == one(tmp_path)

    def test_words_are_cut_as_the_corpus_is(self, tmp_path: Path) -> None:
        """A title that came with its apostrophe glued on still names its entity."""
        prefix = ["A", "Midsummer", "Night's", "Dream", "is", "a", "book", "that", "was", "written", "by"]
        found = one(tmp_path, prefix=prefix, entity_indices=[0, 4], expected_tail="William Shakespeare")
        assert found.words[found.start : found.end] == ("A", "Midsummer", "Night", "'s", "Dream")
        assert found.relation == "book-author"
        assert found.words[found.end] == "is"

    @pytest.mark.parametrize(
        ("prefix", "indices", "relation"),
        [
            ("The capital of Japan is", [3, 4], "nation-capital"),
            ("The capital of the United States is", [4, 6], "nation-capital"),
            ("Ann was born in", [0, 1], "birthloc"),
            ("Ann is married to", [0, 1], "spouse"),
            ("Houston is a city in the state of", [0, 1], "city-state"),
            ("Ann likes", [0, 1], "X likes"),
        ],
    )
    def test_the_relation_follows_from_the_template(
        self, tmp_path: Path, prefix: str, indices: list[int], relation: str
    ) -> None:
        assert one(tmp_path, prefix=prefix.split(), entity_indices=indices).relation == relation

    def test_a_corrected_id_goes_before(self, tmp_path: Path) -> None:
        assert one(tmp_path, entity_id_clean="Q1").id == "Q1"

    def test_years_have_no_zeros_before(self, tmp_path: Path) -> None:
        assert one(tmp_path, expected_tail='"0354-11-13"').date == Date(11, 354, 11, 13)

    @pytest.mark.parametrize(
        "bad",
        [
            "{",
            "[]",
            {"prefix": ["a"]},
            row(entity_indices=[0, 9]),
            row(entity_indices=[2, 2]),
            row(entity_indices="x"),
            row(prefix="Barack Obama was born on"),
            row(prefix=["@@START@@", "Obama"], entity_indices=[0, 1]),
            row(expected_tail='"1961-13-45"'),
        ],
    )
    def test_a_bad_row_is_named(self, tmp_path: Path, bad: Any) -> None:
        with pytest.raises(DataError, match=r"p\.jsonl, line 2: is no prompt"):
            read_prompts(write(tmp_path / "p.jsonl", row(), bad))

    def test_an_empty_file(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="has no prompts"):
            read_prompts(write(tmp_path / "p.jsonl", ""))


class TestScorers:
    def test_dates(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        right = answer(graph, one(tmp_path))
        for word in ("August", "4", "1961"):
            assert all(right.right(scorer, [word]) for scorer in SCORERS), word
        for word in ("Aug.", "Aug", "04", "1961-08-04"):
            assert right.right("date", [word]), word
        for word in ("1962", "July", "5", "the", "@@UNKNOWN@@"):
            assert not any(right.right(scorer, [word]) for scorer in SCORERS), word
        assert right.facts == {(graph.find_relation("P569"), graph.number(BIRTH))}

    def test_names_by_their_first_word(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        prompt = one(tmp_path, prefix=["Barack", "Obama", "was", "born", "in"], expected_tail="Honolulu")
        right = answer(graph, prompt)
        assert right.words["strict"] == {"Honolulu", "Sandwich", "the"}
        assert right.right("any-token", ["Islands"]) and right.right("any-token", ["City"])
        assert not right.right("any-token", ["the"]) and not right.right("any-token", ["of"])
        assert not right.right("strict", ["Islands"])
        assert {tail for _, tail in right.facts} == {graph.number("Q18094")}

    def test_the_paper_took_the_date_for_the_place(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        right = answer(graph, one(tmp_path, prefix=["Barack", "Obama", "was", "born", "in"], expected_tail="Honolulu"))
        assert right.right("paper-like", ["1961"]) and right.right("paper-like", ["August"])
        assert not right.right("strict", ["1961"])

    def test_punctuation_is_no_word(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        prompt = one(
            tmp_path,
            prefix=["The", "capital", "of", "the", "United", "States", "is"],
            entity_indices=[4, 6],
            entity_id="Q30",
            expected_tail="Washington, D.C.",
        )
        right = answer(graph, prompt)
        assert "," not in right.words["any-token"]
        assert right.right("strict", ["Washington"]) and right.right("strict", ["District"])

    def test_the_subject_itself_is_no_answer(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        prefix = ["New", "York", "City", "is", "a", "city", "in", "the", "state", "of"]
        right = answer(
            graph, one(tmp_path, prefix=prefix, entity_indices=[0, 3], entity_id="Q60", expected_tail="New York")
        )
        assert right.words["strict"] == {"New", "Empire"}, "The Big Apple is its own name"
        assert right.facts == {(graph.find_relation("P131"), graph.number("Q1384"))}, "not that it is its capital"

    def test_a_tail_that_the_graph_does_not_hold(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        right = answer(graph, one(tmp_path, expected_tail="Michelle Obama"))
        assert right.words["strict"] == {"Michelle"}
        assert right.facts == set()

    def test_a_subject_that_the_graph_does_not_hold(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        assert answer(graph, one(tmp_path, entity_id="Q999")).facts == set()


def test_words_of_a_date() -> None:
    assert date_words(Date(11, 1961, 9, 4)) == {
        "1961", "September", "Sep", "Sep.", "Sept", "Sept.", "4", "04", "1961-09-04",
    }  # fmt: skip
    assert date_words(Date(9, 354)) == {"354", "0354"}
