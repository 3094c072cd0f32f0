"""Tensors of an artefact, mapped."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kglm.errors import DamagedError
from kglm.files.artefact import Artefact, new_artefact
from kglm.files.tensors import ALIGNMENT, map_tensors, parse_tensors, write_tensors

TENSORS = {
    "odd": torch.arange(7, dtype=torch.uint8),
    "weights": torch.randn(5, 3, generator=torch.Generator().manual_seed(0)),
    "half": torch.ones(3, 3).bfloat16(),
    "none": torch.zeros(0, 4),
}


@pytest.fixture
def artefact(tmp_path: Path) -> Artefact:
    with new_artefact(tmp_path / "made") as writer:
        write_tensors(writer, "weights.safetensors", TENSORS)
    return Artefact.open(tmp_path / "made")


def test_they_are_those_that_were_written(artefact: Artefact) -> None:
    for found in (
        map_tensors(artefact, "weights.safetensors"),
        parse_tensors(artefact.read("weights.safetensors"), artefact.home),
    ):
        assert found.keys() == TENSORS.keys()
        assert all(
            torch.equal(found[name], tensor) and found[name].dtype == tensor.dtype for name, tensor in TENSORS.items()
        )


def test_they_begin_where_kernels_may_read_them(artefact: Artefact) -> None:
    """A tensor at an odd address made a kernel of torch end the process."""
    found = map_tensors(artefact, "weights.safetensors")
    assert [tensor.data_ptr() % ALIGNMENT for tensor in found.values()] == [0] * len(TENSORS)


def test_a_damaged_byte_is_found(artefact: Artefact) -> None:
    path = artefact.home / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="is damaged"):
        map_tensors(artefact, "weights.safetensors")
