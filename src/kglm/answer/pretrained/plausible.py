"""Relations that an entity may lack, as against those that entities of its kind never have.

"The capital of France" asks for France's capital, not for what France is the capital of: no country has that relation.
A fact is missing only if some other entity of the parent's kinds (`instance of`) has the relation. Where the graph does
not tell kinds, everything is plausible.
"""

from __future__ import annotations

from functools import lru_cache

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import INSTANCE_OF

MAX_KINDS = 3
MEMBERS = 300
"""Entities of a kind that are examined."""
FEW = 20
"""With fewer entities of its kinds, every relation is plausible."""
RARE = 0.01
"""Share of the entities of a kind below which they never have a relation."""


class Plausibility:
    """Tells which relations the entities of one graph may lack."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._kind = graph.find_relation(INSTANCE_OF)
        self._shares = lru_cache(512)(self._find_shares)

    def is_plausible(self, parent: int, relation: int) -> bool:
        """True if entities of the parent's kinds have a relation now and then, or if that is not known."""
        if self._kind is None or not 0 < relation < self._graph.relation_count:
            return True
        kinds = self._graph.tails(parent, self._kind).tolist()[:MAX_KINDS]
        known = [shares for kind in kinds if (shares := self._shares(kind)) is not None]
        return not known or any(shares.get(relation, 0.0) >= RARE for shares in known)

    def _find_shares(self, kind: int) -> dict[int, float] | None:
        """For each relation, the share of the entities of a kind that have it; None of a rare kind."""
        assert self._kind is not None
        members = self._graph.tails(kind, self._kind ^ 1)
        if len(members) < FEW:
            return None
        members = members[:: max(len(members) // MEMBERS, 1)][:MEMBERS]
        counts: dict[int, int] = {}
        for member in members.tolist():
            for relation in set(self._graph.edges(member).relation.tolist()):
                counts[relation] = counts.get(relation, 0) + 1
        return {relation: count / len(members) for relation, count in counts.items()}
