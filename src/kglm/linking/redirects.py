"""Redirects of a wiki, collected from its dump into an SQLite file that all workers read.

The English Wikipedia has more than ten million redirects: too many for the memory of each worker.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from kglm.errors import KglmError
from kglm.files import writing
from kglm.progress import progress
from kglm.text.articles import ReadingReport, read_redirects


class Redirects:
    """Read-only table from normalized titles to the titles they redirect to."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise KglmError("is missing", place=path, remedy="put --to in a folder that every machine can read")
        self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)

    def get(self, title: str) -> str | None:
        """Target of a title's redirect, or None."""
        row = self._connection.execute("SELECT target FROM redirect WHERE source = ?", (title,)).fetchone()
        return None if row is None else str(row[0])

    def __bool__(self) -> bool:
        return self._connection.execute("SELECT 1 FROM redirect LIMIT 1").fetchone() is not None

    def close(self) -> None:
        self._connection.close()


def collect_redirects(files: Iterable[Path], to: Path) -> None:
    """Collect the redirects of all files into the table `to`, which is written atomically."""
    draft = to.with_name(f".{to.name}")
    draft.unlink(missing_ok=True)
    with writing(to), progress("reading redirects", None, "redirects") as advance:
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("BEGIN")
            connection.execute("CREATE TABLE redirect (source TEXT PRIMARY KEY, target TEXT) WITHOUT ROWID")
            for file in files:
                for pair in read_redirects(file, report=ReadingReport()):  # articles report problems
                    connection.execute("INSERT OR IGNORE INTO redirect VALUES (?, ?)", pair)
                    advance()
            connection.execute("COMMIT")
        finally:
            connection.close()
        draft.replace(to)
