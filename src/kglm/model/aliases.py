"""The words of entities' names, which the copy mechanism copies from.

An entity has up to `max_aliases` aliases of up to `max_alias_tokens` words; each of these places is a slot. Slots are
in the order of the graph's aliases, so they are the same in every process. A text (`S::…`) is one name that fills the
slots of as many rows as it needs, so that it can be copied whole. An entity is looked up when it is first needed: a
graph has far more entities than a corpus mentions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_text
from kglm.text.vocabulary import Vocabulary

TEXT_WORDS = 512
"""Words of a text that can be copied; later ones are left out."""


@dataclass(frozen=True, slots=True)
class Aliases:
    """The slots of one entity: `words_AL` are vocabulary indices, padded; `surface` the words themselves, by slot."""

    words_AL: npt.NDArray[np.int64]
    surface: tuple[str | None, ...]
    names: tuple[tuple[str, ...], ...]
    """The aliases as words, cut to the slots they have."""
    firsts: tuple[int, ...]
    """The slot of the first word of each alias."""

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
        length, prefix = len(words), tuple(words)
        return [
            first + length
            for first, name in zip(self.firsts, self.names, strict=True)
            if length < len(name) and name[:length] == prefix
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

    def stack(self, nodes: Sequence[int]) -> npt.NDArray[np.int64]:
        """Words of several entities (U, A, L); A is more than `max_aliases` if one of them is a long text."""
        tables = [self[node].words_AL for node in nodes]
        rows = max([self.shape[0], *map(len, tables)])
        alias_UAL = np.full((len(tables), rows, self.shape[1]), self.vocabulary.padding, np.int64)
        for alias_AL, table in zip(alias_UAL, tables, strict=True):
            alias_AL[: len(table)] = table
        return alias_UAL

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
        longest = TEXT_WORDS if is_text(self._graph.id(node)) else length
        names: dict[int, tuple[str, ...]] = {}
        for row, alias in enumerate(list(self._graph.aliases(node))[:count]):
            if words := self.words_of(alias)[:longest]:
                names[row * length] = tuple(words)
        rows = max([count, *(-(-(first + len(words)) // length) for first, words in names.items())])
        words_J = np.full(rows * length, self.vocabulary.padding, np.int64)
        surface: list[str | None] = [None] * len(words_J)
        for first, name in names.items():
            words_J[first : first + len(name)] = self.vocabulary.encode(name)
            surface[first : first + len(name)] = name
        return Aliases(words_J.reshape(rows, length), tuple(surface), tuple(names.values()), tuple(names))
