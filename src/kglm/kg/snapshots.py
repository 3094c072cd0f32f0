"""Arrays on disk that replace each other: `HOME/NUMBER/`, each directory complete or absent, the highest number counts.

A reader that has mapped the arrays of a directory keeps them when it is replaced.
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


def publish(home: Path, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> Path:
    """Write `NAME.npy` for each array, and meta.json, as the new highest number; then remove the older ones.

    One writer at a time: what others have left half done is cleared away.
    """
    for leftover in home.glob(".*"):
        shutil.rmtree(leftover, ignore_errors=True)
    older = _numbered(home)
    directory = home / str(older[-1] + 1 if older else 1)
    with atomic_directory(directory) as temporary:
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        write_json(temporary / "meta.json", meta)
    for number in older:
        remove_directory(home / str(number))
    return directory


def newest(home: Path) -> Path | None:
    """The directory that counts, if there is any."""
    numbers = _numbered(home)
    return home / str(numbers[-1]) if numbers else None


def load_array(path: Path, remedy: str, *, mapped: bool) -> npt.NDArray[Any]:
    """An array of a published directory; the error of a damaged file says where, and `remedy`."""
    try:
        with reading(path):
            # asarray: a plain view of the mapped file; slices of the memmap class are several times slower
            return np.asarray(np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False))
    except ValueError as error:
        raise DataError(f"is damaged ({error})", place=path, remedy=remedy) from error
    except DataError as error:
        raise DataError(error.what, place=path, remedy=remedy) from error


def discard(home: Path) -> None:
    """Remove all that was published, and what was left half done."""
    for number in reversed(_numbered(home)):
        remove_directory(home / str(number))
    shutil.rmtree(home, ignore_errors=True)


def _numbered(home: Path) -> list[int]:
    return sorted(int(path.name) for path in home.iterdir() if path.name.isdigit()) if home.is_dir() else []
