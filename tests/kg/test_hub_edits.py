"""Edits of hubs: an edit reads the facts of its key, and many changes of one node are merged at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kglm.kg import overlay
from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import import_graph
from kglm.kg.journal import Change
from kglm.kg.name_prefixes import nodes_named_like
from kglm.kg.overlay import Edges, _merged
from kglm.kg.resolve import SAMPLES, parse_fact
from support.hubs import DEGREE, counting, hub_store
from support.worlds import facts_of, make_store

FEW = 2 * SAMPLES + 20
"""Rows that an edit may read, samples of tails included."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with KnowledgeGraph.open(hub_store(tmp_path), writable=True) as graph:
        yield graph


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("set", "Great List | country | Borduria"),
        ("add", "Great List | has part | Borduria"),
        ("remove", "Great List | has part | Part Q1234"),
        ("remove", "Q1234 P31 Q2"),
    ],
)
def test_an_edit_reads_its_key(hub: KnowledgeGraph, action: str, text: str) -> None:
    before = facts_of(hub)
    with counting() as counted:
        hub.edit([FactEdit(action, *parse_fact(hub, text))])  # type: ignore[arg-type]
    assert counted.rows < FEW
    assert facts_of(hub) != before
    with counting() as counted:
        hub.undo()
    assert counted.rows < FEW
    assert facts_of(hub) == before


def count_merges(patch: pytest.MonkeyPatch) -> list[int]:
    """The number of changes in each merge from now on."""
    found: list[int] = []

    def merged(edges: Edges, changes: Mapping[tuple[int, int], bool]) -> Edges:
        found.append(len(changes))
        return _merged(edges, changes)

    patch.setattr(overlay, "_merged", merged)
    return found


def test_set_of_a_relation_with_many_tails(hub: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fact is read once, and the edges of the hub are copied once."""
    before, merged = facts_of(hub), count_merges(monkeypatch)
    with counting() as counted:
        changes = hub.set("Q1", "P527", "Q31")
    assert len(changes) == DEGREE + 1 and counted.rows < DEGREE + FEW
    assert hub.tails(hub.number("Q1"), hub.find_relation("P527") or 0).tolist() == [hub.number("Q31")]
    assert merged == [DEGREE + 1]
    monkeypatch.undo()
    expected = {fact for fact in before if "P527" not in fact[1] or "Q1" not in fact}
    assert facts_of(hub) == expected | {("Q1", "P527", "Q31"), ("Q31", "R:P527", "Q1")}
    hub.undo()
    assert facts_of(hub) == before
    with KnowledgeGraph.open(hub.store.path) as again:
        assert facts_of(again) == before


def test_replayed_changes_of_a_hub_are_merged_once(hub: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.edit([FactEdit("remove", "Q1", "P527", f"Q{100 + number}") for number in range(0, 900, 3)])
    merged = []
    monkeypatch.setattr(
        overlay, "_merged", lambda edges, changes: merged.append(len(changes)) or _merged(edges, changes)
    )
    with KnowledgeGraph.open(hub.store.path) as again:
        assert merged == [], "edges are merged when they are read"
        assert len(again.edges(again.number("Q1")).tail) == DEGREE + 2 - 300
        assert merged == [300]
        again.edges(again.number("Q1"))
        assert merged == [300]


def test_a_fork_shares_changes_that_are_not_merged_yet(hub: KnowledgeGraph) -> None:
    hub.remove("Q1", "P527", "Q100")
    one, two = hub.fork(), hub.fork()
    one.remove("Q1", "P527", "Q101")
    two.add("Q1", "P527", "Q31")
    degrees = [len(graph.edges(graph.number("Q1")).tail) for graph in (hub, one, two)]
    assert degrees == [DEGREE + 1, DEGREE, DEGREE + 2]


EDGE = st.tuples(st.integers(0, 4), st.integers(0, 6))


@given(st.sets(EDGE), st.lists(st.tuples(EDGE, st.booleans()), max_size=12))
def test_merging_is_adding_and_removing_in_order(before: set[tuple[int, int]], steps: list[tuple]) -> None:
    expected = set(before)
    for edge, present in steps:
        (expected.add if present else expected.discard)(edge)
    columns = np.array(sorted(before), np.int32).reshape(-1, 2).T
    found = _merged(Edges(*columns), dict(steps))
    assert list(zip(found.relation.tolist(), found.tail.tolist(), strict=True)) == sorted(expected)
    assert found.relation.dtype == found.tail.dtype == np.int32


def test_degrees_literals_and_names_by_the_arrays(tmp_path: Path) -> None:
    with KnowledgeGraph.open(hub_store(tmp_path, 40)) as graph:
        fork = graph.fork()
        fork.remove("Q1", "P527", "Q100")
        fork.add("Q1", "P17", "T::11::+2013-03-21T00:00:00Z")
        nodes = np.arange(len(fork))
        assert fork.degrees(nodes).tolist() == [len(fork.edges(node).tail) for node in nodes.tolist()]
        assert fork.are_literals(nodes).tolist() == [fork.id(node)[:3] in ("T::", "V::") for node in nodes.tolist()]
        for starts in (["Part"], ["Q1", "Great"], ["Part Q139", "x" * 50], [], [""], ["é"]):
            texts = tuple(filter(None, starts))
            named = [node for node in nodes.tolist() if any(name.startswith(texts) for name in fork.names(node))]
            assert nodes_named_like(fork, nodes, starts).tolist() == named


def qualified_hub(home: Path) -> KnowledgeGraph:
    """Q1 has statements with their own, shared and no qualifiers, dates among them in two spellings."""
    rows: list[dict[str, object]] = [
        {"tail": "Q10", "qualifiers": {"P413": ["Q7"], "P580": ["T::9::+1970-00-00T00:00:00Z"]}, "rank": "preferred"},
        {"tail": "Q11", "qualifiers": {"P413": ["Q7"]}},
        {"tail": "Q12"},
        {"tail": "Q13", "rank": "preferred"},
        {"tail": "Q14", "qualifiers": {"P413": ["Q8", "Q9"]}},
        {"tail": "T::9::+1970-00-00T00:00:00Z"},
        {"tail": "T::9::+1970-01-01T00:00:00Z", "qualifiers": {"P413": ["Q8"]}},
        {"tail": "V::5.0000::1"},
    ]
    home.mkdir()
    facts = [json.dumps({"head": "Q1", "relation": "P54"} | row) for row in rows]
    (home / "facts.jsonl").write_text("\n".join([*facts, '{"head": "Q12", "relation": "P54", "tail": "Q1"}']))
    import_graph([home / "facts.jsonl"], home / "g.kg")
    return KnowledgeGraph.open(home / "g.kg", writable=True)


def tables(graph: KnowledgeGraph) -> dict[str, list[tuple]]:
    """Content of a graph file without the times of its edits; facts by ids, as an undo gives them new numbers."""
    named = "SELECT h.id, r.id, t.id, f.rank FROM fact f JOIN entity h ON h.number = f.head JOIN relation r"
    named += " ON r.number = f.relation JOIN entity t ON t.number = f.tail"
    queries = {
        "fact": named,
        "qualifier": f"SELECT s.*, q.* FROM qualifier x JOIN ({named.replace('f.rank', 'f.rank, f.number')}) s"
        f" ON s.number = x.statement JOIN ({named.replace('f.rank', 'f.rank, f.number')}) q ON q.number = x.fact",
        "entity": "SELECT number, id FROM entity",
    }
    assert graph.store.integrity.tables_with_wrong_seal() == []
    found = {name: sorted(graph.store.rows(query)) for name, query in queries.items()}
    found["qualifier"] = [(*row[:4], *row[5:9]) for row in found["qualifier"]]
    return found


@pytest.mark.parametrize("kept", ["Q10", "Q14", "Q99", "V::5.0000::1"])
def test_setting_is_removing_one_by_one(tmp_path: Path, kept: str) -> None:
    """With qualifiers, shared or not, and with dates in two spellings; undone, the graph is as before."""
    with qualified_hub(tmp_path / "a") as together, qualified_hub(tmp_path / "b") as singly:
        for graph in (together, singly):
            graph.edit([NewEntity("Q99", ("new",))])
        before = tables(together)
        changes = together.set("Q1", "P54", kept)
        relation = singly.find_relation("P54")
        assert relation is not None
        removed: list[Change] = []
        for tail in singly.overlay.ids_of(singly.tails(singly.number("Q1"), relation)):
            if tail != kept:
                removed += singly.remove("Q1", "P54", tail)
        if kept == "Q99":
            removed += singly.add("Q1", "P54", kept)
        assert changes == removed, "in the same order"
        assert tables(together) == tables(singly) != before
        assert facts_of(together) == facts_of(singly)
        together.undo()
        assert tables(together) == before
        with KnowledgeGraph.open(together.store.path) as again:
            assert facts_of(again) == facts_of(together)


def test_ids_and_numbers_of_many_nodes(tmp_path: Path) -> None:
    with qualified_hub(tmp_path / "a") as stored:
        graph = stored.fork()
        graph.edit([NewEntity("Q99", ("new",)), FactEdit("add", "Q1", "P54", "T::9::+1980-01-01T00:00:00Z")])
        numbers = np.arange(len(graph.overlay), dtype=np.int32)
        ids = [graph.id(number) for number in numbers.tolist()]
        assert graph.overlay.ids_of(numbers) == ids
        wanted = [*ids, "T::9::+1980-00-00T00:00:00Z", "T::9::+1970-01-00T00:00:00Z", "Q1234", "T::nonsense"]
        expected = {id: number for id in wanted if (number := graph.find(id)) is not None}
        assert graph.overlay.numbers_of(wanted) == expected
        assert expected.keys() == set(wanted[:-2])


@pytest.mark.parametrize(
    ("action", "text", "stored"),
    [
        ("remove", "Q1 P580 T::11::+1003-02-07T00:00:00Z", ["T::11::+1003-02-07T00:00:00Z"]),
        (
            "remove",
            "Q1 P580 T::9::+1970-00-00T00:00:00Z",
            ["T::9::+1970-01-01T00:00:00Z", "T::9::+1970-05-05T00:00:00Z"],
        ),
        ("remove", "Q1 P580 V::7.0000::1", ["V::07.00::1", "V::7.0000::1"]),
        ("add", "Q1 P580 T::11::+2003-02-07T00:00:00Z", []),
        ("add", "Q1 P580 V::8.0000::1", []),
    ],
)
def test_an_edit_of_one_of_many_dates_reads_its_key(tmp_path: Path, action: str, text: str, stored: list[str]) -> None:
    """Also if it is stored in several spellings."""
    tails = [f"T::11::+{1000 + day // 28}-02-{day % 28 + 1:02d}T00:00:00Z" for day in range(DEGREE)]
    tails += ["T::9::+1970-05-05T00:00:00Z", "T::9::+1970-01-01T00:00:00Z", "V::7.0000::1", "V::07.00::1"]
    with KnowledgeGraph.open(
        make_store(tmp_path, [("Q1", "P580", tail) for tail in tails], {"Q1": ("Chronicle",)}), writable=True
    ) as graph:
        before = tables(graph)
        with counting() as counted:
            changes = graph.edit([FactEdit(action, *parse_fact(graph, text))])  # type: ignore[arg-type]
        assert counted.rows < FEW
        if action == "remove":
            assert [change.tail for change in changes] == stored
            assert {row[2] for row in before["fact"]} - {row[2] for row in tables(graph)["fact"]} == set(stored)
        else:
            assert [change.tail for change in changes] == [text.split()[2]]
        graph.undo()
        assert tables(graph)["fact"] == before["fact"]


def test_setting_reads_each_qualifier_once(tmp_path: Path) -> None:
    """Also if all statements share their qualifiers."""
    facts = [
        {"head": "Q1", "relation": "P54", "tail": f"Q{100 + n}", "qualifiers": {"P413": ["Q7", f"Q{20 + n % 3}"]}}
        for n in range(300)
    ]
    (tmp_path / "facts.jsonl").write_text("\n".join(map(json.dumps, facts)))
    import_graph([tmp_path / "facts.jsonl"], tmp_path / "g.kg")
    with KnowledgeGraph.open(tmp_path / "g.kg", writable=True) as graph:
        before = tables(graph)
        with counting() as counted:
            graph.set("Q1", "P54", "Q101")
        assert counted.rows < 2000, "300 facts, 4 qualifiers, 600 links in both directions"
        after = tables(graph)
        assert [fact[:3] for fact in after["fact"]] == [
            ("Q1", "P54", "Q101"), ("Q1", "P54:P413", "Q21"), ("Q1", "P54:P413", "Q7")
        ]  # fmt: skip
        assert len(after["qualifier"]) == 2
        graph.undo()
        assert tables(graph) == before
