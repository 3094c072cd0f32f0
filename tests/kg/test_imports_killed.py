"""Imports in separate processes: killed and resumed, two at once, on a full disk."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kglm.errors import KglmError
from kglm.kg.imports import BLOCK_BYTES, PARALLEL_FROM, import_graph
from support.dumps import generated
from support.worlds import content, leftovers, write_facts

IMPORT = """
import sys
from kglm.kg import imports
from kglm.kg.staging import Staging

source, to, block_bytes, parallel_from, blocks = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
imports.BLOCK_BYTES, imports.PARALLEL_FROM = block_bytes, parallel_from
add, added = Staging.add, 0

def add_and_stop(self, batch, number, *, offset, line, done=False):
    global added
    add(self, batch, number, offset=offset, line=line, done=done)
    added += 1
    if added == blocks:
        print(offset, flush=True)
        sys.stdin.readline()

Staging.add = add_and_stop
imports.import_graph([source], to, workers=2)
"""
"""Import a source; after some staged blocks, print the offset in the source and wait for a line of standard input."""
BLOCK = 1 << 16


class Import:
    """An import in another process that stops after some staged blocks."""

    def __init__(
        self, source: Path, to: Path, blocks: int, *, block: int = BLOCK, parallel_from: int = 1 << 40
    ) -> None:
        arguments = [str(each) for each in (source, to, block, parallel_from, blocks)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", IMPORT, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.reached = int(self.process.stdout.readline())
        """Offset in the source after the last staged block."""

    def kill(self) -> None:
        """Kill the process, and wait until all its workers have ended too: they share its standard error."""
        self.process.kill()
        try:
            self.process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            pytest.fail("worker processes outlive their parent")

    def finish(self) -> int:
        """Let the import run to its end; return its exit code."""
        self.process.communicate(b"\n")
        return self.process.returncode


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
    def test_killed_import_resumes(self, dump: Path, imported: Path, tmp_path: Path, parallel_from: int) -> None:
        to = tmp_path / "g.kg"
        killed = Import(dump, to, 10, parallel_from=parallel_from)
        killed.kill()
        assert 0 < killed.reached < dump.stat().st_size and not to.exists() and (tmp_path / "g.kg.partial").exists()
        report = import_graph([dump], to, workers=1)
        assert report.resumed
        assert content(to) == content(imported) and not leftovers(tmp_path)

    def test_import_killed_three_times_resumes(self, dump: Path, imported: Path, tmp_path: Path) -> None:
        to = tmp_path / "g.kg"
        reached = []
        for _ in range(3):
            killed = Import(dump, to, 15)
            killed.kill()
            reached.append(killed.reached)
        assert reached == sorted(set(reached)), "each one continues where the last was killed"
        import_graph([dump], to, workers=1)
        assert content(to) == content(imported)

    def test_workers_do_not_outlive_a_killed_parent(self, dump: Path, tmp_path: Path) -> None:
        Import(dump, tmp_path / "g.kg", 3, parallel_from=0).kill()

    def test_import_of_another_source_starts_from_the_beginning(self, dump: Path, tmp_path: Path) -> None:
        Import(dump, tmp_path / "g.kg", 3).kill()
        other = write_facts(tmp_path / "f.tsv", [("Q1", "P1", "Q2")])
        report = import_graph([other], tmp_path / "g.kg")
        assert not report.resumed and report.facts == 1 and not leftovers(tmp_path)


def test_two_imports_to_one_graph(dump: Path, tmp_path: Path) -> None:
    running = Import(dump, tmp_path / "g.kg", 2)
    with pytest.raises(KglmError, match="another import is writing this graph"):
        import_graph([dump], tmp_path / "g.kg")
    assert running.finish() == 0 and (tmp_path / "g.kg").exists() and not leftovers(tmp_path)


def test_full_disk_is_an_error(dump: Path, tmp_path: Path) -> None:
    """A limit on file size simulates the full disk: both fail in the middle of a write."""

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
def test_large_dump_killed_half_way(tmp_path: Path) -> None:
    """200,000 entities, real block size, two workers, SIGKILL in the middle: the same graph as without the kill."""
    dump = tmp_path / "large.json"
    with dump.open("wb") as stream:
        stream.writelines(generated(200_000))
    import_graph([dump], tmp_path / "whole.kg")
    size, to = dump.stat().st_size, tmp_path / "killed.kg"
    killed = Import(dump, to, size // 2 // BLOCK_BYTES, block=BLOCK_BYTES, parallel_from=PARALLEL_FROM)
    killed.kill()
    assert size // 4 < killed.reached < size
    assert import_graph([dump], to).resumed
    assert content(to) == content(tmp_path / "whole.kg")
