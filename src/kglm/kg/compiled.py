"""The graph as memory-mapped arrays: the edges of a node are one slice.

Nodes are the store's entity numbers. A relation index is twice the store's relation number, plus one for the reverse
relation, so `r ^ 1` is the reverse of r; index 0 is reflexive. The edges of a node are a sorted slice of
(relation, tail): its reflexive edge, its facts, and the reversed facts of which it is the tail. Dates and quantities
have no edges, because they are never parents. Two ids of one date are one node.

The arrays are a cache beside the store, `KG.arrays/DIGEST-GENERATION/`; each directory is complete or absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kglm.errors import DataError, KglmError
from kglm.files import atomic_directory, read_json, remove_directory, write_json
from kglm.kg.arrays import IntArray, LongArray, build_arrays, canonical_id, id_hash
from kglm.kg.store import Store

FORMAT = 1
ATTEMPTS = 5
_ARRAYS = (
    "edge_offsets",
    "edge_relation",
    "edge_tail",
    "id_offsets",
    "id_bytes",
    "id_hash",
    "id_hash_number",
    "name_first",
    "name_offsets",
    "name_bytes",
)


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

    def __len__(self) -> int:
        return len(self.edge_offsets) - 1

    def id(self, number: int) -> str:
        return _text(self.id_bytes, self.id_offsets, number)

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


def open_compiled(store: Store, *, journal_limit: int) -> CompiledGraph:
    """Open the newest arrays of this store that lack at most `journal_limit` changes; build them if there are none."""
    generation = store.generation
    for directory, found in _existing(arrays_directory(store)):
        if (
            found <= generation
            and directory.name == _name(store, found)
            and store.count_changes(found) <= journal_limit
            and (arrays := _load(directory)) is not None
        ):
            return arrays
    return compile_store(store)


def compile_store(store: Store) -> CompiledGraph:
    """Build the arrays of the current store.

    Several processes may do so at once: all use the arrays of the first to finish. If those are removed or damaged
    before they are mapped, they are rebuilt.
    """
    for _ in range(ATTEMPTS):
        if (arrays := _load(_write(store))) is not None:
            return arrays
    raise KglmError(
        f"the compiled arrays were unreadable {ATTEMPTS} times", place=arrays_directory(store), remedy="check the disk"
    )


def _write(store: Store) -> Path:
    with store.snapshot():
        generation = store.generation
        name = _name(store, generation)
        arrays, relations = build_arrays(store)
    root = arrays_directory(store)
    target = root / name
    with atomic_directory(target) as directory:
        for name, array in arrays.items():
            np.save(directory / f"{name}.npy", array, allow_pickle=False)
        write_json(
            directory / "meta.json",
            {"format": FORMAT, "generation": generation, "relations": relations},
        )
    for old, _ in _existing(root):
        if old != target:
            remove_directory(old)
    return target


def arrays_directory(store: Store) -> Path:
    return store.path.with_name(store.path.name + ".arrays")


def _name(store: Store, generation: int) -> str:
    """Directory name derived from the content, so that a replaced or differently edited store gets other arrays."""
    return f"{store.digest(generation)}-{generation}"


def _existing(root: Path) -> Iterator[tuple[Path, int]]:
    """Complete array directories and their generations, newest first."""
    found = []
    for directory in root.iterdir() if root.is_dir() else ():
        generation = directory.name.rpartition("-")[2]
        if generation.isdigit():
            found.append((directory, int(generation)))
    yield from sorted(found, key=lambda item: -item[1])


def _load(directory: Path) -> CompiledGraph | None:
    """Map the arrays. If they are incomplete, remove the directory, which is only a cache, and return None."""
    try:
        meta: dict[str, Any] = read_json(directory / "meta.json")
        # asarray gives a plain view of the mapped file; slices of the memmap class are several times slower
        arrays = {
            name: np.asarray(np.load(directory / f"{name}.npy", mmap_mode="r", allow_pickle=False)) for name in _ARRAYS
        }
        if meta["format"] == FORMAT:
            relations = tuple((id, label) for id, label in meta["relations"])
            return CompiledGraph(meta["generation"], relations, **arrays)
    except (DataError, OSError, ValueError, KeyError, TypeError):
        pass
    remove_directory(directory)
    return None


def _text(packed: npt.NDArray[np.uint8], offsets: LongArray, k: int) -> str:
    return packed[offsets[k] : offsets[k + 1]].tobytes().decode()
