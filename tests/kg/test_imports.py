"""Whole imports: files in, graph file out."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
import zstandard

from dumps import entity, generated, item, lines, statement
from dumps import time as dump_time
from kglm.errors import DataError, KglmError
from kglm.kg import imports
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import import_graph
from kglm.kg.records import ImportOptions
from kglm.kg.store import Store
from kglm.text.document import mentioned_entities
from worlds import facts_of, make_store, write_entities, write_facts


def content(path: Path) -> list[str]:
    """Every row of a graph file, and its arrays."""
    connection = sqlite3.connect(path)
    rows = list(connection.iterdump())
    connection.close()
    [directory] = path.with_name(path.name + ".arrays").iterdir()
    return rows + [f"{file.name} {file.read_bytes()!r}" for file in sorted(directory.iterdir())]


def leftovers(folder: Path) -> set[str]:
    return {
        path.name for path in folder.rglob("*") if any(w in path.name for w in (".partial", ".new", ".tmp", ".gone"))
    }


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dump") / "dump.json"
    path.write_bytes(b"".join(generated(1500)))
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

    def test_names_come_once_label_first(self, tmp_path: Path) -> None:
        facts = write_facts(tmp_path / "f.tsv", [("Q1", "P1", "Q2")])
        (tmp_path / "e.jsonl").write_text(
            '{"id": "Q1", "aliases": ["uno", "one"]}\n{"id": "Q1", "label": "one", "aliases": ["uno", "1"]}\n'
        )
        report = import_graph([facts], tmp_path / "g.kg", entities=[tmp_path / "e.jsonl"])
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            assert list(graph.names(graph.number("Q1"))) == ["one", "uno", "1"]
        assert report.aliases == 2

    def test_a_title_is_a_name(self, tmp_path: Path) -> None:
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

    def test_names_that_were_escaped_twice(self, tmp_path: Path) -> None:
        facts = write_facts(tmp_path / "f.tsv", [("Q1", "P1", "Q2")])
        (tmp_path / "e.jsonl").write_text(
            r'{"id": "Q1", "label": "\\u00C1vila", "aliases": ["a\\\\b", "\\ud800x", "\\ud83d\\ude00"]}'
        )
        import_graph([facts], tmp_path / "g.kg", entities=[tmp_path / "e.jsonl"])
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            assert list(graph.names(graph.number("Q1"))) == ["Ávila", r"a\\b", "\ufffdx", "😀"]

    def test_many_statements_of_one_fact_are_not_joined_with_each_other(self, tmp_path: Path) -> None:
        fact = {"head": "Q1", "relation": "P54", "tail": "Q2"}
        rows = [json.dumps(fact | {"qualifiers": {"P580": [f"V::{n}.0000::1"]}}) for n in range(1000)]
        (tmp_path / "f.jsonl").write_text("\n".join(rows))
        report = import_graph([tmp_path / "f.jsonl"], tmp_path / "g.kg")
        assert (report.facts, report.duplicates) == (1001, 999)

    def test_a_byte_order_mark_and_comments(self, tmp_path: Path) -> None:
        (tmp_path / "f.tsv").write_bytes(b"\xef\xbb\xbf# mine\n\nQ1\tP1\tQ2\nQ1\tP1\tQ3\n")
        assert import_graph([tmp_path / "f.tsv"], tmp_path / "g.kg").facts == 2
        (tmp_path / "g.tsv").write_bytes(b"\xef\xbb\xbfQ1\tP1\tQ2\n")
        assert import_graph([tmp_path / "g.tsv"], tmp_path / "h.kg").facts == 1
        (tmp_path / "k.tsv").write_text("\nid\tnode1\tlabel\tnode2\ne\tQ1\tP1\tQ2\n")
        report = import_graph([tmp_path / "k.tsv"], tmp_path / "k.kg")
        assert (report.facts, report.entities) == (1, 2)

    def test_labels_beat_names_made_of_ids(self, tmp_path: Path) -> None:
        (tmp_path / "f.nt").write_text(
            "<http://a.org/people/1> <http://a.org/livesIn> <http://a.org/places/1> .\n"
            '<http://a.org/people/1> <http://www.w3.org/2000/01/rdf-schema#label> "Anna"@en .\n'
        )
        import_graph([tmp_path / "f.nt"], tmp_path / "g.kg", options=ImportOptions(mint_ids=True))
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            [anna] = graph.search("Anna")
            assert anna.label == "Anna" and len(graph.search("1")) == 2

    def test_several_sources_of_several_formats(self, tmp_path: Path) -> None:
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

    def test_the_number_of_workers_does_not_matter(self, dump: Path, imported: Path, tmp_path: Path,
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


class TestNear:
    facts = (
        ("Q1", "P1", "Q2"), ("Q2", "P1", "Q3"), ("Q3", "P1", "Q4"), ("Q4", "P1", "Q5"),
        ("Q10", "P1", "Q1"), ("Q11", "P1", "Q10"), ("Q12", "P1", "Q11"),
        ("Q1", "P2", "T::9::+1999-00-00T00:00:00Z"), ("Q99", "P2", "T::9::+1999-00-00T00:00:00Z"),
    )  # fmt: skip

    def near(self, tmp_path: Path, hops: int, facts: tuple[tuple[str, ...], ...] | None = None) -> set[str]:
        mention = {"source": "KG", "id": "Q1", "relation": ["@@NEW@@"], "parent_id": ["Q1"], "span": [1, 2]}
        document = {"title": "t", "tokens": ["@@START@@", "x", "@@END@@"], "annotations": [mention]}
        (tmp_path / "docs.jsonl").write_text(json.dumps(document) + "\n")
        source = write_facts(tmp_path / "f.tsv", facts or self.facts)
        import_graph(
            [source], tmp_path / "g.kg", near=mentioned_entities([tmp_path / "docs.jsonl"]), hops=hops, replace=True
        )
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            return {graph.id(n) for n in range(len(graph))}

    def test_hops_go_along_facts_and_against_them(self, tmp_path: Path) -> None:
        year = "T::9::+1999-00-00T00:00:00Z"
        assert self.near(tmp_path, 0) == {"Q1", year}
        assert self.near(tmp_path, 1) == {"Q1", "Q2", "Q10", year}
        assert self.near(tmp_path, 2) == {"Q1", "Q2", "Q3", "Q10", "Q11", year}, "nobody is near through a date"

    def test_not_backwards_through_a_hub(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kglm.kg.staging.HUB", 3)
        humans = tuple((f"Q{n}", "P31", "Q5") for n in (1, 21, 22, 23))
        assert self.near(tmp_path, 2, (*humans, ("Q2", "P1", "Q1"))) == {"Q1", "Q2", "Q5"}

    def test_names_of_relations_and_units_are_kept(self, tmp_path: Path) -> None:
        document = {"title": "t", "tokens": ["x"], "annotations": [
            {"source": "KG", "id": "Q1", "relation": ["@@NEW@@"], "parent_id": ["Q1"], "span": [0, 1]}]}  # fmt: skip
        (tmp_path / "docs.jsonl").write_text(json.dumps(document))
        facts = write_facts(tmp_path / "f.tsv", [("Q1", "P2048", "V::2.0000::http://www.wikidata.org/entity/Q11573")])
        names = {"Q11573": ("metre",), "P2048": ("height",), "Q777": ("far away",)}
        entities = [write_entities(tmp_path / "e.jsonl", names)]
        import_graph([facts], tmp_path / "g.kg", entities=entities, near=mentioned_entities([tmp_path / "docs.jsonl"]))
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            assert "Q777" not in graph and graph.relation_name("P2048") == "height"
            [height] = [n for n in range(len(graph)) if graph.id(n).startswith("V::")]
            assert "2 metres" in graph.aliases(height)

    def test_nothing_is_near(self, tmp_path: Path) -> None:
        """A graph that would be empty is refused, and a good one that it would replace stays."""
        facts = write_facts(tmp_path / "f.tsv", self.facts)
        import_graph([facts], tmp_path / "g.kg")
        before = content(tmp_path / "g.kg")
        with pytest.raises(DataError, match="no fact is near the entities of the documents"):
            import_graph([facts], tmp_path / "g.kg", near=["Q777"], replace=True)
        assert content(tmp_path / "g.kg") == before and not leftovers(tmp_path)

    def test_a_date_that_is_mentioned_brings_nobody(self, tmp_path: Path) -> None:
        facts = write_facts(tmp_path / "f.tsv", self.facts)
        import_graph([facts], tmp_path / "g.kg", near=["Q1", "T::9::+1999-00-00T00:00:00Z"], hops=1)
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            assert "Q99" not in graph

    def test_documents_without_mentions(self, tmp_path: Path) -> None:
        (tmp_path / "docs.jsonl").write_text('{"title": "t", "tokens": ["x"]}\n')
        facts = write_facts(tmp_path / "f.tsv", self.facts)
        with pytest.raises(DataError, match="mention no entity"):
            import_graph([facts], tmp_path / "g.kg", near=mentioned_entities([tmp_path / "docs.jsonl"]))


class TestRefusals:
    def test_an_existing_graph_is_not_overwritten(self, tmp_path: Path) -> None:
        path = make_store(tmp_path)
        before = content(path)
        with pytest.raises(KglmError, match=r"exists already; .*--replace"):
            import_graph([tmp_path / "facts.tsv"], path)
        assert content(path) == before
        with pytest.raises(KglmError, match="is a directory"):
            import_graph([tmp_path / "facts.tsv"], tmp_path, replace=True)

    def test_replacing_is_atomic_and_arrays_follow(self, tmp_path: Path) -> None:
        path = make_store(tmp_path)
        make_store(tmp_path, [("Q1", "P1", "Q2")])
        with KnowledgeGraph.open(path) as graph:
            assert ("Q1", "P1", "Q2") in facts_of(graph)
        assert len(list(path.with_name("toy.kg.arrays").iterdir())) == 1

    def test_nothing_to_import(self, tmp_path: Path) -> None:
        with pytest.raises(KglmError, match="nothing to import"):
            import_graph([], tmp_path / "g.kg")

    def test_no_fact_at_all(self, tmp_path: Path) -> None:
        (tmp_path / "f.tsv").write_text("anna\tknows\tbert\n")
        with pytest.raises(DataError, match=r"no fact found.*line 1: the head 'anna' is not an id.*--mint-ids"):
            import_graph([tmp_path / "f.tsv"], tmp_path / "g.kg")
        assert not leftovers(tmp_path) and not (tmp_path / "g.kg").exists()
        import_graph([tmp_path / "f.tsv"], tmp_path / "g.kg", options=ImportOptions(mint_ids=True))

    def test_a_truncated_source(self, dump: Path, tmp_path: Path) -> None:
        for suffix, compress in (("gz", gzip.compress), ("bz2", bz2.compress), ("zst", zstandard.compress)):
            packed = tmp_path / f"dump.json.{suffix}"
            whole = compress(dump.read_bytes())
            packed.write_bytes(whole[: len(whole) // 2])
            with pytest.raises(DataError, match="ends in the middle"):
                import_graph([packed], tmp_path / "g.kg", workers=1)
            assert not (tmp_path / "g.kg").exists() and not leftovers(tmp_path)

    def test_two_imports_to_one_graph(self, dump: Path, tmp_path: Path) -> None:
        process = importing(dump, tmp_path / "g.kg")
        wait_for_progress(tmp_path / "g.kg.partial", process, 2)
        with pytest.raises(KglmError, match="another import is writing this graph"):
            import_graph([dump], tmp_path / "g.kg")
        process.communicate()
        assert process.returncode == 0 and (tmp_path / "g.kg").exists() and not leftovers(tmp_path)

    def test_a_file_that_only_looks_like_a_staging_file(self, tmp_path: Path) -> None:
        facts = write_facts(tmp_path / "f.tsv", [("Q1", "P1", "Q2")])
        (tmp_path / "g.kg.partial").write_text("my notes")
        with pytest.raises(KglmError, match="is no unfinished import; move it away"):
            import_graph([facts], tmp_path / "g.kg")
        assert (tmp_path / "g.kg.partial").read_text() == "my notes"

    def test_a_missing_directory(self, tmp_path: Path) -> None:
        facts = write_facts(tmp_path / "f.tsv", [("Q1", "P1", "Q2")])
        with pytest.raises(KglmError, match="nowhere"):
            import_graph([facts], tmp_path / "nowhere" / "g.kg")


IMPORT = """
import sys
from kglm.kg import imports
imports.BLOCK_BYTES = 1 << 16
imports.PARALLEL_FROM = int(sys.argv[3])
imports.import_graph([sys.argv[1]], sys.argv[2], workers=2)
"""


def importing(dump: Path, to: Path, *, parallel_from: int = 1 << 40) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-c", IMPORT, str(dump), str(to), str(parallel_from)]
    return subprocess.Popen(arguments, stderr=subprocess.PIPE, start_new_session=True)


def wait_for_progress(partial: Path, process: subprocess.Popen[bytes], blocks: int) -> int:
    """Until that many blocks are staged; how far it got."""
    reached = 0
    while process.poll() is None:
        try:
            connection = sqlite3.connect(f"file:{partial}?mode=ro", uri=True)
            rows = connection.execute("SELECT offset FROM progress").fetchall()
            connection.close()
            reached = max([0, *(row[0] for row in rows)])
        except sqlite3.OperationalError:
            pass
        if reached >= blocks << 16:
            break
        time.sleep(0.001)
    return reached


class TestKilled:
    @pytest.mark.parametrize("parallel_from", [1 << 40, 0], ids=["one process", "two workers"])
    def test_it_goes_on_where_it_was(self, dump: Path, imported: Path, tmp_path: Path, parallel_from: int) -> None:
        to = tmp_path / "g.kg"
        partial = tmp_path / "g.kg.partial"
        process = importing(dump, to, parallel_from=parallel_from)
        reached = wait_for_progress(partial, process, 10)
        process.kill()
        process.communicate()
        assert 0 < reached < dump.stat().st_size and not to.exists() and partial.exists(), "killed half way"
        report = import_graph([dump], to, workers=1)
        assert report.resumed
        assert content(to) == content(imported) and not leftovers(tmp_path)

    def test_killed_again_and_again(self, dump: Path, imported: Path, tmp_path: Path) -> None:
        to = tmp_path / "g.kg"
        for blocks in (3, 30, 60):
            process = importing(dump, to)
            wait_for_progress(tmp_path / "g.kg.partial", process, blocks)
            process.kill()
            process.communicate()
        import_graph([dump], to, workers=1)
        assert content(to) == content(imported)

    def test_workers_do_not_outlive_a_killed_parent(self, dump: Path, tmp_path: Path) -> None:
        process = importing(dump, tmp_path / "g.kg", parallel_from=0)
        wait_for_progress(tmp_path / "g.kg.partial", process, 3)
        process.kill()
        process.communicate()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail("worker processes are still there")

    def test_another_source_starts_anew(self, dump: Path, tmp_path: Path) -> None:
        process = importing(dump, tmp_path / "g.kg")
        wait_for_progress(tmp_path / "g.kg.partial", process, 3)
        process.kill()
        process.communicate()
        other = write_facts(tmp_path / "f.tsv", [("Q1", "P1", "Q2")])
        report = import_graph([other], tmp_path / "g.kg")
        assert not report.resumed and report.facts == 1 and not leftovers(tmp_path)


def test_a_full_disk(dump: Path, tmp_path: Path) -> None:
    """A limit on file size stands for the full disk; both fail in the middle of a write."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    to = tmp_path / "g.kg"
    command = [sys.executable, "-m", "kglm", "kg", "import", str(dump), "--to", str(to)]
    process = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True)
    assert process.returncode == 2
    assert "the disk is full; free some space" in process.stderr and process.stderr.count("\n") == 1
    assert not to.exists() and not (tmp_path / "g.kg.new").exists()
    report = import_graph([dump], to, workers=1)
    assert report.facts > 0


class TestRealData:
    def test_the_shared_graph(self, shared_data: Path, tmp_path: Path) -> None:
        kg = shared_data / "kg"
        report = import_graph(
            [kg / "facts.tsv.gz"],
            tmp_path / "g.kg",
            entities=[kg / "entities.jsonl.gz"],
            relations=[kg / "relations.tsv"],
        )
        assert report.facts + report.duplicates == 532_819 and not report.skipped
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            obama = graph.number("Q76")
            assert graph.label(obama) == "Barack Obama"
            spouse = graph.find_relation("P26")
            assert spouse is not None
            assert [graph.label(int(t)) for t in graph.tails(obama, spouse)] == ["Michelle Obama"]

    def test_the_sample_dump(self, shared_data: Path, tmp_path: Path) -> None:
        report = import_graph([shared_data / "dumps" / "wikidata-sample.json.bz2"], tmp_path / "g.kg")
        with Store.open(tmp_path / "g.kg") as store:
            ids = {row[0] for row in store.rows("SELECT e.id FROM entity e JOIN name n ON n.entity = e.number")}
        assert {"P7531", "Q75197619"} <= ids, "the first and the last one"
        assert report.facts > 100 and report.skipped["string"] > 0 and not report.problems


def test_precisions_survive(tmp_path: Path) -> None:
    claims = {
        "P1": [statement(dump_time("+1961-08-00T00:00:00Z", 10)), statement(dump_time("-0500-00-00T00:00:00Z", 7))]
    }
    (tmp_path / "d.json").write_bytes(lines([entity("Q1", "x", claims)]))
    import_graph([tmp_path / "d.json"], tmp_path / "g.kg")
    with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
        shown = {graph.label(int(tail)) for tail in graph.edges(graph.number("Q1")).tail}
    assert "August 1961" in shown and any("5th century BC" in text for text in shown)


@pytest.mark.slow
def test_a_large_dump_killed_half_way(tmp_path: Path) -> None:
    """200,000 entities, real block size, two workers, SIGKILL in the middle: the same graph as an unbroken run."""
    dump = tmp_path / "large.json"
    with dump.open("wb") as stream:
        stream.writelines(generated(200_000))
    import_graph([dump], tmp_path / "whole.kg")
    command = [sys.executable, "-m", "kglm", "kg", "import", str(dump), "--to", str(tmp_path / "killed.kg")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    reached = wait_for_progress(tmp_path / "killed.kg.partial", process, dump.stat().st_size // 2 >> 16)
    process.kill()
    process.communicate()
    assert dump.stat().st_size // 2 <= reached < dump.stat().st_size
    assert import_graph([dump], tmp_path / "killed.kg").resumed
    assert content(tmp_path / "killed.kg") == content(tmp_path / "whole.kg")
