"""The graph: edges, names, search, compiled arrays, errors, concurrent use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kglm.errors import DataError, GraphError, KglmError, UnknownIdError, VersionError
from kglm.kg import journal
from kglm.kg.caches import cache_folder
from kglm.kg.compiled import SUFFIX, compile_store
from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.store import Store
from support.worlds import BORN, FAMILY, facts_of, make_store

REFLEXIVE = "@@REFLEXIVE@@"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_store(tmp_path)


@pytest.fixture
def graph(path: Path) -> Iterator[KnowledgeGraph]:
    with KnowledgeGraph.open(path, writable=True) as opened:
        yield opened


class TestEdges:
    def test_facts_reverse_and_reflexive(self, graph: KnowledgeGraph) -> None:
        assert facts_of(graph) == {
            *FAMILY,
            ("Q13133", "R:P26", "Q76"),
            ("Q5", "R:P31", "Q76"),
            ("Q5", "R:P31", "Q13133"),
            *((id, REFLEXIVE, id) for id in ("Q76", "Q13133", "Q5", "P26", "P569", "P31")),
        }

    def test_literals_have_no_edges(self, graph: KnowledgeGraph) -> None:
        assert len(graph.edges(graph.number(BORN)).tail) == 0

    def test_edges_are_sorted_and_reverses_differ_in_the_last_bit(self, graph: KnowledgeGraph) -> None:
        relation, tail = graph.edges(graph.number("Q5"))
        pairs = list(zip(relation.tolist(), tail.tolist(), strict=True))
        assert pairs == sorted(pairs)
        forward = graph.find_relation("P31")
        assert forward is not None and graph.find_relation("R:P31") == forward ^ 1
        assert graph.find_relation(REFLEXIVE) == 0

    def test_edges_of_many_nodes_equal_edges_of_each(self, graph: KnowledgeGraph) -> None:
        numbers = [graph.number(id) for id in ("Q5", BORN, "Q76", "Q5")]
        ragged = graph.edges_of(numbers)
        for k, number in enumerate(numbers):
            part = slice(ragged.offsets[k], ragged.offsets[k + 1])
            assert np.array_equal(ragged.relation[part], graph.edges(number).relation)
            assert np.array_equal(ragged.tail[part], graph.edges(number).tail)
        assert graph.edges_of([]).offsets.tolist() == [0]

    def test_tails_of_head_and_relation(self, graph: KnowledgeGraph) -> None:
        relation = graph.find_relation("R:P31")
        assert relation is not None
        assert {graph.id(int(t)) for t in graph.tails(graph.number("Q5"), relation)} == {"Q76", "Q13133"}


class TestNames:
    def test_lookup_by_id(self, graph: KnowledgeGraph) -> None:
        number = graph.number("Q76")
        assert (graph.id(number), graph.label(number)) == ("Q76", "Barack Obama")
        assert list(graph.aliases(number)) == ["Barack Obama", "Obama"]
        assert "Q76" in graph and "Q77" not in graph
        with pytest.raises(UnknownIdError, match="no entity 'Q77'"):
            graph.number("Q77")

    def test_literals_are_rendered(self, graph: KnowledgeGraph) -> None:
        assert {"August 4, 1961", "4 August 1961", "1961"} <= set(graph.aliases(graph.number(BORN)))

    def test_any_id_of_a_date_finds_it(self, tmp_path: Path) -> None:
        path = make_store(tmp_path / "years", [("Q1", "P571", "T::9::+1970-01-01T00:00:00Z")])
        with KnowledgeGraph.open(path) as graph:
            assert graph.find("T::9::+1970-00-00T00:00:00Z") == graph.find("T::9::+1970-01-01T00:00:00Z") is not None
            assert graph.find("T::11::+1970-01-01T00:00:00Z") is None, "a day is not a year"

    def test_two_ids_of_one_date_are_one_fact(self, tmp_path: Path) -> None:
        both = [("Q1", "P571", "T::9::+1970-01-01T00:00:00Z"), ("Q1", "P571", "T::9::+1970-00-00T00:00:00Z")]
        path = make_store(tmp_path / "twice", both)
        with KnowledgeGraph.open(path, writable=True) as graph:
            assert len(graph.edges(graph.number("Q1")).tail) == 2, "reflexive, and the year once"
            graph.remove("Q1", "P571", "1970")
            assert len(graph.edges(graph.number("Q1")).tail) == 1
            assert graph.store.facts_of("Q1") == [], "both spellings are gone"
            graph.undo()
            assert len(graph.store.facts_of("Q1")) == 2

    def test_ids_and_labels_of_relations(self, graph: KnowledgeGraph) -> None:
        index = graph.find_relation("P26")
        assert index is not None and graph.relation_label(index) == "spouse"
        assert graph.relation_id(index ^ 1) == "R:P26" and graph.relation_label(index ^ 1) == "← spouse"
        assert graph.relation_name("P26:P569") == "spouse: date of birth"
        assert graph.find_relation("P999") is None

    def test_search_by_id_and_name(self, graph: KnowledgeGraph) -> None:
        assert [hit.id for hit in graph.search("Obama")] == ["Q76"]
        assert [hit.id for hit in graph.search("mich")] == ["Q13133"]
        assert graph.search("barack OBAMA")[0].match == "Barack Obama"
        assert graph.search("   ") == graph.search("unknown") == []
        assert graph.search("%") == graph.search("'; DROP TABLE fact; --") == []
        assert [hit.id for hit in graph.search("Q5")] == ["Q5"]

    @pytest.mark.parametrize("name", ["Jay-Z", "Émile Zola", "ŁÓDŹ", "a'b", "\U0001f600", "x" * 3000])
    def test_search_finds_every_name_in_any_case(self, tmp_path: Path, name: str) -> None:
        with KnowledgeGraph.open(make_store(tmp_path / "s", [("Q1", "P1", "Q2")], {"Q1": (name,)})) as graph:
            for text in (name, name.lower(), name.upper(), name[:4], name.casefold()):
                assert [hit.id for hit in graph.search(text)] == ["Q1"], text


class TestOpening:
    def test_missing_arrays_are_rebuilt(self, path: Path) -> None:
        with Store.open(path) as store:
            home = cache_folder(store, SUFFIX)
        for name in ("edge_tail.npy", "meta.json"):
            [directory] = home.iterdir()
            (directory / name).unlink()
            with KnowledgeGraph.open(path) as graph:
                assert len(facts_of(graph)) == 14

    def test_damaged_arrays_are_rebuilt(self, path: Path) -> None:
        [array] = path.parent.glob("toy.kg.arrays/*/edge_tail.npy")
        array.write_bytes(b"rubbish")
        with KnowledgeGraph.open(path) as graph:
            assert len(facts_of(graph)) == 14

    def test_two_processes_build_the_arrays_at_once(self, path: Path) -> None:
        """Both start without arrays and must open the same graph."""
        code = f"from kglm.kg.graph import KnowledgeGraph as G; g = G.open({str(path)!r}); print(len(g), g.hash)"
        for directory in path.parent.glob("toy.kg.arrays/*"):
            for file in directory.iterdir():
                file.unlink()
            directory.rmdir()
        runs = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
        outputs = {run.communicate()[0] for run in runs}
        assert all(run.returncode == 0 for run in runs) and len(outputs) == 1

    def test_edits_are_replayed_on_older_arrays(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with KnowledgeGraph.open(path, writable=True) as graph:
            graph.set("Q76", "P569", "2013-03-21")
            expected = facts_of(graph)
        with KnowledgeGraph.open(path) as replayed:
            assert replayed.overlay.base.generation == 0 and facts_of(replayed) == expected
        monkeypatch.setattr("kglm.kg.graph.JOURNAL_LIMIT", 0)
        with KnowledgeGraph.open(path) as rebuilt:
            assert rebuilt.overlay.base.generation == 1 and facts_of(rebuilt) == expected
        assert len(list(path.parent.glob("toy.kg.arrays/*"))) == 1, "old arrays are removed"

    @pytest.mark.parametrize(
        ("content", "message"),
        [(b"hello", "is not a knowledge graph file"), (b"", "is not a knowledge graph file")],
    )
    def test_other_file_is_an_error(self, tmp_path: Path, content: bytes, message: str) -> None:
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(DataError, match=message):
            KnowledgeGraph.open(tmp_path / "x")

    def test_missing_file_or_directory_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no such file"):
            KnowledgeGraph.open(tmp_path / "x")
        with pytest.raises(DataError, match="is a directory"):
            KnowledgeGraph.open(tmp_path)

    def test_other_database_or_version_is_an_error(self, path: Path, tmp_path: Path) -> None:
        import sqlite3

        for pragma, error, message in (
            ("user_version = 99", VersionError, "format 99; this version of kglm reads formats 1 and 2"),
            ("application_id = 1", DataError, "not a knowledge graph"),
        ):
            connection = sqlite3.connect(path)
            connection.execute(f"PRAGMA {pragma}")
            connection.close()
            with pytest.raises(error, match=message):
                KnowledgeGraph.open(path)

    def test_damaged_file_is_an_error(self, path: Path) -> None:
        content = path.read_bytes()
        path.write_bytes(content[:100] + b"\xff" * 2000)
        with pytest.raises(DataError, match="cannot be read as a graph"):
            KnowledgeGraph.open(path)

    def test_arrays_of_other_edits_are_not_used(self, path: Path, tmp_path: Path) -> None:
        """Two stores with the same import and number of edits, but other edits, have different arrays."""
        import shutil

        other = tmp_path / "other.kg"
        shutil.copy(path, other)
        for file, tail in ((path, "2001"), (other, "2002")):
            with KnowledgeGraph.open(file, writable=True) as graph:
                graph.add("Q13133", "P569", tail)
        with Store.open(path) as store:
            compile_store(store)
        other.replace(path)
        with KnowledgeGraph.open(path) as graph:
            tails = {tail for _, _, tail in facts_of(graph)}
        assert "T::9::+2002-00-00T00:00:00Z" in tails and "T::9::+2001-00-00T00:00:00Z" not in tails

    def test_locked_file_is_an_error(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import sqlite3

        holder = sqlite3.connect(path)
        holder.execute("BEGIN EXCLUSIVE")
        connect = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k | {"timeout": 0.1}))
        with pytest.raises(KglmError, match="is being written by another process"):
            KnowledgeGraph.open(path)
        holder.close()


class TestHash:
    def test_same_content_has_the_same_hash(self, path: Path, tmp_path: Path) -> None:
        other = make_store(tmp_path / "other", reversed(FAMILY))
        with KnowledgeGraph.open(path) as a, KnowledgeGraph.open(other) as b:
            assert a.hash == b.hash

    def test_edits_change_the_hash(self, graph: KnowledgeGraph) -> None:
        before = graph.hash
        fork = graph.fork()
        fork.remove("Q76", "P26", "Q13133")
        assert fork.hash != before == graph.hash
        twin = fork.fork()
        assert twin.hash == fork.hash, "a fork of a fork knows what happened"
        forked = fork.hash
        graph.remove("Q76", "P26", "Q13133")
        assert graph.hash != before
        assert fork.hash == forked, "and does not see what happens elsewhere"


def test_graph_opened_for_reading_refuses_edits(path: Path) -> None:
    with KnowledgeGraph.open(path) as graph:
        for work in (lambda: graph.set("Q76", "P569", "2013"), graph.undo):
            with pytest.raises(GraphError, match=r"opened for reading; .*writable=True"):
                work()


def test_concurrent_edits_of_threads_are_all_stored(path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with KnowledgeGraph.open(path, writable=True) as graph:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda year: graph.add("Q76", "P569", str(year)), range(1500, 1560)))
        assert len(graph.tails(graph.number("Q76"), graph.find_relation("P569") or 0)) == 61
        with KnowledgeGraph.open(path) as again:
            assert facts_of(again) == facts_of(graph)


def test_edges_of_many_nodes_after_an_edit(graph: KnowledgeGraph) -> None:
    graph.set("Q76", "P569", "2013-03-21")
    graph.edit([NewEntity("Q_x", ("X",)), FactEdit("add", "Q_x", "P26", "Q5")])
    numbers = list(range(len(graph)))[::-1]
    ragged = graph.edges_of(numbers)
    for k, number in enumerate(numbers):
        part = slice(ragged.offsets[k], ragged.offsets[k + 1])
        assert np.array_equal(ragged.relation[part], graph.edges(number).relation)
        assert np.array_equal(ragged.tail[part], graph.edges(number).tail)


def test_refresh_applies_edits_of_another_process(path: Path) -> None:
    with KnowledgeGraph.open(path, writable=True) as one, KnowledgeGraph.open(path, writable=True) as two:
        one.remove("Q76", "P26", "Q13133")
        two.set("Q76", "P569", "2013-03-21")  # planned on an old state: caught, refreshed, planned again
        assert one.generation == 1 and two.generation == 2
        one.refresh()
        assert facts_of(one) == facts_of(two)
        assert [change.action for change in journal.changes_since(one.store, 0)] == ["remove", "remove", "add"]
