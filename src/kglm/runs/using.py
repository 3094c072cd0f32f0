"""Which runs use the vectors of a graph: a run can be opened only with the vectors that it was trained with."""

from __future__ import annotations

from pathlib import Path

from kglm.errors import KglmError
from kglm.kg.embedding.vectors import vectors_directory
from kglm.kg.snapshots import newest
from kglm.runs.run import graph_path

MAX_NAMED = 5
"""Runs that the error names."""


def check_vectors(kg: Path) -> None:
    """Raise an error if the graph has vectors, because new ones would replace them."""
    if newest(vectors_directory(kg)) is None:
        return
    runs = runs_beside(kg)
    which = ", ".join(map(str, runs[:MAX_NAMED])) + (", …" if len(runs) > MAX_NAMED else "")
    raise KglmError(
        "has vectors, and runs trained with them can be used with no others" + (f" (found: {which})" if runs else ""),
        place=kg,
        remedy="copy the graph and its vectors first to keep them, then replace them with --force (edits of the graph "
        "need no new vectors)",
    )


def runs_beside(kg: Path) -> list[Path]:
    """Runs on a graph in its folder and in the working directory, and one level below these."""
    roots = dict.fromkeys((kg.absolute().parent, Path.cwd()))
    folders = [folder for root in roots for folder in sorted(root.iterdir()) if folder.is_dir()]
    folders += [below for folder in folders for below in _folders(folder)]
    found = []
    for folder in dict.fromkeys(folders):
        if (folder / "run.json").exists() and (folder / "kg.json").exists() and _uses(folder, kg):
            found.append(folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder)
    return found


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir())
    except OSError:  # not ours to read
        return []


def _uses(run: Path, kg: Path) -> bool:
    try:
        return graph_path(run).resolve() == kg.resolve()
    except KglmError:  # damaged: it cannot be opened anyway
        return False
