"""Checksums of a graph file: damage is found, edits keep the seal, a kill between commit and checksums is survived."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from kglm.errors import DamagedError, KglmError
from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import import_graph
from kglm.kg.seals import TABLES, BlockChecks, compute_seal, content_state, read_seal
from kglm.kg.store import Store
from support.worlds import make_store


def seals_agree(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return compute_seal(connection) == read_seal(connection, path)
    finally:
        connection.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_store(tmp_path)


def test_the_seal_lists_all_tables(path: Path) -> None:
    connection = sqlite3.connect(path)
    tables = {name for [name] in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == set(TABLES) and seals_agree(path)


def test_edits_keep_the_seal_and_the_checksums(path: Path) -> None:
    with KnowledgeGraph.open(path, writable=True) as graph:
        graph.set("Q76", "P569", "2013-03-21")
        assert seals_agree(path)
        graph.edit([NewEntity("Q_x", ("X",)), FactEdit("add", "Q_x", "P26", "Q76")])
        graph.undo()
        graph.undo()
    assert seals_agree(path)
    with Store.open(path) as store:
        assert BlockChecks(path).load(content_state(store._connection)) is not None


def test_a_refused_edit_changes_no_seal(path: Path) -> None:
    with KnowledgeGraph.open(path, writable=True) as graph:
        with pytest.raises(KglmError):
            graph.edit([FactEdit("set", "Q76", "P569", "2013-03-21"), FactEdit("remove", "Q76", "P26", "Q76")])
        graph.set("Q76", "P569", "2013-03-22")
    assert seals_agree(path)


def test_every_flipped_page_is_refused(path: Path) -> None:
    content = path.read_bytes()
    generator = random.Random(3)
    for start in range(0, len(content), 4096):
        place = start + generator.randrange(4096)
        damaged = bytearray(content)
        damaged[place] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        if 24 <= place < 28 or 92 <= place < 96:
            continue  # the change counter: the seal decides
        with pytest.raises(KglmError), Store.open(path) as store:
            store.check()


@pytest.mark.parametrize("table", TABLES)
def test_a_row_changed_by_another_program_is_refused(path: Path, table: str) -> None:
    connection = sqlite3.connect(path)
    [column] = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")][-1:]
    with connection:
        changed = connection.execute(
            f"UPDATE {table} SET {column} = CASE typeof({column}) WHEN 'integer' THEN {column} + 1 ELSE 'x' END"
            f" WHERE rowid IN (SELECT rowid FROM {table} LIMIT 1)"
            if table in ("entity", "relation", "fact", "edit")
            else f"UPDATE OR REPLACE {table} SET {column} = coalesce({column}, '') || '9'"
        )
    connection.close()
    if not changed.rowcount:
        pytest.skip("the table is empty")
    with pytest.raises(DamagedError, match=r"differs from its seal|differ from their checksum|seal is damaged"):
        Store.open(path).check()


def test_checksums_that_are_missing_or_old_are_made_again(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checksums = Path(f"{path}.checksums")
    old = checksums.read_bytes()
    with KnowledgeGraph.open(path, writable=True) as graph:
        graph.set("Q76", "P569", "2013-03-21")
    for content in (old, b"", b"{}", None):  # as if the process was killed after the commit
        checksums.unlink()
        if content is not None:
            checksums.write_bytes(content)
        with Store.open(path) as store:
            assert BlockChecks(path).load(content_state(store._connection)) is not None
    assert capsys.readouterr().err == ""


def test_a_graph_without_a_seal_opens(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM meta WHERE key = 'seal'")
    connection.close()
    Path(f"{path}.checksums").unlink()
    with KnowledgeGraph.open(path, writable=True) as graph:
        assert not graph.store.integrity.sealed
        graph.set("Q76", "P569", "2013-03-21")


def test_a_seal_that_was_deleted_is_damage(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM meta WHERE key = 'seal'")
    connection.close()
    with pytest.raises(DamagedError, match="its seal is missing"):
        Store.open(path)


def test_an_edit_does_not_hide_damage_that_came_after_opening(path: Path) -> None:
    with KnowledgeGraph.open(path, writable=True, whole=True) as graph:
        content = path.read_bytes()
        place = content.index(b"Barack Obama")
        path.write_bytes(content[:place] + b"Borack" + content[place + 6 :])
        with pytest.raises(DamagedError, match="differ from their checksum"):
            graph.set("Q76", "P569", "2013-03-21")


def test_without_checksums_a_damaged_index_is_found(path: Path) -> None:
    connection = sqlite3.connect(path)
    [[root]] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'name_folded'").fetchall()
    [[size]] = connection.execute("PRAGMA page_size").fetchall()
    connection.close()
    content = bytearray(path.read_bytes())
    content[content.index(b"barack obama", (root - 1) * size, root * size)] ^= 1
    path.write_bytes(content)
    Path(f"{path}.checksums").unlink()
    with pytest.raises(DamagedError, match="SQLite finds"):
        Store.open(path)


def test_a_damaged_schema_is_refused(path: Path) -> None:
    """SQLite quotes the damaged bytes in its message, which then is no text."""
    content = path.read_bytes()
    for place in range(content.index(b"CREATE TABLE fact"), content.index(b"CREATE TABLE fact") + 40):
        path.write_bytes(content[:place] + b"\xcc" + content[place + 1 :])
        with pytest.raises(KglmError):
            Store.open(path)


def test_a_journal_mode_of_another_program_is_undone(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    connection.execute("UPDATE entity SET number = number WHERE number = 0")
    connection.commit()
    connection.close()
    with KnowledgeGraph.open(path, writable=True) as graph:
        graph.set("Q76", "P569", "2013-03-21")
    with KnowledgeGraph.open(path, whole=True) as graph:
        assert seals_agree(path)
    assert {file.name for file in path.parent.iterdir() if file.name.startswith(path.name + "-")} == set()


def test_the_same_edit_in_two_copies_is_no_damage(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "copy" / path.name
    other.parent.mkdir()
    for name in ("", ".checksums"):
        shutil.copy(f"{path}{name}", f"{other}{name}")
    for each, time in ((path, "2026-01-01T00:00:00+00:00"), (other, "2026-01-02T00:00:00+00:00")):
        with Store.open(each, writable=True) as store, store.transaction() as connection:
            connection.execute("INSERT INTO edit VALUES (1, ?, NULL, 'digest')", (time,))
    shutil.copy(other, path)  # with the checksums of the first
    with Store.open(path) as store:
        store.check()


class TestFinishedImport:
    @pytest.fixture
    def sources(self, tmp_path: Path) -> list[Path]:
        (tmp_path / "facts.tsv").write_text("Q1\tP1\tQ2\nQ2\tP1\tQ3\n")
        return [tmp_path / "facts.tsv"]

    def test_the_same_import_again_says_that_it_is_done(self, tmp_path: Path, sources: list[Path]) -> None:
        target = tmp_path / "new.kg"
        first = import_graph(sources, target)
        before = target.read_bytes()
        again = import_graph(sources, target)
        assert again.already_done and not first.already_done and again.facts == first.facts == 2
        assert target.read_bytes() == before

    def test_what_a_killed_import_left_is_removed(self, tmp_path: Path, sources: list[Path]) -> None:
        target = tmp_path / "new.kg"
        import_graph(sources, target)
        for name in ("new.kg.lock", ".new.kg.new.tmp", "new.kg.partial-shm"):
            (tmp_path / name).touch()
        assert import_graph(sources, target).already_done
        assert {path.name for path in tmp_path.iterdir()} == {
            "facts.tsv", "new.kg", "new.kg.arrays", "new.kg.checksums"
        }  # fmt: skip

    def test_files_of_others_stay_and_edits_are_named(self, tmp_path: Path, sources: list[Path]) -> None:
        (tmp_path / "new.kg.new").write_text("my notes")
        import_graph(sources, tmp_path / "new.kg")
        with KnowledgeGraph.open(tmp_path / "new.kg", writable=True) as graph:
            graph.edit([FactEdit("add", "Q1", "P1", "Q3")])
        assert import_graph(sources, tmp_path / "new.kg").edits == 1
        assert (tmp_path / "new.kg.new").read_text() == "my notes"

    def test_another_import_is_refused(self, tmp_path: Path, sources: list[Path]) -> None:
        import_graph(sources, tmp_path / "new.kg")
        (tmp_path / "facts.tsv").write_text("Q1\tP1\tQ2\nQ2\tP1\tQ4\n")
        with pytest.raises(KglmError, match="exists already"):
            import_graph(sources, tmp_path / "new.kg")
        with pytest.raises(KglmError, match="exists already"):
            import_graph(sources, tmp_path / "new.kg", near=["Q1"])


def test_the_journal_of_a_killed_process_is_removed_but_not_that_of_a_live_one(path: Path) -> None:
    journal = Path(f"{path}-journal")
    for content in (b"", bytes(600)):
        journal.write_bytes(content)
        with KnowledgeGraph.open(path) as graph:
            assert graph.number("Q76") >= 0
        assert not journal.exists()
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE fact SET rank = 1 - rank")
    assert journal.exists()
    with Store.open(path):
        assert journal.exists()
    writer.execute("ROLLBACK")
    writer.close()
