"""Completion with hubs: what is not enumerated is in the rest, and names are made only for what can be mentioned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kglm import bundled
from kglm.answer.next_word import MAX_TAILS, NextWordConfig, _largest, next_words
from kglm.answer.reading import Span, read
from kglm.answer.running import unfinished_name_length
from kglm.kg.graph import KnowledgeGraph
from kglm.model import local_graph
from kglm.model.aliases import AliasTable
from kglm.model.local_graph import EdgeGroups, MentionedEntities
from kglm.model.types import Type
from support.toys import FACTS, MORE_FACTS, Toy, make_toy

PARTS = 70
"""More than the tails that are scored, so that each has the same probability."""
HUB = (*FACTS, *(("Q1", "P527", f"Q{500 + number}") for number in range(PARTS)))
NAMES = {f"Q{500 + number}": (f"Part{number} Thing",) for number in range(PARTS)}


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return make_toy(tmp_path_factory.mktemp("toy"), facts=HUB)


def completed(toy: Toy, **limits: int):  # type: ignore[no-untyped-def]
    reading = read(toy, toy.model, ["Mario", "is"], [(1.0, [Span(0, 1, toy.graph.number("Q1"))])])
    return next_words(reading, NextWordConfig(max_new=10_000, max_related=10_000, **limits))


def facts(found) -> dict[tuple[int, int, int], float]:  # type: ignore[no-untyped-def]
    reasons = found.explanations
    columns = (reasons.parent_W, reasons.relation_W, reasons.mention_W, reasons.mass_W)
    at = np.flatnonzero(reasons.type_W == Type.RELATED)
    rows = zip(*(column[at].tolist() for column in columns), strict=True)
    return {(parent, relation, found.nodes_U[mention]): mass for parent, relation, mention, mass in rows}


@pytest.mark.parametrize("max_tails", [PARTS, PARTS + 1, MAX_TAILS])
def test_below_the_bound_everything_is_enumerated(toy: Toy, max_tails: int) -> None:
    whole, found = completed(toy, max_tails=10**9), completed(toy, max_tails=max_tails)
    assert found.rest["related"] == 0.0 and found.p_N.sum() == pytest.approx(1, abs=1e-9)
    np.testing.assert_array_equal(found.p_N, whole.p_N)
    assert facts(found) == facts(whole)


@pytest.mark.parametrize("max_tails", [PARTS - 1, 1, 0])
def test_relations_above_the_bound_are_in_the_rest(toy: Toy, max_tails: int) -> None:
    whole, found = completed(toy), completed(toy, max_tails=max_tails)
    every, kept = facts(whole), facts(found)
    sizes = {key[:2]: len(toy.graph.tails(*key[:2])) for key in every}
    assert kept == {key: mass for key, mass in every.items() if sizes[key[:2]] <= max_tails}
    left_out = sum(mass for key, mass in every.items() if key not in kept)
    assert left_out > 0
    assert found.rest["related"] == pytest.approx(left_out, rel=1e-12)
    assert found.p_N.sum() + sum(found.rest.values()) == pytest.approx(1, abs=1e-9)


def test_no_names_of_tails_that_are_not_enumerated(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[int] = []
    look_up = AliasTable._look_up
    monkeypatch.setattr(AliasTable, "_look_up", lambda self, node: looked_up.append(node) or look_up(self, node))
    toy.aliases._cache.clear()
    reading = read(toy, toy.model, ["Mario", "is"], [(1.0, [Span(0, 1, toy.graph.number("Q1"))])])
    next_words(reading, NextWordConfig(max_new=0, max_related=10_000, max_tails=PARTS - 1))
    parts = {toy.graph.number(f"Q{500 + number}") for number in range(PARTS)}
    assert looked_up and not parts & set(looked_up)


def test_no_ordinary_relation_is_above_the_bound() -> None:
    with KnowledgeGraph.open(bundled.RUN / "world.kg") as graph:
        most = max(int(EdgeGroups.of(graph, node).size.max(initial=0)) for node in range(len(graph)))
    assert most < MAX_TAILS / 10


def test_groups_with_at_most_some_tails(toy: Toy) -> None:
    edges = EdgeGroups.of(toy.graph, toy.graph.number("Q1"))
    for most in (0, 1, 2, PARTS - 1, PARTS):
        few = edges.with_at_most(most)
        assert few.relation.tolist() == edges.relation[edges.size <= most].tolist()
        for relation, first, size in zip(few.relation, few.first, few.size, strict=True):
            tails = toy.graph.tails(toy.graph.number("Q1"), int(relation))
            assert few.tail[first : first + size].tolist() == tails.tolist()
        assert len(few.tail) == few.size.sum()


@pytest.mark.parametrize("many", [0, 3, 8])
def test_paths_of_hubs_are_found_by_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    toy = make_toy(tmp_path, facts=(*FACTS, *MORE_FACTS))
    nodes = list(range(len(toy.graph)))[::-1]

    def paths() -> list[list[tuple[int, ...]]]:
        mentioned, found = MentionedEntities(toy.graph), []
        for node in nodes[::2]:
            mentioned.slot(node)
            some = mentioned.paths_to(nodes)
            found.append([] if some is None else sorted(zip(*(column.tolist() for column in some), strict=True)))
        return found

    indexed = paths()
    monkeypatch.setattr(local_graph, "MANY_EDGES", many)
    assert paths() == indexed and any(indexed)
    assert MentionedEntities(toy.graph).paths_to(nodes) is None


@pytest.mark.parametrize("count", [0, 1, 3, 7, 20])
def test_the_largest_are_those_of_a_stable_sort(count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(50):
        values = rng.integers(0, 5, 12).astype(np.float64)
        wanted = np.zeros(12, np.bool_)
        wanted[np.argsort(-values, kind="stable")[:count]] = True
        np.testing.assert_array_equal(_largest(values, count), wanted)


def test_an_unfinished_name_of_one_neighbour_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = make_toy(tmp_path, facts=HUB, names=NAMES | {"Q1": ("Mario",)})
    looked_up: list[int] = []
    look_up = AliasTable._look_up
    monkeypatch.setattr(AliasTable, "_look_up", lambda self, node: looked_up.append(node) or look_up(self, node))
    hub = toy.graph.number("Q1")
    assert unfinished_name_length(toy, ["is", "Part7"], {hub}) == 1
    literals = {node for node in looked_up if toy.graph.id(node)[:3] in ("T::", "V::")}
    assert set(looked_up) - literals == {toy.graph.number("Q507")}
    assert unfinished_name_length(toy, ["is", "Part7", "Thing"], {hub}) == 0
