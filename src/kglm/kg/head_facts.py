"""The facts, qualifiers and sources of one entity, with changes that are not stored yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from kglm.kg.arrays import canonical_id
from kglm.kg.journal import Change
from kglm.kg.literals.literal import is_literal
from kglm.kg.schema import FactRow
from kglm.kg.statements import Statement
from kglm.kg.store import Store

_Key = tuple[str, str]
"""Relation and tail of a fact, by ids; the head is known."""


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
        self._sources: dict[_Key, tuple[str, ...]] = {}
        """Changed sources of facts."""
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
            elif change.action == "cite":
                self._sources[key] = tuple(dict.fromkeys((*self.sources_of(change.fact), *change.names)))
            elif change.action == "uncite":
                self._sources[key] = tuple(each for each in self.sources_of(change.fact) if each not in change.names)

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

    def sources_of(self, fact: FactRow) -> tuple[str, ...]:
        """Sources of a fact."""
        key = (fact.relation, fact.tail)
        if key in self._sources:
            return self._sources[key]
        loaded = self._loaded.get(fact.relation)
        return self._store.sources_of(*fact[:3]) if loaded is None else loaded.sources.get(fact.tail, ())

    def statement(self, fact: FactRow) -> Statement:
        """Rank, times and sources of a fact, whichever of its spellings is stored; the default if it has none."""
        qualifiers: list[tuple[str, str]] = []
        sources: dict[str, None] = {}
        rank = 0
        for row in self.spellings_of(fact):
            qualifiers += [(each.relation.partition(":")[2], each.tail) for each in self.qualifiers_of(row)]
            sources |= dict.fromkeys(self.sources_of(row))
            rank = max(rank, row.rank)
        return Statement.of(rank, qualifiers, sources)

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
        changed = self._removed | self._added.keys() | self._link_ends.keys() | self._sources.keys()
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
        if sources := self.sources_of(fact):
            changes.append(Change("uncite", *fact[:3], names=sources))
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
        self.sources = store.sources_with(head, relation)

    def is_linked(self, tail: str) -> bool:
        """True if the fact has qualifiers or sources, or is a qualifier."""
        return tail in self.qualifiers or tail in self.statements or tail in self.sources
