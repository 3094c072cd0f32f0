"""The manifest of an artefact: every file with its checksums, sealed by a checksum of its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from kglm.errors import DamagedError, DataError, VersionError
from kglm.files.checksums import Checksums
from kglm.files.records import Count, FileName, HexHash, read_record, write_json

MANIFEST = "manifest.json"
FORMAT = 1


class ArrayLayout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the values of an `.npy` file are and how to read them."""

    offset: Count
    dtype: str
    shape: tuple[Count, ...]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file of an artefact."""

    checksums: Checksums
    array: ArrayLayout | None = None


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """Content of `manifest.json`."""

    format: int
    files: dict[FileName, Entry]
    replacing: dict[FileName, Entry]
    """New versions of files that an update has begun to rename."""
    seal: HexHash
    """Checksum of the other fields."""

    @classmethod
    def of(cls, files: Mapping[str, Entry], replacing: Mapping[str, Entry] | None = None) -> Manifest:
        replacing = replacing or {}
        return cls(FORMAT, dict(files), dict(replacing), _seal(files, replacing))

    def versions(self, name: str) -> list[Entry]:
        """Accepted versions of a file, the present one first."""
        return [entries[name] for entries in (self.files, self.replacing) if name in entries]

    @property
    def names(self) -> list[str]:
        return list(self.files | self.replacing)

    @cached_property
    def array_bytes(self) -> int:
        """Size of all files that are arrays."""
        return sum(entry.checksums.size for entry in self.files.values() if entry.array)


def _seal(files: Mapping[str, Entry], replacing: Mapping[str, Entry]) -> str:
    content = msgspec.json.encode([sorted(files.items()), sorted(replacing.items())])
    return xxhash.xxh3_64_hexdigest(content)


def read_manifest(home: Path, remedy: str | None) -> Manifest:
    """The manifest of a directory; an error if it is damaged."""
    path = home / MANIFEST
    try:
        manifest = read_record(path, Manifest)
    except DataError as error:
        raise DamagedError(f"the manifest is damaged ({error.what})", place=path, remedy=remedy) from error
    if manifest.format != FORMAT:
        raise VersionError(f"has format {manifest.format}; this version reads format {FORMAT}", place=path)
    if manifest.seal != _seal(manifest.files, manifest.replacing):
        raise DamagedError("the manifest is damaged (its seal is wrong)", place=path, remedy=remedy)
    return manifest


def write_manifest(directory: Path, manifest: Manifest) -> None:
    write_json(directory / MANIFEST, manifest)


def layout_of(path: Path, remedy: str | None) -> ArrayLayout | None:
    """Layout of an `.npy` file; None for other files."""
    if path.suffix != ".npy":
        return None
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DamagedError(f"is no array ({error})", place=path, remedy=remedy) from error
    assert isinstance(array, np.memmap)
    if array.offset + array.nbytes != path.stat().st_size:
        raise DamagedError("has more bytes than its array", place=path, remedy=remedy)
    return ArrayLayout(array.offset, array.dtype.str, array.shape)
