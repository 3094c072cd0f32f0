"""Imports from files to a graph file."""

from __future__ import annotations

import bz2
import gzip
import json
import re
import sqlite3
from pathlib import Path

import pytest
import zstandard

from kglm.errors import DataError, KglmError
from kglm.kg import imports
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.importers.records import ImportOptions
from kglm.kg.imports import import_graph
from kglm.kg.staging import Staging
from kglm.kg.store import Store
from support.dumps import entity, generated, item, lines, statement
from support.dumps import time as dump_time
from support.worlds import content, facts_of, leftovers, make_store, write_facts


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dump") / "dump.json"
    path.write_bytes(b"".join(generated(500)))
    return path


@pytest.fixture(scope="module")
def imported(dump: Path) -> Path:
    import_graph([dump], dump.with_name("whole.kg"), workers=1)
    return dump.with_name("whole.kg")


class TestResult:
    def test_duplicates_are_dropped_and_counted(self, tmp_path: Path) -> None:
        facts = write_facts(tmp_path / "f.tsv", [("Q1", "P1", "Q2")] * 3 + [("Q1", "P1", "Q3")])
        report = import_graph([facts], tmp_path / "g.kg")
        assert (report.facts, report.duplicates, report.entities, report.relations) == (2, 2, 3, 1)
        assert not leftovers(tmp_path)

    def test_names_are_distinct_with_the_label_first(self, tmp_path: Path) -> None:
        facts = write_facts(tmp_path / "f.tsv", [("Q1", "P1", "Q2")])
        (tmp_path / "e.jsonl").write_text(
            '{"id": "Q1", "aliases": ["uno", "one"]}\n{"id": "Q1", "label": "one", "aliases": ["uno", "1"]}\n'
        )
        report = import_graph([facts], tmp_path / "g.kg", entities=[tmp_path / "e.jsonl"])
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            assert list(graph.names(graph.number("Q1"))) == ["one", "uno", "1"]
        assert report.aliases == 2

    def test_title_becomes_an_alias(self, tmp_path: Path) -> None:
        facts = write_facts(tmp_path / "f.tsv", [("Q1", "P1", "Q2"), ("Q3", "P1", "Q4")])
        (tmp_path / "e.jsonl").write_text(
            '{"id": "Q1", "label": "henry i of england", "aliases": ["henry"], "title": "Henry_I_of_England"}\n'
            '{"id": "Q2", "label": "bell", "title": "Bell (instrument)"}\n'
            '{"id": "Q3", "title": "(a) (b)"}\n{"id": "Q4", "label": "Ohio", "title": "Ohio"}\n'
        )
        import_graph([facts], tmp_path / "g.kg", entities=[tmp_path / "e.jsonl"])
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            names = [list(graph.names(graph.number(id))) for id in ("Q1", "Q2", "Q3", "Q4")]
        assert names == [["Henry I of England", "henry"], ["bell", "Bell"], ["(a)"], ["Ohio"]]

    def test_names_escaped_twice_are_decoded(self, tmp_path: Path) -> None:
        facts = write_facts(tmp_path / "f.tsv", [("Q1", "P1", "Q2")])
        (tmp_path / "e.jsonl").write_text(
            r'{"id": "Q1", "label": "\\u00C1vila", "aliases": ["a\\\\b", "\\ud800x", "\\ud83d\\ude00"]}'
        )
        import_graph([facts], tmp_path / "g.kg", entities=[tmp_path / "e.jsonl"])
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            assert list(graph.names(graph.number("Q1"))) == ["Ávila", r"a\\b", "\ufffdx", "😀"]

    def test_qualifiers_are_joined_only_with_their_own_statement(self, tmp_path: Path) -> None:
        fact = {"head": "Q1", "relation": "P54", "tail": "Q2"}
        rows = [json.dumps(fact | {"qualifiers": {"P580": [f"V::{n}.0000::1"]}}) for n in range(1000)]
        (tmp_path / "f.jsonl").write_text("\n".join(rows))
        report = import_graph([tmp_path / "f.jsonl"], tmp_path / "g.kg")
        assert (report.facts, report.duplicates) == (1001, 999)

    def test_qualifiers_of_a_hub_are_joined_by_key(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def steps(statements: int) -> int:
            """Steps of SQLite's virtual machine, in hundreds, of an import of a hub with qualified statements."""
            fact = {"head": "Q1", "relation": "P54"}
            rows = [
                json.dumps(fact | {"tail": f"Q{10 + n}", "qualifiers": {"P580": [f"V::{n % 7}.0000::1", f"Q{20 + n}"]}})
                for n in range(statements)
            ]
            (tmp_path / "f.jsonl").write_text("\n".join(rows))
            counted = 0

            def count() -> None:
                nonlocal counted
                counted += 1

            def connect(staging: Staging) -> sqlite3.Connection:
                connection = first_connect(staging)
                connection.set_progress_handler(count, 100)
                return connection

            first_connect = Staging._connect
            with monkeypatch.context() as patch:
                patch.setattr(Staging, "_connect", connect)
                import_graph([tmp_path / "f.jsonl"], tmp_path / "g.kg", workers=1, replace=True)
            return counted

        few, many = steps(200), steps(1600)
        assert many < 9 * few, "linear: 8 times the statements"
        with Store.open(tmp_path / "g.kg") as store:
            links = store.rows(
                "SELECT s.id, q.id FROM qualifier x JOIN fact f ON f.number = x.statement JOIN fact g"
                " ON g.number = x.fact JOIN entity s ON s.number = f.tail JOIN entity q ON q.number = g.tail"
            )
        expected = [(f"Q{10 + n}", value) for n in range(1600) for value in (f"V::{n % 7}.0000::1", f"Q{20 + n}")]
        assert sorted(links) == sorted(expected)

    def test_byte_order_mark_and_comments_are_skipped(self, tmp_path: Path) -> None:
        (tmp_path / "f.tsv").write_bytes(b"\xef\xbb\xbf# mine\n\nQ1\tP1\tQ2\nQ1\tP1\tQ3\n")
        assert import_graph([tmp_path / "f.tsv"], tmp_path / "g.kg").facts == 2
        (tmp_path / "g.tsv").write_bytes(b"\xef\xbb\xbfQ1\tP1\tQ2\n")
        assert import_graph([tmp_path / "g.tsv"], tmp_path / "h.kg").facts == 1
        (tmp_path / "k.tsv").write_text("\nid\tnode1\tlabel\tnode2\ne\tQ1\tP1\tQ2\n")
        report = import_graph([tmp_path / "k.tsv"], tmp_path / "k.kg")
        assert (report.facts, report.entities) == (1, 2)

    def test_labels_precede_names_from_minted_ids(self, tmp_path: Path) -> None:
        (tmp_path / "f.nt").write_text(
            "<http://a.org/people/1> <http://a.org/livesIn> <http://a.org/places/1> .\n"
            '<http://a.org/people/1> <http://www.w3.org/2000/01/rdf-schema#label> "Anna"@en .\n'
        )
        import_graph([tmp_path / "f.nt"], tmp_path / "g.kg", options=ImportOptions(mint_ids=True))
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            [anna] = graph.search("Anna")
            assert anna.label == "Anna" and len(graph.search("1")) == 2

    def test_sources_of_several_formats(self, tmp_path: Path) -> None:
        tsv = write_facts(tmp_path / "f.tsv", [("Q1", "P1", "Q2")])
        (tmp_path / "d.json").write_bytes(lines([entity("Q3", "three", {"P1": [statement(item("Q1"))]})]))
        (tmp_path / "n.nt").write_text(
            "<http://www.wikidata.org/entity/Q4> <http://www.wikidata.org/prop/direct/P1> "
            "<http://www.wikidata.org/entity/Q1> .\n"
        )
        report = import_graph([tsv, tmp_path / "d.json", tmp_path / "n.nt"], tmp_path / "g.kg")
        assert report.facts == 3

    def test_qualifiers_in_another_kgtk_file(self, tmp_path: Path) -> None:
        (tmp_path / "edges.tsv").write_text("id\tnode1\tlabel\tnode2\ns1\tQ1\tP54\tQ2\ns2\tQ3\tP54\tQ2\n")
        (tmp_path / "qualifiers.tsv").write_text("id\tnode1\tlabel\tnode2\nx\ts2\tP413\tQ9\n")
        import_graph([tmp_path / "qualifiers.tsv", tmp_path / "edges.tsv"], tmp_path / "g.kg")
        with Store.open(tmp_path / "g.kg") as store:
            assert [fact.relation for fact in store.facts_of("Q3")] == ["P54", "P54:P413"]
            assert len(store.facts_of("Q1")) == 1

    def test_titles_and_redirects(self, tmp_path: Path) -> None:
        facts = write_facts(tmp_path / "f.tsv", [("Q60", "P1", "Q2")])
        (tmp_path / "e.jsonl").write_text('{"id": "Q60", "label": "New York", "title": "New York City"}\n')
        rows = ["NYC\tNew York City", "Big Apple\tNYC", "a\tb", "b\tc", "c\ta", "iPhone city\tBig Apple"]
        (tmp_path / "r.tsv").write_text("\n".join(rows))
        import_graph([facts], tmp_path / "g.kg", entities=[tmp_path / "e.jsonl"], redirects=[tmp_path / "r.tsv"])
        with Store.open(tmp_path / "g.kg") as store:
            for title in ("New York City", "new York_City", "NYC", "Big Apple", "IPhone city", "iPhone_city"):
                assert store.by_title(title) == "Q60", title
            assert store.by_title("nyc") is None, "redirects keep their case"
            assert store.by_title("A") is None, "a cycle ends"
            assert store.by_title("") is None

    def test_number_of_workers_does_not_change_the_graph(self, dump: Path, imported: Path, tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
        monkeypatch.setattr(imports, "PARALLEL_FROM", 0)
        import_graph([dump], tmp_path / "two.kg", workers=2)
        assert content(tmp_path / "two.kg") == content(imported)

    @pytest.mark.parametrize(
        ("suffix", "compress"),
        [("gz", gzip.compress), ("bz2", bz2.compress), ("zst", zstandard.ZstdCompressor().compress)],
    )
    def test_compressed_sources(self, dump: Path, imported: Path, tmp_path: Path, suffix: str, compress: object,
                                monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
        monkeypatch.setattr("kglm.packed.PARALLEL_BZIP2_FROM", 0)
        packed = tmp_path / f"dump.json.{suffix}"
        packed.write_bytes(compress(dump.read_bytes()))  # type: ignore[operator]
        import_graph([packed], tmp_path / "g.kg", workers=1)
        assert content(tmp_path / "g.kg") == content(imported)


class TestRefusals:
    def test_existing_graph_is_not_overwritten(self, tmp_path: Path) -> None:
        path = make_store(tmp_path)
        before = content(path)
        with pytest.raises(KglmError, match=r"exists already; .*--replace"):
            import_graph([tmp_path / "facts.tsv"], path)
        assert content(path) == before
        with pytest.raises(KglmError, match="is a directory"):
            import_graph([tmp_path / "facts.tsv"], tmp_path, replace=True)

    def test_replacement_is_atomic_and_updates_the_arrays(self, tmp_path: Path) -> None:
        path = make_store(tmp_path)
        make_store(tmp_path, [("Q1", "P1", "Q2")])
        with KnowledgeGraph.open(path) as graph:
            assert ("Q1", "P1", "Q2") in facts_of(graph)
        assert len(list(path.with_name("toy.kg.arrays").iterdir())) == 1

    def test_no_source_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(KglmError, match="nothing to import"):
            import_graph([], tmp_path / "g.kg")

    def test_sources_without_facts_are_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "f.tsv").write_text("anna\tknows\tbert\n")
        with pytest.raises(DataError, match=r"no fact found.*line 1: the head 'anna' is not an id.*--mint-ids"):
            import_graph([tmp_path / "f.tsv"], tmp_path / "g.kg", format="facts")
        assert not leftovers(tmp_path) and not (tmp_path / "g.kg").exists()
        import_graph([tmp_path / "f.tsv"], tmp_path / "g.kg")

    def test_truncated_source_is_an_error(self, dump: Path, tmp_path: Path) -> None:
        for suffix, compress in (("gz", gzip.compress), ("bz2", bz2.compress), ("zst", zstandard.compress)):
            packed = tmp_path / f"dump.json.{suffix}"
            whole = compress(dump.read_bytes())
            packed.write_bytes(whole[: len(whole) // 2])
            with pytest.raises(DataError, match="ends in the middle"):
                import_graph([packed], tmp_path / "g.kg", workers=1)
            assert not (tmp_path / "g.kg").exists() and not leftovers(tmp_path)

    def test_other_file_with_the_name_of_a_staging_file_is_kept(self, tmp_path: Path) -> None:
        facts = write_facts(tmp_path / "f.tsv", [("Q1", "P1", "Q2")])
        (tmp_path / "g.kg.partial").write_text("my notes")
        with pytest.raises(KglmError, match="is not an unfinished import; move it away"):
            import_graph([facts], tmp_path / "g.kg")
        assert (tmp_path / "g.kg.partial").read_text() == "my notes"

    def test_missing_directory_is_an_error(self, tmp_path: Path) -> None:
        facts = write_facts(tmp_path / "f.tsv", [("Q1", "P1", "Q2")])
        with pytest.raises(KglmError, match="nowhere"):
            import_graph([facts], tmp_path / "nowhere" / "g.kg")


def some(source: Path, to: Path, every: int) -> int:
    """Copy every n-th line and all lines of two entities; return the number of lines."""
    wanted = re.compile(rb'(\{"id": ?")?(Q76|Q13133)\b')
    count = 0
    with gzip.open(source) as lines, gzip.open(to, "wb", compresslevel=1) as kept:
        for number, line in enumerate(lines):
            if number % every == 0 or wanted.match(line):
                kept.write(line)
                count += 1
    return count


class TestRealData:
    @pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.slow)])
    def test_import_of_the_shared_graph(self, shared_data: Path, tmp_path: Path, every: int) -> None:
        """The whole graph, or a sample with all facts and names of Barack and Michelle Obama."""
        kg = shared_data / "kg"
        kept = {name: some(kg / name, tmp_path / name, every) for name in ("facts.tsv.gz", "entities.jsonl.gz")}
        assert every > 1 or kept["facts.tsv.gz"] == 532_819
        report = import_graph(
            [tmp_path / "facts.tsv.gz"],
            tmp_path / "g.kg",
            entities=[tmp_path / "entities.jsonl.gz"],
            relations=[kg / "relations.tsv"],
        )
        assert report.facts + report.duplicates == kept["facts.tsv.gz"] and not report.skipped
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            obama = graph.number("Q76")
            assert graph.label(obama) == "Barack Obama"
            spouse = graph.find_relation("P26")
            assert spouse is not None
            assert [graph.label(int(t)) for t in graph.tails(obama, spouse)] == ["Michelle Obama"]

    def test_import_of_the_sample_dump(self, shared_data: Path, tmp_path: Path) -> None:
        report = import_graph([shared_data / "dumps" / "wikidata-sample.json.bz2"], tmp_path / "g.kg")
        with Store.open(tmp_path / "g.kg") as store:
            ids = {row[0] for row in store.rows("SELECT e.id FROM entity e JOIN name n ON n.entity = e.number")}
        assert {"P7531", "Q75197619"} <= ids, "the first and the last one"
        assert report.facts > 100 and report.skipped["string"] > 0 and not report.problems


def test_precisions_of_dates_are_kept(tmp_path: Path) -> None:
    claims = {
        "P1": [statement(dump_time("+1961-08-00T00:00:00Z", 10)), statement(dump_time("-0500-00-00T00:00:00Z", 7))]
    }
    (tmp_path / "d.json").write_bytes(lines([entity("Q1", "x", claims)]))
    import_graph([tmp_path / "d.json"], tmp_path / "g.kg")
    with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
        shown = {graph.label(int(tail)) for tail in graph.edges(graph.number("Q1")).tail}
    assert "August 1961" in shown and any("5th century BC" in text for text in shown)
