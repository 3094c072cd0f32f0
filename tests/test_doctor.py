"""`examine`: healthy and damaged documents and graphs."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from kglm import bundled
from kglm.doctor import SHOWN, examine, repair
from kglm.doctor import accept as accept_artefact
from kglm.errors import DamagedError, DataError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.store import Store
from support.artefacts import accept
from support.tiny import DOCUMENTS
from support.worlds import make_store


def errors(path: Path) -> list[str]:
    return [f"{finding.place}: {finding.what}" for finding in examine(path) if finding.level == "error"]


class TestDocuments:
    good = '{"title": "t", "tokens": ["@@START@@", "a", "@@END@@"]}'

    def test_healthy_documents_have_no_errors(self, shared_data: Path) -> None:
        assert not errors(DOCUMENTS)
        assert not errors(shared_data / "lw2" / "valid.jsonl.gz")

    def test_every_bad_line_is_listed(self, tmp_path: Path) -> None:
        path = tmp_path / "d.jsonl"
        path.write_text("\n".join([self.good, '{"x"', self.good, '{"title": 3}', '{"title": "", "tokens": [2]}']))
        assert [error.split(":")[0] for error in errors(path)] == [f"{path}, line {n}" for n in (2, 4, 5)]

    def test_long_lists_are_cut(self, tmp_path: Path) -> None:
        path = tmp_path / "d.jsonl"
        path.write_text(self.good + "\n" + "rubbish\n" * (SHOWN + 7))
        assert len(errors(path)) == SHOWN + 1 and "7 further errors" in errors(path)[-1]

    def test_quirks_are_notes_and_lost_mentions_warnings(self, tmp_path: Path) -> None:
        mention = {"source": "KG", "id": "X1", "relation": ["@@NEW@@"], "parent_id": ["X1"], "span": [0, 1]}
        record = {"title": "t", "tokens": ["a"], "annotations": [mention]}
        (tmp_path / "d.jsonl").write_text(json.dumps(record) + "\n" + json.dumps(record | {"annotations": []}))
        found = {(finding.level, finding.what) for finding in examine(tmp_path / "d.jsonl")}
        assert ("warning", "1 × unknown prefix") in found and ("note", "1 × missing start") in found
        assert any("occurs on line 1 too" in what for _, what in found)

    def test_truncated_file_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress((self.good + "\n").encode() * 5000)[:-20])
        assert "ends in the middle" in errors(tmp_path / "d.jsonl.gz")[-1]

    def test_file_of_another_format_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_text("hello")
        with pytest.raises(DataError, match="neither a graph nor a file of documents nor a run"):
            examine(tmp_path / "x")


class TestGraph:
    def test_healthy_graph_has_no_errors(self, tmp_path: Path) -> None:
        assert not errors(make_store(tmp_path))

    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            ("UPDATE entity SET id = 'anna' WHERE id = 'Q5'", "entity id 'anna' is malformed"),
            ("UPDATE relation SET id = 'knows' WHERE id = 'P26'", "relation id 'knows' is malformed"),
            ("DELETE FROM entity WHERE id = 'P26'", "numbered up to"),
            ("UPDATE fact SET tail = 999 WHERE number = 1", "refers to a missing entity"),
            ("PRAGMA user_version = 7", "format 7"),
        ],
    )
    def test_damage_is_found(self, tmp_path: Path, damage: str, message: str) -> None:
        path = make_store(tmp_path)
        connection = sqlite3.connect(path)
        with connection:
            connection.execute(damage)
        connection.close()
        if "user_version" not in damage:
            assert any("differs from its seal" in error for error in errors(path)), errors(path)
            with Store.open(path, writable=True, check=False) as store:
                store.seal()
        assert any(message in error for error in errors(path)), errors(path)

    def test_arrays_that_differ_from_the_store_are_an_error(self, tmp_path: Path) -> None:
        path = make_store(tmp_path)
        [tails] = tmp_path.glob("toy.kg.arrays/*/edge_tail.npy")
        changed = np.load(tails)
        changed[-1] ^= 1
        np.save(tails, changed)
        assert any("edge_tail.npy: is damaged" in error for error in errors(path))
        accept(tails.parent)
        assert any("not as in the graph file: edge_tail" in error for error in errors(path))
        repair(path)
        assert not errors(path)

    def test_damaged_sqlite_file_is_an_error(self, tmp_path: Path) -> None:
        path = make_store(tmp_path, [(f"Q{n}", "P1", f"Q{n + 1}") for n in range(1, 3000)])
        content = bytearray(path.read_bytes())
        middle = len(content) // 2
        content[middle : middle + 20_000] = bytes(20_000)
        path.write_bytes(content)
        assert any("damaged" in error for error in errors(path))


class TestRun:
    @pytest.fixture
    def run(self, tmp_path: Path) -> Path:
        return Path(shutil.copytree(bundled.RUN, tmp_path / "run"))

    def test_accept_and_repair_refuse_a_directory_that_is_no_run(self, tmp_path: Path) -> None:
        (tmp_path / "manifest.json").write_text('{"my": "webapp"}')
        for action in (accept_artefact, repair):
            with pytest.raises(DataError, match="is not a run"):
                action(tmp_path)
        assert json.loads((tmp_path / "manifest.json").read_text()) == {"my": "webapp"}

    def test_a_graph_beside_the_run_is_left_alone(self, run: Path, tmp_path: Path) -> None:
        for file in list(run.glob("world.kg*")):
            file.rename(tmp_path / file.name)
        record = json.loads((run / "kg.json").read_text())
        (run / "kg.json").write_text(json.dumps(record | {"beside": "../world.kg"}))
        connection = sqlite3.connect(tmp_path / "world.kg")
        with connection:
            connection.execute("UPDATE entity SET description = 'nonsense' WHERE id = 'Q76'")
        connection.close()
        accept_artefact(run)
        with pytest.raises(DamagedError):
            Store.open(tmp_path / "world.kg")

    def test_what_cannot_be_opened_is_not_accepted(self, run: Path) -> None:
        (run / "introductions.json").unlink()
        manifest = (run / "manifest.json").read_bytes()
        assert any(
            "introductions.json" in finding.place for finding in accept_artefact(run) if finding.level == "error"
        )
        assert (run / "manifest.json").read_bytes() == manifest

    def test_examining_changes_nothing(self, run: Path) -> None:
        [tails] = run.glob("world.kg.arrays/*/edge_tail.npy")
        content = bytearray(tails.read_bytes())
        content[3000] ^= 1
        tails.write_bytes(content)
        first = errors(run)
        assert first and errors(run) == first

    def test_arrays_without_a_manifest_are_rebuilt(self, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        [tails] = run.glob("world.kg.arrays/*/edge_tail.npy")
        np.save(tails, np.roll(np.load(tails), 1))
        (tails.parent / "manifest.json").unlink()
        before = KnowledgeGraph.open(bundled.RUN / "world.kg").overlay.base.edge_tail
        assert np.array_equal(KnowledgeGraph.open(run / "world.kg").overlay.base.edge_tail, before)
        assert "is rebuilt" in capsys.readouterr().err
