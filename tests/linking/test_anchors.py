"""Anchor counts: how often links with a text lead to an entity."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from kglm.errors import DataError
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.anchors import Anchors
from kglm.linking.linker import Linker
from kglm.linking.name_index import hash_name
from support.worlds import make_store

NAMES = {"Q1": ("Paris",), "Q2": ("Paris",), "Q3": ("Rome",)}


@pytest.fixture
def graph(tmp_path: Path) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path, [("Q1", "P1", "Q3"), ("Q2", "P1", "Q3")], NAMES))


@pytest.fixture
def anchors(graph: KnowledgeGraph) -> Anchors:
    text = ["In", "Paris", "and", "Paris", ",", "Rome", "Paris"]
    one, two, three = (graph.number(id) for id in ("Q1", "Q2", "Q3"))
    return Anchors.count([(text, [(1, 2, two), (3, 4, two), (5, 6, three), (6, 7, one)])])


def test_smoothed_share_of_each_entity(anchors: Anchors, graph: KnowledgeGraph) -> None:
    paris = hash_name(["Paris"])
    assert len(anchors) == 2
    assert anchors.log_share(paris, graph.number("Q2")) == pytest.approx(math.log(2.5 / 4.5))
    assert anchors.log_share(paris, graph.number("Q1")) == pytest.approx(math.log(1.5 / 4.5))
    assert anchors.log_share(paris, graph.number("Q3")) == pytest.approx(math.log(0.5 / 4.5)), "no link with this text"
    assert anchors.log_share(hash_name(["Bonn"]), graph.number("Q3")) == 0, "no link has this text"


def test_anchor_counts_disambiguate(anchors: Anchors, graph: KnowledgeGraph) -> None:
    [[_, _, plain]], [[_, _, counted]] = Linker(graph).link(["Paris"]), Linker(graph, anchors=anchors).link(["Paris"])
    assert [graph.id(each.node) for each in plain] == ["Q1", "Q2"]
    assert [graph.id(each.node) for each in counted] == ["Q2", "Q1"]


def test_link_with_the_same_words_disambiguates(graph: KnowledgeGraph) -> None:
    linked = Linker(graph).link(["Paris", "is", "Paris"], [(0, 1, graph.number("Q2"))])
    assert [graph.id(each.node) for each in linked] == ["Q2", "Q2"]


def test_frequent_link_text_is_an_alias(graph: KnowledgeGraph) -> None:
    three = graph.number("Q3")
    anchors = Anchors.count([(["the", "Eternal", "City", "Slip"], [(1, 3, three)] * 2 + [(3, 4, three)])])
    assert Linker(graph).link(["Eternal", "City"]) == []
    [[start, end, [found]]] = Linker(graph, anchors=anchors).link(["Eternal", "City", "or", "Slip"])
    assert (start, end, found.node) == (0, 2, three), "one link is not enough for an alias"


def test_save_and_load(anchors: Anchors, graph: KnowledgeGraph, tmp_path: Path) -> None:
    anchors.save(tmp_path / "a.json", graph)
    again = Anchors.load(tmp_path / "a.json", graph)
    paris = hash_name(["Paris"])
    for id in ("Q1", "Q2", "Q3"):
        assert again.log_share(paris, graph.number(id)) == anchors.log_share(paris, graph.number(id))
    again.save(tmp_path / "b.json", graph)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    other = KnowledgeGraph.open(make_store(tmp_path / "other", [("Q9", "P1", "Q3")], {"Q3": ("Rome",)}))
    assert len(Anchors.load(tmp_path / "a.json", other)) == 1, "only Rome is in this graph"
    for wrong in (
        "[]",
        "{",
        '{"format": 1}',
        '{"format": 1, "links": []}',
        '{"format": 1, "links": {"a": {"Q1": "3"}}}',
    ):
        (tmp_path / "c.json").write_text(wrong)
        with pytest.raises(DataError, match="not a table of link texts"):
            Anchors.load(tmp_path / "c.json", graph)
