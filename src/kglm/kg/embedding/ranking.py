"""Filtered ranks: the rank of the true answer among all entities, other true answers removed.

For a fact (p, r, e), tails are ranked by their distance to v_p + v_r, heads by their distance to v_e − v_r. Half of the
answers at the same distance count as better: the mean of the best and the worst order.

Shapes: M facts, Q questions of a batch, E entities, D dimensions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from kglm.kg.arrays import IntArray
from kglm.kg.embedding.transe_step import FloatArray
from kglm.kg.embedding.triples import FIRST_ENTITY, GraphTriples, Triples, answers

SCORES_AT_ONCE = 1 << 23
HITS = (1, 3, 10)


def metrics(data: GraphTriples, facts: Triples, entity_RD: FloatArray, relation_RD: FloatArray) -> dict[str, float]:
    """Mean reciprocal rank and hits at 1, 3 and 10, over heads and tails; empty without facts."""
    if not len(facts):
        return {}
    rank_2M = filtered_ranks(data, facts, entity_RD, relation_RD)
    result = {"mrr": float(np.mean(1 / rank_2M))}
    result |= {f"hits{k}": float(np.mean(rank_2M <= k)) for k in HITS}
    result |= {f"mrr_{side}": float(np.mean(1 / rank_2M[k])) for k, side in enumerate(("tail", "head"))}
    return result


def filtered_ranks(
    data: GraphTriples, facts: Triples, entity_RD: FloatArray, relation_RD: FloatArray
) -> npt.NDArray[np.float64]:
    """float64[2, M]: ranks of the tails, ranks of the heads. Needs memory for `SCORES_AT_ONCE` scores."""
    v_r = relation_RD[facts.relation]
    tails = _ranks(data, facts.head, facts.relation, facts.tail, entity_RD[facts.head] + v_r, entity_RD)
    heads = _ranks(data, facts.tail, facts.relation ^ 1, facts.head, entity_RD[facts.tail] - v_r, entity_RD)
    return np.stack([tails, heads])


def _ranks(
    data: GraphTriples,
    given_M: IntArray,
    relation_M: IntArray,
    answer_M: IntArray,
    question_MD: FloatArray,
    entity_RD: FloatArray,
) -> npt.NDArray[np.float64]:
    """Ranks of answers by the score q·v − ||v||² / 2 = −||q − v||² / 2 + ||q||² / 2."""
    entity_ED = torch.from_numpy(entity_RD[FIRST_ENTITY:])
    half_norm_E = torch.linalg.vecdot(entity_ED, entity_ED) / 2
    start_M, end_M = answers(data, given_M, relation_M)
    ranks = []
    for first in range(0, len(given_M), size := max(1, SCORES_AT_ONCE // len(entity_ED))):
        part = slice(first, first + size)
        score_QE = torch.addmm(half_norm_E, torch.from_numpy(question_MD[part]), entity_ED.T, beta=-1).numpy()
        question_Q = np.arange(len(score_QE))
        own_Q = answer_M[part] - FIRST_ENTITY
        own_score_Q1 = score_QE[question_Q, own_Q][:, None]
        for scores, start, end in zip(score_QE, start_M[part], end_M[part], strict=True):
            true_tails = data.triples.tail[start:end]
            scores[true_tails[true_tails >= FIRST_ENTITY] - FIRST_ENTITY] = -np.inf
        better_Q = (score_QE > own_score_Q1).sum(1)
        same_Q = (score_QE == own_score_Q1).sum(1)  # the answer itself was removed above
        ranks.append(1 + better_Q + same_Q / 2)
    return np.concatenate(ranks)
