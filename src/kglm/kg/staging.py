"""Build a graph file: stage records as they are read, then number, join and write them in one transaction.

The staging file, `KG.partial`, is an SQLite file. Each block of input is one transaction that also records the position
in the source, so a killed import resumes there. Steps over all records (numbering, duplicates, joining qualifiers with
their statements, hops) are SQL: SQLite sorts on disk, so memory is bounded for a source of any size. A rename gives the
finished graph its name.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kglm.errors import DataError, KglmError
from kglm.files import sync_directory, writing
from kglm.kg.ids import SOURCE_PROPERTIES
from kglm.kg.importers.records import Batch
from kglm.kg.literals.literal import is_literal
from kglm.kg.schema import DATATYPE, create_indexes, create_schema
from kglm.kg.seals import BlockChecks, ImportRecord, compute_seal, content_state, write_seal
from kglm.progress import Advance

CACHE_KIB = 32 << 10
SQLITE_SUFFIXES = ("-journal", "-wal", "-shm")
HUB = 1000
"""With more than this many facts (·, relation, entity), no hop leads from the entity back to their heads: otherwise all
people would be two hops apart, through "human"."""

_SCHEMA = """
CREATE TABLE job(value TEXT NOT NULL);
CREATE TABLE progress(
    source INTEGER PRIMARY KEY, offset INTEGER NOT NULL, line INTEGER NOT NULL, done INTEGER NOT NULL);
CREATE TABLE entity(id TEXT, description TEXT, title TEXT);
CREATE TABLE name(id TEXT, kind INTEGER, text TEXT);
CREATE TABLE fact(head TEXT, relation TEXT, tail TEXT, rank INTEGER, statement TEXT);
CREATE TABLE qualifier(statement TEXT, property TEXT, value TEXT);
CREATE TABLE source(statement TEXT, text TEXT);
CREATE TABLE relation(id TEXT, label TEXT);
CREATE TABLE redirect(source TEXT, target TEXT);
CREATE TABLE skipped(reason TEXT PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE problem(source INTEGER, line INTEGER, what TEXT);
"""


def staging_file(target: Path) -> Path:
    return target.with_name(target.name + ".partial")


def new_file(target: Path) -> Path:
    """The graph file until it is complete."""
    return target.with_name(f".{target.name}.new.tmp")


def remove_staging(target: Path, job: dict[str, object]) -> None:
    """Remove what an import of this job left, after it had written the graph."""
    _remove(new_file(target))
    path = staging_file(target)
    if not path.exists() or _job_of(path) in (None, json.dumps(job, sort_keys=True)):
        _remove(path)


def _job_of(path: Path) -> str | None:
    """Job of an existing staging file; raises KglmError for any other file, which must not be overwritten."""
    wrong = KglmError("is not an unfinished import", place=path, remedy="move it away: imports use this name")
    connection = sqlite3.connect(path)
    try:
        row = connection.execute("SELECT value FROM job").fetchone()
        return row[0] if row else None
    except sqlite3.OperationalError as error:
        if "no such table" in str(error) and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            return None  # killed before the first transaction
        raise wrong from error
    except sqlite3.DatabaseError as error:
        raise wrong from error
    finally:
        connection.close()


def _remove(database: Path) -> None:
    """Delete an SQLite file and the files that belong to it."""
    for suffix in ("", *SQLITE_SUFFIXES):
        Path(f"{database}{suffix}").unlink(missing_ok=True)


class Staging:
    """The staging file of one import job."""

    def __init__(self, target: Path, job: dict[str, object]) -> None:
        self.target = target
        self.path = staging_file(target)
        self.resumed = False
        text = json.dumps(job, sort_keys=True)
        with writing(self.path):
            if self.path.exists() and _job_of(self.path) != text:
                print(f"note: {self.path} belongs to another import and is discarded", file=sys.stderr)
                self.discard()
            self.resumed = self.path.exists()
            self._connection = self._connect()
            if not self.resumed:
                with self._connection:
                    self._connection.executescript(f"BEGIN; {_SCHEMA}")
                    self._connection.execute("INSERT INTO job VALUES (?)", (text,))
            with self._connection:  # an import that an earlier version began has no such table
                self._connection.execute("CREATE TABLE IF NOT EXISTS datatype(relation TEXT, type TEXT)")

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level="IMMEDIATE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        return connection

    def discard(self) -> None:
        """Delete the staging file."""
        _remove(self.path)

    def close(self) -> None:
        self._connection.close()

    # Staging

    def progress(self, source: int) -> tuple[int, int, bool]:
        """Offset and line at which reading resumes, and whether the source is done."""
        row = self._connection.execute("SELECT offset, line, done FROM progress WHERE source = ?", (source,)).fetchone()
        return (row[0], row[1], bool(row[2])) if row else (0, 1, False)

    def add(self, batch: Batch, source: int, *, offset: int, line: int, done: bool = False) -> None:
        """Stage a batch and the position after it, in one transaction."""
        with writing(self.path), self._connection as connection:
            connection.executemany("INSERT INTO entity VALUES (?, ?, ?)", batch.entities)
            connection.executemany("INSERT INTO name VALUES (?, ?, ?)", batch.names)
            connection.executemany("INSERT INTO fact VALUES (?, ?, ?, ?, ?)", batch.facts)
            qualifiers = [row for row in batch.qualifiers if row[1] not in SOURCE_PROPERTIES]
            for key, property, value in batch.qualifiers:
                if property in SOURCE_PROPERTIES:
                    batch.source(key, value)
            connection.executemany("INSERT INTO qualifier VALUES (?, ?, ?)", qualifiers)
            connection.executemany("INSERT INTO source VALUES (?, ?)", batch.sources)
            connection.executemany("INSERT INTO relation VALUES (?, ?)", batch.relations)
            connection.executemany("INSERT INTO redirect VALUES (?, ?)", batch.redirects)
            connection.executemany("INSERT INTO datatype VALUES (?, ?)", batch.datatypes)
            connection.executemany(
                "INSERT INTO skipped VALUES (?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
                batch.skipped.items(),
            )
            connection.executemany(
                "INSERT INTO problem VALUES (?, ?, ?)",
                [(source, number, what) for number, what in batch.problems],
            )
            connection.execute("INSERT OR REPLACE INTO progress VALUES (?, ?, ?, ?)", (source, offset, line, int(done)))

    def skipped(self) -> Counter[str]:
        return Counter(dict(self._connection.execute("SELECT reason, count FROM skipped ORDER BY reason")))

    def problems(self, limit: int) -> list[tuple[int, int, str]]:
        """Source, line and description of the first problems."""
        return self._connection.execute(
            "SELECT source, line, what FROM problem ORDER BY source, line LIMIT ?", (limit,)
        ).fetchall()

    def fact_count(self) -> int:
        [count] = self._connection.execute("SELECT count(*) FROM fact").fetchone()
        return int(count)

    # Finishing

    STEPS = 5
    """Number of calls of `advance` in `finish`."""

    def finish(
        self, record: ImportRecord, language: str, *, near: Iterable[str] | None, hops: int, advance: Advance
    ) -> int:
        """Write the graph file and delete the staging file. Returns the number of duplicate facts."""
        new = new_file(self.target)
        _remove(new)
        connection = self._connection
        connection.create_function("casefold", 1, str.casefold, deterministic=True)
        with writing(self.target):
            try:
                connection.execute("ATTACH ? AS graph", (str(new),))
                for setting in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{CACHE_KIB}"):
                    connection.execute(f"PRAGMA graph.{setting}")
                with connection:
                    create_schema(connection, "graph")
                    self._collect_facts()
                    if near is not None:
                        self._keep_near(near, hops)
                    advance()
                    self._write_entities(near is not None)
                    advance()
                    duplicates = self._write_facts()
                    self._refuse_empty(near is not None)
                    advance()
                    create_indexes(connection, "graph")
                    advance()
                    self._write_meta(language)
                    connection.execute("DROP TABLE all_fact")
                    advance()
                connection.execute("DETACH graph")
                with new.open("rb") as stream:
                    os.fsync(stream.fileno())
                for old in SQLITE_SUFFIXES:  # of the graph that is replaced
                    Path(f"{self.target}{old}").unlink(missing_ok=True)
                record = msgspec.structs.replace(record, duplicates=duplicates)
                BlockChecks(self.target).save(self._state, record, file=new)  # before the graph has its name
                new.replace(self.target)
                sync_directory(self.target.parent)
            except BaseException:
                connection.close()
                _remove(new)
                raise
        self.close()
        self.discard()
        return duplicates

    def _collect_facts(self) -> None:
        """Facts, and each qualifier as a fact (head, PROPERTY:QUALIFIER, value)."""
        execute = self._connection.execute
        execute("DROP TABLE IF EXISTS all_fact")
        execute("CREATE TABLE all_fact(head TEXT, relation TEXT, tail TEXT, rank INTEGER)")
        execute("INSERT INTO all_fact SELECT head, relation, tail, rank FROM fact")
        execute("CREATE INDEX IF NOT EXISTS fact_statement ON fact(statement) WHERE statement IS NOT NULL")
        execute(
            "INSERT INTO all_fact SELECT f.head, f.relation || ':' || q.property, q.value, 0"
            " FROM qualifier q CROSS JOIN fact f ON f.statement = q.statement WHERE instr(f.relation, ':') = 0"
        )

    def _keep_near(self, seeds: Iterable[str], hops: int) -> None:
        """Keep facts whose head and tail are within `hops` of the seeds; a literal is kept with its head."""
        execute = self._connection.execute
        execute("CREATE INDEX all_fact_head ON all_fact(head)")
        execute("CREATE INDEX all_fact_tail ON all_fact(tail)")
        execute("CREATE TEMP TABLE near(id TEXT PRIMARY KEY, hop INTEGER) WITHOUT ROWID")
        execute("CREATE TEMP TABLE hub(id TEXT, relation TEXT, PRIMARY KEY (id, relation)) WITHOUT ROWID")
        execute(
            "INSERT INTO hub SELECT tail, relation FROM all_fact GROUP BY tail, relation HAVING count(*) > ?",
            (HUB,),
        )
        entities = ((seed,) for seed in seeds if not is_literal(seed))  # no hops through a date
        self._connection.executemany("INSERT OR IGNORE INTO near VALUES (?, 0)", entities)
        for hop in range(1, hops + 1):
            execute(
                "INSERT OR IGNORE INTO near SELECT f.tail, ?1 FROM near n JOIN all_fact f ON f.head = n.id"
                " WHERE n.hop = ?1 - 1 AND f.tail NOT GLOB '[STV]::*'"
                " UNION SELECT f.head, ?1 FROM near n JOIN all_fact f ON f.tail = n.id WHERE n.hop = ?1 - 1"
                " AND NOT EXISTS (SELECT 1 FROM hub WHERE hub.id = n.id AND hub.relation = f.relation)",
                (hop,),
            )
        execute(
            "DELETE FROM all_fact WHERE head NOT IN (SELECT id FROM near)"
            " OR (tail NOT GLOB '[STV]::*' AND tail NOT IN (SELECT id FROM near))"
        )

    def _write_entities(self, filtered: bool) -> None:
        """Number entities in the order of their ids, so that the same content gives the same numbers."""
        execute = self._connection.execute
        only_near = (
            "WHERE id IN (SELECT id FROM near) OR id IN (SELECT substr(relation, 1, instr(relation || ':', ':') - 1)"
            " FROM all_fact) OR id IN (SELECT substr(tail, instr(tail, '/entity/') + 8) FROM all_fact"
            " WHERE tail GLOB 'V::*/entity/*')"
            if filtered
            else ""
        )
        execute(
            "INSERT INTO graph.entity(number, id) SELECT row_number() OVER (ORDER BY id) - 1, id FROM"
            f" (SELECT id FROM main.entity {only_near} UNION SELECT id FROM main.name {only_near}"
            "  UNION SELECT head FROM all_fact UNION SELECT tail FROM all_fact)"
        )
        execute("CREATE INDEX IF NOT EXISTS main.entity_id ON entity(id)")
        for column in ("description", "title"):  # from the first source that has one
            execute(
                f"UPDATE graph.entity SET {column} = found.{column} FROM (SELECT id, {column}, min(rowid)"
                f" FROM main.entity WHERE {column} IS NOT NULL GROUP BY id) AS found WHERE graph.entity.id = found.id"
            )
        execute(
            "INSERT INTO graph.name SELECT e.number, row_number() OVER (PARTITION BY e.number ORDER BY n.kind, n.first)"
            " - 1, n.text, casefold(n.text) FROM (SELECT id, text, min(kind) AS kind, min(rowid) AS first"
            " FROM main.name GROUP BY id, text) n JOIN graph.entity e ON e.id = n.id ORDER BY e.number"
        )
        execute(
            "INSERT INTO graph.relation SELECT row_number() OVER (ORDER BY id), id,"
            " (SELECT label FROM main.relation r WHERE r.id = used.id AND label <> '' ORDER BY rowid LIMIT 1)"
            " FROM (SELECT relation AS id FROM all_fact UNION SELECT id FROM main.relation) used"
        )
        execute("INSERT OR IGNORE INTO graph.redirect SELECT source, target FROM main.redirect ORDER BY rowid")

    def _write_facts(self) -> int:
        execute = self._connection.execute
        [staged] = execute("SELECT count(*) FROM all_fact").fetchone()
        execute(
            "INSERT INTO graph.fact SELECT row_number() OVER (ORDER BY head, relation, tail), head, relation, tail,"
            " rank FROM (SELECT h.number AS head, r.number AS relation, t.number AS tail, max(f.rank) AS rank"
            "  FROM all_fact f JOIN graph.entity h ON h.id = f.head JOIN graph.relation r ON r.id = f.relation"
            "  JOIN graph.entity t ON t.id = f.tail GROUP BY h.number, r.number, t.number)"
        )
        execute(
            # CROSS JOIN fixes the order, so each step finds its rows by key: without statistics, SQLite would read all
            # facts of the head for each statement
            "INSERT OR IGNORE INTO graph.qualifier SELECT s.number, q.number FROM main.qualifier x"
            " CROSS JOIN main.fact f ON f.statement = x.statement"
            " CROSS JOIN graph.entity h ON h.id = f.head CROSS JOIN graph.relation r ON r.id = f.relation"
            " CROSS JOIN graph.entity t ON t.id = f.tail"
            " CROSS JOIN graph.relation qr ON qr.id = f.relation || ':' || x.property"
            " CROSS JOIN graph.entity qt ON qt.id = x.value"
            " CROSS JOIN graph.fact s ON s.head = h.number AND s.relation = r.number AND s.tail = t.number"
            " CROSS JOIN graph.fact q ON q.head = h.number AND q.relation = qr.number AND q.tail = qt.number"
        )
        execute(
            "INSERT OR IGNORE INTO graph.source SELECT s.number, x.text FROM main.source x"
            " CROSS JOIN main.fact f ON f.statement = x.statement"
            " CROSS JOIN graph.entity h ON h.id = f.head CROSS JOIN graph.relation r ON r.id = f.relation"
            " CROSS JOIN graph.entity t ON t.id = f.tail"
            " CROSS JOIN graph.fact s ON s.head = h.number AND s.relation = r.number AND s.tail = t.number"
        )
        [written] = execute("SELECT count(*) FROM graph.fact").fetchone()
        return int(staged) - int(written)

    def _refuse_empty(self, filtered: bool) -> None:
        if self._connection.execute("SELECT 1 FROM graph.fact").fetchone() is None:
            what = "no fact is near the entities of the documents" if filtered else "no fact found in the sources"
            raise DataError(what, place=self.target, remedy="check that documents and sources use the same ids")

    def _write_meta(self, language: str) -> None:
        digest = hashlib.blake2b(digest_size=8)
        for query in (
            "SELECT number, id, coalesce(title, '') FROM graph.entity ORDER BY number",
            "SELECT entity, position, text FROM graph.name ORDER BY entity, position",
            "SELECT id, number, coalesce(label, '') FROM graph.relation ORDER BY number",
            "SELECT head, relation, tail FROM graph.fact ORDER BY number",
            "SELECT 'rank', number, rank FROM graph.fact WHERE rank > 0 ORDER BY number",
            "SELECT 'qualifier', statement, fact FROM graph.qualifier ORDER BY statement, fact",
            "SELECT 'source', fact, text FROM graph.source ORDER BY fact, text",
        ):
            for first, second, third in self._connection.execute(query):
                digest.update(f"{first}\t{second}\t{third}\n".encode())
        values = {"identity": digest.hexdigest(), "language": language}
        self._connection.executemany("INSERT INTO graph.meta VALUES (?, ?)", values.items())
        self._connection.execute(
            "INSERT OR IGNORE INTO graph.meta SELECT ? || relation, type FROM main.datatype"
            " WHERE relation IN (SELECT id FROM graph.relation) ORDER BY rowid",
            (DATATYPE,),
        )
        write_seal(self._connection, compute_seal(self._connection, "graph"), "graph")
        self._state = content_state(self._connection, "graph")
