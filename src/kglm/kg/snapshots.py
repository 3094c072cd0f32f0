"""Versions of arrays on disk: `ROOT/NUMBER/`, each directory complete or absent; the highest number is current.

A reader that has mapped the arrays of a version can use them after the version is replaced.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kglm.errors import DataError
from kglm.files import atomic_directory, reading, remove_directory, write_json


def publish(root: Path, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> Path:
    """Write `NAME.npy` for each array and meta.json as the new highest number; then remove the older versions.

    Only one process may write at a time: temporary directories of earlier writers are removed.
    """
    for leftover in root.glob(".*"):
        shutil.rmtree(leftover, ignore_errors=True)
    older = _numbered(root)
    directory = root / str(older[-1] + 1 if older else 1)
    with atomic_directory(directory) as temporary:
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        write_json(temporary / "meta.json", meta)
    for number in older:
        remove_directory(root / str(number))
    return directory


def newest(root: Path) -> Path | None:
    """The current directory, or None."""
    numbers = _numbered(root)
    return root / str(numbers[-1]) if numbers else None


def load_array(path: Path, remedy: str, *, mapped: bool) -> npt.NDArray[Any]:
    """Load an array of a published directory; a damaged file raises DataError with its path and `remedy`."""
    try:
        with reading(path):
            # asarray: a plain view of the mapped file; slices of the memmap class are several times slower
            return np.asarray(np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False))
    except ValueError as error:
        raise DataError(f"is damaged ({error})", place=path, remedy=remedy) from error
    except DataError as error:
        raise DataError(error.what, place=path, remedy=remedy) from error


def discard(root: Path) -> None:
    """Remove all versions and temporary directories."""
    for number in reversed(_numbered(root)):
        remove_directory(root / str(number))
    shutil.rmtree(root, ignore_errors=True)


def _numbered(root: Path) -> list[int]:
    return sorted(int(path.name) for path in root.iterdir() if path.name.isdigit()) if root.is_dir() else []
