"""The journal of a graph file: each edit is a list of changes, applied in one transaction, and can be undone.

The inverse of a change is another change, so an undo appends to the journal like any edit and no history is lost.
Another process, or a later start, catches up by replaying the changes after its own generation.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import groupby
from typing import Literal, NamedTuple

from kglm.errors import GraphError
from kglm.files.records import decode_record
from kglm.kg.literals.literal import is_literal
from kglm.kg.schema import AUTHOR, DATATYPE, FactRow
from kglm.kg.seals import REMEDY as SEAL_REMEDY
from kglm.kg.store import Store

Action = Literal["add", "remove", "link", "unlink", "cite", "uncite", "create", "type"]
_OPPOSITES: tuple[tuple[Action, Action], ...] = (("add", "remove"), ("link", "unlink"), ("cite", "uncite"))
_INVERSE: dict[str, Action] = {"type": "type", **{a: b for pair in _OPPOSITES for a, b in (pair, pair[::-1])}}
_KINDS = {"type": "type", "create": "create"} | {
    action: group for pair in _OPPOSITES for action, group in zip(pair, ("add", "remove"), strict=True)
}
_NUMBER = "(SELECT number FROM entity WHERE id = ?)"
_FACT = f"head = ? AND relation = ? AND tail = {_NUMBER}"
_CHECK = "check the graph with: kglm doctor KG"


class Change(NamedTuple):
    """One step of an edit.

    `add`, `remove`: the fact (head, relation, tail) with `rank`.
    `link`, `unlink`: the fact becomes, or stops being, a qualifier of the statement whose tail is `statement`.
    `cite`, `uncite`: the texts `names` become, or stop being, sources of the fact.
    `create`: the entity `head` with `names`. An undo leaves it: an entity without facts has no effect.
    `type`: the values of the relation `head` have the type `tail`; before, they had the type `statement`.
    """

    action: Action
    head: str
    relation: str = ""
    tail: str = ""
    rank: int = 0
    statement: str = ""
    names: tuple[str, ...] = ()

    @property
    def fact(self) -> FactRow:
        return FactRow(self.head, self.relation, self.tail, self.rank)


class Conflict(Exception):
    """Another process edited the store after this edit was planned."""


def apply(
    store: Store, changes: Sequence[Change], *, expected: int, undoes: int | None = None, author: str | None = None
) -> int:
    """Write an edit to disk and return its number. `expected` is the generation it was planned on."""
    with store.transaction() as connection:
        if store.generation != expected:
            raise Conflict
        number = expected + 1
        digest = hashlib.blake2b(store.digest(expected).encode(), digest_size=8)
        digest.update(repr([tuple(change) for change in changes]).encode())
        connection.execute(
            "INSERT INTO edit VALUES (?, ?, ?, ?)",
            (number, datetime.now(UTC).isoformat(timespec="seconds"), undoes, digest.hexdigest()),
        )
        if author:
            connection.execute("INSERT INTO meta VALUES (?, ?)", (f"{AUTHOR}{number}", author))
        _Writer(connection).perform(changes)
        detail = cache(lambda *values: json.dumps(values, ensure_ascii=False))  # of most changes the same
        connection.executemany(
            "INSERT INTO change VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((number, position, *change[:4], detail(*change[4:])) for position, change in enumerate(changes)),
        )
    return number


def changes_since(store: Store, generation: int, until: int = 1 << 62) -> list[Change]:
    """Changes of the edits after `generation` up to and including `until`, in order."""
    rows = store.rows(
        "SELECT action, head, relation, tail, detail FROM change WHERE edit > ? AND edit <= ? ORDER BY edit, position",
        (generation, until),
    )
    if rows:
        store.check()
    parse = cache(_parse_detail)
    return [Change(action, head, relation, tail, *parse(detail)) for action, head, relation, tail, detail in rows]


def _parse_detail(text: str) -> tuple[int, str, tuple[str, ...]]:
    """Rank, statement and names of a change."""
    return decode_record(text.encode(), tuple[int, str, tuple[str, ...]], "an edit in the journal", SEAL_REMEDY)


def last_edit(store: Store) -> tuple[int, list[Change]]:
    """Number of the latest edit that is neither an undo nor undone, and the changes that undo it."""
    rows = store.rows(
        "SELECT number FROM edit WHERE undoes IS NULL"
        " AND number NOT IN (SELECT undoes FROM edit WHERE undoes IS NOT NULL) ORDER BY number DESC LIMIT 1"
    )
    if not rows:
        raise GraphError("has no edit to undo", place=store.path, remedy="nothing was changed")
    number = int(rows[0][0])
    return number, inverse(changes_since(store, number - 1, number))


def inverse(changes: Sequence[Change]) -> list[Change]:
    """Changes that undo `changes`; created entities stay."""
    return [
        change._replace(action=_INVERSE[change.action], tail=change.statement, statement=change.tail)
        if change.action == "type"
        else change._replace(action=_INVERSE[change.action])
        for change in reversed(changes)
        if change.action in _INVERSE
    ]


class _Writer:
    """Carries out changes in an open transaction; the number of an id is looked up once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._entity = cache(self._find_entity)
        self._relation = cache(self._find_relation)

    def perform(self, changes: Sequence[Change]) -> None:
        """Carry out changes.

        Successive removals are carried out together, after the links that they remove, and successive additions before
        the links that they add. So a hub is changed by few statements of SQL, which SQLite repeats.
        """
        for kind, group in groupby(changes, lambda change: _KINDS[change.action]):
            run = list(group)
            facts = [change for change in run if change.action in ("add", "remove")]
            links = [change for change in run if change.action in ("link", "unlink")]
            sources = [change for change in run if change.action in ("cite", "uncite")]
            if kind == "create":
                for change in run:
                    self._create(change)
            elif kind == "type":
                for change in run:
                    self._set_type(change)
            elif kind == "remove":
                self._unlink(links)
                if sources:  # a graph of format 1 has no table for them
                    self._uncite(sources)
                self._remove(facts)
            else:
                self._add(facts)
                self._link(links)
                if sources:
                    self._cite(sources)

    def _create(self, change: Change) -> None:
        number = self._new_entity(change.head)
        self._connection.executemany(
            "INSERT INTO name VALUES (?, ?, ?, ?)",
            [(number, place, name, name.casefold()) for place, name in enumerate(change.names)],
        )

    def _set_type(self, change: Change) -> None:
        key = DATATYPE + change.head
        if change.tail:
            self._connection.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
                (key, change.tail),
            )
        else:
            self._connection.execute("DELETE FROM meta WHERE key = ?", (key,))

    def _remove(self, facts: Sequence[Change]) -> None:
        self._connection.executemany(f"DELETE FROM fact WHERE {_FACT}", map(self._key, facts))

    def _add(self, facts: Sequence[Change]) -> None:
        for change in facts:
            if is_literal(change.tail):
                self._entity(change.tail)
        try:
            self._connection.executemany(
                f"INSERT INTO fact(head, relation, tail, rank) VALUES (?, ?, {_NUMBER}, ?)",
                ((*self._key(change), change.rank) for change in facts),
            )
        except sqlite3.IntegrityError as error:
            raise GraphError(f"a fact cannot be added ({error})", remedy=_CHECK) from error

    def _link(self, links: Sequence[Change]) -> None:
        try:
            self._connection.executemany(
                f"INSERT INTO qualifier VALUES ((SELECT number FROM fact WHERE {_FACT}),"
                f" (SELECT number FROM fact WHERE {_FACT}))",
                map(self._ends, links),
            )
        except sqlite3.IntegrityError as error:
            raise GraphError(f"a qualifier cannot be added to its statement ({error})", remedy=_CHECK) from error

    def _unlink(self, links: Sequence[Change]) -> None:
        cursor = self._connection.executemany(
            f"DELETE FROM qualifier WHERE statement = (SELECT number FROM fact WHERE {_FACT})"
            f" AND fact = (SELECT number FROM fact WHERE {_FACT})",
            map(self._ends, links),
        )
        if links and cursor.rowcount < len(links):
            raise GraphError("the statement of a qualifier is not in the graph", remedy=_CHECK)

    def _cite(self, sources: Sequence[Change]) -> None:
        self._connection.executemany(
            f"INSERT OR IGNORE INTO source VALUES ((SELECT number FROM fact WHERE {_FACT}), ?)",
            self._citations(sources),
        )

    def _uncite(self, sources: Sequence[Change]) -> None:
        self._connection.executemany(
            f"DELETE FROM source WHERE fact = (SELECT number FROM fact WHERE {_FACT}) AND text = ?",
            self._citations(sources),
        )

    def _citations(self, sources: Sequence[Change]) -> Iterator[tuple[int, int, str, str]]:
        return ((*self._key(change), text) for change in sources for text in change.names)

    def _key(self, change: Change) -> tuple[int, int, str]:
        """Values for the condition `_FACT`."""
        return self._entity(change.head), self._relation(change.relation), change.tail

    def _ends(self, change: Change) -> tuple[int, int, str, int, int, str]:
        """Values for two conditions `_FACT`: of the statement, and of its qualifier."""
        head, relation, tail = self._key(change)
        return head, self._relation(change.relation.partition(":")[0]), change.statement, head, relation, tail

    def _find_entity(self, id: str) -> int:
        row = self._connection.execute("SELECT number FROM entity WHERE id = ?", (id,)).fetchone()
        if row is None:
            if not is_literal(id):
                raise GraphError(f"no entity {id!r}")
            return self._new_entity(id)
        return int(row[0])

    def _new_entity(self, id: str) -> int:
        [number] = self._connection.execute("SELECT coalesce(max(number) + 1, 0) FROM entity").fetchone()
        self._connection.execute("INSERT INTO entity(number, id) VALUES (?, ?)", (number, id))
        return int(number)

    def _find_relation(self, id: str) -> int:
        row = self._connection.execute("SELECT number FROM relation WHERE id = ?", (id,)).fetchone()
        if row is not None:
            return int(row[0])
        cursor = self._connection.execute("INSERT INTO relation(id) VALUES (?)", (id,))
        assert cursor.lastrowid is not None
        return cursor.lastrowid
