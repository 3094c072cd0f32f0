"""Edits in memory on top of compiled arrays: new nodes, new relations, and the new edges of changed nodes.

Changes are collected by node and merged into the edges of a node when these are next read. So many changes of one node
cost one copy of its edges, and a change costs nothing at nodes that are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from kglm.errors import UnknownIdError
from kglm.kg.arrays import IntArray, LongArray, canonical_id
from kglm.kg.compiled import CompiledGraph
from kglm.kg.ids import is_relation_id
from kglm.kg.journal import Change
from kglm.kg.literals.literal import is_literal

FEW = 16
"""Changes of a node up to which further changes are added to them, instead of merging them into its edges."""
_Edge = tuple[int, int]
"""Relation index and tail."""


class Edges(NamedTuple):
    """The edges of one node, sorted by (relation, tail)."""

    relation: IntArray
    tail: IntArray


class Overlay:
    """Changes since the arrays were compiled. After stored edits, numbers are those of the store."""

    def __init__(self, base: CompiledGraph) -> None:
        self.base = base
        self.relations = [id for id, _ in base.relations]
        self.relation_numbers = {id: number for number, id in enumerate(self.relations)}
        self.ids: list[str] = []
        self.numbers: dict[str, int] = {}
        self.names: dict[int, tuple[str, ...]] = {}
        self.touched: dict[int, Edges | Mapping[_Edge, bool]] = {}
        """Changed nodes: their edges, or changes that are not merged yet; read them with `edges`."""
        self.restated: set[tuple[int, int, int]] = set()
        """Facts (head, relation index, tail) that were added, or whose rank, times or sources may have changed."""

    def copy(self) -> Overlay:
        """Independent copy; it shares the arrays, which are never written."""
        copy = Overlay.__new__(Overlay)
        copy.base = self.base
        copy.relations, copy.relation_numbers = list(self.relations), dict(self.relation_numbers)
        copy.ids, copy.numbers, copy.names = list(self.ids), dict(self.numbers), dict(self.names)
        copy.touched = dict(self.touched)
        copy.restated = set(self.restated)
        return copy

    def __len__(self) -> int:
        return len(self.base) + len(self.ids)

    def number(self, id: str) -> int | None:
        id = canonical_id(id)
        found = self.numbers.get(id)
        return self.base.number(id) if found is None else found

    def id(self, number: int) -> str:
        index = number - len(self.base)
        return self.base.id(number) if index < 0 else self.ids[index]

    def numbers_of(self, ids: Iterable[str]) -> dict[str, int]:
        """Nodes of many ids; ids that have none are missing."""
        ids = list(ids)
        forms = [canonical_id(id) if is_literal(id) else id for id in ids]
        stored = [form for form in forms if form not in self.numbers]
        numbers = dict(zip(stored, self.base.numbers(stored), strict=True)) | self.numbers
        return {id: number for id, form in zip(ids, forms, strict=True) if (number := numbers[form]) is not None}

    def ids_of(self, numbers: IntArray) -> list[str]:
        """Ids of many nodes."""
        stored = numbers < len(self.base)
        if stored.all():
            return self.base.ids(numbers)
        return [self.id(number) for number in numbers.tolist()]

    def edges(self, number: int) -> Edges:
        changed = self.touched.get(number)
        if changed is None:
            return self._first_edges(number)
        if not isinstance(changed, Edges):
            changed = self.touched[number] = _merged(self._first_edges(number), changed)
        return changed

    def _first_edges(self, number: int) -> Edges:
        """Edges before any change."""
        if number >= len(self.base):
            return _initial_edges(self.id(number), number)
        start, end = self.base.edge_offsets[number], self.base.edge_offsets[number + 1]
        return Edges(self.base.edge_relation[start:end], self.base.edge_tail[start:end])

    def base_places(self, head: int, relation: int, tails: IntArray) -> LongArray:
        """Places of edges among those of the compiled arrays; all of them must be there and unchanged."""
        if head >= len(self.base):
            return np.zeros(0, np.int64)
        edges = self._first_edges(head)
        start, end = np.searchsorted(edges.relation, [relation, relation + 1])
        places = self.base.edge_offsets[head] + start + np.searchsorted(edges.tail[start:end], tails)
        return np.asarray(places, np.int64)

    def is_restated(self, head: int, relation: int, tail: int) -> bool:
        """True if the fact of an edge, forward or reverse, is in `restated`."""
        return ((tail, relation ^ 1, head) if relation & 1 else (head, relation, tail)) in self.restated

    def has_fact(self, head: int, relation: int, tail: int) -> bool:
        """True if the edge (head, relation index, tail) exists."""
        edges = self.edges(head)
        return _position(edges, relation, tail)[1]

    def apply(self, changes: Sequence[Change]) -> None:
        facts = [change for change in changes if change.action in ("add", "remove")]
        nodes = self.numbers_of({id: None for change in facts for id in (change.head, change.tail)})
        forward: dict[int, dict[_Edge, bool]] = {}
        reverse: dict[int, Mapping[_Edge, bool]] = {}
        shared = cache(lambda *change: {change[:2]: change[2]})  # for the many tails of one head and relation
        for change in changes:
            if change.action == "create":
                self.names[self._new_node(change.head)] = change.names
            elif change.action in ("add", "remove"):
                for id in (change.head, change.tail):
                    if id not in nodes:
                        nodes[id] = self._node(id)
                head, tail = nodes[change.head], nodes[change.tail]
                relation, present = 2 * self._relation(change.relation), change.action == "add"
                forward.setdefault(head, {})[relation, tail] = present
                if not is_literal(change.tail):
                    back = shared(relation + 1, head, present)
                    reverse[tail] = {**reverse[tail], **back} if tail in reverse else back
                if present:
                    self.restated.add((head, relation, tail))
            elif change.action in ("link", "unlink"):
                self.restated.add(self._fact(change.head, change.relation.partition(":")[0], change.statement))
            elif change.action in ("cite", "uncite"):
                self.restated.add(self._fact(change.head, change.relation, change.tail))
        self._touch(forward)
        self._touch(reverse)

    def _fact(self, head: str, relation: str, tail: str) -> tuple[int, int, int]:
        """Nodes and relation index of a fact that is given by its ids."""
        return self._node(head), 2 * self._relation(relation), self._node(tail)

    def _touch(self, wanted: Mapping[int, Mapping[_Edge, bool]]) -> None:
        """Record changes by node; a mapping may be that of several nodes, and is never written."""
        for node, of_node in wanted.items():
            before = self.touched.get(node)
            if before is None:
                self.touched[node] = of_node
            elif isinstance(before, Edges) or len(before) > FEW:
                self.touched[node] = _merged(self.edges(node), of_node)
            else:
                self.touched[node] = {**before, **of_node}

    def _node(self, id: str) -> int:
        number = self.number(id)
        if number is not None:
            return number
        if not is_literal(id):
            raise UnknownIdError(f"no entity {id!r} in the graph")
        return self._new_node(id)

    def _new_node(self, id: str) -> int:
        number = len(self)
        self.ids.append(id)
        self.numbers[canonical_id(id)] = number
        return number

    def _relation(self, id: str) -> int:
        number = self.relation_numbers.get(id)
        if number is None:
            if not is_relation_id(id):
                raise UnknownIdError(f"no relation {id!r} in the graph")
            number = self.relation_numbers[id] = len(self.relations)
            self.relations.append(id)
        return number


def _initial_edges(id: str, number: int) -> Edges:
    """Edges of a node without facts: the reflexive edge, or none for a literal."""
    tails = [] if is_literal(id) else [number]
    return Edges(np.zeros(len(tails), np.int32), np.array(tails, np.int32))


def _position(edges: Edges, relation: int, tail: int) -> tuple[int, bool]:
    """Index at which (relation, tail) is or would be inserted, and whether it is present."""
    start, end = np.searchsorted(edges.relation, [relation, relation + 1])
    place = int(start + np.searchsorted(edges.tail[start:end], tail))
    return place, place < end and int(edges.tail[place]) == tail


def _merged(edges: Edges, changes: Mapping[_Edge, bool]) -> Edges:
    """The edges after changes (relation, tail) -> present, with one copy however many changes there are."""
    key = edges.relation.astype(np.int64) << 32 | edges.tail
    wanted = np.array([relation << 32 | tail for relation, tail in changes], np.int64)
    present = np.fromiter(changes.values(), np.bool_, len(changes))
    place = np.searchsorted(key, wanted)
    found = place < len(key)
    found[found] = key[place[found]] == wanted[found]
    added = np.sort(wanted[present & ~found])
    key = np.delete(key, place[found & ~present])
    key = np.insert(key, np.searchsorted(key, added), added)
    return Edges((key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32))
