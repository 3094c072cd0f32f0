"""Imports in processes of their own: killed and run again, two at once, on a full disk."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kglm.errors import KglmError
from kglm.kg.imports import import_graph
from support.dumps import generated
from support.worlds import content, leftovers, write_facts

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


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dump") / "dump.json"
    path.write_bytes(b"".join(generated(800)))
    return path


@pytest.fixture(scope="module")
def imported(dump: Path) -> Path:
    import_graph([dump], dump.with_name("whole.kg"), workers=1)
    return dump.with_name("whole.kg")


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


def test_two_imports_to_one_graph(dump: Path, tmp_path: Path) -> None:
    process = importing(dump, tmp_path / "g.kg")
    wait_for_progress(tmp_path / "g.kg.partial", process, 2)
    with pytest.raises(KglmError, match="another import is writing this graph"):
        import_graph([dump], tmp_path / "g.kg")
    process.communicate()
    assert process.returncode == 0 and (tmp_path / "g.kg").exists() and not leftovers(tmp_path)


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
