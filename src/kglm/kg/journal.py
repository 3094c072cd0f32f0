"""The journal of a graph file: each edit is a list of changes, applied in one transaction, and can be undone.

The inverse of a change is another change, so an undo appends to the journal like any edit and no history is lost.
Another process, or a later start, catches up by replaying the changes after its own generation.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from kglm.errors import GraphError
from kglm.kg.arrays import canonical_id
from kglm.kg.literals.literal import is_literal
from kglm.kg.store import FactRow, Store

Action = Literal["add", "remove", "link", "unlink", "create"]
_INVERSE: dict[str, Action] = {"add": "remove", "remove": "add", "link": "unlink", "unlink": "link"}


class Change(NamedTuple):
    """One step of an edit.

    `add`, `remove`: the fact (head, relation, tail) with `rank`.
    `link`, `unlink`: the fact becomes, or stops being, a qualifier of the statement whose tail is `statement`.
    `create`: the entity `head` with `names`. An undo leaves it: an entity without facts has no effect.
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


class HeadFacts:
    """Facts and qualifiers of one head: those in the store, plus changes that are not stored yet."""

    def __init__(self, store: Store, head: str, changes: Iterable[Change] = ()) -> None:
        self.facts = store.facts_of(head)
        self._links = store.links_of(head)
        self.apply(change for change in changes if change.head == head)

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply further changes of this head."""
        for change in changes:
            self._apply(change)

    def _apply(self, change: Change) -> None:
        fact = change.fact
        if change.action == "add":
            self.facts.append(fact)
        elif change.action == "remove":
            self.facts = [other for other in self.facts if other[:3] != fact[:3]]
        elif change.action in ("link", "unlink"):
            link = (change.head, change.relation.partition(":")[0], change.statement), fact[:3]
            self._links = [(s, q) for s, q in self._links if (s[:3], q[:3]) != link]
            if change.action == "link":
                statement = next(other for other in self.facts if other[:3] == link[0])
                self._links.append((statement, fact))

    def qualifiers_of(self, fact: FactRow) -> list[FactRow]:
        return [q for s, q in self._links if s[:3] == fact[:3]]

    def statements_of(self, fact: FactRow) -> list[FactRow]:
        return [s for s, q in self._links if q[:3] == fact[:3]]

    def spellings_of(self, fact: FactRow) -> list[FactRow]:
        """Stored facts equal to `fact`; a date can have two ids (`1970-00-00`, `1970-01-01`)."""
        wanted = canonical_id(fact.tail)
        return [row for row in self.facts if row.relation == fact.relation and canonical_id(row.tail) == wanted]

    def remove(self, fact: FactRow) -> list[Change]:
        """Remove a fact in all its spellings; return the changes."""
        removed: list[Change] = []
        for spelling in self.spellings_of(fact):
            changes = self._removal(spelling)
            self.apply(changes)
            removed += changes
        return removed

    def _removal(self, fact: FactRow) -> list[Change]:
        """Changes that remove a fact and its qualifiers; qualifiers shared with another statement stay."""
        changes = [Change("unlink", *fact[:3], statement=statement.tail) for statement in self.statements_of(fact)]
        for qualifier in self.qualifiers_of(fact):
            changes.append(Change("unlink", *qualifier[:3], statement=fact.tail))
            if len(self.statements_of(qualifier)) == 1:
                changes.append(Change("remove", *qualifier))
        return [*changes, Change("remove", *fact)]


def apply(store: Store, changes: Sequence[Change], *, expected: int, undoes: int | None = None) -> int:
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
        for position, change in enumerate(changes):
            _perform(connection, change)
            detail = json.dumps([change.rank, change.statement, change.names], ensure_ascii=False)
            connection.execute(
                "INSERT INTO change VALUES (?, ?, ?, ?, ?, ?, ?)", (number, position, *change[:4], detail)
            )
    return number


def changes_since(store: Store, generation: int, until: int = 1 << 62) -> list[Change]:
    """Changes of the edits after `generation` up to and including `until`, in order."""
    rows = store.rows(
        "SELECT action, head, relation, tail, detail FROM change WHERE edit > ? AND edit <= ? ORDER BY edit, position",
        (generation, until),
    )
    changes = []
    for action, head, relation, tail, detail in rows:
        rank, statement, names = json.loads(detail)
        changes.append(Change(action, head, relation, tail, rank, statement, tuple(names)))
    return changes


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
        change._replace(action=_INVERSE[change.action]) for change in reversed(changes) if change.action in _INVERSE
    ]


def _perform(connection: sqlite3.Connection, change: Change) -> None:
    if change.action == "create":
        number = _new_entity(connection, change.head)
        connection.executemany(
            "INSERT INTO name VALUES (?, ?, ?, ?)",
            [(number, place, name, name.casefold()) for place, name in enumerate(change.names)],
        )
        return
    head, tail = _entity(connection, change.head), _entity(connection, change.tail)
    relation = _relation(connection, change.relation)
    if change.action == "add":
        connection.execute(
            "INSERT INTO fact(head, relation, tail, rank) VALUES (?, ?, ?, ?)",
            (head, relation, tail, change.rank),
        )
    elif change.action == "remove":
        connection.execute("DELETE FROM fact WHERE head = ? AND relation = ? AND tail = ?", (head, relation, tail))
    else:
        main = _relation(connection, change.relation.partition(":")[0])
        statement = _fact(connection, head, main, _entity(connection, change.statement))
        values = (statement, _fact(connection, head, relation, tail))
        if change.action == "link":
            connection.execute("INSERT INTO qualifier VALUES (?, ?)", values)
        else:
            connection.execute("DELETE FROM qualifier WHERE statement = ? AND fact = ?", values)


def _entity(connection: sqlite3.Connection, id: str) -> int:
    row = connection.execute("SELECT number FROM entity WHERE id = ?", (id,)).fetchone()
    if row is None:
        if not is_literal(id):
            raise GraphError(f"no entity {id!r}")
        return _new_entity(connection, id)
    return int(row[0])


def _new_entity(connection: sqlite3.Connection, id: str) -> int:
    [number] = connection.execute("SELECT coalesce(max(number) + 1, 0) FROM entity").fetchone()
    connection.execute("INSERT INTO entity(number, id) VALUES (?, ?)", (number, id))
    return int(number)


def _relation(connection: sqlite3.Connection, id: str) -> int:
    row = connection.execute("SELECT number FROM relation WHERE id = ?", (id,)).fetchone()
    if row is not None:
        return int(row[0])
    cursor = connection.execute("INSERT INTO relation(id) VALUES (?)", (id,))
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _fact(connection: sqlite3.Connection, head: int, relation: int, tail: int) -> int:
    row = connection.execute(
        "SELECT number FROM fact WHERE head = ? AND relation = ? AND tail = ?", (head, relation, tail)
    ).fetchone()
    if row is None:
        raise GraphError("the statement of a qualifier is not in the graph", remedy="check it with: kglm doctor KG")
    return int(row[0])
