"""Triples for the training and evaluation of vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kglm.kg.embedding.triples import DATE, FIRST_ENTITY, MEAN, QUANTITY, GraphTriples, Triples, graph_triples, split
from kglm.kg.graph import KnowledgeGraph
from support.rings import as_set, ring
from support.worlds import make_store


def test_rows_of_entities_with_facts_and_of_literals(path: Path) -> None:
    with KnowledgeGraph.open(path) as graph:
        data = graph_triples(graph)
        for node in range(len(graph)):
            row, id = data.row_of_node[node], graph.id(node)
            if id.startswith("T::"):
                assert row == DATE
            elif id.startswith("V::"):
                assert row == QUANTITY
            else:
                assert (row == MEAN) == (id == "Q5000")
        assert sorted(set(data.row_of_node.tolist())) == list(range(data.rows))


def test_triples_are_all_distinct_edges_except_reflexive_ones(path: Path) -> None:
    with KnowledgeGraph.open(path) as graph:
        data = graph_triples(graph)
        edges = {
            (int(data.row_of_node[node]), int(r), int(data.row_of_node[tail]))
            for node in range(len(graph))
            for r, tail in zip(*graph.edges(node), strict=True)
            if r > 1
        }
        assert as_set(data.triples) == edges and len(data.triples) == len(edges)
        born, qualifier = graph.find_relation("P569"), graph.find_relation("P2:P1082")
        assert (data.triples.relation == born).sum() == 60  # two dates each: one triple
        assert (data.triples.relation == qualifier).sum() == 20


def test_triples_include_edits(path: Path) -> None:
    with KnowledgeGraph.open(path) as stored:
        graph = stored.fork()
        graph.add("Q5000", "P1", "Q3")
        graph.add("Q5000", "P569", "1887")
        data = graph_triples(graph)
        edited, other = data.row_of_node[graph.number("Q5000")], data.row_of_node[graph.number("Q3")]
        knows = graph.find_relation("P1")
        assert knows is not None
        assert {(edited, knows, other), (other, knows + 1, edited)} <= as_set(data.triples)
        assert (edited, graph.find_relation("P569"), DATE) in as_set(data.triples)


def test_reverses_of_held_out_facts_are_held_out_too(data: GraphTriples) -> None:
    training, held_out = split(data, 50, np.random.default_rng(0))
    assert len(held_out) == 3  # 1 % of 240, rounded up
    reverse = Triples(held_out.tail, held_out.relation ^ 1, held_out.head)
    assert as_set(held_out) <= as_set(data.triples) and (held_out.tail >= FIRST_ENTITY).all()
    assert as_set(training) == as_set(data.triples) - as_set(held_out) - as_set(reverse)
    assert as_set(split(data, 50, np.random.default_rng(0)).held_out) == as_set(held_out)
    assert as_set(split(data, 50, np.random.default_rng(1)).held_out) != as_set(held_out)


def test_every_entity_and_relation_keeps_a_training_triple(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kglm.kg.embedding.triples.LARGEST_SHARE", 1.0)
    with KnowledgeGraph.open(make_store(tmp_path, ring(12))) as graph:
        data = graph_triples(graph)
    for seed in range(10):
        training, held_out = split(data, 10_000, np.random.default_rng(seed))
        assert len(held_out) > 20
        assert set(training.head.tolist()) == set(data.triples.head.tolist())
        assert set(training.relation.tolist()) == set(data.triples.relation.tolist())
