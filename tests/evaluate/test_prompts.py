"""Test reading fact completion prompts and scoring answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kglm.errors import DataError
from kglm.evaluate.prompts import SCORERS, Prompt, date_words, expected_answer, read_prompts
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

    def test_a_start_token_is_dropped(self, tmp_path: Path) -> None:
        prefix = ["@@START@@", "Barack", "Obama", "was", "born", "on"]
        assert one(tmp_path, prefix=prefix, entity_indices=[1, 3]) == one(tmp_path)

    def test_words_are_tokenized_like_the_corpus(self, tmp_path: Path) -> None:
        """A title with an attached apostrophe keeps its span."""
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

    def test_a_corrected_id_replaces_the_original(self, tmp_path: Path) -> None:
        assert one(tmp_path, entity_id_clean="Q1").id == "Q1"

    def test_leading_zeros_of_years(self, tmp_path: Path) -> None:
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
    def test_an_invalid_row_is_an_error_with_its_line(self, tmp_path: Path, bad: Any) -> None:
        with pytest.raises(DataError, match=r"p\.jsonl, line 2: is not a valid prompt"):
            read_prompts(write(tmp_path / "p.jsonl", row(), bad))

    def test_an_empty_file(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="has no prompts"):
            read_prompts(write(tmp_path / "p.jsonl", ""))


class TestScorers:
    def test_dates(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        expected = expected_answer(graph, one(tmp_path))
        for word in ("August", "4", "1961"):
            assert all(expected.accepts(scorer, [word]) for scorer in SCORERS), word
        for word in ("Aug.", "Aug", "04", "1961-08-04"):
            assert expected.accepts("date", [word]), word
        for word in ("1962", "July", "5", "the", "@@UNKNOWN@@"):
            assert not any(expected.accepts(scorer, [word]) for scorer in SCORERS), word
        assert expected.facts == {(graph.find_relation("P569"), graph.number(BIRTH))}

    def test_names_by_their_first_word(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        prompt = one(tmp_path, prefix=["Barack", "Obama", "was", "born", "in"], expected_tail="Honolulu")
        expected = expected_answer(graph, prompt)
        assert expected.words["strict"] == {"Honolulu", "Sandwich", "the"}
        assert expected.accepts("any-token", ["Islands"]) and expected.accepts("any-token", ["City"])
        assert not expected.accepts("any-token", ["the"]) and not expected.accepts("any-token", ["of"])
        assert not expected.accepts("strict", ["Islands"])
        assert {tail for _, tail in expected.facts} == {graph.number("Q18094")}

    def test_paper_like_accepts_the_birth_date_for_the_birthplace(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        expected = expected_answer(
            graph, one(tmp_path, prefix=["Barack", "Obama", "was", "born", "in"], expected_tail="Honolulu")
        )
        assert expected.accepts("paper-like", ["1961"]) and expected.accepts("paper-like", ["August"])
        assert not expected.accepts("strict", ["1961"])

    def test_punctuation_is_not_accepted(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        prompt = one(
            tmp_path,
            prefix=["The", "capital", "of", "the", "United", "States", "is"],
            entity_indices=[4, 6],
            entity_id="Q30",
            expected_tail="Washington, D.C.",
        )
        expected = expected_answer(graph, prompt)
        assert "," not in expected.words["any-token"]
        assert expected.accepts("strict", ["Washington"]) and expected.accepts("strict", ["District"])

    def test_names_of_the_subject_are_not_accepted(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        prefix = ["New", "York", "City", "is", "a", "city", "in", "the", "state", "of"]
        expected = expected_answer(
            graph, one(tmp_path, prefix=prefix, entity_indices=[0, 3], entity_id="Q60", expected_tail="New York")
        )
        assert expected.words["strict"] == {"New", "Empire"}, "The Big Apple is its own name"
        assert expected.facts == {(graph.find_relation("P131"), graph.number("Q1384"))}, "not that it is its capital"

    def test_a_tail_outside_the_graph(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        expected = expected_answer(graph, one(tmp_path, expected_tail="Michelle Obama"))
        assert expected.words["strict"] == {"Michelle"}
        assert expected.facts == set()

    def test_a_subject_outside_the_graph(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        assert expected_answer(graph, one(tmp_path, entity_id="Q999")).facts == set()


def test_words_of_a_date() -> None:
    assert date_words(Date(11, 1961, 9, 4)) == {
        "1961", "September", "Sep", "Sep.", "Sept", "Sept.", "4", "04", "1961-09-04",
    }  # fmt: skip
    assert date_words(Date(9, 354)) == {"354", "0354"}
