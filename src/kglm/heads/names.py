"""Names of entities as subwords, and the trie that the names of one entity form.

A mention is a path in the trie of its entity: the next subword is drawn among those with which some name goes on,

    p(s | e, prefix) ∝ exp(β z_s + b_k),      z_s the base's score of s, k the kind of the name,

so the base says which form of a name fits the text, and the graph says what the names are. A name has a form with a
leading blank and one without, for texts in which it follows "(" or begins the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.linking.traits import TraitReader
from kglm.pretrained.subwords import Subwords

MAX_NAMES = 24
"""Names of one entity."""
_ISO_DATE = re.compile(r"-?\d{4,}-\d\d-\d\d")
"""A form of dates that is no name: texts have it seldom, and after a year it would often go on with the month."""


class NameKind(IntEnum):
    """Kinds of names, which have a learned bias each."""

    LABEL = 0
    ALIAS = 1
    PART = 2
    """A person's name from a later word on: "Obama"."""
    LITERAL = 3
    """The first way to write a date or quantity."""
    OTHER_LITERAL = 4


class Name(NamedTuple):
    """A name as subwords."""

    ids: tuple[int, ...]
    kind: NameKind


class Children(NamedTuple):
    """How the names of an entity go on after a prefix."""

    kinds: dict[int, NameKind]
    """The next subwords, and the best kind of name through each."""
    complete: bool
    """The prefix itself is a name."""


class NameTable:
    """Names of the entities of one graph as subwords; looked up when they are first needed."""

    def __init__(self, graph: KnowledgeGraph, subwords: Subwords) -> None:
        self.graph = graph
        self._subwords = subwords
        self._traits = TraitReader(graph)
        self._names: dict[int, tuple[Name, ...]] = {}
        self.children = lru_cache(1 << 16)(self._children)

    def on(self, graph: KnowledgeGraph) -> NameTable:
        """The names of an edited graph."""
        other = NameTable(graph, self._subwords)
        kept, touched = len(self.graph), graph.overlay.touched
        other._names = {node: names for node, names in self._names.items() if node < kept and node not in touched}
        return other

    def of(self, node: int) -> tuple[Name, ...]:
        """Names of an entity, both with and without a leading blank."""
        self.prepare([node])
        return self._names[node]

    def prepare(self, nodes: Iterable[int]) -> None:
        """Look up many entities at once, which is faster."""
        missing = [node for node in dict.fromkeys(nodes) if node not in self._names]
        texts = [self._texts(node) for node in missing]
        spaced = [form for each in texts for text, _ in each for form in (f" {text}", text)]
        encoded = iter(self._subwords.encode_many(spaced))
        for node, each in zip(missing, texts, strict=True):
            names: dict[tuple[int, ...], NameKind] = {}
            for _, kind in each:
                for _ in range(2):
                    ids = tuple(next(encoded))
                    if ids and names.get(ids, kind) >= kind:
                        names[ids] = kind
            self._names[node] = tuple(Name(ids, kind) for ids, kind in names.items())

    def _texts(self, node: int) -> list[tuple[str, NameKind]]:
        texts = list(dict.fromkeys(self.graph.aliases(node)))[:MAX_NAMES]
        if is_literal(self.graph.id(node)):
            texts = [text for text in texts if not _ISO_DATE.fullmatch(text)] or texts
            return [(text, NameKind.OTHER_LITERAL if n else NameKind.LITERAL) for n, text in enumerate(texts)]
        found = [(text, NameKind.ALIAS if n else NameKind.LABEL) for n, text in enumerate(texts)]
        if texts and self._traits.of(node).human:
            words = texts[0].split()
            found += [(" ".join(words[n:]), NameKind.PART) for n in range(1, len(words))]
        return found

    def _children(self, node: int, prefix: tuple[int, ...]) -> Children:
        kinds: dict[int, NameKind] = {}
        complete, length = False, len(prefix)
        for ids, kind in self.of(node):
            if ids[:length] == prefix:
                if len(ids) == length:
                    complete = True
                elif kinds.get(ids[length], kind) >= kind:
                    kinds[ids[length]] = kind
        return Children(kinds, complete)

    def first(self, node: int) -> Sequence[int]:
        """First subwords of an entity's names."""
        return list(self.children(node, ()).kinds)
