"""Which entities a sequence of words can name: all names of a graph, cut into words.

names = NameIndex.for_graph(graph)
names["Barack", "Obama"]        # nodes

Cutting hundreds of thousands of names takes seconds, so the result is kept beside the graph in `KG.names/`. Edits never
change the names of an entity that is there, and new entities are added when the index is loaded. Dates and quantities
are not in it: there are too many ways to say them, and only a few matter for any one text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from kglm.errors import KglmError
from kglm.files import atomic_directory, read_json, remove_directory, write_json
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals import is_literal
from kglm.kg.snapshots import load_array
from kglm.progress import progress
from kglm.text.tokenizer import tokenizer

FORMAT = 2
SUFFIX = ".names"
MAX_WORDS = 12
"""Longer names are left out."""
SEPARATOR = "\x1f"


class NameIndex:
    """Nodes by the words of their names."""

    def __init__(self, entries: Iterable[tuple[str, int]] = (), count: int = 0) -> None:
        self.count = count
        """Entities that are in it, the first so many of the graph."""
        self._nodes: dict[str, list[int]] = {}
        self.longest = 0
        """Words of the longest name."""
        for key, node in entries:
            self._add(key, node)

    def _add(self, key: str, node: int) -> None:
        nodes = self._nodes.setdefault(key, [])
        if node not in nodes[-8:]:  # the names of a node come together
            nodes.append(node)
        self.longest = max(self.longest, key.count(SEPARATOR) + 1)

    def __len__(self) -> int:
        """How many different names there are."""
        return len(self._nodes)

    def __getitem__(self, words: Sequence[str]) -> Sequence[int]:
        """The nodes that have this name, in order of their numbers."""
        return self._nodes.get(SEPARATOR.join(words), ())

    def spans(self, words: Sequence[str]) -> Iterator[tuple[int, int, Sequence[int]]]:
        """(start, end, nodes) of every part of a text that is a name."""
        for start in range(len(words)):
            for end in range(start + 1, min(start + self.longest, len(words)) + 1):
                if nodes := self[words[start:end]]:
                    yield start, end, nodes

    def on(self, graph: KnowledgeGraph) -> NameIndex:
        """The same with the names of entities that were added since."""
        other = NameIndex.__new__(NameIndex)
        other._nodes, other.longest, other.count = dict(self._nodes), self.longest, len(graph)
        for key, node in _cut(graph, range(self.count, len(graph)), tokenizer().words):
            other._nodes[key] = list(other._nodes.get(key, ()))
            other._add(key, node)
        return other

    @classmethod
    def for_graph(cls, graph: KnowledgeGraph, words_of: Callable[[str], list[str]] | None = None) -> NameIndex:
        """The names of a graph as it is now; with the usual `words_of`, those of the stored graph are kept on disk."""
        if words_of is not None:
            return cls(_cut(graph, range(len(graph)), words_of), len(graph))
        words_of = tokenizer().words
        stored, count = _load(graph)
        if stored is None:
            count = len(graph.overlay.base)
            stored = list(_cut(graph, range(count), words_of))
            with suppress(KglmError, OSError):  # it is only a cache: where nothing can be written, it is made again
                _save(graph, stored, count)
        return cls([*stored, *_cut(graph, range(count, len(graph)), words_of)], len(graph))


def _cut(graph: KnowledgeGraph, nodes: range, words_of: Callable[[str], list[str]]) -> Iterator[tuple[str, int]]:
    with progress("cutting names into words", len(nodes), "entities", shown=len(nodes) > 10_000) as advance:
        for node in nodes:
            advance()
            if is_literal(graph.id(node)):
                continue
            for name in dict.fromkeys(graph.names(node)):
                words = words_of(name)
                if 0 < len(words) <= MAX_WORDS:
                    yield SEPARATOR.join(words), node


def _home(graph: KnowledgeGraph) -> Path:
    return Path(f"{graph.store.path}{SUFFIX}")


def _name(graph: KnowledgeGraph, generation: int) -> str:
    """The content decides: several processes that make the same index at once make the same directory."""
    return f"{graph.store.digest(generation)}-{generation}"


def _save(graph: KnowledgeGraph, entries: Sequence[tuple[str, int]], nodes: int) -> None:
    generation = graph.overlay.base.generation
    home = _home(graph)
    with atomic_directory(home / _name(graph, generation)) as directory:
        text = "\n".join(key for key, _ in entries).encode("utf-8", "surrogatepass")
        np.save(directory / "keys.npy", np.frombuffer(text, np.uint8), allow_pickle=False)
        np.save(directory / "nodes.npy", np.array([node for _, node in entries], np.int32), allow_pickle=False)
        write_json(directory / "meta.json", {"format": FORMAT, "nodes": nodes})
    for old in home.iterdir():
        if old.name != _name(graph, generation) and not old.name.startswith("."):
            remove_directory(old)


def _load(graph: KnowledgeGraph) -> tuple[list[tuple[str, int]] | None, int]:
    """What is on disk of this graph or of an earlier state of it, and for how many nodes; a damaged index is none."""
    home = _home(graph)
    for directory in sorted(home.iterdir(), reverse=True) if home.is_dir() else ():
        generation = directory.name.rpartition("-")[2]
        if not generation.isdigit() or int(generation) > graph.generation:
            continue
        try:
            if directory.name != _name(graph, int(generation)):
                continue
            meta = read_json(directory / "meta.json")
            keys = load_array(directory / "keys.npy", "", mapped=False).tobytes().decode("utf-8", "surrogatepass")
            nodes = load_array(directory / "nodes.npy", "", mapped=False)
            found = keys.split("\n") if len(nodes) else []
            if meta["format"] == FORMAT and len(found) == len(nodes):
                return list(zip(found, nodes.tolist(), strict=True)), int(meta["nodes"])
        except (KglmError, KeyError, TypeError, ValueError):
            pass
        remove_directory(directory)
    return None, 0
