"""Pages of an entity's facts: together they are all facts, and a page reads no more than it lists."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kglm.kg.describe import SORTED_VALUES, Page, describe
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import import_graph
from support.hubs import DEGREE, counting, hub_store
from support.worlds import make_store


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with KnowledgeGraph.open(hub_store(tmp_path_factory.mktemp("hub"))) as graph:
        yield graph


def described(graph: KnowledgeGraph, id: str, **options: Any) -> dict[str, Any]:
    return describe(graph, graph.number(id), **options)


def test_a_page_reads_what_it_lists(hub: KnowledgeGraph) -> None:
    with counting() as counted:
        shown = described(hub, "Q1", facts=Page(10))
    assert shown["counts"] == {"facts": {"P17": 1, "P527": DEGREE}, "reverse": {}}
    assert len(shown["facts"]) == 11
    assert counted.labels == 12 and counted.rows <= 11 + 1
    with counting() as counted:
        shown = described(hub, "Q2", reverse=Page(5))
    assert shown["counts"]["reverse"] == {"R:P31": DEGREE} and len(shown["reverse"]["R:P31"]) == 5
    assert counted.labels == 6 and counted.rows <= 1


@pytest.mark.parametrize("size", [1, 7, 999, DEGREE])
def test_pages_are_all_facts(hub: KnowledgeGraph, size: int) -> None:
    pages = range(0, DEGREE, size) if size > 1 else range(5)
    tails = [
        fact["tail"]
        for offset in pages
        for fact in described(hub, "Q1", relation="P527", facts=Page(size, offset))["facts"]
    ]
    everything = described(hub, "Q1", relation="P527", facts=Page(None))["facts"]
    assert tails == [fact["tail"] for fact in everything][: len(tails)]
    assert {fact["tail"] for fact in everything} == {f"Q{100 + number}" for number in range(DEGREE)}
    heads = [
        head["id"] for offset in pages for head in described(hub, "Q2", reverse=Page(size, offset))["reverse"]["R:P31"]
    ]
    assert sorted(heads) == sorted(tails)


def test_a_relation_in_both_directions_or_in_one(hub: KnowledgeGraph) -> None:
    shown = described(hub, "Q100", relation="P527")
    assert set(shown["reverse"]) == {"R:P527"} and shown["facts"] == []
    shown = described(hub, "Q100", relation="R:P31")
    assert shown["facts"] == [] and shown["reverse"] == {}
    assert [fact["tail"] for fact in described(hub, "Q100", relation="P31")["facts"]] == ["Q2"]


class TestOrdinary:
    """Facts with ranks, qualifiers and two spellings of a date."""

    @pytest.fixture
    def graph(self, tmp_path: Path) -> Iterator[KnowledgeGraph]:
        many = SORTED_VALUES + 50
        facts = [
            {"head": "Q1", "relation": "P54", "tail": "Q10", "qualifiers": {"P413": ["Q7"]}},
            {"head": "Q1", "relation": "P54", "tail": "Q11", "qualifiers": {"P413": ["Q7"]}, "rank": "preferred"},
            {"head": "Q1", "relation": "P569", "tail": "T::9::+1970-01-01T00:00:00Z"},
            {"head": "Q1", "relation": "P569", "tail": "T::9::+1970-00-00T00:00:00Z"},
            *({"head": "Q1", "relation": "P9", "tail": f"Q{1000 + n}", "qualifiers": {"P413": [f"Q{n // 2 + 20}"]}}
              for n in range(many)),
        ]  # fmt: skip
        (tmp_path / "facts.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
        import_graph([tmp_path / "facts.jsonl"], tmp_path / "q.kg")
        with KnowledgeGraph.open(tmp_path / "q.kg", writable=True) as opened:
            yield opened

    def test_preferred_first_with_qualifiers(self, graph: KnowledgeGraph) -> None:
        shown = described(graph, "Q1", relation="P54")
        found = [(fact["tail"], fact["rank"], [q["tail"] for q in fact["qualifiers"]]) for fact in shown["facts"]]
        assert found == [("Q11", "preferred", ["Q7"]), ("Q10", "normal", ["Q7"])]

    @pytest.mark.parametrize("page", [Page(), Page(None), Page(3, 140)])
    def test_qualifiers_of_a_long_relation(self, graph: KnowledgeGraph, page: Page) -> None:
        shown = described(graph, "Q1", facts=page)
        assert shown["counts"]["facts"] == {"P54": 2, "P569": 1, "P9": SORTED_VALUES + 50}, "no qualifiers"
        many = [fact for fact in shown["facts"] if fact["relation"] == "P9"]
        assert len(many) == (page.limit or SORTED_VALUES + 50)
        for fact in many:
            assert [q["tail"] for q in fact["qualifiers"]] == [f"Q{(int(fact['tail'][1:]) - 1000) // 2 + 20}"]

    def test_a_qualifier_without_statement_is_a_fact(self, graph: KnowledgeGraph) -> None:
        graph.add("Q1", "P54:P413", "Q10")
        assert described(graph, "Q1")["counts"]["facts"]["P54:P413"] == 1
        assert [fact["tail"] for fact in described(graph, "Q1", relation="P54:P413")["facts"]] == ["Q10"]


def test_an_entity_without_facts(tmp_path: Path) -> None:
    with KnowledgeGraph.open(make_store(tmp_path)) as graph:
        shown = described(graph, "P26")
        assert shown["facts"] == [] and shown["reverse"] == {} and shown["counts"] == {"facts": {}, "reverse": {}}
