"""Match the words of a text with the local graph: names, dates and quantities that facts of mentioned entities lead to.

The local graph grows with every mention. Collecting its names would mean thousands per entity, so the text is looked up
once in the names of the whole graph, and each match is checked for membership in the local graph.

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
"""Above this degree, an entity's facts are not listed but looked up from the other end."""
MAX_NAMESAKES = 200
"""If more entities share a name, only those that listed facts lead to are checked."""

FactFrom = tuple[int, int]
"""A fact that leads to a given entity: (relation index, parent)."""


class LocalGraph:
    """Facts of the entities mentioned so far, by the entity they lead to, in order of mention."""

    def __init__(self, graph: KnowledgeGraph, literal_N: npt.NDArray[np.bool_]) -> None:
        self._graph = graph
        self._literal_N = literal_N
        self._facts: dict[int, list[FactFrom]] = {}
        self.hubs: dict[int, None] = {}
        """Mentioned entities with more than `HUB` facts, which are not listed."""
        self._expanded: set[int] = set()
        self.literals = LiteralIndex(graph.unit_names)

    def expand(self, node: int) -> None:
        """Add the facts of an entity; a literal has none."""
        if node in self._expanded:
            return
        self._expanded.add(node)
        relation, tail = self._graph.edges(node)
        if len(tail) > HUB:
            self.hubs[node] = None
            # facts of a hub are looked up from their other end; only literals have no edges back
            listed = self._literal_N[tail] | (tail == node)
            relation, tail = relation[listed], tail[listed]
        facts = self._facts
        for r, e in zip(relation.tolist(), tail.tolist(), strict=True):
            facts.setdefault(e, []).append((r, node))
        for e in dict.fromkeys(tail[self._literal_N[tail]].tolist()):
            self.literals.add(self._graph.id(e))

    def is_reached(self, node: int) -> bool:
        """True if a listed fact leads to the entity."""
        return node in self._facts

    def facts_to(self, node: int, hubs: Iterable[int] = ()) -> Sequence[FactFrom]:
        """All facts that lead to an entity: the listed ones, and those of the given hubs."""
        found = self._facts.get(node, ())
        others = [hub for hub in hubs if hub != node]
        if not others or self._literal_N[node]:
            return found
        relation, tail = self._graph.edges(node)
        return [*found, *((r ^ 1, hub) for hub in others for r in relation[tail == hub].tolist())]


class Matcher:
    """Finds names, dates and quantities of one graph in texts."""

    def __init__(self, graph: KnowledgeGraph, names: NameIndex) -> None:
        self.graph = graph
        self.names = names
        self.literal_N = graph.literal_nodes()[0]
        self.nodes = lru_cache(1 << 16)(self._nodes)
        self._label = lru_cache(1 << 17)(partial(hash_label, graph))

    def _nodes(self, name: int) -> tuple[int, ...]:
        return tuple(self.names.nodes(name))

    def named(self, name: int, local: LocalGraph) -> list[tuple[int, bool]]:
        """(node, is its label) of the entities with the name of hash H = `name`.

        Above `MAX_NAMESAKES`, only entities that listed facts of the local graph lead to.
        """
        nodes = self.nodes(name)
        if len(nodes) > MAX_NAMESAKES:
            nodes = tuple(node for node in nodes if local.is_reached(node)) or nodes[:MAX_NAMESAKES]
        return [(node, self._label(node) == name) for node in nodes]

    def local(self) -> LocalGraph:
        """A new, empty local graph."""
        return LocalGraph(self.graph, self.literal_N)

    def spans(self, tokens: Sequence[str]) -> dict[int, list[tuple[int, int]]]:
        """(end, name hash H) of all names in a text, by their start, the longest first.

        Spans without a content word are skipped. The first word of a sentence also matches with a lower-case first
        letter: "Side - scrolling" matches "side - scrolling", but "IPhone" does not match "Iphone".
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
        """(end, node) of dates and quantities of the local graph that begin at `start`, the longest first."""
        for end, id in local.literals.at(tokens, start, limit):
            if (node := self.graph.find(id)) is not None:
                yield end, node


def literal_starts(tokens: Sequence[str]) -> list[int]:
    """Positions where a date or quantity may begin."""
    kinds = [_literal_kind(token) for token in tokens] + [""]
    return [
        place
        for place, kind in enumerate(kinds)
        if kind in ("number", "word") or (kind == "before" and kinds[place + 1] in ("number", "word"))
    ]


@lru_cache(1 << 16)
def _literal_kind(token: str) -> str:
    """Class of a token: a number, a word that begins dates or quantities, a token before either, or "" for others."""
    small = token.casefold()
    if any(char.isdigit() for char in token):
        return "number"
    if small in _ARTICLES or not token.isalnum():
        return "before" if token not in (START, END) else ""
    return "word" if begins_quantity(token) or (small in date_words() and small not in _PREPOSITIONS) else ""


_ARTICLES = frozenset(["the", "minus"])
_PREPOSITIONS = frozenset(["of"])
