"""Features of the values of a relation: against counts by hand, before and after edits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.statements import Statement, columns_of
from kglm.kg.tail_features import NAMES, TailFeatureReader, covers
from support.worlds import make_store

YEAR = "T::9::{:+05d}-00-00T00:00:00Z"
FACTS = (
    ("Q1", "P17", "Q2"),  # a second fact between the two
    ("Q2", "P1", "Q5"),
    ("Q1", "P1", "Q5"),  # a shared neighbour
    ("Q6", "P1", "Q3"),
)
CAPITALS = (
    (("Q1", "P36", "Q2"), {"rank": "preferred", "qualifiers": {"P580": [YEAR.format(1990)]}}),
    (("Q1", "P36", "Q3"), {"qualifiers": {"P580": [YEAR.format(1949)], "P582": [YEAR.format(1990)]}}),
    (("Q1", "P36", "Q4"), {}),
)
LABELS = {"Q1": ("Germany",)}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with KnowledgeGraph.open(make_store(tmp_path, FACTS, LABELS, CAPITALS)) as graph:
        yield graph


def features(graph: KnowledgeGraph, head: str, relation: str) -> dict[str, dict[str, float]]:
    index = graph.find_relation(relation)
    assert index is not None
    found = TailFeatureReader(graph).of(graph.number(head), index)
    rows = (dict(zip(NAMES, row, strict=True)) for row in found.value_NQ.tolist())
    return dict(zip(map(graph.id, found.tail.tolist()), rows, strict=True))


def by_hand(graph: KnowledgeGraph, head: str, tail: str) -> list[float]:
    """joined, shared, known."""
    near = {id: [graph.id(int(e)) for e in graph.edges(graph.number(id)).tail] for id in (head, tail)}
    shared = len(set(near[head]) & set(near[tail]))
    return [math.log(near[head].count(tail)), math.log1p(shared), math.log1p(len(near[tail]))]


def assert_as_by_hand(graph: KnowledgeGraph) -> None:
    for tail, row in features(graph, "Q1", "P36").items():
        assert list(row.values())[3:] == pytest.approx(by_hand(graph, "Q1", tail))


def test_features(graph: KnowledgeGraph) -> None:
    found = features(graph, "Q1", "P36")
    assert [list(found[id].values())[:3] for id in ("Q2", "Q3", "Q4")] == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert found["Q2"]["joined"] == pytest.approx(math.log(2)) and found["Q3"]["joined"] == 0
    assert found["Q2"]["shared"] > found["Q4"]["shared"] and found["Q3"]["known"] > found["Q4"]["known"]
    assert_as_by_hand(graph)
    assert features(graph, "Q2", "R:P36")["Q1"]["preferred"] == 1


def test_features_after_edits(graph: KnowledgeGraph) -> None:
    draft = graph.fork()
    draft.add("Q1", "P36", "Q6")
    draft.add("Q4", "P17", "Q1")
    found = features(draft, "Q1", "P36")
    assert list(found["Q6"].values())[:3] == [0, 0, 0] and found["Q4"]["joined"] == pytest.approx(math.log(2))
    assert found["Q2"]["preferred"] == 1
    assert_as_by_hand(draft)
    draft.undo()
    draft.undo()
    assert features(draft, "Q1", "P36") == features(graph, "Q1", "P36")


def test_literals_have_features(tmp_path: Path) -> None:
    facts = [("Q1", "P569", YEAR.format(year)) for year in (1961, 1962)]
    with KnowledgeGraph.open(make_store(tmp_path, facts, LABELS)) as graph:
        assert {tuple(row.values()) for row in features(graph, "Q1", "P569").values()} == {(0,) * len(NAMES)}


def test_years_that_a_statement_covers() -> None:
    start, end, point = (YEAR.format(year) for year in (1949, 1990, 1970))
    statements = columns_of([
        Statement(start=start, end=end), Statement(start=start), Statement(end=end), Statement(point=point), Statement()
    ])  # fmt: skip
    found = np.stack([covers(statements, year) for year in (1948, 1949, 1970, 1990, 1991)], 1)
    assert found.tolist() == [
        [-1, 1, 1, 1, -1],
        [-1, 1, 1, 1, 1],
        [1, 1, 1, 1, -1],
        [-1, -1, 1, -1, -1],
        [0, 0, 0, 0, 0],
    ]
