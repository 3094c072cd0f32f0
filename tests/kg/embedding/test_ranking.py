"""Filtered ranks against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from kglm.kg.embedding import ranking
from kglm.kg.embedding.ranking import filtered_ranks, metrics
from kglm.kg.embedding.triples import FIRST_ENTITY, MEAN, GraphTriples, Triples, split
from support.rings import as_set


def brute_force_ranks(
    data: GraphTriples, facts: Triples, entity: np.ndarray, relation: np.ndarray
) -> list[list[float]]:
    known = as_set(data.triples)
    result: list[list[float]] = [[], []]
    for p, r, e in zip(*facts, strict=True):
        for side in (0, 1):
            better = same = 0
            own = ((entity[p] + relation[r] - entity[e]) ** 2).sum()
            for other in range(FIRST_ENTITY, data.rows):
                triple = (p, r, other) if side == 0 else (other, r, e)
                if triple in known:
                    continue
                distance = ((entity[triple[0]] + relation[r] - entity[triple[2]]) ** 2).sum()
                better += distance < own
                same += distance == own
            result[side].append(1 + better + same / 2)
    return result


@pytest.mark.parametrize("at_once", [1, 100, 1 << 20])
def test_ranks_equal_brute_force(data: GraphTriples, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of integers give exact distances and many ties; ranks do not need unit norm."""
    monkeypatch.setattr(ranking, "SCORES_AT_ONCE", at_once)
    generator = np.random.default_rng(5)
    entity = generator.integers(-1, 2, (data.rows, 3)).astype(np.float32)
    relation = generator.integers(-1, 2, (data.relations, 3)).astype(np.float32)
    facts = split(data, 50, generator).held_out
    more = data.triples.take(generator.permutation(np.flatnonzero(data.triples.tail > MEAN))[:30])
    for asked in (facts, more):
        found = filtered_ranks(data, asked, entity, relation)
        assert found.tolist() == brute_force_ranks(data, asked, entity, relation)
        measured = metrics(data, asked, entity, relation)
        assert measured["mrr"] == pytest.approx(np.mean(1 / found))
        assert measured["hits3"] == pytest.approx(np.mean(found <= 3))
