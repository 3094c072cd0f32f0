"""An open graph file: SQLite, checked by its checksums. The tables are described in `schema`."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from kglm.errors import DataError, KglmError, VersionError
from kglm.files import reading, writing
from kglm.kg.ids import normalise_title
from kglm.kg.integrity import Integrity
from kglm.kg.schema import APPLICATION_ID, DATATYPE, READABLE, FactRow
from kglm.kg.seals import SealedChanges, compute_seal, write_seal

BUSY_SECONDS = 30
"""Seconds to wait while another process writes."""
READ_ONLY = "read-only.txt"
"""A file of this name in the folder of a graph protects it from edits; it says what to do instead."""
_ENTITY = "(SELECT number FROM entity WHERE id = ?)"
_KEY = f"head = {_ENTITY} AND relation = (SELECT number FROM relation WHERE id = ?)"
"""Condition on the facts of a head and a relation, given by ids."""
_UNLINKED = "NOT EXISTS (SELECT 1 FROM qualifier WHERE qualifier.fact = fact.number)"


def refuse_read_only(path: Path) -> None:
    """Raise an error if a graph is protected from edits and from new files beside it."""
    if (path.parent / READ_ONLY).exists():
        raise KglmError(
            "came with kglm and stays as it is",
            place=path,
            remedy="edit a copy, which you make with: kglm world --to my.kg",
        )


class Found(NamedTuple):
    """One result of `Store.search`."""

    id: str
    label: str
    match: str
    """The name that matched."""
    facts: int
    """Number of facts with the entity as head or tail; homonyms with more facts come first."""
    description: str | None


class Store:
    """An open graph file. Threads may share it; each process must open its own."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()
        self._sealed: SealedChanges | None = None
        self.integrity = Integrity(path, connection, self._lock)

    @classmethod
    def open(cls, path: str | Path, *, writable: bool = False, check: bool = True) -> Store:
        """Open a graph file. Raises DataError, VersionError or KglmError if it cannot be used.

        Without `check`, its checksums are not compared: only to repair it.
        """
        path = Path(path)
        if writable:
            refuse_read_only(path)
        with reading(path):
            with path.open("rb") as stream:
                magic = stream.read(16)
            if magic != b"SQLite format 3\0":
                raise DataError(
                    "is not a knowledge graph file",
                    place=path,
                    remedy="create one with: kglm kg import SOURCE --to KG",
                )
        connection = sqlite3.connect(
            # never "ro": rolling back the transaction of a killed writer needs a writable connection
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_SECONDS,
        )
        store = cls(path, connection)
        try:
            store._remove_old_journal()
            store._leave_wal()
            connection.execute("PRAGMA synchronous = FULL" if writable else "PRAGMA query_only = ON")
            connection.execute("PRAGMA foreign_keys = ON")
            store._check_version()
            if check:
                store.integrity.check_opened()
            else:
                store.integrity.skip()
            if writable:
                store._sealed = SealedChanges(connection)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter: SQLite quotes damaged bytes
            connection.close()
            if "locked" in str(error):
                raise KglmError("is being written by another process", place=path, remedy="try again later") from error
            raise DataError(
                f"cannot be read as a graph ({error})",
                place=path,
                remedy="restore it from a copy, or import the graph again",
            ) from error
        except KglmError:
            connection.close()
            raise
        return store

    def _remove_old_journal(self) -> None:
        """Remove the journal of a process that was killed before it changed the file; SQLite leaves it there."""
        journal = Path(f"{self.path}-journal")
        if not journal.exists():
            return
        self.rows("SELECT 1 FROM sqlite_master")  # rolls back a journal that is needed
        self._connection.execute("PRAGMA busy_timeout = 0")
        with suppress(sqlite3.OperationalError):  # another process is writing: it is its journal
            self._connection.execute("BEGIN IMMEDIATE")
            journal.unlink(missing_ok=True)
            self._connection.execute("ROLLBACK")
        self._connection.execute(f"PRAGMA busy_timeout = {1000 * BUSY_SECONDS}")

    def _leave_wal(self) -> None:
        """Undo the journal mode WAL, which another program may have set: its changes would be beside the file."""
        [[mode]] = self.rows("PRAGMA journal_mode")
        if mode == "wal" and self.rows("PRAGMA journal_mode = DELETE") != [("delete",)]:
            raise KglmError(
                "is in SQLite's journal mode WAL, and another process uses it",
                place=self.path,
                remedy="close the other program",
            )

    def _check_version(self) -> None:
        [[application]] = self.rows("PRAGMA application_id")
        if application != APPLICATION_ID:
            raise DataError(
                "is an SQLite file, but not a knowledge graph",
                place=self.path,
                remedy="create one with: kglm kg import SOURCE --to KG",
            )
        if self.version not in READABLE:
            raise VersionError(
                f"has graph format {self.version}; this version of kglm reads formats"
                f" {' and '.join(map(str, READABLE))}",
                place=self.path,
                remedy="import it again, or use the version of kglm that wrote it",
            )

    @cached_property
    def version(self) -> int:
        """Format of the file: see `schema.READABLE`."""
        [[version]] = self.rows("PRAGMA user_version")
        return int(version)

    def check(self) -> None:
        """Compare every byte of the file with its checksum, once; raise DamagedError if it differs."""
        self.integrity.check()

    def seal(self) -> None:
        """Record the content as it is now, whatever it was before."""
        with self.transaction(check=False) as connection:
            write_seal(connection, compute_seal(connection))
        self.integrity.sealed = True

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._connection.execute(query, values).fetchall()
        except UnicodeEncodeError as error:
            raise KglmError(f"{error.object!r} is not valid Unicode", place=self.path, remedy="give UTF-8") from error

    def checked_rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query, after every byte of the file was compared with its checksum, once."""
        self.check()
        return self.rows(query, values)

    def stream(self, query: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Iterate over rows on a separate cursor, without loading all of them into memory."""
        self.check()
        return iter(self._connection.cursor().execute(query, values))

    @contextmanager
    def transaction(self, *, check: bool = True) -> Iterator[sqlite3.Connection]:
        """Run the block as one write transaction, on disk when it ends and rolled back on any exception.

        Every byte of the file is checked first; without `check`, it is not: only to repair it.
        """
        with self._lock, writing(self.path):
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if "readonly" in str(error):
                    raise KglmError("may not be written", place=self.path, remedy="check its permissions") from error
                raise
            try:
                if check:
                    self.integrity.check_again()
                if self._sealed is not None:
                    self._sealed.begin()
                yield self._connection
                if self._sealed is not None:
                    self._sealed.commit(self.path)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            if self.integrity.is_sealed():
                self.integrity.save_checksums()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Reads in this block see one state of the file, even while other processes write."""
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("COMMIT")

    # Queries

    def digest(self, generation: int) -> str:
        """Hash of the content after edit `generation`; equal for the same import and the same edits."""
        if generation == 0:
            rows = self.rows("SELECT value FROM meta WHERE key = 'identity'")
        else:
            rows = self.rows("SELECT digest FROM edit WHERE number = ?", (generation,))
        if not rows:
            raise DataError(f"has no record of edit {generation}", place=self.path, remedy="import it again")
        return str(rows[0][0])

    @property
    def generation(self) -> int:
        """Number of the latest edit; 0 after the import."""
        [[value]] = self.rows("SELECT coalesce(max(number), 0) FROM edit")
        return int(value)

    def count_changes(self, since: int) -> int:
        """Number of changes in edits after generation `since`."""
        [[count]] = self.rows("SELECT count(*) FROM change WHERE edit > ?", (since,))
        return int(count)

    def counts(self) -> dict[str, int]:
        [[facts, entities, names, labels, relations]] = self.checked_rows(
            "SELECT (SELECT count(*) FROM fact), (SELECT count(*) FROM entity), (SELECT count(*) FROM name),"
            " (SELECT count(*) FROM name WHERE position = 0), (SELECT count(DISTINCT relation) FROM fact)"
        )
        return {"facts": facts, "entities": entities, "aliases": names - labels, "relations": relations}

    def facts_of(self, id: str) -> list[FactRow]:
        """Stored facts with this head, sorted by relation, preferred rank first, then tail."""
        rows = self.checked_rows(
            "SELECT h.id, r.id, t.id, f.rank FROM entity h JOIN fact f ON f.head = h.number"
            " JOIN relation r ON r.number = f.relation JOIN entity t ON t.number = f.tail"
            " WHERE h.id = ? ORDER BY r.number, f.rank DESC, t.number",
            (id,),
        )
        return [FactRow(*row) for row in rows]

    def description(self, id: str) -> tuple[str | None, str | None]:
        """Description and Wikipedia title of an entity."""
        rows = self.checked_rows("SELECT description, title FROM entity WHERE id = ?", (id,))
        return rows[0] if rows else (None, None)

    def search(self, text: str, limit: int = 20) -> list[Found]:
        """Find entities by id or name: exact matches, then matches ignoring case, then names that start with `text`."""
        text = " ".join(text.split())
        if not text:
            return []
        rows = self.checked_rows(
            "SELECT e.id, n.text, min(CASE WHEN e.id = ?1 OR n.text = ?1 THEN 0 WHEN n.folded = ?2 THEN 1 ELSE 2 END)"
            "  AS distance,"
            " (SELECT count(*) FROM fact WHERE head = e.number) + (SELECT count(*) FROM fact WHERE tail = e.number)"
            "  AS facts,"
            " coalesce((SELECT text FROM name WHERE entity = e.number AND position = 0), e.id), e.description"
            " FROM (SELECT entity, text, folded FROM name WHERE folded = ?2"
            "       UNION SELECT number, id, '' FROM entity WHERE id = ?1"
            "       UNION SELECT * FROM (SELECT entity, text, folded FROM name"
            "                            WHERE folded > ?2 AND folded < ?2 || char(0x10FFFF) LIMIT 10000)) n"
            " JOIN entity e ON e.number = n.entity GROUP BY e.number"
            " ORDER BY distance, facts DESC, e.number LIMIT ?3",
            (text, text.casefold(), limit),
        )
        return [Found(id, label, match, facts, about) for id, match, _, facts, label, about in rows]

    def datatype(self, relation: str) -> str:
        """Type of the values of a relation; empty if none is stored."""
        rows = self.checked_rows("SELECT value FROM meta WHERE key = ?", (DATATYPE + relation,))
        return str(rows[0][0]) if rows else ""

    def by_title(self, title: str) -> str | None:
        """Entity id of a Wikipedia title after following redirects; None if there is none or redirects form a cycle."""
        seen: set[str] = set()
        current = normalise_title(title)
        while current not in seen:
            seen.add(current)
            if rows := self.checked_rows("SELECT id FROM entity WHERE title = ?", (current,)):
                return str(rows[0][0])
            rows = self.checked_rows("SELECT target FROM redirect WHERE source = ?", (current,))
            if not rows:
                return None
            current = rows[0][0]
        return None

    # Facts by key: each query reads the rows that it returns, whatever the degree of the head

    def fact(self, head: str, relation: str, tail: str) -> FactRow | None:
        """One stored fact."""
        rows = self.checked_rows(f"SELECT rank FROM fact WHERE {_KEY} AND tail = {_ENTITY}", (head, relation, tail))
        return FactRow(head, relation, tail, rows[0][0]) if rows else None

    def facts_with(
        self, head: str, relation: str, *, limit: int = -1, offset: int = 0, unlinked: bool = False
    ) -> list[FactRow]:
        """Stored facts of a head and relation in the order of the tails' numbers; a negative limit is none.

        With `unlinked`, only those that qualify no statement.
        """
        where = f"{_KEY} AND {_UNLINKED}" if unlinked else _KEY
        rows = self.checked_rows(
            "SELECT t.id, f.rank FROM"
            f" (SELECT tail, rank FROM fact WHERE {where} ORDER BY tail LIMIT ? OFFSET ?) f"
            " JOIN entity t ON t.number = f.tail ORDER BY f.tail",
            (head, relation, limit, offset),
        )
        return [FactRow(head, relation, tail, rank) for tail, rank in rows]

    def ranks_with(self, head: str, relation: str) -> dict[str, int]:
        """Ranks of all stored facts of a head and relation, by tail."""
        return dict(
            self.checked_rows(
                f"SELECT t.id, f.rank FROM (SELECT tail, rank FROM fact WHERE {_KEY}) f"
                " CROSS JOIN entity t ON t.number = f.tail ORDER BY f.tail",
                (head, relation),
            )
        )

    def qualifiers_with(self, head: str, relation: str, tail: str | None = None) -> list[tuple[str, FactRow]]:
        """(tail of the statement, qualifier) of the statements of a head and relation, or of one of them."""
        return self._linked("f.number = x.statement", "x.fact", head, relation, tail)

    def statements_with(self, head: str, relation: str, tail: str | None = None) -> list[tuple[str, FactRow]]:
        """(tail of the qualifier, statement) of the qualifiers of a head and relation, or of one of them."""
        return self._linked("f.number = x.fact", "x.statement", head, relation, tail)

    def _linked(self, own: str, other: str, head: str, relation: str, tail: str | None) -> list[tuple[str, FactRow]]:
        rows = self.checked_rows(
            f"SELECT t.id, r.id, ot.id, o.rank FROM (SELECT number, tail FROM fact WHERE {_KEY}"
            f" {'' if tail is None else f'AND tail = {_ENTITY}'}) f CROSS JOIN qualifier x ON {own}"
            f" CROSS JOIN fact o ON o.number = {other} JOIN entity t ON t.number = f.tail"
            " JOIN relation r ON r.number = o.relation JOIN entity ot ON ot.number = o.tail"
            " ORDER BY f.tail, r.number, o.tail",
            (head, relation) if tail is None else (head, relation, tail),
        )
        return [(id, FactRow(head, *other)) for id, *other in rows]

    def sources_with(self, head: str, relation: str) -> dict[str, tuple[str, ...]]:
        """Sources of the facts of a head and relation, by tail; facts without any are missing."""
        found: dict[str, tuple[str, ...]] = {}
        if self.version > 1:
            for tail, text in self.checked_rows(
                f"SELECT t.id, s.text FROM (SELECT number, tail FROM fact WHERE {_KEY}) f"
                " CROSS JOIN source s ON s.fact = f.number JOIN entity t ON t.number = f.tail ORDER BY f.tail, s.text",
                (head, relation),
            ):
                found[tail] = (*found.get(tail, ()), text)
        return found

    def sources_of(self, head: str, relation: str, tail: str) -> tuple[str, ...]:
        """Sources of one fact."""
        if self.version == 1:
            return ()
        rows = self.checked_rows(
            "SELECT text FROM source WHERE fact ="
            f" (SELECT number FROM fact WHERE {_KEY} AND tail = {_ENTITY}) ORDER BY text",
            (head, relation, tail),
        )
        return tuple(text for [text] in rows)

    def count_unlinked(self, head: str, relation: str) -> int:
        """Number of facts of a head and relation that qualify no statement."""
        [[count]] = self.checked_rows(f"SELECT count(*) FROM fact WHERE {_KEY} AND {_UNLINKED}", (head, relation))
        return int(count)
