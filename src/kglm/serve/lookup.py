"""Search for entities and relations by id, by name, by the start of a name, or by words of a name."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.kg.resolve import relation_names

MAX_EXPANSIONS = 500
"""Words that a prefix may stand for."""
_WORD = re.compile(r"\w+")


class Lookup:
    """An index from words to the nodes with that word in a name. It stays valid: edits do not change names."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._nodes_with_word: dict[str, array[int]] = {}
        for node in range(len(graph)):
            if is_literal(graph.id(node)):
                continue
            for word in {word for name in graph.names(node) for word in _words(name)}:
                self._nodes_with_word.setdefault(word, array("l")).append(node)
        self._words = sorted(self._nodes_with_word)
        self._relation_names: tuple[int, dict[str, list[str]]] = (-1, {})

    def entities(self, graph: KnowledgeGraph, text: str, limit: int) -> list[int]:
        """Nodes: exact matches first, then names that start with the text, then names with all its words.

        Within each group, nodes with more facts come first.
        """
        nodes: dict[int, None] = {}
        if (by_id := graph.find(text.strip())) is not None:
            nodes[by_id] = None
        for hit in graph.search(text, limit):
            if (node := graph.find(hit.id)) is not None:
                nodes[node] = None
        if len(nodes) < limit:
            nodes |= dict.fromkeys(self._with_words(graph, text, limit))
        return list(nodes)[:limit]

    def _with_words(self, graph: KnowledgeGraph, text: str, limit: int) -> list[int]:
        """Nodes whose names have all the words; the last word may be a prefix."""
        words = _words(text)
        if not words:
            return []
        matches = [np.array(self._nodes_with_word.get(word, ()), np.int64) for word in words[:-1]]
        matches.append(self._with_prefix(words[-1]))
        nodes = min(matches, key=len)
        for match in matches:
            nodes = np.intersect1d(nodes, match)
        degree = graph.degrees(nodes)
        return [int(node) for node in nodes[np.argsort(-degree, kind="stable")][:limit]]

    def _with_prefix(self, prefix: str) -> npt.NDArray[np.int64]:
        nodes = [np.array(self._nodes_with_word[word], np.int64) for word in self._expansions(prefix)]
        return np.unique(np.concatenate(nodes)) if nodes else np.empty(0, np.int64)

    def _expansions(self, prefix: str) -> Iterator[str]:
        place = bisect_left(self._words, prefix)
        for word in self._words[place : place + MAX_EXPANSIONS]:
            if not word.startswith(prefix):
                return
            yield word

    def relations(self, graph: KnowledgeGraph, text: str, limit: int) -> list[str]:
        """Ids of relations: exact matches first, then names that start with the text, then names with such a word."""
        if self._relation_names[0] != graph.relation_count:
            self._relation_names = (graph.relation_count, relation_names(graph))
        query = " ".join(text.split()).casefold()
        ranks: dict[str, int] = {}
        for name, ids in self._relation_names[1].items():
            rank = 0 if name == query else 1 if name.startswith(query) else 2 if f" {query}" in name else None
            if rank is not None:
                for id in ids:
                    ranks[id] = min(ranks.get(id, rank), rank)
        index = graph.find_relation(text.strip())
        if index:  # not the reflexive one
            ranks[graph.relation_id(index & ~1)] = -1
        return sorted(ranks, key=lambda id: (ranks[id], graph.relation_name(id).casefold(), id))[:limit]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
