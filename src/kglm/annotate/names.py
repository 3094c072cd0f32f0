"""Which entities a sequence of words can name: all names of a graph, cut into words.

names = NameIndex.for_graph(graph)
names["Barack", "Obama"]        # nodes

Cutting hundreds of thousands of names takes seconds, so the result is kept beside the graph in `KG.names/`. Edits never
change the names of an entity that is there, and new entities are added when the index is loaded. Dates and quantities
are not in it: there are too many ways to say them, and only a few matter for any one text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kglm.errors import DataError
from kglm.files import read_json
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals import is_literal
from kglm.kg.snapshots import load_array, newest, publish
from kglm.progress import progress
from kglm.text.tokenizer import tokenizer

FORMAT = 1
SUFFIX = ".names"
MAX_WORDS = 12
"""Longer names are left out."""
SEPARATOR = "\x1f"


class NameIndex:
    """Nodes by the words of their names."""

    def __init__(self, entries: Iterable[tuple[str, int]] = ()) -> None:
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

    @classmethod
    def for_graph(cls, graph: KnowledgeGraph, words_of: Callable[[str], list[str]] | None = None) -> NameIndex:
        """The names of a graph as it is now; those of the stored graph come from disk, or are put there."""
        words_of = words_of or tokenizer().words
        path = Path(graph.store.path)
        stored = _load(path, graph)
        if stored is None:
            count = len(graph.overlay.base)
            stored = list(_cut(graph, range(count), words_of))
            _save(path, graph, stored, count)
        else:
            count = _stored_nodes(path)
        late = _cut(graph, range(count, len(graph)), words_of)
        return cls([*stored, *late])


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


def _home(kg: Path) -> Path:
    return Path(f"{kg}{SUFFIX}")


def _save(kg: Path, graph: KnowledgeGraph, entries: Sequence[tuple[str, int]], nodes: int) -> None:
    text = "\n".join(key for key, _ in entries).encode("utf-8", "surrogatepass")
    arrays: dict[str, npt.NDArray[Any]] = {
        "keys": np.frombuffer(text, np.uint8),
        "nodes": np.array([node for _, node in entries], np.int32),
    }
    generation = graph.overlay.base.generation
    meta = {"format": FORMAT, "generation": generation, "digest": graph.store.digest(generation), "nodes": nodes}
    publish(_home(kg), arrays, meta)


def _stored_nodes(kg: Path) -> int:
    directory = newest(_home(kg))
    assert directory is not None
    return int(read_json(directory / "meta.json")["nodes"])


def _load(kg: Path, graph: KnowledgeGraph) -> list[tuple[str, int]] | None:
    """What is on disk, if it is of this graph or of an earlier state of it; a damaged index is made again."""
    directory = newest(_home(kg))
    if directory is None:
        return None
    try:
        meta = read_json(directory / "meta.json")
        generation = int(meta.get("generation", -1))
        ours = 0 <= generation <= graph.generation and graph.store.digest(generation) == meta.get("digest")
        if meta.get("format") != FORMAT or not ours:
            return None
        keys = load_array(directory / "keys.npy", "", mapped=False).tobytes().decode("utf-8", "surrogatepass")
        nodes = load_array(directory / "nodes.npy", "", mapped=False)
    except DataError:
        return None
    found = keys.split("\n") if len(nodes) else []
    return list(zip(found, nodes.tolist(), strict=True)) if len(found) == len(nodes) else None
