"""Traits of entities that decide which expressions can refer to them: "she", "it", "the band".

They are read from the relations `instance of`, `occupation` and `sex or gender`, found by Wikidata id or, in graphs
with other ids, by these names.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import INSTANCE_OF
from kglm.kg.literals.literal import is_literal

Gender = Literal["male", "female"]
HUMANS = frozenset(["human", "person", "people", "fictional human", "human biblical figure", "character"])
_GROUPS = """
band duo trio group team club company organization organisation orchestra choir party government army people tribe
family ensemble crew board council committee agency force forces union couple siblings brothers sisters
"""
GROUPS = frozenset(_GROUPS.split())
"""Classes that "they" refers to."""
MAX_KINDS = 12
"""Classes, occupations or genders read per entity."""
MAX_WORDS = 3
"""Most words of a class name in an expression like "the video game"."""
_RELATIONS = {
    "instance of": INSTANCE_OF,
    "occupation": "P106",
    "sex or gender": "P21",
}


class Traits(NamedTuple):
    """Traits that decide which expressions can refer to an entity."""

    human: bool
    gender: Gender | None
    group: bool
    kinds: frozenset[str]
    """Class names it can be called by: "game" and "video game" for a video game."""


class TraitReader:
    """Reads the traits of entities from one graph."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._relations = {name: relation_by_name(graph, id, name) for name, id in _RELATIONS.items()}
        self.of = lru_cache(1 << 17)(self._read)

    def _names(self, node: int, relation: str) -> list[str]:
        index = self._relations[relation]
        tails = [] if index is None else self._graph.tails(node, index)[:MAX_KINDS].tolist()
        return [name.casefold() for tail in tails for name in self._graph.names(tail)[:1]]

    def _read(self, node: int) -> Traits:
        if is_literal(self._graph.id(node)):
            return Traits(False, None, False, frozenset())
        classes = self._names(node, "instance of")
        genders = self._names(node, "sex or gender")
        occupations = self._names(node, "occupation")
        kinds = frozenset(ending for name in [*classes, *occupations] for ending in _endings(name))
        human = bool(HUMANS & set(classes)) or bool(genders) or (bool(occupations) and not classes)
        gender = next((each for each in genders if each in ("male", "female")), None)
        return Traits(human, gender, not human and bool(GROUPS & kinds), kinds - HUMANS)  # type: ignore[arg-type]


def _endings(name: str) -> list[str]:
    """Short forms of a class name: its last one, two and three words."""
    words = name.split()
    return [" ".join(words[-length:]) for length in range(1, min(len(words), MAX_WORDS) + 1)]


def relation_by_name(graph: KnowledgeGraph, id: str, name: str) -> int | None:
    """Find a relation by Wikidata id, else by name."""
    found = graph.find_relation(id)
    if found is not None:
        return found
    for index in range(2, graph.relation_count, 2):
        if name in (each.casefold() for each in graph.relation_names(graph.relation_id(index))):
            return index
    return None
