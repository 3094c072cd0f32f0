"""Index from names, as sequences of words, to the entities that have them.

names = NameIndex.for_graph(graph)
names["Barack", "Obama"]        # nodes

A name is stored as one 64-bit hash, a sum over its words w_0 … w_{n-1},

    H(w) = Σ_j h(w_j) B^j  mod 2^64,    h a hash of a word,

so that all spans of a text are looked up at once: H of a span of n + 1 words follows from H of its first n words. With
a million names and a million spans, the probability of any collision is about 10^-7.

Tokenizing hundreds of thousands of names takes seconds, so the index is cached beside the graph in `KG.names/`, as
sorted memory-mapped arrays that all processes share. Edits never change the names of a stored entity; names of new
entities are added when the index is loaded. Dates and quantities are not indexed: they have too many written forms, and
only a few matter for one text.

Legend: K names, X pairs of a name and a node, T words of a text.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from kglm.errors import DamagedError, KglmError, VersionError
from kglm.files.artefact import Artefact, Writer
from kglm.files.records import Count
from kglm.kg.caches import cached_versions, discard_damaged, require_manifest, save_cache
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.progress import progress
from kglm.text.tokenizer import tokenizer

Hashes = npt.NDArray[np.uint64]
FORMAT = 4
SUFFIX = ".names"
MAX_WORDS = 12
"""Longer names are not indexed."""
BASE = 0x9E3779B97F4A7C15
"""B: an odd constant with well-mixed bits."""
MASK = (1 << 64) - 1
_DTYPES = (np.uint64, np.int64, np.int32, np.uint64)
"""Types of the fields of `_Arrays`."""


@lru_cache(1 << 18)
def hash_word(word: str) -> int:
    """Hash h(w) of a word, the same in every process."""
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def hash_name(words: Sequence[str]) -> int:
    """Hash H(w) of a name."""
    return deque(_prefix_hashes(words), 1).pop() if words else 0


def hash_label(graph: KnowledgeGraph, node: int) -> int | None:
    """Hash H of an entity's label, or None if it has no name."""
    label = graph.names(node)[:1]
    return hash_name(tokenizer().words(label[0])) if label else None


def _prefix_hashes(words: Sequence[str]) -> Iterator[int]:
    """Hash H of each prefix of a name, up to the whole name."""
    total, power = 0, 1
    for word in words:
        total, power = (total + hash_word(word) * power) & MASK, (power * BASE) & MASK
        yield total


def _is_in(name_N: Hashes, sorted_K: Hashes) -> npt.NDArray[np.bool_]:
    if not len(sorted_K):
        return np.zeros(len(name_N), np.bool_)
    place_N = np.minimum(np.searchsorted(sorted_K, name_N), len(sorted_K) - 1)
    return np.asarray(sorted_K[place_N] == name_N)


class _Arrays(NamedTuple):
    """Names sorted by hash H; nodes `node_X[first_K[k] : first_K[k + 1]]` have the k-th name."""

    hash_K: Hashes
    first_K: npt.NDArray[np.int64]
    node_X: npt.NDArray[np.int32]
    begin_B: Hashes
    """Sorted hashes of proper prefixes of names: the search of a span stops where its hash is not among them."""


class Beginning(NamedTuple):
    """Words from position `start` of a text on, with which some name begins: their hash H and the next power of B."""

    start: int
    name: int
    power: int


class NameIndex:
    """Looks up nodes by the words of their names."""

    def __init__(self, arrays: _Arrays, longest: int, count: int) -> None:
        self.count = count
        """Number of nodes indexed: nodes 0 to `count` - 1 of the graph."""
        self.longest = longest
        """Number of words of the longest name."""
        self._arrays = arrays
        self._added: dict[int, list[int]] = {}
        """Nodes of names that are not in the arrays, by hash H."""
        self._added_K = self._added_begin_B = np.empty(0, np.uint64)
        self._without: frozenset[int] = frozenset()
        """Nodes that count as nameless."""

    def __len__(self) -> int:
        """Number of distinct names."""
        return len(self._arrays.hash_K) + sum(self._position(name) is None for name in self._added)

    def _position(self, name: int) -> int | None:
        hash_K = self._arrays.hash_K
        position = int(np.searchsorted(hash_K, np.uint64(name)))
        return position if position < len(hash_K) and int(hash_K[position]) == name else None

    def __getitem__(self, words: Sequence[str]) -> Sequence[int]:
        """Nodes that have this name, sorted."""
        return self.nodes(hash_name(words))

    def nodes(self, name: int) -> list[int]:
        """Nodes of the name with hash H = `name`."""
        k, arrays = self._position(name), self._arrays
        stored = [] if k is None else arrays.node_X[arrays.first_K[k] : arrays.first_K[k + 1]].tolist()
        found = dict.fromkeys([*stored, *self._added.get(name, ())])
        return [node for node in found if node not in self._without] if self._without else list(found)

    def spans(self, words: Sequence[str]) -> Iterator[tuple[int, int, Sequence[int]]]:
        """(start, end, nodes) of every span of a text that is a name, sorted."""
        for start, end, name in self.find(np.array([hash_word(word) for word in words], np.uint64)):
            if nodes := self.nodes(name):
                yield start, end, nodes

    def find(self, word_T: Hashes, starts: Sequence[int] | None = None) -> list[tuple[int, int, int]]:
        """(start, end, H) of every span that is a name, sorted, given h of the words; `starts` restricts where."""
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
            is_name_N = _is_in(name_N, self._arrays.hash_K) | _is_in(name_N, self._added_K)
            here = start_N[is_name_N]
            found += zip(here.tolist(), (here + length).tolist(), name_N[is_name_N].tolist(), strict=True)
            may_grow_N = _is_in(name_N, self._arrays.begin_B) | _is_in(name_N, self._added_begin_B)
            start_N, name_N = start_N[may_grow_N], name_N[may_grow_N]
        return sorted(found)

    def grown(
        self, beginnings: Iterable[Beginning], position: int, word: str, *, begins: bool = True
    ) -> tuple[list[tuple[int, int]], list[Beginning]]:
        """Extend beginnings by the word at a position: (start, H) of the names that it ends, and the longer beginnings.

        `begins`: names may begin with this word. Called for each word of a text, this finds the spans of `find`.
        """
        hashed, ended, longer = hash_word(word), [], []
        for start, name, power in (*beginnings, Beginning(position, 0, 1)) if begins else beginnings:
            name, power = (name + hashed * power) & MASK, (power * BASE) & MASK
            if self._position(name) is not None or name in self._added:
                ended.append((start, name))
            if self._begins(name):
                longer.append(Beginning(start, name, power))
        return ended, longer

    def _begins(self, name: int) -> bool:
        """True if some name begins with the words of this hash and goes on."""
        for sorted_B in (self._arrays.begin_B, self._added_begin_B):
            place = int(np.searchsorted(sorted_B, np.uint64(name))) if len(sorted_B) else 0
            if place < len(sorted_B) and int(sorted_B[place]) == name:
                return True
        return False

    def on(self, graph: KnowledgeGraph) -> NameIndex:
        """A copy that also has the names of entities added to the graph since."""
        return self.including(_tokenized_names(graph, range(self.count, len(graph)), tokenizer().words), len(graph))

    def without(self, nodes: Iterable[int]) -> NameIndex:
        """A copy in which some nodes have no names."""
        other = self.including(())
        other._without = self._without | frozenset(nodes)
        return other

    def including(self, entries: Iterable[tuple[Sequence[str], int]], count: int | None = None) -> NameIndex:
        """A copy with more names, given as (words, node)."""
        other = NameIndex(self._arrays, self.longest, self.count if count is None else count)
        other._added = {name: list(nodes) for name, nodes in self._added.items()}
        other._without = self._without
        begins = set(self._added_begin_B.tolist())
        for words, node in entries:
            nodes = other._added.setdefault(hash_name(words), [])
            if node not in nodes:
                nodes.append(node)
            other.longest = max(other.longest, len(words))
            begins.update(_prefix_hashes(words[:-1]))
        other._added_K = np.array(sorted(other._added), np.uint64)
        other._added_begin_B = np.array(sorted(begins), np.uint64)
        return other

    @classmethod
    def for_graph(cls, graph: KnowledgeGraph, words_of: Callable[[str], list[str]] | None = None) -> NameIndex:
        """Index the graph in its present state; with the default `words_of`, cache the stored graph's names on disk."""
        if words_of is not None:
            return cls(*_sorted(_tokenized_names(graph, range(len(graph)), words_of)), len(graph))
        stored = _load(graph)
        if stored is None:
            count = len(graph.overlay.base)
            arrays, longest = _sorted(_tokenized_names(graph, range(count), tokenizer().words))
            try:
                _save(graph, arrays, longest, count)
            except KglmError as error:  # the cache is optional: a read-only folder is no error
                print(f"note: the index of names is not saved: {error}", file=sys.stderr)
            stored = _load(graph) or cls(arrays, longest, count)
        return stored.on(graph) if stored.count < len(graph) else stored


def _sorted(entries: Iterable[tuple[tuple[str, ...], int]]) -> tuple[_Arrays, int]:
    """Sort (words, node) pairs into arrays; also return the length of the longest name in words."""
    longest, names, nodes, begins = 0, [], [], set[int]()
    for words, node in entries:
        longest = max(longest, len(words))
        names.append(hash_name(words))
        nodes.append(node)
        begins.update(_prefix_hashes(words[:-1]))
    name_X, node_X = np.array(names, np.uint64), np.array(nodes, np.int32)
    order = np.lexsort((node_X, name_X))
    name_X, node_X = name_X[order], node_X[order]
    new_X = np.ones(len(order), np.bool_)
    new_X[1:] = (name_X[1:] != name_X[:-1]) | (node_X[1:] != node_X[:-1])  # a node may list a name twice
    name_X, node_X = name_X[new_X], node_X[new_X]
    hash_K, first_K = np.unique(name_X, return_index=True)
    begin_B = np.array(sorted(begins), np.uint64)
    return _Arrays(hash_K, np.append(first_K, len(name_X)).astype(np.int64), node_X, begin_B), longest


def _tokenized_names(
    graph: KnowledgeGraph, nodes: range, words_of: Callable[[str], list[str]]
) -> Iterator[tuple[tuple[str, ...], int]]:
    with progress("tokenizing names", len(nodes), "entities", shown=len(nodes) > 10_000) as advance:
        for node in nodes:
            advance()
            if is_literal(graph.id(node)):
                continue
            for name in dict.fromkeys(graph.names(node)):
                words = words_of(name)
                if 0 < len(words) <= MAX_WORDS:
                    yield tuple(words), node


class _Meta(msgspec.Struct, forbid_unknown_fields=True):
    """Content of `meta.json`."""

    format: int
    nodes: Count
    longest: Count


def _save(graph: KnowledgeGraph, arrays: _Arrays, longest: int, count: int) -> None:
    def write(writer: Writer) -> None:
        for name, array in arrays._asdict().items():
            writer.array(name, array)
        writer.json("meta.json", _Meta(FORMAT, count, longest))

    save_cache(graph.store, SUFFIX, graph.overlay.base.generation, write)


def _load(graph: KnowledgeGraph) -> NameIndex | None:
    """Load the cached index of this graph or of an earlier state of it; remove a damaged one."""
    for directory, generation in cached_versions(graph.store, SUFFIX):
        if generation > graph.generation:
            continue
        try:
            artefact = Artefact.open(directory)
            require_manifest(artefact)
            meta = artefact.record("meta.json", _Meta)
            if meta.format != FORMAT:
                raise VersionError(f"has format {meta.format}", place=directory)
            arrays = _Arrays(
                *(artefact.array(name, dtype, 1) for name, dtype in zip(_Arrays._fields, _DTYPES, strict=True))
            )
            if len(arrays.first_K) != len(arrays.hash_K) + 1 or int(arrays.first_K[-1]) != len(arrays.node_X):
                raise DamagedError("the lengths of its arrays do not fit together", place=directory)
            if meta.nodes > len(graph):
                raise DamagedError(f"lists {meta.nodes} nodes, the graph has {len(graph)}", place=directory)
            artefact.check()
            return NameIndex(arrays, meta.longest, meta.nodes)
        except KglmError as error:
            if directory.exists():  # else another process has replaced it
                discard_damaged(directory, error)
    return None
