"""The words of entities' names, which the copy mechanism copies from.

An entity has up to `max_aliases` aliases of up to `max_alias_tokens` words; each of these places is a slot. Slots are
in the order of the graph's aliases, so they are the same in every process. An entity is looked up when it is first
needed: a graph has far more entities than a corpus mentions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kglm.kg.graph import KnowledgeGraph
from kglm.text.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Aliases:
    """The slots of one entity: `words_AL` are vocabulary indices, padded; `surface` the words themselves, by slot."""

    words_AL: npt.NDArray[np.int64]
    surface: tuple[str | None, ...]
    names: tuple[tuple[str, ...], ...]
    """The aliases as words, cut to the slots they have."""

    def matches(self, word: str) -> list[int]:
        """Slots that hold `word`; matching is exact, an unknown word is no wild card."""
        return [slot for slot, held in enumerate(self.surface) if held == word]

    def can_follow(self, words: Sequence[str]) -> tuple[bool, bool]:
        """Whether some alias goes on after `words`, and whether some alias is exactly `words`."""
        length, prefix = len(words), tuple(words)
        goes_on = ends = False
        for alias in self.names:
            if alias[:length] == prefix:
                goes_on |= len(alias) > length
                ends |= len(alias) == length
        return goes_on, ends

    def next_slots(self, words: Sequence[str]) -> list[int]:
        """Slots of the next word of each alias that begins with `words`."""
        width, length, prefix = self.words_AL.shape[1], len(words), tuple(words)
        return [
            first + length
            for first in range(0, len(self.surface), width)
            if length < width
            and self.surface[first + length] is not None
            and self.surface[first : first + length] == prefix
        ]


class AliasTable:
    """Aliases by node. Names of a node never change: an edit makes new nodes, so cached aliases stay valid."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        vocabulary: Vocabulary,
        words_of: Callable[[str], list[str]],
        *,
        max_aliases: int = 4,
        max_alias_tokens: int = 8,
    ) -> None:
        self._graph = graph
        self.vocabulary = vocabulary
        self.words_of = words_of
        self.shape = (max_aliases, max_alias_tokens)
        self._cache: dict[int, Aliases] = {}

    def on(self, graph: KnowledgeGraph, shared: int) -> AliasTable:
        """The aliases of a graph that was edited since; nodes below `shared` are the same in both."""
        count, length = self.shape
        other = AliasTable(graph, self.vocabulary, self.words_of, max_aliases=count, max_alias_tokens=length)
        other._cache = {node: aliases for node, aliases in self._cache.items() if node < shared}
        return other

    @property
    def slots(self) -> int:
        return self.shape[0] * self.shape[1]

    def __getitem__(self, node: int) -> Aliases:
        found = self._cache.get(node)
        if found is None:
            found = self._cache[node] = self._look_up(node)
        return found

    def written(self, node: int, name: Sequence[str]) -> str:
        """The alias of an entity that has these words, as the graph writes it."""
        count, length = self.shape
        for alias in list(self._graph.aliases(node))[:count]:
            if self.words_of(alias)[:length] == list(name):
                return alias
        raise ValueError(f"{self._graph.id(node)} is not called {' '.join(name)}")

    def _look_up(self, node: int) -> Aliases:
        count, length = self.shape
        words_AL = np.full(self.shape, self.vocabulary.padding, np.int64)
        surface: list[str | None] = [None] * (count * length)
        names = []
        for row, alias in enumerate(list(self._graph.aliases(node))[:count]):
            words = self.words_of(alias)[:length]
            words_AL[row, : len(words)] = self.vocabulary.encode(words)
            surface[row * length : row * length + len(words)] = words
            names.append(tuple(words))
        return Aliases(words_AL, tuple(surface), tuple(filter(None, names)))
