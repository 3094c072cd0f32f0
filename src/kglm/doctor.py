"""Check a file of documents, a knowledge graph or a run, and list what is wrong with it.

Everything is read. Nothing is changed except the compiled arrays next to a graph, a cache that may be updated.
"""

from __future__ import annotations

import contextlib
import io
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from kglm.errors import DataError, KglmError, LiteralError, VersionError
from kglm.files import read_lines, reading
from kglm.kg.arrays import build_arrays
from kglm.kg.compiled import open_compiled
from kglm.kg.ids import is_entity_id, is_relation_id
from kglm.kg.literals.literal import canonical_literal, is_literal
from kglm.kg.store import Store
from kglm.packed import open_binary
from kglm.text.document import parse_document
from kglm.text.repair import repair

SHOWN = 50
"""Number of errors, and of warnings, that are listed; the others are only counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`error`: the artefact is unusable. `warning`: something is lost or unusual. `note`: for information."""

    level: Literal["error", "warning", "note"]
    place: str
    what: str
    remedy: str | None = None


def examine(path: str | Path) -> list[Finding]:
    """Recognise what `path` is and return everything that is wrong with it."""
    path = Path(path)
    with reading(path):
        if path.is_dir():
            return list(_limited(_examine_run(path)))
        with path.open("rb") as raw:
            magic = raw.read(16)
        if magic == b"SQLite format 3\0":
            return list(_limited(_examine_graph(path)))
        with open_binary(path) as stream:
            start = stream.read(1 << 12)
    if not start.lstrip().startswith(b"{"):
        raise DataError(
            "is neither a graph nor a file of documents nor a run",
            place=path,
            remedy="give a KG file, a .jsonl of documents or the directory of a run",
        )
    return list(_limited(_examine_documents(path)))


def _limited(findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield all notes, the first `SHOWN` errors and warnings, and the numbers of the others."""
    counts = {"error": 0, "warning": 0, "note": 0}
    for finding in findings:
        counts[finding.level] += 1
        if finding.level == "note" or counts[finding.level] <= SHOWN:
            yield finding
    for level in ("error", "warning"):
        if (more := counts[level] - SHOWN) > 0:
            yield Finding(level, "and more", f"{more:,} further {level}s of this file are not listed")


def _examine_documents(path: Path) -> Iterator[Finding]:
    documents = plain = 0
    titles: dict[str, int] = {}
    try:
        for number, line in read_lines(path):
            place = f"{path}, line {number}"
            try:
                document = parse_document(line, place)
            except DataError as error:
                yield Finding("error", error.place or place, error.what, error.remedy)
                continue
            documents += 1
            plain += not document.annotated
            if document.title in titles:
                yield Finding(
                    "warning",
                    place,
                    f"the title {document.title!r} occurs on line {titles[document.title]} too",
                )
            titles.setdefault(document.title, number)
            if not document.tokens:
                yield Finding("warning", place, "no tokens", "leave the document out")
                continue
            for quirk, count in repair(document)[1].items():
                level: Literal["warning", "note"] = "warning" if quirk == "unknown_prefix" else "note"
                yield Finding(level, place, f"{count} × {quirk.replace('_', ' ')}", "mended when a model reads it")
    except DataError as error:  # the file cannot be read to its end
        yield Finding("error", error.place or str(path), error.what, error.remedy)
    if not documents:
        yield Finding("error", str(path), "no document could be read")
    elif plain:
        yield Finding("note", str(path), f"{plain} of {documents} documents are plain text", "kglm annotate links them")


def _examine_graph(path: Path) -> Iterator[Finding]:
    try:
        store = Store.open(path)
    except KglmError as error:
        yield Finding("error", str(path), error.what, error.remedy)
        return
    with store:
        try:
            damage = [row[0] for row in store.rows("PRAGMA integrity_check(20)") if row[0] != "ok"]
            for what in damage:
                yield Finding("error", str(path), f"the SQLite file is damaged: {what}", "import the graph again")
            if damage:
                return
            tables = list(_examine_tables(store))
            yield from tables
            if not any(finding.level == "error" for finding in tables):
                yield from _examine_arrays(store)
        except sqlite3.DatabaseError as error:
            yield Finding("error", str(path), f"the SQLite file is damaged: {error}", "import the graph again")


def _examine_tables(store: Store) -> Iterator[Finding]:
    place = str(store.path)
    for table, row, parent, _ in store.rows("PRAGMA foreign_key_check"):
        yield Finding("error", place, f"row {row} of {table} refers to a missing {parent}", "import the graph again")
    [[entities, highest]] = store.rows("SELECT count(*), coalesce(max(number), -1) FROM entity")
    if entities != highest + 1:
        yield Finding("error", place, f"{entities} entities numbered up to {highest}", "import the graph again")
    for [id] in store.stream("SELECT id FROM entity"):
        if not is_entity_id(id):
            yield Finding("error", place, f"the entity id {id!r} is malformed", "see docs/formats.md")
        elif is_literal(id):
            try:
                canonical_literal(id)
            except LiteralError as error:
                yield Finding("warning", place, f"{id}: {error}", "it is shown unchanged")
    for [id] in store.rows("SELECT id FROM relation WHERE number > 0"):
        if not is_relation_id(id):
            yield Finding("error", place, f"the relation id {id!r} is malformed", "see docs/formats.md")
    yield from _notes(store)


def _notes(store: Store) -> Iterator[Finding]:
    place = str(store.path)
    counts = store.counts()
    yield Finding("note", place, ", ".join(f"{count:,} {name}" for name, count in counts.items()))
    [[nameless]] = store.rows(
        "SELECT count(*) FROM entity e WHERE id NOT GLOB '[TV]::*'"
        " AND NOT EXISTS (SELECT 1 FROM name n WHERE n.entity = e.number)"
    )
    if nameless:
        yield Finding("note", place, f"{nameless:,} entities have no name: the model cannot mention them")
    [[edits]] = store.rows("SELECT count(*) FROM edit")
    if edits:
        yield Finding("note", place, f"{edits} edits since the import", "undo the last with: kglm kg edit KG --undo")
    partial = store.path.with_name(store.path.name + ".partial")
    if partial.exists():
        yield Finding(
            "warning", str(partial), "remains from an interrupted import", "run that import again, or delete it"
        )


def _examine_arrays(store: Store) -> Iterator[Finding]:
    """Compare the compiled arrays with arrays that are built from the store now."""
    arrays = open_compiled(store, journal_limit=0)
    fresh, relations = build_arrays(store)
    wrong = [name for name, array in fresh.items() if not np.array_equal(array, getattr(arrays, name))]
    if tuple(relations) != arrays.relations:
        wrong.append("relations")
    if wrong:
        yield Finding(
            "error",
            f"{store.path}.arrays",
            f"{', '.join(wrong)} differ from the store",
            "delete that directory",
        )


def _examine_run(home: Path) -> Iterator[Finding]:
    """Read everything that using or resuming the run would read."""
    import torch

    from kglm.runs.checkpoint import StateDirectory
    from kglm.runs.run import Run

    warnings = io.StringIO()
    try:
        with contextlib.redirect_stderr(warnings):
            run = Run.open(home, weights=(home / "model.safetensors").exists())
    except KglmError as error:
        yield Finding("error", error.place or str(home), error.what, error.remedy)
        return
    for line in warnings.getvalue().splitlines():
        yield Finding("warning", str(home), line.removeprefix("warning: "), "its metrics are of the training graph")
    if not (home / "model.safetensors").exists():
        yield Finding("warning", str(home), "no epoch is finished, so there is no model", "train with --resume")
    for name, tensor in run.model.state_dict().items():
        if not bool(torch.isfinite(tensor).all()):
            yield Finding("error", str(home / "model.safetensors"), f"{name} has entries that are no numbers")
    try:
        state = StateDirectory(home / "state").load()
    except KglmError as error:
        kind: Literal["error", "warning"] = "warning" if isinstance(error, VersionError) else "error"
        remedy = error.remedy or "the model can be used, but its training cannot be resumed: train again"
        yield Finding(kind, error.place or str(home / "state"), error.what, remedy)
        return
    if state is None:
        yield Finding("note", str(home), "has no checkpoint: it can be used, but its training cannot be resumed")
    else:
        values = state[1]
        best = f", best validation {values['best']:.4f} nats per word" if values["best"] is not None else ""
        yield Finding("note", str(home), f"{values['epoch']} epochs, {values['step']:,} steps{best}")
    count = sum(parameter.numel() for parameter in run.model.parameters())
    yield Finding("note", str(home), f"{run.settings.model}, {count:,} parameters, {len(run.vocabulary):,} words")
