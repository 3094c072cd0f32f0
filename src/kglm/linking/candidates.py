"""Facts about candidate entities that do not depend on the text; each entity is read once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.kg.arrays import run_starts
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.kinds import KIND_OF_RELATION, Kind, entity_kind
from kglm.linking.name_index import hash_label
from kglm.linking.traits import TraitReader, Traits
from kglm.text.function_words import is_content
from kglm.text.tokenizer import tokenizer

NEIGHBOURS = 60
"""Tails of a candidate whose names are compared with the context."""
HUB = 4_000
"""Above this degree, facts shared with other candidates are not checked."""
NAMES_ONLY = frozenset(["name", "given name", "family name", "surname", "disambiguation page", "letter", "number"])
"""Classes of entities that mentions rarely refer to."""
MAX_RELATION_WORDS = 6
"""Longer names of relations are not looked for in texts."""


class CandidateFacts(NamedTuple):
    """What is known about an entity apart from the text."""

    facts: float
    """Log of its number of edges."""
    label: int | None
    """Hash H of its label."""
    introductions: float
    relations: frozenset[int]
    """Its forward relations."""
    relation_words: frozenset[str]
    """Words of the labels of its relations."""
    neighbour_words: frozenset[str]
    """Words of the labels of its tails."""
    tails: npt.NDArray[np.int32]
    """Sorted."""
    traits: Traits
    kind: Kind | None
    name_parts: frozenset[str]
    """First and last word of a person's label of several words: short forms of the name."""
    improper: bool
    """True if the label begins with a small letter, or the entity is itself a name, letter or number."""


class CandidateReader:
    """Reads candidates of one graph."""

    def __init__(self, graph: KnowledgeGraph, traits: TraitReader, introductions: Mapping[int, int]) -> None:
        self._graph = graph
        self._traits = traits
        self._introductions = introductions
        self._relation_words = lru_cache(None)(self._words_of_relation)
        self.of = lru_cache(1 << 13)(self._read)

    def _read(self, node: int) -> CandidateFacts:
        graph = self._graph
        relation, tail = graph.edges(node)
        distinct = relation[run_starts(relation)].tolist()
        forward = [each for each in distinct if each and each % 2 == 0]
        traits = self._traits.of(node)
        label = next(iter(graph.names(node)[:1]), "")
        words = label.split() if traits.human else []
        id = graph.id(node)
        kind = entity_kind(traits, (graph.relation_label(each).casefold() for each in forward))
        if kind is None:
            kind = entity_kind(traits, (), graph.store.description(id)[0] or "")
        return CandidateFacts(
            float(np.log1p(len(tail))),
            hash_label(graph, node),
            float(np.log1p(self._introductions.get(node, 0))),
            frozenset(forward),
            frozenset().union(*map(self._relation_words, forward)),
            self._neighbour_words([graph.tails(node, each) for each in forward]),
            np.unique(tail[tail != node]) if len(tail) <= HUB else tail[:0],
            traits,
            kind,
            frozenset([words[0], words[-1]] if len(words) > 1 else []),
            label[:1].islower() or not NAMES_ONLY.isdisjoint(traits.kinds),
        )

    def _words_of_relation(self, index: int) -> frozenset[str]:
        """Words of a relation's label."""
        label = self._graph.relation_label(index)
        return frozenset(word.casefold() for word in tokenizer().words(label) if is_content(word))

    def _neighbour_words(self, tails: Iterable[npt.NDArray[np.integer]]) -> frozenset[str]:
        """Words of the labels of the first tails; `tails` has those of each relation."""
        forward = islice((node for each in tails for node in each[:NEIGHBOURS].tolist()), NEIGHBOURS)
        names = (name for node in forward for name in self._graph.names(node)[:1])
        return frozenset(word.casefold() for name in names for word in name.split() if is_content(word))


class RelationNames:
    """Finds the relations of one graph that a text names: "was born in", "written by"."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._named: dict[tuple[str, ...], set[int]] = defaultdict(set)
        for index in range(2, graph.relation_count, 2):
            for name in graph.relation_names(graph.relation_id(index)):
                words = tuple(name.casefold().split())
                if len(words) <= MAX_RELATION_WORDS and any(map(is_content, words)):
                    self._named[words].add(index)
        self._begins = {words[:length] for words in self._named for length in range(1, len(words))}

    def kind(self, relation: int) -> Kind | None:
        """Kind of the entities that have this relation, if it is known."""
        return KIND_OF_RELATION.get(self._graph.relation_label(relation).casefold())

    def within(self, words: Sequence[str]) -> set[int]:
        """Relations with a name in these words."""
        found = set[int]()
        small = [word.casefold() for word in words]
        for start in range(len(small)):
            for end in range(start + 1, min(start + MAX_RELATION_WORDS, len(small)) + 1):
                phrase = tuple(small[start:end])
                found |= self._named.get(phrase, set())
                if phrase not in self._begins:
                    break
        return found
