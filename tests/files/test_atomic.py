"""Leftovers of killed writers are removed, the work of live ones is kept."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kglm.files.atomic import atomic_directory, atomic_file, remove_directory, remove_leftovers

WRITER = """
import sys, time
from pathlib import Path
from kglm.files.atomic import atomic_directory, atomic_file
make = atomic_directory if sys.argv[2] == "directory" else atomic_file
with make(Path(sys.argv[1])) as made:
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_killed_writer_leaves_nothing_after_the_next_one(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "result"
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(target), kind], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        process.stdout.readline()
    [temporary] = tmp_path.iterdir()
    assert remove_leftovers(target) == [] and temporary.exists()  # its writer is alive
    process.send_signal(signal.SIGKILL)
    process.wait()
    (tmp_path / ".other.x.tmp").touch()
    (tmp_path / "result.tmp").touch()
    if kind == "file":
        with atomic_file(target) as stream:
            stream.write(b"done")
    else:
        with atomic_directory(target) as directory:
            (directory / "file").touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.x.tmp", "result", "result.tmp"]


def test_leftovers_of_all_names(tmp_path: Path) -> None:
    (tmp_path / ".a.x.tmp").touch()
    (tmp_path / ".b.7.gone").mkdir()
    (tmp_path / ".hidden").touch()
    (tmp_path / "b").touch()
    assert len(remove_leftovers(tmp_path, bool)) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", "b"]
    assert remove_leftovers(tmp_path / "missing", bool) == []


def test_a_directory_that_cannot_be_removed_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").mkdir()

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("shutil.rmtree", fail)
    remove_directory(tmp_path / "x")
    assert "cannot be removed: Input/output error" in capsys.readouterr().err
