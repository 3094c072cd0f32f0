"""Trained heads on disk: one directory, which any graph can be used with.

    heads.json          base, encoder, sizes, options, well-known relations
    heads.safetensors   weights, and those of the sentence encoder's adapter, if there is one

The directory is an artefact, or a part of one (a RUN). Heads belong to one base: the digest of its source is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from torch import Tensor

from kglm import __version__
from kglm.errors import ConfigError, DataError, VersionError
from kglm.files.artefact import Artefact, Writer
from kglm.files.tensors import parse_tensors, write_tensors
from kglm.heads.meanings import Known
from kglm.heads.model import Heads
from kglm.heads.options import HeadsConfig
from kglm.pretrained.base import BaseModel

RECORD, WEIGHTS = "heads.json", "heads.safetensors"
ADAPTER = "encoder."
"""Begins the names of the adapter's tensors."""
FORMAT = 1
REMEDY = "restore it from a copy, or train it again"
_Size = Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]


class HeadsRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`heads.json`: what the weights belong to."""

    format: int
    kglm: str
    """Version of kglm that wrote it."""
    base: Annotated[str, msgspec.Meta(min_length=1)]
    """Name or path that opened the base."""
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    """Hash of the base's source."""
    hidden: _Size
    """Size of the base's states."""
    key: _Size
    """Size of the fixed vectors of relations."""
    config: HeadsConfig
    encoder: str | None = None
    """Name of the sentence encoder of the training, its adapter included; None if there was none."""
    known: tuple[Known, ...] = ()
    """Relations that texts may ask for even if a graph does not have them."""


def write_heads(
    writer: Writer,
    heads: Heads,
    base: BaseModel,
    *,
    encoder: str | None = None,
    adapter: Mapping[str, Tensor] | None = None,
    known: Sequence[Known] = (),
) -> None:
    """Write heads that were trained on a base. Weights are stored in half precision, which changes no answer."""
    tensors = {**heads.state_dict(), **{ADAPTER + name: tensor for name, tensor in (adapter or {}).items()}}
    write_tensors(writer, WEIGHTS, {name: tensor.half() for name, tensor in tensors.items()})
    record = HeadsRecord(
        FORMAT, __version__, base.source, base.digest, heads.hidden, heads.key, heads.config, encoder, tuple(known)
    )
    writer.json(RECORD, record)


def read_record(artefact: Artefact) -> HeadsRecord:
    """What the heads of a directory belong to."""
    record = artefact.record(RECORD, HeadsRecord)
    if record.format != FORMAT:
        raise VersionError(
            f"has format {record.format}; this version of kglm reads {FORMAT}",
            place=artefact.home,
            remedy=f"use kglm {record.kglm}, or train it again",
        )
    return record


def read_heads(artefact: Artefact, base: BaseModel) -> Heads:
    """The heads of a directory, ready to use with the base that they were trained on."""
    record, place = read_record(artefact), artefact.home / WEIGHTS
    if record.digest != base.digest:
        raise ConfigError(
            f"these heads were trained on the base {record.base} ({record.digest}), not on {base.name} ({base.digest})",
            place=artefact.home,
            remedy="use that base, or train heads for this one",
        )
    heads = Heads(record.config, record.hidden, record.key)
    own, tensors = heads.state_dict(), _tensors(artefact, adapter=False)
    for name in own.keys() | tensors.keys():
        expected, found = (tuple(each[name].shape) if name in each else None for each in (own, tensors))
        if expected != found:
            raise DataError(f"{name} has shape {found} instead of {expected}", place=place, remedy=REMEDY)
    heads.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return heads.eval()


def read_adapter(artefact: Artefact) -> dict[str, Tensor]:
    """The changes of the sentence encoder that belong to heads (see `kglm.text.adapter`); empty if there are none."""
    return {name.removeprefix(ADAPTER): tensor for name, tensor in _tensors(artefact, adapter=True).items()}


def _tensors(artefact: Artefact, *, adapter: bool) -> dict[str, Tensor]:
    found = parse_tensors(artefact.read(WEIGHTS), artefact.home / WEIGHTS, REMEDY)
    return {name: tensor for name, tensor in found.items() if name.startswith(ADAPTER) == adapter}


def is_heads(home: Path) -> bool:
    """True if a directory has trained heads."""
    return (home / RECORD).is_file()
