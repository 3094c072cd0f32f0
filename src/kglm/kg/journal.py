"""The journal of a graph file: each edit is a list of changes, applied in one transaction, and can be undone.

The inverse of a change is another change, so an undo appends to the journal like any edit and no history is lost.
Another process, or a later start, catches up by replaying the changes after its own generation.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import groupby
from typing import Literal, NamedTuple

from kglm.errors import GraphError
from kglm.files.records import decode_record
from kglm.kg.arrays import canonical_id
from kglm.kg.literals.literal import is_literal
from kglm.kg.schema import AUTHOR, DATATYPE, FactRow
from kglm.kg.seals import REMEDY as SEAL_REMEDY
from kglm.kg.store import Store

Action = Literal["add", "remove", "link", "unlink", "create", "type"]
_INVERSE: dict[str, Action] = {"add": "remove", "remove": "add", "link": "unlink", "unlink": "link", "type": "type"}
_KINDS = {"type": "type", "create": "create", "remove": "remove", "unlink": "remove", "add": "add", "link": "add"}
_NUMBER = "(SELECT number FROM entity WHERE id = ?)"
_FACT = f"head = ? AND relation = ? AND tail = {_NUMBER}"
_CHECK = "check the graph with: kglm doctor KG"
_Key = tuple[str, str]
"""Relation and tail of a fact, by ids; the head is known."""


class Change(NamedTuple):
    """One step of an edit.

    `add`, `remove`: the fact (head, relation, tail) with `rank`.
    `link`, `unlink`: the fact becomes, or stops being, a qualifier of the statement whose tail is `statement`.
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


class HeadFacts:
    """Facts and qualifiers of one head: those in the store, plus changes that are not stored yet.

    Facts are read by key when they are asked for, so an edit of one fact of a hub reads one fact. Of a relation that is
    loaded with `load`, all facts are read at once. `spellings` are the ids of each date or quantity that has several,
    by canonical id.
    """

    def __init__(
        self, store: Store, spellings: Mapping[str, Sequence[str]], head: str, changes: Iterable[Change] = ()
    ) -> None:
        self._store = store
        self._spellings = spellings
        self._head = head
        self._loaded: dict[str, _RelationFacts] = {}
        self._added: dict[_Key, FactRow] = {}
        self._removed: set[_Key] = set()
        self._linked: dict[tuple[_Key, _Key], bool] = {}
        """Changed links (statement, qualifier), and whether they hold."""
        self._link_ends: dict[_Key, dict[tuple[_Key, _Key], None]] = {}
        """The changed links of a fact."""
        self._statement_counts: dict[_Key, int] = {}
        """Number of statements of the qualifiers for which it was asked."""
        self.apply(change for change in changes if change.head == head)

    def load(self, relation: str) -> None:
        """Read all facts of a relation and their qualifiers, to remove many of them."""
        if relation not in self._loaded:
            self._loaded[relation] = _RelationFacts(self._store, self._head, relation)

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply further changes of this head."""
        for change in changes:
            key = (change.relation, change.tail)
            if change.action == "add":
                self._added[key] = change.fact
            elif change.action == "remove":
                self._added.pop(key, None)
                self._removed.add(key)
            elif change.action in ("link", "unlink"):
                link = (change.relation.partition(":")[0], change.statement), key
                self._linked[link] = change.action == "link"
                if key in self._statement_counts:
                    self._statement_counts[key] += 1 if change.action == "link" else -1
                for end in link:
                    self._link_ends.setdefault(end, {})[link] = None

    def _fact(self, key: _Key) -> FactRow | None:
        if key in self._added or key in self._removed:
            return self._added.get(key)
        loaded = self._loaded.get(key[0])
        if loaded is None:
            return self._store.fact(self._head, *key)
        rank = loaded.ranks.get(key[1])
        return None if rank is None else FactRow(self._head, *key, rank)

    def qualifiers_of(self, fact: FactRow) -> list[FactRow]:
        loaded = self._loaded.get(fact.relation)
        if loaded is None:
            stored = [row for _, row in self._store.qualifiers_with(*fact[:3])]
        else:
            stored = loaded.qualifiers.get(fact.tail, [])
        return self._with_changes(fact, stored, 1)

    def statements_of(self, fact: FactRow) -> list[FactRow]:
        if ":" not in fact.relation:
            return []  # no qualifier
        loaded = self._loaded.get(fact.relation)
        if loaded is None:
            stored = [row for _, row in self._store.statements_with(*fact[:3])]
        else:
            stored = loaded.statements.get(fact.tail, [])
        return self._with_changes(fact, stored, 0)

    def _count_statements(self, qualifier: FactRow) -> int:
        """Number of statements of a qualifier; they are read once, however many of them are removed."""
        key = (qualifier.relation, qualifier.tail)
        if key not in self._statement_counts:
            self._statement_counts[key] = len(self.statements_of(qualifier))
        return self._statement_counts[key]

    def _with_changes(self, fact: FactRow, stored: list[FactRow], end: Literal[0, 1]) -> list[FactRow]:
        """Facts at one end of the links of `fact`: 0 its statements, 1 its qualifiers."""
        own = (fact.relation, fact.tail)
        keys = {(row.relation, row.tail): row for row in stored}
        for link in self._link_ends.get(own, ()):
            if link[1 - end] == own:
                keys.pop(link[end], None)
                if self._linked[link] and (other := self._fact(link[end])) is not None:
                    keys[link[end]] = other
        return list(keys.values())

    def spellings_of(self, fact: FactRow) -> list[FactRow]:
        """Stored facts equal to `fact`; a date can have two ids (`1970-00-00`, `1970-01-01`)."""
        keys = dict.fromkeys([(fact.relation, fact.tail)])
        if is_literal(fact.tail):
            wanted = canonical_id(fact.tail)
            keys = dict.fromkeys((fact.relation, tail) for tail in self._spellings.get(wanted, (fact.tail,)))
            keys |= dict.fromkeys(
                key for key in self._added if key[0] == fact.relation and canonical_id(key[1]) == wanted
            )
        return [row for key in keys if (row := self._fact(key)) is not None]

    def remove(self, fact: FactRow) -> list[Change]:
        """Remove a fact in all its spellings; return the changes."""
        removed: list[Change] = []
        for spelling in self.spellings_of(fact):
            changes = self._removal(spelling)
            self.apply(changes)
            removed += changes
        return removed

    def remove_tails(self, relation: str, tails: Iterable[str]) -> list[Change]:
        """Remove the facts of a relation with these tails; the same changes as of `remove` for each of them."""
        self.load(relation)
        loaded, changes = self._loaded[relation], []
        for qualifying in {row.relation for rows in loaded.qualifiers.values() for row in rows}:
            self.load(qualifying)
        changed = self._removed | self._added.keys() | self._link_ends.keys()
        for tail in tails:
            rank = loaded.ranks.get(tail)
            if rank is None or is_literal(tail) or loaded.is_linked(tail) or (relation, tail) in changed:
                changes += self.remove(FactRow(self._head, relation, tail))
            else:  # no other fact changes with it
                changes.append(Change("remove", self._head, relation, tail, rank))
                self._removed.add((relation, tail))
        return changes

    def _removal(self, fact: FactRow) -> list[Change]:
        """Changes that remove a fact and its qualifiers; qualifiers shared with another statement stay."""
        changes = [Change("unlink", *fact[:3], statement=statement.tail) for statement in self.statements_of(fact)]
        for qualifier in self.qualifiers_of(fact):
            changes.append(Change("unlink", *qualifier[:3], statement=fact.tail))
            if self._count_statements(qualifier) == 1:
                changes.append(Change("remove", *qualifier))
        return [*changes, Change("remove", *fact)]


class _RelationFacts:
    """The stored facts of one head and relation, and their links, by tail."""

    def __init__(self, store: Store, head: str, relation: str) -> None:
        self.ranks = store.ranks_with(head, relation)
        self.qualifiers: dict[str, list[FactRow]] = {}
        for tail, row in store.qualifiers_with(head, relation):
            self.qualifiers.setdefault(tail, []).append(row)
        self.statements: dict[str, list[FactRow]] = {}
        for tail, row in store.statements_with(head, relation) if ":" in relation else ():
            self.statements.setdefault(tail, []).append(row)

    def is_linked(self, tail: str) -> bool:
        """True if the fact has qualifiers or is one."""
        return tail in self.qualifiers or tail in self.statements


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
            if kind == "create":
                for change in run:
                    self._create(change)
            elif kind == "type":
                for change in run:
                    self._set_type(change)
            elif kind == "remove":
                self._unlink(links)
                self._remove(facts)
            else:
                self._add(facts)
                self._link(links)

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
