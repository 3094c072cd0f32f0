"""Test that two processes train the same model as one, with DistributedDataParallel and under `torchrun`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from conftest import Command
from kglm.errors import ConfigError
from kglm.kg.embedding.transe import TransEConfig, embed_graph
from kglm.kg.imports import import_graph
from kglm.train.processes import World, choose_device, joined
from support.tiny import DOCUMENTS, ENTITIES, FACTS, RELATIONS
from support.trainers import trainer

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
JOBS = [
    *(("whole", None), ("parts", 5), ("parts", None), ("begun", 5), ("begun", 7)),
    *(("tracker", 3), ("tracker", None), ("tracker_proposal", None)),
]
"""The model to train, and the number of steps after which it is stopped."""


def train_together(home: Path, rank: int, port: int) -> None:
    """One of two processes, with the environment that `torchrun` would give it."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "RANK": str(rank)}
    train_jobs(home, rank)
    (home / f"threads {rank}").write_text("\n".join(thread_names()))


def train_jobs(home: Path, rank: int) -> None:
    with joined("cpu") as world:
        for name, stop_after in JOBS:
            model = name if name.startswith("tracker") else "model"
            made = trainer(home / name, model=model, world=world, store=home / f"{rank} {name}")
            made.resume()
            made.fit(stop_after=stop_after)
        (home / f"threads in training {rank}").write_text("\n".join(thread_names()))


def thread_names() -> list[str]:
    """Names of the threads of this process, on Linux."""
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]


def close(left: Path, right: Path) -> None:
    """Assert that weights and metrics are equal up to rounding, as the order of sums differs."""
    weights = [load_file(home / "model.safetensors") for home in (left, right)]
    assert weights[0].keys() == weights[1].keys()
    for name, tensor in weights[0].items():
        assert (tensor - weights[1][name]).abs().max() < 1e-9, name
    logs = [[json.loads(line) for line in (home / "metrics.jsonl").read_text().splitlines()] for home in (left, right)]
    for one, two in zip(*logs, strict=True):
        assert one["step"] == two["step"] and one["unexplained"] == two["unexplained"]
        for part in ("train", "valid"):
            assert one[part] == pytest.approx(two[part], rel=1e-9)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, forks: Any) -> Path:
    """Runs trained by one process (`one`) and by two (`two`): uninterrupted, resumed, and stopped early."""
    home = tmp_path_factory.mktemp("trained")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    both = [forks.Process(target=train_together, args=(home / "two", rank, port), daemon=True) for rank in range(2)]
    for process in both:
        process.start()
    trainer(home / "one").fit()
    for process in both:
        process.join(120)
    assert [process.exitcode for process in both] == [0, 0]
    return home


def test_two_processes_train_the_same_model_as_one(trained: Path) -> None:
    """With dropout, AR and TAR, documents of different lengths and a shrinking batch; then stopped and resumed."""
    close(trained / "one" / "run", trained / "two" / "whole" / "run")
    close(trained / "two" / "whole" / "run", trained / "two" / "parts" / "run")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the names of threads from /proc")
@pytest.mark.parametrize("rank", [0, 1])
def test_communication_threads_end_with_the_group(trained: Path, rank: int) -> None:
    """A thread that outlives the group can abort the process when the interpreter ends."""
    during, after = (
        (trained / "two" / f"{when} {rank}").read_text().split() for when in ("threads in training", "threads")
    )
    assert [name for name in during if "gloo" in name]
    assert not [name for name in after if "gloo" in name]


@pytest.mark.parametrize("model", ["tracker", "tracker_proposal"])
def test_two_processes_with_entity_vectors(trained: Path, tmp_path: Path, model: str) -> None:
    """The carried state of a row has one vector for each entity mentioned so far."""
    trainer(tmp_path, model=model).fit()
    close(tmp_path / "run", trained / "two" / model / "run")


def test_one_process_resumes_a_run_of_two(trained: Path, tmp_path: Path) -> None:
    rest = trainer(trained / "two" / "begun", store=tmp_path / "store")
    assert rest.resume() and rest.step == 7
    rest.fit()
    close(trained / "one" / "run", trained / "two" / "begun" / "run")


def test_the_command_under_torchrun(tmp_path: Path, command: Command) -> None:
    import_graph([FACTS], tmp_path / "world.kg", entities=[ENTITIES], relations=[RELATIONS])
    embed_graph(tmp_path / "world.kg", TransEConfig(dim=16, epochs=2, held_out=0))
    words = ["train", "kglm", "--config", "tiny", "--set", "train.epochs=2", "--data", DOCUMENTS, "--valid", DOCUMENTS]
    words = [*map(str, words), "--kg", str(tmp_path / "world.kg"), "--to"]
    under = [*TORCHRUN, "-m", "kglm", *words, str(tmp_path / "two")]
    two = subprocess.run(under, capture_output=True, text=True, timeout=180, check=False)
    for done in (command(*words, str(tmp_path / "one")), two):
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("nats a word") == 1, "only one process prints"
    logs = [
        [json.loads(line) for line in (tmp_path / home / "metrics.jsonl").read_text().splitlines()]
        for home in ("one", "two")
    ]
    for one, two in zip(*logs, strict=True):
        assert one["valid"]["nats"] == pytest.approx(two["valid"]["nats"], rel=1e-5)


class TestAlone:
    def test_one_process_needs_no_communication(self) -> None:
        world = World()
        assert world.any(True, False) == [True, False] and world.total([1.5]) == [1.5] and world.leads

    def test_devices(self) -> None:
        assert choose_device("cpu").type == "cpu"
        with pytest.raises(ConfigError, match="PyTorch sees no GPU"):
            choose_device("cuda")
        with pytest.raises(ConfigError, match=r"train\.device = 'tpu'"):
            choose_device("tpu")
