"""Two processes train what one trains: real `torchrun`, real DistributedDataParallel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from kglm.bundled import DOCUMENTS, ENTITIES, FACTS, RELATIONS
from kglm.errors import ConfigError
from kglm.kg.imports import import_graph
from kglm.kg.transe import TransEConfig, embed_graph
from kglm.train.world import World, choose_device
from trainers import TESTS, trainer

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
SHARED = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from trainers import trainer
from kglm.train.world import joined
with joined("cpu") as world:
    for name, stop_after in (("whole", None), ("parts", 5), ("parts", None)):
        home = Path(sys.argv[1])
        made = trainer(home / name, world=world, store=home / f"{{world.rank}} {{name}}")
        made.resume()
        made.fit(stop_after=stop_after)
"""


def close(left: Path, right: Path) -> None:
    """The same weights and metrics, up to rounding: sums are made in another order."""
    weights = [load_file(home / "model.safetensors") for home in (left, right)]
    assert weights[0].keys() == weights[1].keys()
    for name, tensor in weights[0].items():
        assert (tensor - weights[1][name]).abs().max() < 1e-9, name
    logs = [[json.loads(line) for line in (home / "metrics.jsonl").read_text().splitlines()] for home in (left, right)]
    for one, two in zip(*logs, strict=True):
        assert one["step"] == two["step"] and one["unexplained"] == two["unexplained"]
        for part in ("train", "valid"):
            assert one[part] == pytest.approx(two[part], rel=1e-9)


def test_two_processes_train_what_one_trains_and_can_be_stopped(tmp_path: Path) -> None:
    """With dropout, AR and TAR, documents of different lengths, rows that fall away; then stopped and resumed."""
    script = tmp_path / "shared.py"
    script.write_text(SHARED.format(tests=str(TESTS)))
    trainer(tmp_path / "one").fit()
    subprocess.run([*TORCHRUN, str(script), str(tmp_path / "two")], check=True, capture_output=True, timeout=120)
    close(tmp_path / "one" / "run", tmp_path / "two" / "whole" / "run")
    close(tmp_path / "two" / "whole" / "run", tmp_path / "two" / "parts" / "run")


def test_one_process_goes_on_with_what_two_began(tmp_path: Path) -> None:
    script = tmp_path / "shared.py"
    lines = SHARED.format(tests=str(TESTS)).replace('("parts", None)', '("parts", 7)')
    script.write_text(lines)
    trainer(tmp_path / "one").fit()
    subprocess.run([*TORCHRUN, str(script), str(tmp_path / "two")], check=True, capture_output=True, timeout=120)
    rest = trainer(tmp_path / "two" / "parts", store=tmp_path / "store")
    assert rest.resume() and rest.step == 7
    rest.fit()
    close(tmp_path / "one" / "run", tmp_path / "two" / "parts" / "run")


def test_the_command_under_torchrun(tmp_path: Path) -> None:
    import_graph([FACTS], tmp_path / "world.kg", entities=[ENTITIES], relations=[RELATIONS])
    embed_graph(tmp_path / "world.kg", TransEConfig(dim=16, epochs=2, held_out=0))
    for home, launcher in (("one", [sys.executable]), ("two", TORCHRUN)):
        command = [*launcher, "-m", "kglm", "train", "kglm", "--config", "tiny", "--set", "train.epochs=2"]
        files = ["--data", DOCUMENTS, "--valid", DOCUMENTS, "--kg", tmp_path / "world.kg", "--to", tmp_path / home]
        done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("nats a word") == 1, "one process speaks"
    logs = [
        [json.loads(line) for line in (tmp_path / home / "metrics.jsonl").read_text().splitlines()]
        for home in ("one", "two")
    ]
    for one, two in zip(*logs, strict=True):
        assert one["valid"]["nats"] == pytest.approx(two["valid"]["nats"], rel=1e-5)


class TestAlone:
    def test_nothing_is_sent(self) -> None:
        world = World()
        assert world.any(True, False) == [True, False] and world.total([1.5]) == [1.5] and world.leads

    def test_devices(self) -> None:
        assert choose_device("cpu").type == "cpu"
        with pytest.raises(ConfigError, match="PyTorch sees no GPU"):
            choose_device("cuda")
        with pytest.raises(ConfigError, match=r"train\.device = 'tpu'"):
            choose_device("tpu")
