"""Training of vectors in separate processes: killed, interrupted, two at once."""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from kglm.errors import KglmError
from kglm.kg.embedding import transe
from kglm.kg.embedding.transe import TransE, TransEConfig, embed_graph
from kglm.kg.snapshots import newest
from support.rings import SMALL, ring
from support.worlds import make_store

INTERRUPTED = 77


def embed(path: Path, epochs: int, saves: int, saved: Connection, stops: bool) -> None:
    """Train; after some saved states, send a message, and if `stops`, wait to be killed."""
    transe.ROUND_PAIRS = 64
    save, count = TransE.save, 0

    def save_and_send(self: TransE, directory: Path, key: dict[str, Any]) -> None:
        nonlocal count
        save(self, directory, key)
        count += 1
        if count == saves:
            saved.send(self.done)
            if stops:
                signal.pause()

    TransE.save = save_and_send  # type: ignore[method-assign]
    try:
        embed_graph(path, TransEConfig(dim=32, epochs=epochs, batch=16, save_every=0))
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def started(forks: Any, path: Path, *, epochs: int = 40, saves: int = 1, stops: bool = True) -> Any:
    """A training process that has saved its state `saves` times."""
    receiver, sender = forks.Pipe(duplex=False)
    process = forks.Process(target=embed, args=(path, epochs, saves, sender, stops))
    process.start()
    sender.close()
    assert receiver.recv() > 0
    return process


def finished(path: Path) -> tuple[bool, bytes]:
    report = embed_graph(path, TransEConfig(dim=32, epochs=40, batch=16, save_every=1e9))
    directory = newest(Path(f"{path}.vectors"))
    assert directory is not None and not Path(f"{path}.vectors.partial").exists()
    return report.resumed, b"".join((directory / f"{name}.npy").read_bytes() for name in ("entity", "relation"))


def test_killed_and_resumed_training_gives_the_same_vectors(
    tmp_path: Path, forks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transe, "ROUND_PAIRS", 64)
    whole, killed = (make_store(tmp_path / name, ring()) for name in ("whole", "killed"))
    for saves in (1, 20):
        process = started(forks, killed, saves=saves)
        process.kill()
        process.join()
    assert newest(Path(f"{killed}.vectors")) is None
    resumed, vectors = finished(killed)
    assert resumed
    assert finished(whole) == (False, vectors)


def test_interrupted_training_saves_its_state(tmp_path: Path, forks: Any) -> None:
    path = make_store(tmp_path, ring())
    process = started(forks, path, epochs=100_000, stops=False)
    os.kill(process.pid, signal.SIGINT)
    process.join(60)
    assert process.exitcode == INTERRUPTED
    assert newest(Path(f"{path}.vectors.partial")) is not None
    assert not Path(f"{path}.vectors.lock").exists()


def test_second_training_of_a_graph_is_an_error(tmp_path: Path, forks: Any) -> None:
    path = make_store(tmp_path, ring())
    process = started(forks, path)
    try:
        with pytest.raises(KglmError, match="is training vectors"):
            embed_graph(path, SMALL)
    finally:
        process.kill()
        process.join()
