"""Versions of an artefact: `ROOT/NUMBER/`, each directory complete or absent; the highest number is current.

A reader that has mapped the arrays of a version can use them after the version is replaced.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from kglm.files import remove_directory, remove_leftovers
from kglm.files.artefact import Writer, new_artefact


def publish(root: Path, write: Callable[[Writer], None]) -> Path:
    """Write the new highest number, then remove the older versions. Only one process may write at a time."""
    remove_leftovers(root, bool)
    older = _numbered(root)
    directory = root / str(older[-1] + 1 if older else 1)
    with new_artefact(directory) as writer:
        write(writer)
    for number in older:
        remove_directory(root / str(number))
    return directory


def newest(root: Path) -> Path | None:
    """The current directory, or None."""
    numbers = _numbered(root)
    return root / str(numbers[-1]) if numbers else None


def discard(root: Path) -> None:
    """Remove all versions and temporary directories."""
    for number in reversed(_numbered(root)):
        remove_directory(root / str(number))
    if root.exists():
        shutil.rmtree(root)


def _numbered(root: Path) -> list[int]:
    if not root.is_dir():
        return []
    return sorted(int(path.name) for path in root.iterdir() if path.name.isascii() and path.name.isdecimal())
