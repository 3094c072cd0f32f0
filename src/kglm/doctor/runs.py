"""Check the directory of a run, its checkpoint and its graph."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kglm.doctor.findings import Finding
from kglm.doctor.graphs import accept_graph, examine_graph, repair_graph
from kglm.errors import KglmError, VersionError
from kglm.files import atomic_file, exists
from kglm.files.manifest import MANIFEST

if TYPE_CHECKING:
    from kglm.runs.checkpoint import StateDirectory
    from kglm.runs.run import Run


def examine_run(home: Path) -> Iterator[Finding]:
    """Check every byte of a run, and read everything that using or resuming it would read."""
    from kglm.runs.checkpoint import StateDirectory
    from kglm.runs.records import files_of_run

    path = graph_of(home)
    graph = list(examine_graph(path)) if path is not None else []
    warnings, run = io.StringIO(), None
    try:
        if exists(home / "run.json"):
            yield from (Finding.of(damage, home) for damage in files_of_run(home).damages())
        if not any(finding.level == "error" for finding in graph):  # opening would rebuild damaged caches
            with contextlib.redirect_stderr(warnings):
                run = _open(home)
    except KglmError as error:
        yield Finding.of(error, home)
    for line in warnings.getvalue().splitlines():
        yield Finding("warning", str(home), line.removeprefix("warning: ").removeprefix("note: "))
    yield from _examine_checkpoint(StateDirectory(home / "state"))
    if run is not None:
        if not (home / "model.safetensors").exists():
            yield Finding("warning", str(home), "no epoch is finished, so there is no model", "train with --resume")
        count = sum(parameter.numel() for parameter in run.model.parameters())
        yield Finding("note", str(home), f"{run.settings.model}, {count:,} parameters, {len(run.vocabulary):,} words")
        run.graph.close()
    yield from graph


def _examine_checkpoint(states: StateDirectory) -> Iterator[Finding]:
    home = states.home
    try:
        if (artefact := states.open()) is not None:
            yield from (Finding.of(damage, home) for damage in artefact.damages())
        loaded = states.load()
    except KglmError as error:
        yield Finding.of(error, home, "warning" if isinstance(error, VersionError) else "error")
        return
    if loaded is None:
        yield Finding("note", str(home.parent), "has no checkpoint: it can be used, but its training cannot be resumed")
        return
    state = loaded[1]
    best = "" if state.best is None else f", best validation {state.best:.4f} nats per word"
    yield Finding("note", str(home.parent), f"{state.epoch} epochs, {state.step:,} steps{best}")


def repair_run(home: Path) -> Iterator[Finding]:
    """Add missing checksums to a run that can be opened; repair its graph. Damaged files of a run cannot be derived."""
    from kglm.runs.records import files_of_run, require_run

    require_run(home)
    if (graph := graph_of(home)) is not None:
        yield from repair_graph(graph) if _is_inside(graph, home) else _left_alone(graph)
    artefact = files_of_run(home)
    damages = list(artefact.damages())
    yield from (Finding.of(damage, home) for damage in damages)
    if artefact.manifest is None:
        with contextlib.redirect_stderr(io.StringIO()):
            _open(home).graph.close()
        artefact.accept()
        yield Finding("note", str(home), "added the checksums of its files")


def accept_run(home: Path) -> Iterator[Finding]:
    """Record the files of a run, and of a graph inside it, as they are now; they must make a run that opens."""
    from kglm.runs.records import files_of_run, require_run

    require_run(home)
    if (graph := graph_of(home)) is not None:
        yield from accept_graph(graph) if _is_inside(graph, home) else _left_alone(graph)
    manifest = home / MANIFEST
    before = manifest.read_bytes() if manifest.exists() else None
    try:
        files_of_run(home, check=False).accept()
        with contextlib.redirect_stderr(io.StringIO()):
            _open(home).graph.close()
    except KglmError as error:
        if before is not None:
            with atomic_file(manifest) as stream:
                stream.write(before)
        yield Finding("error", error.place or str(home), f"cannot be accepted: {error.what}", "train again")
        return
    yield Finding("note", str(home), "recorded as it is now")


def _open(home: Path) -> Run:
    """Open a run with its weights, or without them before its first epoch is finished."""
    from kglm.runs.run import Run

    return Run.open(home, weights=(home / "model.safetensors").exists())


def _is_inside(graph: Path, home: Path) -> bool:
    return graph.resolve().is_relative_to(home.resolve())


def _left_alone(graph: Path) -> Iterator[Finding]:
    yield Finding("note", str(graph), "is outside of the run and is left as it is", "give kglm doctor its name")


def graph_of(home: Path) -> Path | None:
    """The graph of a run, if it is there."""
    from kglm.runs.run import graph_path

    with contextlib.suppress(KglmError):
        path = graph_path(home)
        return path if exists(path) else None
    return None
