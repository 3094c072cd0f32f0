"""The graph as memory-mapped arrays: the edges of a node are one slice.

Nodes are the store's entity numbers. A relation index is twice the store's relation number, plus one for the reverse
relation, so `r ^ 1` is the reverse of r; index 0 is reflexive. The edges of a node are a sorted slice of
(relation, tail): its reflexive edge, its facts, and the reversed facts of which it is the tail. Dates and quantities
have no edges, because they are never parents. Two ids of one date are one node.

The arrays are a cache beside the store, `KG.arrays/DIGEST-GENERATION/`; each directory is complete or absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from kglm.errors import DamagedError, KglmError, VersionError
from kglm.files.artefact import Artefact, Writer
from kglm.files.records import Count
from kglm.kg.arrays import STATEMENT, IntArray, LongArray, build_arrays, canonical_id, id_hash
from kglm.kg.caches import cache_folder, cached_versions, discard_damaged, require_manifest, save_cache
from kglm.kg.statement_data import has_statement_data
from kglm.kg.statements import COLUMN_TYPES, StatementColumns
from kglm.kg.store import Store

FORMAT = 2
READABLE = (1, 2)
"""Arrays of format 1 have no statements: they are used if the graph has no data about its statements."""
ATTEMPTS = 5
REMEDY = "rebuild it with: kglm doctor KG --repair"
SUFFIX = ".arrays"
_ARRAYS: dict[str, npt.DTypeLike] = {
    "edge_offsets": np.int64,
    "edge_relation": np.int32,
    "edge_tail": np.int32,
    "id_offsets": np.int64,
    "id_bytes": np.uint8,
    "id_hash": np.uint64,
    "id_hash_number": np.int32,
    "name_first": np.int64,
    "name_offsets": np.int64,
    "name_bytes": np.uint8,
}


class _Meta(msgspec.Struct, forbid_unknown_fields=True):
    """Content of `meta.json`."""

    format: int
    generation: Count
    relations: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, eq=False)
class CompiledGraph:
    """Arrays of a graph at one generation.

    edge_offsets[n] : edge_offsets[n + 1] are the edges of node n. name_first[n] : name_first[n + 1] are its names,
    the label first. Texts are concatenated UTF-8 with offsets.
    """

    generation: int
    relations: tuple[tuple[str, str | None], ...]
    """Id and label of each stored relation, by number."""
    edge_offsets: LongArray
    edge_relation: IntArray
    edge_tail: IntArray
    id_offsets: LongArray
    id_bytes: npt.NDArray[np.uint8]
    id_hash: npt.NDArray[np.uint64]
    id_hash_number: IntArray
    name_first: LongArray
    name_offsets: LongArray
    name_bytes: npt.NDArray[np.uint8]
    statements: StatementColumns
    """Ranks and times, by the place of an edge in `edge_tail`."""
    artefact: Artefact
    """The directory they are mapped from."""

    def __len__(self) -> int:
        return len(self.edge_offsets) - 1

    def array(self, name: str) -> npt.NDArray[Any]:
        """An array by the name of its file."""
        column = name.removeprefix(STATEMENT)
        array: npt.NDArray[Any] = getattr(self.statements if column != name else self, column)
        return array

    def is_consistent(self) -> bool:
        """True if the lengths of the arrays fit together."""
        nodes = len(self)
        segments = [
            (self.edge_offsets, nodes, len(self.edge_tail)),
            (self.id_offsets, nodes, len(self.id_bytes)),
            (self.name_first, nodes, len(self.name_offsets) - 1),
            (self.name_offsets, len(self.name_offsets) - 1, len(self.name_bytes)),
        ]
        return (
            all(len(offsets) == n + 1 and offsets[0] == 0 and offsets[-1] == end for offsets, n, end in segments)
            and len(self.edge_relation) == len(self.edge_tail)
            and len(self.id_hash) == len(self.id_hash_number)
            and len({len(column) for column in self.statements}) == 1
        )

    def id(self, number: int) -> str:
        return _text(self.id_bytes, self.id_offsets, number)

    def ids(self, numbers: npt.NDArray[np.integer]) -> list[str]:
        """Ids of many nodes."""
        text = self.id_bytes.data
        ends = zip(self.id_offsets[numbers].tolist(), self.id_offsets[numbers + 1].tolist(), strict=True)
        return [str(text[start:end], "utf-8") for start, end in ends]

    def names(self, number: int) -> list[str]:
        return [
            _text(self.name_bytes, self.name_offsets, k)
            for k in range(self.name_first[number], self.name_first[number + 1])
        ]

    def number(self, id: str) -> int | None:
        """Node number of a canonical id, or None."""
        key = np.uint64(id_hash(id))
        place = int(self.id_hash.searchsorted(key))
        while place < len(self.id_hash) and self.id_hash[place] == key:
            number = int(self.id_hash_number[place])
            if self.id(number) == id or canonical_id(self.id(number)) == id:
                return number
            place += 1
        return None

    def numbers(self, ids: Sequence[str]) -> list[int | None]:
        """Node numbers of many canonical ids."""
        if not len(self.id_hash):
            return [None] * len(ids)
        keys = np.fromiter(map(id_hash, ids), np.uint64, len(ids))
        found = self.id_hash_number[np.minimum(self.id_hash.searchsorted(keys), len(self.id_hash) - 1)]
        each = zip(ids, found.tolist(), self.ids(found), strict=True)
        return [number if stored == id else self.number(id) for id, number, stored in each]

    @cached_property
    def spellings(self) -> dict[str, list[str]]:
        """Ids of each date or quantity that has several, by canonical id, in the order of their entities."""
        is_node = np.zeros(len(self), np.bool_)
        is_node[self.id_hash_number] = True
        others = np.flatnonzero(~is_node)  # each shares the node of another id
        numbers: dict[str, list[int]] = {}
        for number, id in zip(others.tolist(), self.ids(others), strict=True):
            numbers.setdefault(canonical_id(id), []).append(number)
        for same, node in zip(numbers.values(), self.numbers(list(numbers)), strict=True):
            same += [] if node is None else [node]
        return {id: [self.id(number) for number in sorted(same)] for id, same in numbers.items()}


def open_compiled(store: Store, *, journal_limit: int) -> CompiledGraph:
    """Open the newest arrays of this store that lack at most `journal_limit` changes; build them if there are none."""
    for directory, generation in cached_versions(store, SUFFIX):
        if store.count_changes(generation) <= journal_limit and (arrays := _load(directory, store)) is not None:
            return arrays
    return compile_store(store)


def compile_store(store: Store) -> CompiledGraph:
    """Build the arrays of the current store.

    Several processes may do so at once: all use the arrays of the first to finish. If those are removed or damaged
    before they are mapped, they are rebuilt.
    """
    for _ in range(ATTEMPTS):
        if (arrays := _load(_write(store), store)) is not None:
            return arrays
    raise KglmError(
        f"the compiled arrays were unreadable {ATTEMPTS} times",
        place=cache_folder(store, SUFFIX),
        remedy="check the disk",
    )


def _write(store: Store) -> Path:
    with store.snapshot():
        generation = store.generation
        arrays, relations = build_arrays(store)

    def write(writer: Writer) -> None:
        for name, array in arrays.items():
            writer.array(name, array)
        writer.json("meta.json", _Meta(FORMAT, generation, tuple(relations)))

    return save_cache(store, SUFFIX, generation, write)


def _load(directory: Path, store: Store) -> CompiledGraph | None:
    """Map the arrays. If they are damaged, remove the directory, which is only a cache, and return None."""
    try:
        artefact = Artefact.open(directory, REMEDY)
        require_manifest(artefact)
        meta = artefact.record("meta.json", _Meta)
        if meta.format not in READABLE or (meta.format == 1 and has_statement_data(store)):
            raise VersionError(f"has format {meta.format}", place=directory)
        arrays = {name: artefact.array(name, dtype, 1) for name, dtype in _ARRAYS.items()}
        statements = StatementColumns.none()
        if meta.format > 1:
            columns = zip(StatementColumns._fields, COLUMN_TYPES, strict=True)
            statements = StatementColumns(*(artefact.array(STATEMENT + name, dtype, 1) for name, dtype in columns))
        compiled = CompiledGraph(meta.generation, meta.relations, **arrays, statements=statements, artefact=artefact)
        if not compiled.is_consistent():
            raise DamagedError("the lengths of its arrays do not fit together", place=directory)
        return compiled
    except KglmError as error:
        if directory.exists():  # else another process has replaced it
            discard_damaged(directory, error)
        return None


def _text(packed: npt.NDArray[np.uint8], offsets: LongArray, k: int) -> str:
    return packed[offsets[k] : offsets[k + 1]].tobytes().decode()
