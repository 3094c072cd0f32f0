"""Edits of a graph file: a list of changes that happens whole or not at all, and can be undone.

A change is a record of the journal. Its inverse is another change, so undoing appends to the journal like any
edit and nothing is ever lost. Another process, or a later start, catches up by replaying the changes after the
generation it knows.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from kglm.errors import GraphError
from kglm.kg.literals import canonical_literal, is_literal
from kglm.kg.store import FactRow, Store

Action = Literal["add", "remove", "link", "unlink", "create"]
_INVERSE: dict[str, Action] = {"add": "remove", "remove": "add", "link": "unlink", "unlink": "link"}


class Change(NamedTuple):
    """One step of an edit.

    `add`, `remove`: the fact (head, relation, tail), of `rank`.
    `link`, `unlink`: that fact qualifies, or no longer qualifies, the statement with the tail `statement`.
    `create`: the entity `head`, with `names`. Never undone: an entity without facts changes nothing.
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

    def inverse(self) -> Change | None:
        action = _INVERSE.get(self.action)
        return None if action is None else self._replace(action=action)


class Conflict(Exception):
    """The store has moved on since the edit was planned."""


def removal(store: Store, fact: FactRow) -> list[Change]:
    """All that goes with a fact: its qualifiers, unless they belong to another statement too."""
    changes = [Change("unlink", *fact[:3], statement=tail) for tail in store.statements_of(fact)]
    for qualifier in store.qualifiers_of(fact):
        changes.append(Change("unlink", *qualifier[:3], statement=fact.tail))
        if store.statements_of(qualifier) == [fact.tail]:
            changes.append(Change("remove", *qualifier))
    changes.append(Change("remove", *fact))
    return changes


def stored_forms(store: Store, fact: FactRow) -> list[FactRow]:
    """The stored facts that say the same: dates may be written in two ways (`1970-00-00`, `1970-01-01`)."""
    facts = [row for row in store.facts_of(fact.head) if row.relation == fact.relation]
    if not is_literal(fact.tail):
        return [row for row in facts if row.tail == fact.tail]
    wanted = canonical_literal(fact.tail)
    return [row for row in facts if is_literal(row.tail) and canonical_literal(row.tail) == wanted]


def apply(store: Store, changes: Sequence[Change], *, expected: int, undoes: int | None = None) -> int:
    """Write an edit; durable when this returns. `expected` is the generation it was planned on."""
    with store.transaction() as connection:
        if store.generation != expected:
            raise Conflict
        number = expected + 1
        connection.execute(
            "INSERT INTO edit VALUES (?, ?, ?)",
            (number, datetime.now(UTC).isoformat(timespec="seconds"), undoes),
        )
        for position, change in enumerate(changes):
            _perform(connection, change)
            detail = json.dumps([change.rank, change.statement, change.names], ensure_ascii=False)
            connection.execute(
                "INSERT INTO change VALUES (?, ?, ?, ?, ?, ?, ?)", (number, position, *change[:4], detail)
            )
    return number


def changes_since(store: Store, generation: int, until: int = 1 << 62) -> list[Change]:
    """What happened after `generation`, up to and including `until`, in order."""
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
    """The latest edit that is neither an undo nor undone, and the changes that undo it."""
    rows = store.rows(
        "SELECT number FROM edit WHERE undoes IS NULL"
        " AND number NOT IN (SELECT undoes FROM edit WHERE undoes IS NOT NULL) ORDER BY number DESC LIMIT 1"
    )
    if not rows:
        raise GraphError("there is no edit to undo", place=store.path)
    number = int(rows[0][0])
    inverse = [change.inverse() for change in reversed(changes_since(store, number - 1, number))]
    return number, [change for change in inverse if change is not None]


def _perform(connection: sqlite3.Connection, change: Change) -> None:
    if change.action == "create":
        number = _new_entity(connection, change.head)
        connection.executemany(
            "INSERT INTO name VALUES (?, ?, ?)",
            [(number, place, name) for place, name in enumerate(change.names)],
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
        raise GraphError("a qualifier of a statement that is not in the graph")
    return int(row[0])
