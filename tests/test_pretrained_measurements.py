"""The measurements of pretrained models judge answers and texts as their descriptions say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks.pretrained import new_graphs, trial
from benchmarks.pretrained.common import Accepted, Question, half_of, read_lines, resumed
from benchmarks.pretrained.held_out import COUNT, SAMPLE, held_out_relations, is_held_out_wording
from benchmarks.pretrained.rival import is_inside, is_right, only
from benchmarks.pretrained.supported import items, statements

from kglm.api import import_graph
from kglm.kg.graph import KnowledgeGraph

FACTS = """\
head\trelation\ttail
Ann Lee\tdate of birth\t4 August 1961
Ann Lee\tspouse\tTom Ash
Ann Lee\theight\t1.75 m
Tom Ash\tlives in\tPort Vale
Port Vale\tpopulation\t12412
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    home = tmp_path_factory.mktemp("graph")
    (home / "facts.tsv").write_text(FACTS)
    import_graph(home / "facts.tsv", home / "own.kg")
    with KnowledgeGraph.open(home / "own.kg") as graph:
        yield graph


def test_held_out_relations_and_wordings() -> None:
    relations = held_out_relations()
    assert len(set(relations)) == len(relations) == COUNT
    assert not SAMPLE & set(relations)
    wordings = [f"XXXX number {number} of ____" for number in range(2000)]
    held = [is_held_out_wording("P17", wording) for wording in wordings]
    assert 0.17 < sum(held) / len(held) < 0.23
    assert held == [is_held_out_wording("P17", wording.replace("of ____", "of the ____.")) for wording in wordings]
    assert held != [is_held_out_wording("P36", wording) for wording in wordings]


@pytest.mark.parametrize("name", [*new_graphs.WORLDS, new_graphs.NUMBERS])
def test_each_relation_of_an_own_graph_has_wordings(name: str, tmp_path: Path) -> None:
    kg = new_graphs.build(name, tmp_path)
    with KnowledgeGraph.open(kg) as graph:
        worded = new_graphs.wordings(name)
        labels = {graph.relation_label(r) for r in range(2, graph.relation_count, 2)}
        assert {label for label in labels if ":" not in label} == set(worded)  # with a colon: times of facts
        development = new_graphs.questions(graph, name, "development", None, 0)
        reported = new_graphs.questions(graph, name, "reported", None, 0)
        for label, wordings in worded.items():
            relation = next(
                graph.relation_id(r) for r in range(graph.relation_count) if graph.relation_label(r) == label
            )
            assert graph.relation_names(relation)[1:] == wordings["also"]
    assert not {question.prompt for question in development} & {question.prompt for question in reported}
    assert {half_of(f"{name} {q.subject} {q.relation}") for q in reported} == {"reported"}
    if name != new_graphs.NUMBERS:
        assert len({(q.subject, q.relation) for q in reported}) == new_graphs.WORLD_FACTS


def asked(tail: str, prompt: str = "Ann Lee has") -> Question:
    return Question("key", prompt, "Q_Ann_Lee", "Ann Lee", "P_x", (tail,))


def test_an_answer_is_right_to_the_last_digit(graph: KnowledgeGraph) -> None:
    [height] = [graph.id(t) for t in graph.tails(graph.number("Q_Ann_Lee"), graph.find_relation("P_height") or 0)]
    for text, right in (("1.75 m.", True), ("1.75", True), ("1.7", False), ("1.755 m", False), ("11.75 m", False)):
        assert is_right(graph, asked(height), f" {text}") is right, text
    assert "1.75 m" in Accepted.of(graph, [height]).names
    assert is_inside(graph, asked(height), "about 1.75 m or so") and not is_inside(
        graph, asked(height), "about 1.755 m"
    )


def test_a_date_needs_its_year_and_day(graph: KnowledgeGraph) -> None:
    relation = graph.find_relation("P_date_of_birth") or 0
    [date] = [graph.id(t) for t in graph.tails(graph.number("Q_Ann_Lee"), relation)]
    for text, right in (
        ("August 4, 1961", True),
        ("4 August 1961 in", True),
        ("August 4, 1972", False),
        ("4 August", False),
    ):
        assert is_right(graph, asked(date), text) is right, text


def test_only_names_can_be_written() -> None:
    allowed = only([[1, 2], [1, 2, 3], [4]], stops=[9])
    assert allowed([]) == [1, 4]
    assert allowed([1]) == [2]
    assert allowed([1, 2]) == [3, 9]
    assert allowed([1, 2, 3]) == allowed([4]) == allowed([1, 2, 9]) == []


def test_what_the_graph_supports_in_a_text(graph: KnowledgeGraph) -> None:
    text = " on 4 August 1961 in Port Vale. She married Tom Ash in 1980, and met Mary Poe. Port Vale has 12,412 people."
    found = {
        text[item.start : item.end]: item.supported
        for item in items(graph, graph.number("Q_Ann_Lee"), "Ann Lee was born", text)
    }
    assert found == {
        "4 August 1961": True,
        "Port Vale": True,  # named again after Tom Ash; once he is named, his town is supported
        "Tom Ash": True,
        "1980": False,
        "Mary Poe": False,
        "12,412": True,
    }


def test_facts_by_patterns(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text(
        "Q1\tP569\tT::11::+1961-08-04T00:00:00Z\nQ1\tP19\tQ2\nQ2\tP17\tQ3\nQ1\tP26\tQ4\nQ5\tP57\tQ4\n"
    )
    names = {"Q1": "Ann Lee", "Q2": "Port Vale", "Q3": "Norland", "Q4": "Tom Ash", "Q5": "Long Rain"}
    lines = [json.dumps({"id": id, "label": label, "aliases": []}) for id, label in names.items()]
    (tmp_path / "entities.jsonl").write_text("\n".join(lines) + "\n")
    import_graph(tmp_path / "facts.tsv", tmp_path / "own.kg", entities=tmp_path / "entities.jsonl")
    with KnowledgeGraph.open(tmp_path / "own.kg") as graph:
        text = " on 4 August 1962 in Norland. She married Tom Ash. Mary was born in 1900. She died in Port Vale."
        found = [
            (each.relation, each.right) for each in statements(graph, graph.number("Q1"), "Ann Lee was born", text)
        ]
        assert found == [("P569", False), ("P19", True), ("P26", True), ("P20", None)]
        [directed] = statements(graph, graph.number("Q5"), "Long Rain was", " directed by Mary Poe.")
        assert directed.right is False


def test_a_measurement_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path, asked = tmp_path / "rows.jsonl", list[str]()

    def task(name: str) -> dict[str, str]:
        asked.append(name)
        return {"answer": name.upper()}

    tasks = [(name, lambda name=name: task(name)) for name in "abc"]
    resumed(path, tasks[:2], title="asking")
    path.write_text(path.read_text() + '{"task": "c", "ans')
    rows = resumed(path, tasks, title="asking")
    assert [row["answer"] for row in rows] == ["A", "B", "C"] and asked == ["a", "b", "c"]
    assert len(read_lines(path)) == 3


class TestTrial:
    def test_the_halves_have_the_same_kinds(self) -> None:
        even, odd = (trial.read_table(half) for half in ("development", "reported"))
        assert len(even) == len(odd) == 150
        assert [(line.kind, line.is_question) for line in even] == [(line.kind, line.is_question) for line in odd]

    @pytest.mark.parametrize(
        ("subject", "relation", "right", "status"),
        [
            ("ann lee", "spouse", "Tom Ash", "has"),
            ("Ann Lee", "spouse|lives in", "Tim Oak|Tom Ash", "has"),
            ("Ann Lee", "spouse", "*", "has"),
            ("Ann Lee", "spouse", "Tim Oak", "other"),
            ("Ann Lee", "spouse", "missing", "lacks"),
            ("Ann Lee", "lives in", "Port Vale", "lacks"),
            ("No One", "spouse", "Tom Ash", "lacks"),
            ("Ann Lee", "date of birth", "1961-08-04", "has"),
            ("Ann Lee", "date of birth", "1961", "has"),
            ("Ann Lee", "date of birth", "1962", "other"),
            ("Port Vale", "population", "~12000", "has"),
            ("Port Vale", "population", "~15000", "other"),
        ],
    )
    def test_what_the_graph_has(
        self, graph: KnowledgeGraph, subject: str, relation: str, right: str, status: str
    ) -> None:
        line = trial.Line("people", "…", subject, tuple(relation.split("|")), tuple(right.split("|")))
        assert trial.what_graph_has(graph, line)[0] == status

    @pytest.mark.parametrize(
        ("text", "id", "right", "expected"),
        [
            ("Tom", "Tom Ash", "Tom Ash", True),
            ("Tom", "Ann Lee", "Tom Ash", False),
            ("the Tom Ash", None, "Tom Ash", True),
            ("August 1961", None, "1961-08-04", True),
            ("1962", None, "1961-08-04", False),
        ],
    )
    def test_an_answer(self, graph: KnowledgeGraph, text: str, id: str | None, right: str, expected: bool) -> None:
        entity = None if id is None else SimpleNamespace(id=graph.search(id)[0].id)
        line = trial.Line("people", "…", "Ann Lee", ("spouse",), (right,))
        assert trial.is_right(graph, SimpleNamespace(text=text, entity=entity, facts=[]), line) == expected
