"""Which entities a sequence of words can name: all names of a graph, cut into words.

names = NameIndex.for_graph(graph)
names["Barack", "Obama"]        # nodes

A name is kept as one number of 64 bits, a sum over its words w_0 … w_{n-1},

    H(w) = Σ_j h(w_j) B^j  mod 2^64,    h a hash of a word,

so that all parts of a text are looked up at once: H of the first n + 1 words from a place follows from H of the first
n. Among a million names and a million parts, two that are not the same have the same number with probability 10^-7.

Cutting hundreds of thousands of names takes seconds, so the result is kept beside the graph in `KG.names/`, sorted
arrays that are mapped and not read: many processes share one copy. Edits never change the names of an entity that is
there; those of new entities are added when the index is loaded. Dates and quantities are not in it: there are too many
ways to say them, and only a few matter for any one text.

Legend: K names, X pairs of a name and a node, T words of a text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.errors import KglmError
from kglm.files import atomic_directory, read_json, remove_directory, write_json
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.kg.snapshots import load_array
from kglm.progress import progress
from kglm.text.tokenizer import tokenizer

Hashes = npt.NDArray[np.uint64]
FORMAT = 4
SUFFIX = ".names"
MAX_WORDS = 12
"""Longer names are left out."""
BASE = 0x9E3779B97F4A7C15
"""B: any odd number with its bits well mixed."""
MASK = (1 << 64) - 1


@lru_cache(1 << 18)
def hash_word(word: str) -> int:
    """h(w), the same in every process."""
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def hash_name(words: Sequence[str]) -> int:
    """H(w)."""
    return deque(_beginnings(words), 1).pop() if words else 0


def hash_label(graph: KnowledgeGraph, node: int) -> int | None:
    """H of the first name of an entity, if it has one."""
    label = graph.names(node)[:1]
    return hash_name(tokenizer().words(label[0])) if label else None


def _beginnings(words: Sequence[str]) -> Iterator[int]:
    """H of the first word of a name, of the first two, and so on to the name itself."""
    total, power = 0, 1
    for word in words:
        total, power = (total + hash_word(word) * power) & MASK, (power * BASE) & MASK
        yield total


def _among(name_N: Hashes, sorted_K: Hashes) -> npt.NDArray[np.bool_]:
    if not len(sorted_K):
        return np.zeros(len(name_N), np.bool_)
    place_N = np.minimum(np.searchsorted(sorted_K, name_N), len(sorted_K) - 1)
    return np.asarray(sorted_K[place_N] == name_N)


class _Arrays(NamedTuple):
    """Names in order of H; nodes `node_X[first_K[k] : first_K[k + 1]]` have the k-th."""

    hash_K: Hashes
    first_K: npt.NDArray[np.int64]
    node_X: npt.NDArray[np.int32]
    begin_B: Hashes
    """H of what longer names begin with, in order: where a text has none of it, nothing longer need be looked for."""


class NameIndex:
    """Nodes by the words of their names."""

    def __init__(self, arrays: _Arrays, longest: int, count: int) -> None:
        self.count = count
        """Entities that are in it, the first so many of the graph."""
        self.longest = longest
        """Words of the longest name."""
        self._arrays = arrays
        self._late: dict[int, list[int]] = {}
        """Nodes that came after the arrays, by H of their names."""
        self._late_K = self._late_begin_B = np.empty(0, np.uint64)

    def __len__(self) -> int:
        """How many different names there are."""
        return len(self._arrays.hash_K) + sum(self._place(name) is None for name in self._late)

    def _place(self, name: int) -> int | None:
        hash_K = self._arrays.hash_K
        place = int(np.searchsorted(hash_K, np.uint64(name)))
        return place if place < len(hash_K) and int(hash_K[place]) == name else None

    def __getitem__(self, words: Sequence[str]) -> Sequence[int]:
        """The nodes that have this name, in order of their numbers."""
        return self.nodes(hash_name(words))

    def nodes(self, name: int) -> list[int]:
        """The nodes of a name, given as H."""
        place, arrays = self._place(name), self._arrays
        stored = [] if place is None else arrays.node_X[arrays.first_K[place] : arrays.first_K[place + 1]].tolist()
        return list(dict.fromkeys([*stored, *self._late.get(name, ())]))

    def spans(self, words: Sequence[str]) -> Iterator[tuple[int, int, Sequence[int]]]:
        """(start, end, nodes) of every part of a text that is a name, in order."""
        for start, end, name in self.find(np.array([hash_word(word) for word in words], np.uint64)):
            yield start, end, self.nodes(name)

    def find(self, word_T: Hashes, starts: Sequence[int] | None = None) -> list[tuple[int, int, int]]:
        """(start, end, H) of every part that is a name, in order, given h of the words; of those that start so."""
        found: list[tuple[int, int, int]] = []
        start_N = np.arange(len(word_T)) if starts is None else np.asarray(starts, np.int64)
        name_N, power = np.zeros(len(start_N), np.uint64), 1
        for length in range(1, self.longest + 1):
            fits = start_N + length <= len(word_T)
            start_N, name_N = start_N[fits], name_N[fits]
            if not len(start_N):
                break
            name_N = name_N + word_T[start_N + length - 1] * np.uint64(power)
            power = (power * BASE) & MASK
            known_N = _among(name_N, self._arrays.hash_K) | _among(name_N, self._late_K)
            here = start_N[known_N]
            found += zip(here.tolist(), (here + length).tolist(), name_N[known_N].tolist(), strict=True)
            more_N = _among(name_N, self._arrays.begin_B) | _among(name_N, self._late_begin_B)
            start_N, name_N = start_N[more_N], name_N[more_N]
        return sorted(found)

    def on(self, graph: KnowledgeGraph) -> NameIndex:
        """The same with the names of entities that were added since."""
        return self.including(_cut(graph, range(self.count, len(graph)), tokenizer().words), len(graph))

    def including(self, entries: Iterable[tuple[Sequence[str], int]], count: int | None = None) -> NameIndex:
        """The same with more names: their words, and whose they are."""
        other = NameIndex(self._arrays, self.longest, self.count if count is None else count)
        other._late = {name: list(nodes) for name, nodes in self._late.items()}
        begins = set(self._late_begin_B.tolist())
        for words, node in entries:
            nodes = other._late.setdefault(hash_name(words), [])
            if node not in nodes:
                nodes.append(node)
            other.longest = max(other.longest, len(words))
            begins.update(_beginnings(words[:-1]))
        other._late_K = np.array(sorted(other._late), np.uint64)
        other._late_begin_B = np.array(sorted(begins), np.uint64)
        return other

    @classmethod
    def for_graph(cls, graph: KnowledgeGraph, words_of: Callable[[str], list[str]] | None = None) -> NameIndex:
        """The names of a graph as it is now; with the usual `words_of`, those of the stored graph are kept on disk."""
        if words_of is not None:
            return cls(*_sorted(_cut(graph, range(len(graph)), words_of)), len(graph))
        stored = _load(graph)
        if stored is None:
            count = len(graph.overlay.base)
            arrays, longest = _sorted(_cut(graph, range(count), tokenizer().words))
            with suppress(KglmError, OSError):  # it is only a cache: where nothing can be written, it is made again
                _save(graph, arrays, longest, count)
            stored = _load(graph) or cls(arrays, longest, count)
        return stored.on(graph) if stored.count < len(graph) else stored


def _sorted(entries: Iterable[tuple[tuple[str, ...], int]]) -> tuple[_Arrays, int]:
    """Arrays of names, and the number of words of the longest."""
    longest, names, nodes, begins = 0, [], [], set[int]()
    for words, node in entries:
        longest = max(longest, len(words))
        names.append(hash_name(words))
        nodes.append(node)
        begins.update(_beginnings(words[:-1]))
    name_X, node_X = np.array(names, np.uint64), np.array(nodes, np.int32)
    order = np.lexsort((node_X, name_X))
    name_X, node_X = name_X[order], node_X[order]
    new_X = np.ones(len(order), np.bool_)
    new_X[1:] = (name_X[1:] != name_X[:-1]) | (node_X[1:] != node_X[:-1])  # a node may have a name twice
    name_X, node_X = name_X[new_X], node_X[new_X]
    hash_K, first_K = np.unique(name_X, return_index=True)
    begin_B = np.array(sorted(begins), np.uint64)
    return _Arrays(hash_K, np.append(first_K, len(name_X)).astype(np.int64), node_X, begin_B), longest


def _cut(
    graph: KnowledgeGraph, nodes: range, words_of: Callable[[str], list[str]]
) -> Iterator[tuple[tuple[str, ...], int]]:
    with progress("cutting names into words", len(nodes), "entities", shown=len(nodes) > 10_000) as advance:
        for node in nodes:
            advance()
            if is_literal(graph.id(node)):
                continue
            for name in dict.fromkeys(graph.names(node)):
                words = words_of(name)
                if 0 < len(words) <= MAX_WORDS:
                    yield tuple(words), node


def _home(graph: KnowledgeGraph) -> Path:
    return Path(f"{graph.store.path}{SUFFIX}")


def _name(graph: KnowledgeGraph, generation: int) -> str:
    """The content decides: several processes that make the same index at once make the same directory."""
    return f"{graph.store.digest(generation)}-{generation}"


def _save(graph: KnowledgeGraph, arrays: _Arrays, longest: int, count: int) -> None:
    generation = graph.overlay.base.generation
    home = _home(graph)
    with atomic_directory(home / _name(graph, generation)) as directory:
        for name, array in arrays._asdict().items():
            np.save(directory / f"{name}.npy", array, allow_pickle=False)
        write_json(directory / "meta.json", {"format": FORMAT, "nodes": count, "longest": longest})
    for old in home.iterdir():
        if old.name != _name(graph, generation) and not old.name.startswith("."):
            remove_directory(old)


def _load(graph: KnowledgeGraph) -> NameIndex | None:
    """What is on disk of this graph or of an earlier state of it; a damaged index is none."""
    home = _home(graph)
    for directory in sorted(home.iterdir(), reverse=True) if home.is_dir() else ():
        generation = directory.name.rpartition("-")[2]
        if not generation.isdigit() or int(generation) > graph.generation:
            continue
        try:
            if directory.name != _name(graph, int(generation)):
                continue
            meta = read_json(directory / "meta.json")
            if meta["format"] == FORMAT:
                parts = (load_array(directory / f"{name}.npy", "", mapped=True) for name in _Arrays._fields)
                arrays = _Arrays(*parts)
                if _fits(arrays):
                    return NameIndex(arrays, int(meta["longest"]), int(meta["nodes"]))
        except (KglmError, KeyError, TypeError, ValueError):
            pass
        remove_directory(directory)
    return None


def _fits(arrays: _Arrays) -> bool:
    hash_K, first_K, node_X, _ = arrays
    kinds = [array.dtype for array in arrays] == [np.uint64, np.int64, np.int32, np.uint64]
    return kinds and len(first_K) == len(hash_K) + 1 and int(first_K[-1]) == len(node_X)
