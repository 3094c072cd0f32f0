"""What of a text the local graph can name: names of entities that a mentioned one leads to, and dates and quantities.

The local graph grows with every mention. Not its names are collected, which would be thousands for one entity: the text
is looked up once in the names of the whole graph, and of those who have a name it counts who was reached.

Legend: T words of a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.dates import date_words
from kglm.kg.literals.literal import LiteralIndex
from kglm.kg.literals.quantities import begins_quantity
from kglm.linking.name_index import NameIndex, hash_label, hash_word
from kglm.text.document import END, START
from kglm.text.function_words import is_content

HUB = 4_000
"""Whoever has more facts is asked for them one by one, and they are not listed."""
MAX_NAMESAKES = 200
"""Of more entities of one name, only those are looked at that listed facts lead to."""

Way = tuple[int, int]
"""(relation index, parent)."""


class LocalGraph:
    """Who is reached from the entities mentioned so far, in the order in which they came."""

    def __init__(self, graph: KnowledgeGraph, literal_N: npt.NDArray[np.bool_]) -> None:
        self._graph = graph
        self._literal_N = literal_N
        self._ways: dict[int, list[Way]] = {}
        self.hubs: dict[int, None] = {}
        """Whoever has so many facts that they are not listed."""
        self._known: set[int] = set()
        self.literals = LiteralIndex(graph.unit_names)

    def expand(self, node: int) -> None:
        """Take in the facts of an entity; a literal has none."""
        if node in self._known:
            return
        self._known.add(node)
        relation, tail = self._graph.edges(node)
        if len(tail) > HUB:
            self.hubs[node] = None
            # what a hub leads to can be asked from the other end, but for literals, which lead nowhere
            kept = self._literal_N[tail] | (tail == node)
            relation, tail = relation[kept], tail[kept]
        ways = self._ways
        for r, e in zip(relation.tolist(), tail.tolist(), strict=True):
            ways.setdefault(e, []).append((r, node))
        for e in dict.fromkeys(tail[self._literal_N[tail]].tolist()):
            self.literals.add(self._graph.id(e))

    def lists(self, node: int) -> bool:
        """Whether a fact that is listed leads to an entity."""
        return node in self._ways

    def ways(self, node: int, hubs: Iterable[int] = ()) -> Sequence[Way]:
        """All facts that lead to an entity; of hubs, only those that are given."""
        found = self._ways.get(node, ())
        others = [hub for hub in hubs if hub != node]
        if not others or self._literal_N[node]:
            return found
        relation, tail = self._graph.edges(node)
        return [*found, *((r ^ 1, hub) for hub in others for r in relation[tail == hub].tolist())]


class Matcher:
    """Finds names, dates and quantities in texts, for one graph."""

    def __init__(self, graph: KnowledgeGraph, names: NameIndex) -> None:
        self.graph = graph
        self.names = names
        self.literal_N = graph.literal_nodes()[0]
        self.nodes = lru_cache(1 << 16)(self._nodes)
        self._label = lru_cache(1 << 17)(partial(hash_label, graph))

    def _nodes(self, name: int) -> tuple[int, ...]:
        return tuple(self.names.nodes(name))

    def named(self, name: int, local: LocalGraph) -> list[tuple[int, bool]]:
        """Who of the local graph has a name, and whether it is the first of their names."""
        nodes = self.nodes(name)
        if len(nodes) > MAX_NAMESAKES:
            nodes = tuple(node for node in nodes if local.lists(node)) or nodes[:MAX_NAMESAKES]
        return [(node, self._label(node) == name) for node in nodes]

    def local(self) -> LocalGraph:
        """A local graph with nobody in it."""
        return LocalGraph(self.graph, self.literal_N)

    def spans(self, tokens: Sequence[str]) -> dict[int, list[tuple[int, int]]]:
        """For each place where a name begins, the (end, name) of all that do, the longest first.

        Names of function words and signs alone are none. Where a sentence begins, a name may have lost its small
        letter: "Side - scrolling" is "side - scrolling", but "IPhone" is never "Iphone".
        """
        word_T = np.array([hash_word(token) for token in tokens], np.uint64)
        found = self.names.find(word_T)
        first = [
            place + 1
            for place, token in enumerate(tokens[:-1])
            if token in (START, END) and tokens[place + 1][:1].isupper()
        ]
        if first:
            small_T = word_T.copy()
            small_T[first] = [hash_word(tokens[place][0].lower() + tokens[place][1:]) for place in first]
            found += self.names.find(small_T, first)
        content = [is_content(token) for token in tokens]
        result: dict[int, list[tuple[int, int]]] = {}
        for start, end, name in found:
            if any(content[start:end]) and END not in tokens[start:end]:
                result.setdefault(start, []).append((end, name))
        for spans in result.values():
            spans.sort(key=lambda span: -span[0])
        return result

    def literals(self, tokens: Sequence[str], start: int, limit: int, local: LocalGraph) -> Iterator[tuple[int, int]]:
        """(end, node) of dates and quantities of the local graph that begin at a word, the longest first."""
        for end, id in local.literals.at(tokens, start, limit):
            if (node := self.graph.find(id)) is not None:
                yield end, node


def literal_starts(tokens: Sequence[str]) -> list[int]:
    """Where a date or quantity may begin."""
    kinds = [_literal_kind(token) for token in tokens] + [""]
    return [
        place
        for place, kind in enumerate(kinds)
        if kind in ("number", "word") or (kind == "before" and kinds[place + 1] in ("number", "word"))
    ]


@lru_cache(1 << 16)
def _literal_kind(token: str) -> str:
    """A number, a word that dates and numbers begin with, something that may stand before these, or nothing."""
    small = token.casefold()
    if any(char.isdigit() for char in token):
        return "number"
    if small in _ARTICLES or not token.isalnum():
        return "before" if token not in (START, END) else ""
    return "word" if begins_quantity(token) or (small in date_words() and small not in _PREPOSITIONS) else ""


_ARTICLES = frozenset(["the", "minus"])
_PREPOSITIONS = frozenset(["of"])
