"""Typed content of the JSON files of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from kglm.errors import DataError
from kglm.files import exists
from kglm.files.artefact import Artefact
from kglm.files.records import AnyFilePath, Count, HexHash

FILES = (
    "articles.jsonl.gz",
    "config.toml",
    "introductions.json",
    "kg.json",
    "metrics.jsonl",
    "model.safetensors",
    "run.json",
    "start.safetensors",
    "vocabulary.json",
)
"""Files that the manifest of a run lists; not the model card, which people may edit, nor a graph inside the run."""
REMEDY = "restore it from a copy, or train again; if you changed it on purpose: kglm doctor RUN --accept"
Introductions = dict[str, Count]
"""`introductions.json`: number of training documents that introduce each entity, by id."""


def files_of_run(home: Path, *, check: bool = True) -> Artefact:
    """The files of a run, with their checksums; without `check`, these are ignored."""
    return Artefact.open(home, REMEDY, FILES, check=check)


def require_run(home: Path) -> None:
    """Raise an error if a directory is not a run."""
    if not exists(home / "run.json"):
        raise DataError("is not a run", place=home, remedy="make one with: kglm train … --to RUN")


class RunRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """`run.json`: how the run was made."""

    format: int
    kglm: str = "unknown"
    """Version of kglm that created the run."""
    start: str | None = msgspec.field(default=None, name="from")
    """Name of the run that gave the initial weights."""
    data: tuple[HexHash, HexHash] | None = None
    """Hashes of the training and validation documents."""
    threads: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)] | None = None
    """Threads that were measured to be fastest when training began."""


class GraphRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """`kg.json`: the graph of the run."""

    path: AnyFilePath
    hash: HexHash
    """Hash of the graph when training began."""
    vectors: HexHash | None = None
    """Hash of the vectors of its relations; None for a model without vectors."""
    beside: AnyFilePath | None = None
    """Path relative to the run, if the graph is inside or beside it."""
