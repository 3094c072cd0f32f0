"""Checksums of a graph file: SQLite has none, and would return a flipped bit as a fact.

Seal: for each table T, the number of rows and the sum of their hashes,

    seal(T) = ( |T|, Σ_{row ∈ T} h(row) mod 2^64 ),    h = XXH3,

stored in the table `meta`. A sum does not depend on the order of rows, so an edit updates the seal by the rows that it
inserts and deletes, in its own transaction. Comparing it with the tables reads every row, about a second for a million.

Block checksums: those of the whole file, in `KG.checksums`, for one value of SQLite's change counter. They are checked
when the file is opened (a sample of a large file) and before the first query of its content (the whole file, 4 ms for
70 MB), and written again after each edit. If a process was killed between the two, the counter differs: then the seal
is compared, and the checksums are made again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
import xxhash

from kglm.errors import DamagedError, DataError
from kglm.files import atomic_file, read_record
from kglm.files.checksums import Checksums, checksums_of_file
from kglm.files.records import Count, HexHash, decode_record, to_json

TABLES = ("entity", "name", "relation", "fact", "qualifier", "source", "redirect", "edit", "change", "meta")
"""Sealed tables. A graph of format 1 has no table `source`."""
KEY = "seal"
REMEDY = "restore it from a copy or import it again; if you changed it on purpose: kglm doctor KG --accept"
SUFFIX = ".checksums"
LARGEST = 1 << 30
"""Block checksums are kept for files up to this size in bytes; larger files have their seal only."""
WHOLE = 4 << 20
"""Files up to this size in bytes are checked whole when they are opened."""
FORMAT = 2
T = TypeVar("T")
_MASK = (1 << 64) - 1
_COUNTER = slice(24, 28)
"""Place of the change counter in the header of an SQLite file."""


class TableSeal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Number of rows, and the sum of their hashes."""

    rows: Count
    sum: HexHash

    def plus(self, rows: int, total: int) -> TableSeal:
        return TableSeal(self.rows + rows, f"{(int(self.sum, 16) + total) & _MASK:016x}")


Seal = dict[str, TableSeal]


class ImportRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Identifies the import that wrote a graph, and keeps its report."""

    key: HexHash
    """Hash of the sources and options."""
    skipped: dict[str, Count]
    problems: list[str]
    duplicates: Count = 0


class _BlockRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of `KG.checksums`."""

    format: int
    state: str
    """Identifies the content (`content_state`)."""
    counter: Count
    """SQLite's change counter."""
    checksums: Checksums | None
    """None for a file above `LARGEST`."""
    imported: ImportRecord | None
    seal: str
    """Checksum of the other fields."""


def row_hash(row: tuple[object, ...]) -> int:
    """Hash h of a row."""
    return xxhash.xxh3_64_intdigest(repr(row).encode())


def sealed_tables(connection: sqlite3.Connection, schema: str = "main") -> list[str]:
    """The tables of `TABLES` that this graph has, whatever its format."""
    [version] = connection.execute(f"PRAGMA {schema}.user_version").fetchone()
    return [table for table in TABLES if version > 1 or table != "source"]


def compute_seal(connection: sqlite3.Connection, schema: str = "main") -> Seal:
    """The seal of the tables as they are now."""
    seal = {}
    for table in sealed_tables(connection, schema):
        rows = connection.cursor().execute(f"SELECT * FROM {schema}.{table}{_without_seal(table)}")
        count = total = 0
        for row in rows:
            count += 1
            total += xxhash.xxh3_64_intdigest(repr(row).encode())
        seal[table] = TableSeal(count, f"{total & _MASK:016x}")
    return seal


def _without_seal(table: str) -> str:
    return f" WHERE key <> '{KEY}'" if table == "meta" else ""


def read_seal(connection: sqlite3.Connection, place: Path) -> Seal | None:
    """The stored seal; None for a graph of an earlier version."""
    row = connection.execute(f"SELECT value FROM meta WHERE key = '{KEY}'").fetchone()
    if row is None:
        return None
    try:
        seal = decode_record(str(row[0]).encode(), Seal, place)
    except DataError as error:
        raise DamagedError(f"its seal is damaged ({error.what})", place=place, remedy=REMEDY) from error
    if set(seal) != set(sealed_tables(connection)):
        raise DamagedError("its seal does not list all tables", place=place, remedy=REMEDY)
    return seal


def write_seal(connection: sqlite3.Connection, seal: Seal, schema: str = "main") -> None:
    text = msgspec.json.encode(seal).decode()
    connection.execute(f"INSERT OR REPLACE INTO {schema}.meta VALUES ('{KEY}', ?)", (text,))


def content_state(connection: sqlite3.Connection, schema: str = "main") -> str:
    """Identifies the content of a graph: the hash of its seal, which changes with every edit and its time."""
    row = connection.execute(f"SELECT value FROM {schema}.meta WHERE key = '{KEY}'").fetchone()
    return xxhash.xxh3_64_hexdigest(b"" if row is None else str(row[0]).encode())


class SealedChanges:
    """Counts the rows that a connection inserts and deletes, to update the seal when it commits."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._changes: dict[str, tuple[int, int]] = {}
        connection.create_function("seal_row", -1, self._count)
        for table in sealed_tables(connection):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            new, old = (", ".join(f"{side}.{column}" for column in columns) for side in ("NEW", "OLD"))
            added, removed = f"SELECT seal_row('{table}', 1, {new});", f"SELECT seal_row('{table}', -1, {old});"
            for event, body in (("INSERT", added), ("DELETE", removed), ("UPDATE", removed + added)):
                connection.execute(
                    f"CREATE TEMP TRIGGER seal_{event}_{table} AFTER {event} ON main.{table} BEGIN {body} END"
                )

    def _count(self, table: str, sign: int, *row: object) -> None:
        if table == "meta" and row[0] == KEY:
            return
        rows, total = self._changes.get(table, (0, 0))
        self._changes[table] = rows + sign, total + sign * row_hash(row)

    def begin(self) -> None:
        """Forget the changes of a transaction that was rolled back."""
        self._changes.clear()

    def commit(self, place: Path) -> None:
        """Update the stored seal by the changes of this transaction; a graph of an earlier version has none."""
        if self._changes and (seal := read_seal(self._connection, place)) is not None:
            changed = {table: seal[table].plus(*change) for table, change in self._changes.items()}
            write_seal(self._connection, seal | changed)
            self._changes.clear()


class BlockChecks:
    """The file `KG.checksums`. Call its methods while a transaction keeps other processes from writing the graph."""

    def __init__(self, kg: Path) -> None:
        self._kg = kg
        self._path = Path(f"{kg}{SUFFIX}")

    def load(self, state: str) -> Checksums | None:
        """Checksums of the graph file in its present state (`content_state`); None if there are none."""
        record = self._record()
        present = record is not None and (record.state, record.counter) == (state, self._read(_counter))
        return record.checksums if record and present else None

    def exist(self) -> bool:
        """True if there are checksums of some state of this graph."""
        return self._record() is not None

    def imported(self) -> ImportRecord | None:
        """The import that wrote the graph; None if that is unknown."""
        record = self._record()
        return None if record is None else record.imported

    def _record(self) -> _BlockRecord | None:
        try:
            record = read_record(self._path, _BlockRecord)
        except DataError:  # missing or damaged: the seal decides
            return None
        return record if record.format == FORMAT and record.seal == _sealed(record) else None

    def damaged(self, checksums: Checksums, *, whole: bool) -> int | None:
        """Number of the first damaged block, or None; `whole` checks all blocks instead of a sample."""
        if self._kg.stat().st_size != checksums.size:
            return 0
        return self._read(lambda stream: checksums.damaged(stream, None if whole else checksums.sample()))

    def save(self, state: str, imported: ImportRecord | None = None, file: Path | None = None) -> None:
        """Record the graph file as it is now, or `file`, which is going to replace it."""
        file = file or self._kg
        with file.open("rb", buffering=0) as stream:
            counter = _counter(stream)
            checksums = checksums_of_file(stream) if file.stat().st_size <= LARGEST else None
        record = _BlockRecord(FORMAT, state, counter, checksums, imported or self.imported(), "")
        record = msgspec.structs.replace(record, seal=_sealed(record))
        with atomic_file(self._path) as stream:
            stream.write(to_json(record))

    def _read(self, function: Callable[[BinaryIO], T]) -> T:
        with self._kg.open("rb", buffering=0) as stream:
            return function(stream)


def _counter(stream: BinaryIO) -> int:
    stream.seek(0)
    return int.from_bytes(stream.read(100)[_COUNTER], "big")


def _sealed(record: _BlockRecord) -> str:
    content = [record.state, record.counter, record.checksums, record.imported]
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(content))
