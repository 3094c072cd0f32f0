"""Build the arrays of a graph from its store; `compiled` saves them. Rows are streamed and texts packed as they are
read, so memory use is that of the arrays.
"""

from __future__ import annotations

import hashlib
from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

from kglm.errors import DataError, LiteralError
from kglm.kg.literals.literal import canonical_literal, is_literal
from kglm.kg.statement_data import statement_data
from kglm.kg.statements import NO_YEAR, RANK, SOURCED, TIMES, build_columns, date_year
from kglm.kg.store import Store

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
Relations = list[tuple[str, str | None]]
NODES_AT_ONCE = 1 << 16
STATEMENT = "statement_"
"""Prefix of the arrays of `StatementColumns`."""


def canonical_id(id: str) -> str:
    """Canonical form of an id: the same date or quantity can have several ids. Malformed ids are unchanged."""
    if not is_literal(id):
        return id
    try:
        return canonical_literal(id)
    except LiteralError:
        return id


def id_hash(text: str) -> int:
    """64-bit hash, equal in every process and version."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def is_fact(relation: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Mask of forward relation indices: neither reverse nor reflexive."""
    return np.asarray((relation % 2 == 0) & (relation > 0))


def run_starts(*columns: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Mask of the first row in each run of equal rows of sorted columns."""
    starts = np.ones(len(columns[0]), np.bool_)
    starts[1:] = False
    for column in columns:
        starts[1:] |= column[1:] != column[:-1]
    return starts


class PackedTexts:
    """Concatenated UTF-8 texts with offsets."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._offsets = array("q", [0])

    def append(self, text: str) -> None:
        self._bytes += text.encode()
        self._offsets.append(len(self._bytes))

    def arrays(self, name: str) -> dict[str, npt.NDArray[Any]]:
        return {
            f"{name}_bytes": np.frombuffer(bytes(self._bytes), np.uint8),
            f"{name}_offsets": np.frombuffer(self._offsets, np.int64),
        }


def build_arrays(store: Store) -> tuple[dict[str, npt.NDArray[Any]], Relations]:
    """All arrays of `CompiledGraph`, and the relations as (id, label)."""
    arrays, node, literal = _entities(store)
    arrays |= _edges(store, node, literal)
    arrays |= _statements(store, node, literal, arrays)
    arrays |= _names(store, len(node))
    relations: Relations = [
        (id, label)
        for id, label in store.rows(
            "SELECT r.id, coalesce(nullif(r.label, ''), (SELECT n.text FROM entity e JOIN name n"
            " ON n.entity = e.number AND n.position = 0 WHERE e.id = r.id)) FROM relation r ORDER BY r.number"
        )
    ]
    return arrays, relations


def _entities(store: Store) -> tuple[dict[str, npt.NDArray[Any]], IntArray, npt.NDArray[np.bool_]]:
    """Ids and their hash index; for each entity number its node, and whether it is a literal.

    Several ids of one literal share a node: the entity with the canonical id, else the first.
    """
    texts, hashes, literal = PackedTexts(), array("Q"), array("b")
    respelt: dict[str, list[int]] = {}
    for number, [id] in enumerate(store.stream("SELECT id FROM entity ORDER BY number")):
        canonical = canonical_id(id)
        texts.append(id)
        hashes.append(id_hash(canonical))
        literal.append(is_literal(id))
        if canonical != id:
            respelt.setdefault(canonical, []).append(number)
    node = np.arange(len(hashes), dtype=np.int32)
    for canonical, numbers in respelt.items():
        rows = store.rows("SELECT number FROM entity WHERE id = ?", (canonical,))
        node[numbers] = rows[0][0] if rows else numbers[0]
    nodes = np.flatnonzero(node == np.arange(len(node))).astype(np.int32)
    keys = np.frombuffer(hashes, np.uint64)[nodes]
    order = np.argsort(keys, kind="stable")
    index: dict[str, npt.NDArray[Any]] = {"id_hash": keys[order], "id_hash_number": nodes[order]}
    return texts.arrays("id") | index, node, np.frombuffer(literal, np.bool_)


def _edges(store: Store, node: IntArray, literal: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[Any]]:
    """Distinct reflexive, forward and reverse edges, sorted by (node, relation, tail).

    Nodes are processed in ranges, so sorting needs memory for one range only.
    """
    counts = np.zeros(len(node) + 1, np.int64)
    relations, tails = array("i"), array("i")
    for start in range(0, len(node), NODES_AT_ONCE):
        end = min(start + NODES_AT_ONCE, len(node))
        source, relation, tail = _edges_of_range(store, node, literal, start, end)
        counts[start + 1 : end + 1] = np.bincount(source - start, minlength=end - start)
        relations.frombytes(relation.tobytes())
        tails.frombytes(tail.tobytes())
    return {
        "edge_offsets": np.cumsum(counts),
        "edge_relation": np.frombuffer(relations, np.int32),
        "edge_tail": np.frombuffer(tails, np.int32),
    }


def _edges_of_range(
    store: Store, node: IntArray, literal: npt.NDArray[np.bool_], start: int, end: int
) -> tuple[IntArray, IntArray, IntArray]:
    head, relation, tail = _columns(store, "head, relation, tail FROM fact WHERE head >= ? AND head < ?", start, end)
    to, back, origin = _columns(store, "tail, relation, head FROM fact WHERE tail >= ? AND tail < ?", start, end)
    for ends in (tail, origin):
        if len(ends) and ends.max() >= len(node):
            raise DataError("has facts of missing entities", place=store.path, remedy="import the graph again")
    backwards = ~literal[to]
    own = (start + np.flatnonzero(~literal[start:end])).astype(np.int32)
    source = np.concatenate([own, head, to[backwards]])
    label = np.concatenate([np.zeros_like(own), 2 * relation, 2 * back[backwards] + 1])
    target = np.concatenate([own, node[tail], origin[backwards]])
    order = np.lexsort((target, label, source))
    source, label, target = source[order], label[order], target[order]
    keep = run_starts(source, label, target)  # two ids of one date can duplicate a fact
    return source[keep], label[keep], target[keep]


def _columns(store: Store, query: str, start: int, end: int) -> tuple[IntArray, IntArray, IntArray]:
    first, second, third = array("i"), array("i"), array("i")
    for a, b, c in store.stream(f"SELECT {query}", (start, end)):
        first.append(a)
        second.append(b)
        third.append(c)
    return np.frombuffer(first, np.int32), np.frombuffer(second, np.int32), np.frombuffer(third, np.int32)


def _statements(
    store: Store, node: IntArray, literal: npt.NDArray[np.bool_], arrays: dict[str, npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Columns of the edges, forward and reverse, whose statements have a rank, times or sources."""
    columns = [array("i") for _ in range(5)]
    for head, relation, tail, property, value in statement_data(store):
        kind = {"rank": RANK, "source": SOURCED}.get(property, TIMES.get(property))
        number = value if isinstance(value, int) else date_year(value)
        if kind is not None and number is not None and abs(number) < -NO_YEAR:
            for column, item in zip(columns, (head, relation, tail, kind, number), strict=True):
                column.append(item)
    head_Y, relation_Y, tail_Y, kind_Y, value_Y = (np.frombuffer(column, np.int32) for column in columns)
    back = ~literal[tail_Y]
    source = np.concatenate([head_Y, tail_Y[back]])
    label = np.concatenate([2 * relation_Y, 2 * relation_Y[back] + 1])
    target = np.concatenate([node[tail_Y], head_Y[back]])
    place = edge_places(arrays["edge_offsets"], arrays["edge_relation"], arrays["edge_tail"], source, label, target)
    kinds, values = (np.concatenate([column, column[back]]) for column in (kind_Y, value_Y))
    found = build_columns(place, kinds.astype(np.int8), values)
    return {STATEMENT + name: column for name, column in found._asdict().items()}


def edge_places(
    offsets: LongArray, relation: IntArray, tail: IntArray, head_N: IntArray, relation_N: IntArray, tail_N: IntArray
) -> LongArray:
    """Places of edges among all, by binary search in the sorted edges of each head; all of them must exist."""
    low, high = offsets[head_N].astype(np.int64), offsets[head_N + 1].astype(np.int64)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        at = np.minimum(middle, len(tail) - 1)
        before = (relation[at] < relation_N) | ((relation[at] == relation_N) & (tail[at] < tail_N))
        low, high = np.where(open_ & before, middle + 1, low), np.where(open_ & ~before, middle, high)
    return low


def _names(store: Store, entities: int) -> dict[str, npt.NDArray[Any]]:
    texts = PackedTexts()
    counts = np.zeros(entities + 1, np.int64)
    for number, text in store.stream("SELECT entity, text FROM name ORDER BY entity, position"):
        counts[number + 1] += 1
        texts.append(text)
    return {"name_first": np.cumsum(counts), **texts.arrays("name")}
