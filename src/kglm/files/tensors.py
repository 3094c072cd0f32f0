"""Tensors as safetensors: write, read, map. Reading numbers that are not finite is an error; mapping reads none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from kglm.errors import DataError
from kglm.files.artefact import Artefact, Writer
from kglm.files.streams import reading

_DTYPES = {
    "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I8": torch.int8, "U8": torch.uint8,
    "I32": torch.int32, "I64": torch.int64,
}  # fmt: skip


ALIGNMENT = 64
"""Bytes. Kernels may read a tensor that begins elsewhere with instructions that fail there."""


def write_tensors(writer: Writer, name: str, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors by name as a file of an artefact; the first one begins at a multiple of `ALIGNMENT`."""
    content = save({key: tensor.detach().contiguous() for key, tensor in tensors.items()})
    end = 8 + int.from_bytes(content[:8], "little")
    padded = -(-end // ALIGNMENT) * ALIGNMENT
    with writer.file(name) as stream:
        stream.write((padded - 8).to_bytes(8, "little"))
        stream.write(content[8:end] + b" " * (padded - end))
        stream.write(memoryview(content)[end:])


def parse_tensors(content: bytes, place: Path, remedy: str | None = None) -> dict[str, Tensor]:
    """The tensors of a file, by name, each of them finite."""
    try:
        tensors = load(content)
    except (SafetensorError, KeyError, ValueError, RuntimeError, UnicodeDecodeError) as error:
        raise DataError(f"is not a complete safetensors file ({error})", place=place, remedy=remedy) from error
    if (name := not_finite(tensors)) is not None:
        raise DataError(f"{name} has entries that are NaN or infinite", place=place, remedy=remedy)
    return tensors


def map_tensors(artefact: Artefact, name: str) -> dict[str, Tensor]:
    """The tensors of a file of an artefact, mapped: pages are read when they are used, and shared by processes.

    A tensor that does not begin at a multiple of `ALIGNMENT` is copied.
    """
    mapped = artefact.mapped(name)
    try:
        size = int.from_bytes(mapped[:8], "little")
        header = json.loads(mapped[8 : 8 + size])
        header.pop("__metadata__", None)
        tensors = {}
        for key, about in header.items():
            begin, end = about["data_offsets"]
            dtype, shape = _DTYPES[about["dtype"]], about["shape"]
            count = (end - begin) // dtype.itemsize
            if count == 0:
                tensors[key] = torch.empty(shape, dtype=dtype)
                continue
            tensor = torch.frombuffer(mapped, dtype=dtype, count=count, offset=8 + size + begin).view(shape)
            tensors[key] = tensor.clone() if tensor.data_ptr() % ALIGNMENT else tensor
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RuntimeError) as error:
        raise DataError(
            f"is not a complete safetensors file ({error})", place=artefact.home / name, remedy=artefact.remedy
        ) from error
    return tensors


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file that belongs to no artefact."""
    with reading(path):
        return parse_tensors(path.read_bytes(), path)


def not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """Name of the first tensor that has an entry that is NaN or infinite, or None."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and tensor.numel():
            least, most = torch.aminmax(tensor.detach())
            if not bool(torch.isfinite(least) & torch.isfinite(most)):
                return name
    return None
