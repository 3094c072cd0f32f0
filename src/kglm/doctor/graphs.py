"""Check a graph file with its arrays, its index of names and its vectors; rebuild what can be derived."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kglm.doctor.findings import Finding
from kglm.errors import DataError, KglmError, LiteralError
from kglm.files import remove_directory
from kglm.files.artefact import Artefact
from kglm.files.manifest import MANIFEST
from kglm.kg import compiled
from kglm.kg.arrays import build_arrays
from kglm.kg.caches import cached_versions
from kglm.kg.embedding.vectors import FILES, Vectors, vectors_directory
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import is_entity_id, is_relation_id
from kglm.kg.literals.literal import canonical_literal, is_literal
from kglm.kg.schema import schema_statements
from kglm.kg.snapshots import newest
from kglm.kg.staging import staging_file
from kglm.kg.store import Store
from kglm.linking import name_index

CACHES = {compiled.SUFFIX: "arrays", name_index.SUFFIX: "index of names"}
AGAIN = "restore it from a copy, or import the graph again"


def examine_graph(path: Path) -> Iterator[Finding]:
    """Check every byte of a graph and of what belongs to it."""
    try:
        store = Store.open(path)
    except KglmError as error:
        yield Finding.of(error, path)
        return
    with store:
        try:
            store.check()
            errors = [*_examine_file(store), *_examine_tables(store)]
            yield from errors
            if not any(finding.level == "error" for finding in errors):
                caches = list(_examine_caches(store))
                yield from caches
                yield from _examine_vectors(store, on_graph=not any(finding.level == "error" for finding in caches))
            yield from _notes(store)
        except KglmError as error:
            yield Finding.of(error, path)
        except sqlite3.DatabaseError as error:
            yield _damaged_file(path, error)


def _damaged_file(path: Path, error: object) -> Finding:
    return Finding("error", str(path), f"the SQLite file is damaged: {error}", AGAIN)


def _examine_file(store: Store) -> Iterator[Finding]:
    """Check the structure of the SQLite file, and its tables against their seal."""
    place = str(store.path)
    for what in store.integrity.structure_errors():
        yield Finding("error", place, f"the SQLite file is damaged: {what}", f"{AGAIN}; try --repair first")
    stored = {sql for [sql] in store.rows("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if stored != schema_statements(store.version):
        yield Finding("error", place, "its tables are not defined as this version defines them", AGAIN)
    if not store.integrity.sealed:
        yield Finding("warning", place, "has no checksums: an earlier version wrote it", "add them with --repair")
    elif wrong := store.integrity.tables_with_wrong_seal():
        yield Finding("error", place, f"rows of {', '.join(wrong)} differ from their seal", AGAIN)


def _examine_tables(store: Store) -> Iterator[Finding]:
    place = str(store.path)
    for table, row, parent, _ in store.rows("PRAGMA foreign_key_check"):
        yield Finding("error", place, f"row {row} of {table} refers to a missing {parent}", AGAIN)
    [[entities, highest]] = store.rows("SELECT count(*), coalesce(max(number), -1) FROM entity")
    if entities != highest + 1:
        yield Finding("error", place, f"{entities} entities numbered up to {highest}", AGAIN)
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


def _notes(store: Store) -> Iterator[Finding]:
    place = str(store.path)
    counts = store.counts()
    yield Finding("note", place, ", ".join(f"{count:,} {name}" for name, count in counts.items()))
    [[nameless]] = store.rows(
        "SELECT count(*) FROM entity e WHERE id NOT GLOB '[STV]::*'"
        " AND NOT EXISTS (SELECT 1 FROM name n WHERE n.entity = e.number)"
    )
    if nameless:
        yield Finding("note", place, f"{nameless:,} entities have no name: the model cannot mention them")
    [[edits]] = store.rows("SELECT count(*) FROM edit")
    if edits:
        yield Finding("note", place, f"{edits} edits since the import", "undo the last with: kglm kg edit KG --undo")
    partial = staging_file(store.path)
    if partial.exists():
        yield Finding(
            "warning", str(partial), "remains from an interrupted import", "run that import again, or delete it"
        )


def _examine_caches(store: Store) -> Iterator[Finding]:
    """Check every byte of arrays and names, and compare the arrays with the store."""
    for suffix, what in CACHES.items():
        for directory, generation in cached_versions(store, suffix):
            remedy = "rebuild it with --repair"
            try:
                artefact = Artefact.open(directory, remedy)
                damages = list(artefact.damages())
            except KglmError as error:
                yield Finding("error", error.place or str(directory), error.what, remedy)
                continue
            yield from (Finding.of(damage, directory) for damage in damages)
            if artefact.manifest is None:
                yield Finding("warning", str(directory), f"no checksums: an earlier version wrote the {what}", remedy)
            if suffix == compiled.SUFFIX and generation == store.generation and not damages:
                yield from _compare_arrays(store)


def _compare_arrays(store: Store) -> Iterator[Finding]:
    """Compare the compiled arrays with arrays that are built from the store now."""
    arrays = compiled.open_compiled(store, journal_limit=0)
    fresh, relations = build_arrays(store)
    wrong = [name for name, array in fresh.items() if not np.array_equal(array, arrays.array(name))]
    if tuple(relations) != arrays.relations:
        wrong.append("relations")
    if wrong:
        what = f"not as in the graph file: {', '.join(wrong)}"
        yield Finding("error", str(arrays.artefact.home), what, "rebuild it with --repair")


def _examine_vectors(store: Store, *, on_graph: bool = True) -> Iterator[Finding]:
    """Check every byte of the vectors, that they are finite, and, if `on_graph`, that they belong to this graph.

    The last opens the graph, which would replace damaged arrays.
    """
    directory = newest(vectors_directory(store.path))
    if directory is None:
        return
    again = f"they cannot be derived: restore them from a copy, or train again with: kglm kg embed {store.path}"
    try:
        artefact = Artefact.open(directory, again)
        damages = list(artefact.damages())
        yield from (Finding.of(damage, directory) for damage in damages)
        if not damages:
            vectors = Vectors.load(store.path)
            vectors.check_finite(again)
            if on_graph:
                with KnowledgeGraph.open(store.path) as graph:
                    vectors.for_graph(graph)
        if artefact.manifest is None:
            yield Finding("warning", str(directory), "no checksums: an earlier version wrote them", "use --repair")
    except DataError as error:
        yield Finding("error", error.place or str(directory), error.what, again)


def repair_graph(path: Path) -> Iterator[Finding]:
    """Rebuild what can be derived from the tables of a graph, if these are sound, and add missing checksums."""
    try:
        yield from _repair(path)
    except sqlite3.DatabaseError as error:
        yield _damaged_file(path, error)


def _repair(path: Path) -> Iterator[Finding]:
    store = Store.open(path, writable=True, check=False)
    with store:
        place = str(path)
        sealed = store.integrity.is_sealed()
        wrong = store.integrity.tables_with_wrong_seal() if sealed else []
        if wrong:
            yield Finding("error", place, f"rows of {', '.join(wrong)} differ from their seal", AGAIN)
            return
        if store.integrity.structure_errors():
            with store.transaction(check=False) as connection:
                connection.execute("REINDEX")
            yield Finding("note", place, "rebuilt the indexes of the SQLite file")
        if found := store.integrity.structure_errors():
            yield _damaged_file(path, found[0])
            return
        if not sealed:
            store.seal()
            yield Finding("note", place, "added the checksums of its rows")
        else:
            store.integrity.save_checksums()
        yield from _repair_caches(store)
        yield from _repair_vectors(store)


def _repair_caches(store: Store) -> Iterator[Finding]:
    for suffix, what in CACHES.items():
        for directory, _ in cached_versions(store, suffix):
            try:
                artefact = Artefact.open(directory)
                if artefact.manifest is not None and not list(artefact.damages()):
                    continue
            except KglmError:
                pass
            remove_directory(directory)
            yield Finding("note", str(directory), f"rebuilt the {what}")
    with KnowledgeGraph.open(store.path) as graph:
        if any(_compare_arrays(store)):
            remove_directory(graph.overlay.base.artefact.home)
            compiled.compile_store(store)
            yield Finding("note", str(store.path), "rebuilt the arrays")
        name_index.NameIndex.for_graph(graph)


def _repair_vectors(store: Store) -> Iterator[Finding]:
    directory = newest(vectors_directory(store.path))
    if directory is None:
        return
    if not (directory / MANIFEST).exists():
        Vectors.load(store.path).check_finite("train them again")
        Artefact.open(directory, AGAIN, FILES).accept()
        yield Finding("note", str(directory), "added the checksums of the vectors")
    yield from (finding for finding in _examine_vectors(store) if finding.level == "error")


def accept_graph(path: Path) -> Iterator[Finding]:
    """Record a graph and its vectors as they are now; arrays and names are derived again."""
    try:
        with Store.open(path, writable=True, check=False) as store:
            store.seal()
    except sqlite3.DatabaseError as error:
        yield _damaged_file(path, error)
        return
    yield Finding("note", str(path), "recorded as it is now")
    if (directory := newest(vectors_directory(path))) is not None:
        Artefact.open(directory, AGAIN, FILES, check=False).accept()
        yield Finding("note", str(directory), "recorded as it is now")
    yield from repair_graph(path)
