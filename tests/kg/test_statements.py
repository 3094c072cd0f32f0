"""Rank, times and sources of statements: kept by imports, in arrays and in the store alike, and by edits."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from kglm.doctor import examine
from kglm.kg.compiled import compile_store
from kglm.kg.describe import describe
from kglm.kg.export import export_graph
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import import_graph
from kglm.kg.seals import compute_seal, write_seal
from kglm.kg.statements import NO_YEAR, Statement, iso_date
from kglm.kg.store import Store
from kglm.kg.tail_features import tail_statements
from support.dumps import entity, item, statement, string, time
from support.worlds import make_store


def year(number: int) -> str:
    return f"T::9::{number:+05d}-00-00T00:00:00Z"


CAPITALS = (
    (("Q142", "P36", "Q3561"), {"qualifiers": {"P580": [year(1942)], "P582": ["T::11::+1944-08-31T00:00:00Z"]}}),
    (("Q142", "P36", "Q90"), {"rank": "preferred", "qualifiers": {"P580": [year(1944)], "P248": ["Q11191"]}}),
    (("Q142", "P36", "Q621"), {"qualifiers": {"P580": [year(1682)], "P582": [year(1789)]}}),
    (("Q142", "P36", "Q288"), {"qualifiers": {"P585": [year(1871)], "P854": ["https://example.org/tours"]}}),
    (("Q22923", "P39", "Q11696"), {"qualifiers": {"P580": [year(1885), year(1893)], "P582": [year(1889), year(1897)]}}),
    (("Q23", "P39", "Q11696"), {"qualifiers": {"P580": [year(1885), year(1893)], "P582": [year(1889)]}}),
)
NAMES = {"Q142": ("France",), "Q90": ("Paris",), "Q11191": ("The World Factbook",), "P36": ("capital",)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    facts = (("Q142", "P30", "Q46"), ("Q142", "P36", "Q1000"))
    return make_store(tmp_path, facts, NAMES, CAPITALS)


def of(graph: KnowledgeGraph, head: str, relation: str, tail: str) -> Statement:
    index = graph.find_relation(relation)
    assert index is not None
    return graph.statement(graph.number(head), index, graph.number(tail))


def test_statements_of_an_import(path: Path) -> None:
    with KnowledgeGraph.open(path) as graph:
        assert of(graph, "Q142", "P36", "Q90") == Statement(1, year(1944), sources=("Q11191",))
        assert of(graph, "Q90", "R:P36", "Q142") == of(graph, "Q142", "P36", "Q90")
        assert of(graph, "Q142", "P36", "Q621").period == "1682–1789"
        assert of(graph, "Q142", "P36", "Q288").sources == ("https://example.org/tours",)
        assert of(graph, "Q142", "P30", "Q46") == of(graph, "Q142", "P36", "Q1000") == Statement()
        assert of(graph, "Q22923", "P39", "Q11696").period == "1885–1897"
        assert of(graph, "Q23", "P39", "Q11696").period == "since 1885"
        assert graph.find_relation("P36:P248") is None, "sources are no facts"
        assert graph.source_label("Q11191") == "The World Factbook"


def assert_columns_agree(graph: KnowledgeGraph) -> None:
    """For every edge, the arrays say what the store says."""
    found = 0
    for head in range(len(graph)):
        edges = graph.edges(head)
        for relation in sorted(set(edges.relation.tolist()) - {0}):
            columns = tail_statements(graph, head, relation)
            for place, tail in enumerate(graph.tails(head, relation).tolist()):
                each = graph.statement(head, relation, tail)
                years = [
                    NO_YEAR if id is None else int(id.split("+")[1][:4]) for id in (each.start, each.end, each.point)
                ]
                if columns is None:
                    assert not any((each.rank, each.start, each.end, each.point))
                else:
                    row = [int(column[place]) for column in columns[1:]]
                    assert row == [each.rank, each.ended, *years]
                    found += any(row[:2]) or max(years) > NO_YEAR
    assert found


def test_arrays_say_what_the_store_says(path: Path) -> None:
    with KnowledgeGraph.open(path) as graph:
        assert_columns_agree(graph)


def test_a_graph_without_such_data_has_empty_arrays(tmp_path: Path) -> None:
    with KnowledgeGraph.open(make_store(tmp_path)) as graph:
        assert len(graph.overlay.base.statements.place) == 0
        assert tail_statements(graph, graph.number("Q76"), 2) is None


def test_edits_and_their_undo(path: Path) -> None:
    """Removed statements come back with all they had; added ones have nothing: in memory, on disk, and compiled."""
    paris = Statement(1, year(1944), sources=("Q11191",))
    with KnowledgeGraph.open(path, writable=True) as graph:
        for edited in (graph.fork(), graph):
            edited.set("Q142", "P36", "Q1000")
            assert edited.find("Q90") is not None and edited.tails(edited.number("Q142"), 2).size
            edited.undo()
            assert of(edited, "Q142", "P36", "Q90") == paris
            assert_columns_agree(edited)
            edited.remove("Q142", "P36", "Q90")
            edited.add("Q142", "P36", "Q90")
            assert of(edited, "Q142", "P36", "Q90") == Statement()
            assert_columns_agree(edited)
            edited.undo()
            edited.undo()
            edited.remove("Q142", "P36:P582", "T::9::+1789-00-00T00:00:00Z")
            assert of(edited, "Q142", "P36", "Q621").period == "since 1682"
            assert_columns_agree(edited)
    with KnowledgeGraph.open(path) as reopened:
        assert of(reopened, "Q142", "P36", "Q90") == paris
        assert of(reopened, "Q142", "P36", "Q621").period == "since 1682"
        assert_columns_agree(reopened)
        before = [tail_statements(reopened, node, 2) for node in range(len(reopened))]
    with Store.open(path) as store:
        compile_store(store)
    with KnowledgeGraph.open(path) as compiled:
        assert not compiled.overlay.restated
        after = [tail_statements(compiled, node, 2) for node in range(len(compiled))]
        for left, right in zip(before, after, strict=True):
            assert (left is None) == (right is None)
            if left is not None and right is not None:
                assert [column.tolist() for column in left[1:]] == [column.tolist() for column in right[1:]]


def as_format_1(path: Path) -> None:
    """Turn a graph without sources into one as earlier versions wrote it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DROP TABLE source")
    connection.execute("PRAGMA user_version = 1")
    write_seal(connection, compute_seal(connection))
    connection.close()


def test_a_graph_of_format_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """It opens, has its ranks and times, and can be edited; arrays of that time are rebuilt if there is such data."""
    monkeypatch.setattr("kglm.kg.compiled.FORMAT", 1)
    monkeypatch.setattr("kglm.kg.compiled.has_statement_data", lambda _: False)
    plain = make_store(tmp_path / "plain")
    path = make_store(tmp_path / "statements", (("Q142", "P30", "Q46"),), NAMES, [CAPITALS[0], CAPITALS[2]])
    monkeypatch.undo()
    for each in (plain, path):
        as_format_1(each)
    with KnowledgeGraph.open(plain) as graph:
        assert graph.statement(graph.number("Q76"), 2, int(graph.tails(graph.number("Q76"), 2)[0])) == Statement()
    assert capsys.readouterr().err == ""
    with KnowledgeGraph.open(path, writable=True) as graph:
        assert "format 1" in capsys.readouterr().err
        assert_columns_agree(graph)
        graph.set("Q142", "P36", "Q621")
        graph.undo()
        assert of(graph, "Q142", "P36", "Q3561").period == "1942–1944"
        assert describe(graph, graph.number("Q142"))["facts"][0]["sources"] == []
    assert [finding.level for finding in examine(path)] == ["note"] * len(list(examine(path)))


def test_current_values_are_shown_first(path: Path) -> None:
    with KnowledgeGraph.open(path) as graph:
        shown = [fact for fact in describe(graph, graph.number("Q142"))["facts"] if fact["relation"] == "P36"]
    assert [fact["tail"] for fact in shown] == ["Q90", "Q288", "Q1000", "Q3561", "Q621"]
    assert [fact["period"] for fact in shown] == ["since 1944", "1871", None, "1942–1944", "1682–1789"]
    assert (shown[0]["since"], shown[3]["until"]) == ("1944", "1944-08-31")
    assert shown[0]["sources"] == ["The World Factbook"]


def test_references_of_a_dump(tmp_path: Path) -> None:
    """The work that a statement is stated in, and the address of a reference; other parts are skipped."""
    capital = statement(item("Q2"), rank="preferred", P580=[time("+1790-07-16T00:00:00Z")])
    capital["references"] = [
        {"snaks": {"P248": [item("Q3")], "P813": [time("+2020-01-01T00:00:00Z")]}},
        {"snaks": {"P854": [string("https://example.org", "url")], "P143": [item("Q9")]}},
        {"snaks": []},
        {"snaks": {"P248": [{"snaktype": "novalue", "datatype": "wikibase-item"}]}},
    ]
    records = [entity("Q1", "one", {"P36": [capital]}), entity("Q2", "two"), entity("Q3", "three")]
    (tmp_path / "dump.json").write_text("[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n")
    report = import_graph([tmp_path / "dump.json"], tmp_path / "kg", workers=1)
    assert report.skipped == {}
    with KnowledgeGraph.open(tmp_path / "kg") as graph:
        found = of(graph, "Q1", "P36", "Q2")
        assert found == Statement(1, "T::11::+1790-07-16T00:00:00Z", sources=("Q3", "https://example.org"))
        assert graph.source_label(found.sources[0]) == "three" and graph.find("Q9") is None


def test_references_in_kgtk(tmp_path: Path) -> None:
    lines = [
        ("id", "node1", "label", "node2"),
        ("e1", "Q1", "P36", "Q2"),
        ("q1", "e1", "P580", "^1790-07-16T00:00:00Z/11"),
        ("q2", "e1", "P854", '"https://example.org"'),
        ("q3", "e1", "P248", "Q3"),
    ]
    (tmp_path / "edges.tsv").write_text("".join("\t".join(line) + "\n" for line in lines))
    import_graph([tmp_path / "edges.tsv"], tmp_path / "kg", workers=1)
    with KnowledgeGraph.open(tmp_path / "kg") as graph:
        assert of(graph, "Q1", "P36", "Q2") == Statement(
            0, "T::11::+1790-07-16T00:00:00Z", sources=("Q3", "https://example.org")
        )


@pytest.mark.parametrize(
    ("id", "written"),
    [
        ("T::11::+1790-07-16T00:00:00Z", "1790-07-16"),
        ("T::10::+1790-07-00T00:00:00Z", "1790-07"),
        (year(-44), "-0044"),
        ("T::8::+1790-00-00T00:00:00Z", "1790s"),
        ("T::nonsense", "T::nonsense"),
    ],
)
def test_dates_in_json(id: str, written: str) -> None:
    assert iso_date(id) == written


def test_malformed_times_are_unknown() -> None:
    found = Statement.of(0, [("P580", "Q5"), ("P582", "T::9::x"), ("P999", year(1))])
    assert found == Statement() and np.isinf(found.order[2])


@pytest.mark.parametrize("ending", [".tsv", ".jsonl", ".nt"])
def test_an_export_keeps_ranks_times_and_sources(path: Path, tmp_path: Path, ending: str) -> None:
    exported = tmp_path / f"export{ending}"
    export_graph(path, exported)
    import_graph([exported], tmp_path / "again.kg", workers=1)
    with KnowledgeGraph.open(path) as graph, KnowledgeGraph.open(tmp_path / "again.kg") as again:
        assert graph.hash == again.hash, "the hash covers ranks, links of qualifiers, and sources"
        assert of(again, "Q142", "P36", "Q90") == of(graph, "Q142", "P36", "Q90")
        assert of(again, "Q142", "P36", "Q288") == of(graph, "Q142", "P36", "Q288")
        assert_columns_agree(again)


def test_columns_of_own_tables(tmp_path: Path) -> None:
    """The columns `from`, `until` and `source` of a table are times and a source of each fact."""
    rows = (
        "head,relation,tail,from,until,source",
        "Anna Weber,employer,Beta,2009,2015,the staff list of 2016",
        "Anna Weber,employer,Acme,2015,,",
    )
    (tmp_path / "staff.csv").write_text("".join(row + "\n" for row in rows))
    import_graph([tmp_path / "staff.csv"], tmp_path / "kg", workers=1)
    with KnowledgeGraph.open(tmp_path / "kg") as graph:
        found = of(graph, "Q_Anna_Weber", "P_employer", "Q_Beta")
        assert (found.period, found.sources) == ("2009–2015", ("the staff list of 2016",))
        assert of(graph, "Q_Anna_Weber", "P_employer", "Q_Acme").period == "since 2015"
