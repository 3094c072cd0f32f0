"""Checks of an open graph file: its blocks against their checksums, its tables against their seal (see `seals`).

The file is checked when it is opened (a sample of a large one), before the first query of its content (every byte), and
before each edit (every byte again: an edit that recorded new checksums of a file damaged in the meantime would hide the
damage).
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kglm.errors import DamagedError, KglmError
from kglm.files.checksums import BLOCK
from kglm.kg.seals import LARGEST, REMEDY, WHOLE, BlockChecks, compute_seal, content_state, read_seal

FINDINGS = 20
"""Errors in the structure of the file after which SQLite stops."""


class Integrity:
    """Checks the file of one connection."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: threading.RLock) -> None:
        self._path, self._connection, self._lock = path, connection, lock
        self._blocks = BlockChecks(path)
        self._unchecked = True
        """True until every block of the file was compared with its checksum."""
        self.sealed = True
        """False for a graph of an earlier version, which has no checksums."""

    def check_opened(self) -> None:
        """The check on opening: every byte of a small file, a sample of a large one."""
        self._check(whole=self._path.stat().st_size <= WHOLE)

    def check(self) -> None:
        """Compare every byte with its checksum, once; raise DamagedError if it differs."""
        if self._unchecked:
            self._check(whole=True)

    def check_again(self) -> None:
        """Compare every byte with its checksum, whatever was checked before."""
        self._check(whole=True)

    def skip(self) -> None:
        """Do not check the file: only to repair it."""
        self._unchecked = False

    def _check(self, *, whole: bool) -> None:
        """If there are no checksums of the present state, compare the tables with their seal and make checksums."""
        with self._lock, self.reading():
            checksums = self._blocks.load(content_state(self._connection))
            if checksums is not None:
                damaged = self._blocks.damaged(checksums, whole=whole)
                if damaged is not None:
                    raise self._damaged(_difference(self._path, checksums.size, damaged))
                self._unchecked = not whole
                return
            self.sealed = self.is_sealed()
            if not self.sealed and self._blocks.exist():
                raise self._damaged("its seal is missing")
            if self.sealed and self._path.stat().st_size <= LARGEST:
                self._check_tables()
            self._unchecked = False

    def _check_tables(self) -> None:
        if wrong := self.tables_with_wrong_seal():
            raise self._damaged(f"the table {wrong[0]} differs from its seal")
        if found := self.structure_errors():  # the seal does not cover indexes
            raise self._damaged(f"SQLite finds: {found[0]}")
        self.save_checksums()

    def structure_errors(self) -> list[str]:
        """What SQLite finds wrong with the structure of the file, its indexes included; at most `FINDINGS`."""
        rows = self._connection.execute(f"PRAGMA integrity_check({FINDINGS})").fetchall()
        return [what for [what] in rows if what != "ok"]

    def is_sealed(self) -> bool:
        """True if the tables have a seal."""
        return read_seal(self._connection, self._path) is not None

    def tables_with_wrong_seal(self) -> list[str]:
        """Tables whose rows differ from their seal; every row is read."""
        seal = read_seal(self._connection, self._path) or {}
        return [table for table, found in compute_seal(self._connection).items() if found != seal.get(table)]

    def save_checksums(self) -> None:
        """Record the bytes of the file as they are now. If that fails, the next process compares the seal instead."""
        with self._lock, self.reading():
            try:
                self._blocks.save(content_state(self._connection))
            except KglmError as error:
                print(f"warning: the checksums of {self._path} are not saved: {error}", file=sys.stderr)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep other processes from writing the file during the block."""
        if self._connection.in_transaction:
            yield
            return
        self._connection.execute("BEGIN")
        try:
            self._connection.execute("SELECT count(*) FROM edit").fetchall()  # takes the lock
            yield
        finally:
            self._connection.execute("COMMIT")

    def _damaged(self, what: str) -> DamagedError:
        return DamagedError(
            f"is damaged, or was changed by another program: {what}",
            place=self._path,
            remedy=REMEDY.replace("KG", str(self._path)),
        )


def _difference(path: Path, size: int, block: int) -> str:
    found = path.stat().st_size
    if found != size:
        return f"it has {found:,} bytes instead of {size:,}"
    return f"bytes from {block * BLOCK:,} on differ from their checksum"
