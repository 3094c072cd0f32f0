"""Graphs for control experiments."""

from __future__ import annotations

from collections import Counter

import pytest

from kglm.kg.controls import shuffled, without
from kglm.kg.graph import KnowledgeGraph
from support.worlds import make_store

PEOPLE, PLACES = range(1, 30), range(40, 45)
FACTS = tuple((f"Q{n}", "P19", f"Q{40 + n % 5}") for n in PEOPLE) + tuple(
    (f"Q{n}", "P569", f"T::11::+19{n:02d}-01-02T00:00:00Z") for n in PEOPLE
)
NAMES = {f"Q{n}": (f"Name {n}",) for n in (*PEOPLE, *PLACES)} | {"P19": ("place of birth",), "P569": ("born",)}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg"), FACTS, NAMES))


def facts(graph: KnowledgeGraph) -> list[tuple[int, int, int]]:
    return [
        (head, relation, tail)
        for head in range(len(graph))
        for relation, tail in zip(*(column.tolist() for column in graph.edges(head)), strict=True)
    ]


def test_shuffled_facts_have_the_same_heads_and_tails(graph: KnowledgeGraph) -> None:
    true, found = (Counter(each for each in facts(one) if each[1] % 2 == 0) for one in (graph, shuffled(graph)))
    assert Counter(each[:2] for each in true) == Counter(each[:2] for each in found)
    assert Counter(each[1:] for each in true) == Counter(each[1:] for each in found)
    assert sum((true & found).values()) < 0.6 * sum(true.values())  # the reflexive ones are the same
    assert facts(shuffled(graph)) == facts(shuffled(graph)) != facts(shuffled(graph, seed=1))


@pytest.mark.parametrize("kind", ["same", "shuffled"])
def test_reverse_edges_belong_to_the_facts(graph: KnowledgeGraph, kind: str) -> None:
    found = graph if kind == "same" else shuffled(graph)
    edges = facts(found)
    literal = found.are_literals(range(len(found))).tolist()
    forward = {(tail, relation + 1, head) for head, relation, tail in edges if relation % 2 == 0 < relation}
    assert {each for each in edges if each[1] % 2} == {each for each in forward if not literal[each[0]]}
    assert edges == sorted(edges)


def test_names_and_numbers_stay(graph: KnowledgeGraph) -> None:
    found = shuffled(graph)
    assert found.same_numbers(graph)
    assert [list(found.names(n)) for n in range(len(graph))] == [list(graph.names(n)) for n in range(len(graph))]


def test_without_some_entities(graph: KnowledgeGraph) -> None:
    person, place = graph.number("Q1"), graph.number("Q42")
    found = without(graph, [person, place])
    assert {each for each in facts(found) if each[1]} == {
        each for each in facts(graph) if each[1] and not {person, place} & {each[0], each[2]}
    }
    assert not found.names(person) and found.names(graph.number("Q2")) == graph.names(graph.number("Q2"))
