"""Check a file of documents, a knowledge graph or a run: list what is wrong with it, and repair what can be derived.

`examine` reads every byte and changes nothing. `repair` rebuilds arrays, indexes and caches from the graph, and adds
checksums to artefacts of earlier versions. `accept` records an artefact as it is now, for files that were changed on
purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from kglm.doctor.documents import examine_documents
from kglm.doctor.findings import SHOWN, Finding, limited
from kglm.doctor.graphs import accept_graph, examine_graph, repair_graph
from kglm.doctor.runs import accept_run, examine_run, repair_run
from kglm.errors import DataError
from kglm.files import reading
from kglm.packed import open_binary

__all__ = ["SHOWN", "Finding", "accept", "examine", "repair"]
Check = Callable[[Path], Iterator[Finding]]


def examine(path: str | Path) -> list[Finding]:
    """Recognise what `path` is and return everything that is wrong with it."""
    return _apply(Path(path), examine_run, examine_graph, examine_documents)


def repair(path: str | Path) -> list[Finding]:
    """Rebuild what can be derived; return what was done, and what is wrong and cannot be derived."""
    return _apply(Path(path), repair_run, repair_graph, examine_documents)


def accept(path: str | Path) -> list[Finding]:
    """Record the artefact as it is now."""
    return _apply(Path(path), accept_run, accept_graph, examine_documents)


def _apply(path: Path, of_run: Check, of_graph: Check, of_documents: Check) -> list[Finding]:
    with reading(path):
        if path.is_dir():
            return list(limited(of_run(path)))
        with path.open("rb") as raw:
            magic = raw.read(16)
        if magic == b"SQLite format 3\0":
            return list(limited(of_graph(path)))
        with open_binary(path) as stream:
            start = stream.read(1 << 12)
    if Path(f"{path}.arrays").is_dir():
        raise DataError("is damaged: it does not start as a graph file does", place=path, remedy="import it again")
    if not start.lstrip().startswith(b"{"):
        raise DataError(
            "is neither a graph nor a file of documents nor a run",
            place=path,
            remedy="give a KG file, a .jsonl of documents or the directory of a run",
        )
    return list(limited(of_documents(path)))
