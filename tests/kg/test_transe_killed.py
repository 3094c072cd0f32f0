"""Training of vectors in processes of its own: killed, asked to stop, two at once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kglm.errors import KglmError
from kglm.kg import transe
from kglm.kg.snapshots import newest
from kglm.kg.transe import TransEConfig, embed_graph
from rings import SMALL, ring
from worlds import make_store

EMBED = """
import sys
from kglm.kg import transe
transe.ROUND = 64
config = transe.TransEConfig(dim=32, epochs=int(sys.argv[2]), batch=16, save_every=0)
print("start", flush=True)
transe.embed_graph(sys.argv[1], config)
"""


def started(path: Path, epochs: int = 40) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", EMBED, str(path), str(epochs)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def wait_for_state(path: Path) -> None:
    deadline = time.monotonic() + 60
    while newest(Path(f"{path}.vectors.partial")) is None and time.monotonic() < deadline:
        time.sleep(0.01)


def finished(path: Path) -> tuple[bool, bytes]:
    report = embed_graph(path, TransEConfig(dim=32, epochs=40, batch=16, save_every=1e9))
    directory = newest(Path(f"{path}.vectors"))
    assert directory is not None and not Path(f"{path}.vectors.partial").exists()
    return report.resumed, b"".join((directory / f"{name}.npy").read_bytes() for name in ("entity", "relation"))


def test_killed_and_run_again_is_never_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transe, "ROUND", 64)
    whole, killed = (make_store(tmp_path / name, ring()) for name in ("whole", "killed"))
    for pause in (0.0, 0.15):
        process = started(killed)
        wait_for_state(killed)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert newest(Path(f"{killed}.vectors")) is None
    resumed, vectors = finished(killed)
    assert resumed
    assert finished(whole) == (False, vectors)


def test_ctrl_c_leaves_a_state_to_go_on_from(tmp_path: Path) -> None:
    path = make_store(tmp_path, ring())
    process = started(path, 100_000)
    wait_for_state(path)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and "KeyboardInterrupt" in errors
    assert newest(Path(f"{path}.vectors.partial")) is not None
    assert not Path(f"{path}.vectors.lock").exists()


def test_two_at_once_are_told(tmp_path: Path) -> None:
    path = make_store(tmp_path, ring())
    process = started(path, 100_000)
    try:
        wait_for_state(path)
        with pytest.raises(KglmError, match="being made"):
            embed_graph(path, SMALL)
    finally:
        process.kill()
        process.communicate()
