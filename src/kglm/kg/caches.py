"""Caches beside a graph file, derived from its content: `KG.arrays/DIGEST-GENERATION/`, `KG.names/…`.

The name is derived from the content, so a replaced or differently edited graph gets other directories, and processes
that build the same cache agree on its name. A damaged cache is removed and built again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from kglm.errors import DamagedError, KglmError
from kglm.files import remove_directory, remove_leftovers
from kglm.files.artefact import Artefact, Writer, new_artefact
from kglm.kg.store import Store


def cache_folder(store: Store, suffix: str) -> Path:
    """Directory of all versions of a cache."""
    return Path(f"{store.path}{suffix}")


def cached_versions(store: Store, suffix: str) -> Iterator[tuple[Path, int]]:
    """Directories that were derived from this store or from an earlier state of it, newest first, with generations."""
    latest = store.generation
    for directory, generation in _all_versions(cache_folder(store, suffix)):
        if generation <= latest and directory.name == _name(store, generation):
            yield directory, generation


def save_cache(store: Store, suffix: str, generation: int, write: Callable[[Writer], None]) -> Path:
    """Write the cache of this generation, remove the other versions, and return its directory."""
    folder = cache_folder(store, suffix)
    target = folder / _name(store, generation)
    with new_artefact(target) as writer:
        write(writer)
    for old, _ in _all_versions(folder):
        if old != target:
            remove_directory(old)
    remove_leftovers(folder, bool)
    return target


def require_manifest(artefact: Artefact) -> None:
    """Raise an error for a cache without checksums, so that it is rebuilt; where nothing can be written, it is used."""
    if artefact.manifest is not None:
        return
    if os.access(artefact.home.parent, os.W_OK):
        raise DamagedError("has no manifest of checksums", place=artefact.home)
    print(f"note: {artefact.home} has no checksums, so damage would go unnoticed", file=sys.stderr)


def discard_damaged(directory: Path, error: KglmError) -> None:
    """Remove a cache that cannot be used; it is built again from the graph."""
    print(f"note: {directory} is rebuilt, because it {_finding(error)}", file=sys.stderr)
    remove_directory(directory)


def _finding(error: KglmError) -> str:
    name = Path(error.place).name if error.place else ""
    return f"is unusable ({name}: {error.what})" if name else f"is unusable ({error.what})"


def _name(store: Store, generation: int) -> str:
    return f"{store.digest(generation)}-{generation}"


def _all_versions(folder: Path) -> list[tuple[Path, int]]:
    """Complete directories and their generations, newest first."""
    found = []
    for directory in folder.iterdir() if folder.is_dir() else ():
        generation = directory.name.rpartition("-")[2]
        if generation.isdecimal() and not directory.name.startswith("."):
            found.append((directory, int(generation)))
    return sorted(found, key=lambda item: -item[1])
