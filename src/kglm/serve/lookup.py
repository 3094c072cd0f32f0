"""Entities and relations by what one types: by id, by name, by the beginning of a name, by any words of one."""

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

PREFIXES = 500
"""Words that a prefix is taken for at most."""
_WORD = re.compile(r"\w+")


class Lookup:
    """Which nodes have a word in one of their names. Edits give no entity another name, so it stays true."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._having: dict[str, array[int]] = {}
        for node in range(len(graph)):
            if is_literal(graph.id(node)):
                continue
            for word in {word for name in graph.names(node) for word in _words(name)}:
                self._having.setdefault(word, array("l")).append(node)
        self._words = sorted(self._having)
        self._relations: tuple[int, dict[str, list[str]]] = (-1, {})

    def entities(self, graph: KnowledgeGraph, text: str, limit: int) -> list[int]:
        """Exact matches first, then names that start so, then those that have the words; the better known first."""
        found: dict[int, None] = {}
        if (by_id := graph.find(text.strip())) is not None:
            found[by_id] = None
        for hit in graph.search(text, limit):
            if (node := graph.find(hit.id)) is not None:
                found[node] = None
        if len(found) < limit:
            found |= dict.fromkeys(self._by_words(graph, text, limit))
        return list(found)[:limit]

    def _by_words(self, graph: KnowledgeGraph, text: str, limit: int) -> list[int]:
        """Nodes that have all of the words, of which the last need not be complete."""
        words = _words(text)
        if not words:
            return []
        parts = [np.array(self._having.get(word, ()), np.int64) for word in words[:-1]]
        parts.append(self._starting(words[-1]))
        nodes = min(parts, key=len)
        for part in parts:
            nodes = np.intersect1d(nodes, part)
        degree = np.diff(graph.edges_of(nodes).offsets) if len(nodes) else nodes
        return [int(node) for node in nodes[np.argsort(-degree, kind="stable")][:limit]]

    def _starting(self, beginning: str) -> npt.NDArray[np.int64]:
        found = [np.array(self._having[word], np.int64) for word in self._complete(beginning)]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)

    def _complete(self, beginning: str) -> Iterator[str]:
        place = bisect_left(self._words, beginning)
        for word in self._words[place : place + PREFIXES]:
            if not word.startswith(beginning):
                return
            yield word

    def relations(self, graph: KnowledgeGraph, text: str, limit: int) -> list[str]:
        """Ids of relations: what is called so, then what starts so, then what has such a word."""
        if self._relations[0] != graph.relation_count:
            self._relations = (graph.relation_count, relation_names(graph))
        sought = " ".join(text.split()).casefold()
        ranks: dict[str, int] = {}
        for name, ids in self._relations[1].items():
            rank = 0 if name == sought else 1 if name.startswith(sought) else 2 if f" {sought}" in name else None
            if rank is not None:
                for id in ids:
                    ranks[id] = min(ranks.get(id, rank), rank)
        index = graph.find_relation(text.strip())
        if index:  # not the reflexive one
            ranks[graph.relation_id(index & ~1)] = -1
        return sorted(ranks, key=lambda id: (ranks[id], graph.relation_name(id).casefold(), id))[:limit]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
