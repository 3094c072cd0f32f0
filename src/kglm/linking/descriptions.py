"""Short descriptions that tell entities of one name apart: "Georgia – country in Asia", "Georgia – state, Mexico".

The graph's own description, else one made of its facts: classes or occupations and country, else the first fact.
"""

from __future__ import annotations

from functools import lru_cache

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import INSTANCE_OF, is_item_id
from kglm.kg.literals.literal import is_literal
from kglm.linking.traits import relation_by_name

MOST = 2
"""Classes or occupations that are named."""
_WHAT = (("instance of", INSTANCE_OF), ("occupation", "P106"))
_WHERE = (("country", "P17"), ("country of citizenship", "P27"))
_TRIVIAL = frozenset(["human", "person"])
"""Classes that tell nobody apart: occupations say more."""


class Describer:
    """Describes the entities of one graph."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._what = [relation_by_name(graph, id, name) for name, id in _WHAT]
        self._where = [relation_by_name(graph, id, name) for name, id in _WHERE]
        self.of = lru_cache(1 << 12)(self._describe)

    def _describe(self, node: int) -> str | None:
        """The description of an entity; None for a date, a quantity, or an entity without facts."""
        graph = self._graph
        id = graph.id(node)
        if is_literal(id):
            return None
        stored = graph.store.description(id)[0]
        if stored:
            return stored
        classes, jobs = (self._labels(node, relation) for relation in self._what)
        telling = [name for name in classes if name not in _TRIVIAL]
        places = [self._labels(node, relation) for relation in self._where]
        where = next((names[:1] for names in places if names), [])
        what = (telling or jobs or classes)[:MOST]
        return ", ".join([*what, *where]) if what else self._first_fact(node)

    def _labels(self, node: int, relation: int | None) -> list[str]:
        tails = [] if relation is None else self._graph.tails(node, relation)[:MOST].tolist()
        return [self._graph.label(tail) for tail in tails]

    def _first_fact(self, node: int) -> str | None:
        """The first fact with another entity, e.g. "country: France"; facts that lead to the entity come last."""
        relation, tail = self._graph.edges(node)
        places = [place for place, index in enumerate(relation.tolist()) if index and tail[place] != node]
        for place in sorted(places, key=lambda place: bool(relation[place] & 1)):
            if is_item_id(self._graph.id(int(tail[place]))) or place == places[-1]:
                label = self._graph.relation_label(int(relation[place]))
                return f"{label}: {self._graph.label(int(tail[place]))}"
        return None
