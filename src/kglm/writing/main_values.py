"""Choose which of several values of a relation a sentence states: mostly the current, main one.

A value e of (p, r) is drawn with probability ∝ exp(SHARPNESS · Σ_q w_q f_q(p, r, e)), f and w of `kg.tail_features`.
"The capital of France is" goes on with Paris, rarely with the capital of another time.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.tail_features import MAX_TAILS, NAMES, WEIGHTS, TailFeatureReader

SHARPNESS = 2.0
"""A sentence that states one value states the main one more often than articles mention it."""
_WEIGHT_Q = np.array([WEIGHTS[name] for name in NAMES])


class MainValues:
    """Draws values of the relations of one graph."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._features = TailFeatureReader(graph)

    def draw(self, rng: random.Random, head: int, relation: int, tails: Sequence[int]) -> int:
        """Draw one of these tails of (head, relation index)."""
        if len(tails) == 1:
            return tails[0]
        if len(self._graph.tails(head, relation)) > MAX_TAILS:
            return rng.choice(tails)
        features = self._features.of(head, relation)
        score = SHARPNESS * (features.value_NQ @ _WEIGHT_Q)
        weight = dict(zip(features.tail.tolist(), np.exp(score - score.max()).tolist(), strict=True))
        return rng.choices(tails, [max(weight[tail], 1e-6) for tail in tails])[0]
