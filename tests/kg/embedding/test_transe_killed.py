"""Training of vectors in processes of its own: killed, asked to stop, two at once."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from kglm.errors import KglmError
from kglm.kg.embedding import transe
from kglm.kg.embedding.transe import TransEConfig, embed_graph
from kglm.kg.snapshots import newest
from support.rings import SMALL, ring
from support.worlds import make_store

INTERRUPTED = 77


def embed(path: Path, epochs: int) -> None:
    transe.ROUND_PAIRS = 64
    try:
        embed_graph(path, TransEConfig(dim=32, epochs=epochs, batch=16, save_every=0))
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def started(forks: Any, path: Path, epochs: int = 40) -> Any:
    process = forks.Process(target=embed, args=(path, epochs))
    process.start()
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


def test_killed_and_run_again_is_never_killed(tmp_path: Path, forks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transe, "ROUND_PAIRS", 64)
    whole, killed = (make_store(tmp_path / name, ring()) for name in ("whole", "killed"))
    for pause in (0.0, 0.15):
        process = started(forks, killed)
        wait_for_state(killed)
        time.sleep(pause)
        process.kill()
        process.join()
    assert newest(Path(f"{killed}.vectors")) is None
    resumed, vectors = finished(killed)
    assert resumed
    assert finished(whole) == (False, vectors)


def test_ctrl_c_leaves_a_state_to_go_on_from(tmp_path: Path, forks: Any) -> None:
    path = make_store(tmp_path, ring())
    process = started(forks, path, 100_000)
    wait_for_state(path)
    os.kill(process.pid, signal.SIGINT)
    process.join(60)
    assert process.exitcode == INTERRUPTED
    assert newest(Path(f"{path}.vectors.partial")) is not None
    assert not Path(f"{path}.vectors.lock").exists()


def test_two_at_once_are_told(tmp_path: Path, forks: Any) -> None:
    path = make_store(tmp_path, ring())
    process = started(forks, path, 100_000)
    try:
        wait_for_state(path)
        with pytest.raises(KglmError, match="is training vectors"):
            embed_graph(path, SMALL)
    finally:
        process.kill()
        process.join()
