"""Trained heads on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from kglm.errors import ConfigError, DataError, VersionError
from kglm.files.artefact import Artefact, new_artefact
from kglm.heads.store import RECORD, WEIGHTS, is_heads, read_adapter, read_heads, write_heads
from support.letters import LetterWorld

pytest.importorskip("transformers", reason="the extra hf is not installed")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LetterWorld:
    home = tmp_path_factory.mktemp("letters")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(home / "cache"))
        return LetterWorld(home / "world")


def stored(world: LetterWorld, home: Path) -> Path:
    with new_artefact(home) as writer:
        write_heads(writer, world.heads, world.base)
    return home


def test_heads_are_the_same_after_reading(world: LetterWorld, tmp_path: Path) -> None:
    home = stored(world, tmp_path / "heads")
    read = read_heads(Artefact.open(home), world.base)
    assert is_heads(home) and not is_heads(tmp_path)
    assert read.config == world.heads.config and not read.training
    for name, tensor in world.heads.state_dict().items():
        assert torch.equal(read.state_dict()[name], tensor.half().float())


@pytest.mark.parametrize(
    ("field", "value", "kind", "message"),
    [
        ("digest", "0" * 16, ConfigError, "were trained on the base"),
        ("format", 99, VersionError, "has format 99"),
        ("hidden", 7, DataError, "instead of"),
        ("key", 0, DataError, "key"),
        ("config", {"state": -1}, DataError, "heads.state"),
    ],
)
def test_what_does_not_fit_is_refused(
    world: LetterWorld, tmp_path: Path, field: str, value: object, kind: type[Exception], message: str
) -> None:
    home = stored(world, tmp_path / "heads")
    record = json.loads((home / RECORD).read_text())
    (home / RECORD).write_text(json.dumps({**record, field: value}))
    (home / "manifest.json").unlink()
    with pytest.raises(kind, match=message):
        read_heads(Artefact.open(home), world.base)


def test_an_adapter_is_stored_with_the_heads(world: LetterWorld, tmp_path: Path) -> None:
    adapter = {"layer.0.A": torch.ones(2, 3), "layer.0.B": torch.ones(4, 2) / 2}
    with new_artefact(tmp_path / "heads") as writer:
        write_heads(writer, world.heads, world.base, encoder="tiny-1", adapter=adapter)
    artefact = Artefact.open(tmp_path / "heads")
    read_heads(artefact, world.base)
    found = read_adapter(artefact)
    assert found.keys() == adapter.keys() and all(torch.equal(found[name].float(), adapter[name]) for name in found)
    assert read_adapter(Artefact.open(stored(world, tmp_path / "other"))) == {}


def test_weights_that_are_not_finite_are_refused(world: LetterWorld, tmp_path: Path) -> None:
    home = stored(world, tmp_path / "heads")
    broken = bytearray((home / WEIGHTS).read_bytes())
    broken[-4:] = b"\xff\xff\xff\xff"
    (home / WEIGHTS).write_bytes(bytes(broken))
    (home / "manifest.json").unlink()
    with pytest.raises(DataError, match="NaN"):
        read_heads(Artefact.open(home), world.base)
