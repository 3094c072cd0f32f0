"""What the graph says about the tails of a relation, as features of π(e | p, r): see `kg.tail_features`.

The score of a tail e of (p, r) at position t gains

    Σ_q ω_q(t) f_q(p, r, e),    ω(t) = w + U h_x,    both learned,

f the features of `kg.tail_features` and, last, `named`: 1 if the statement held in a year that the words before the
mention name, -1 if it did not, 0 if no year is named or its times are unknown. Of several years the last one counts.

A graph without ranks and times cannot teach their weights, so w starts at values that already tell the current value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from kglm.kg.tail_features import WEIGHTS, TailFeatures, covers
from kglm.model.arrays import Floats

START_WEIGHTS = (*WEIGHTS.values(), 3.0)
"""Initial w."""


class TailFactWeights(nn.Module):
    """ω = w + U h_x."""

    def __init__(self, hidden: int, *, trained: bool) -> None:
        super().__init__()
        self.weight_Q = nn.Parameter(torch.tensor(START_WEIGHTS), requires_grad=trained)
        self.context_HQ = nn.Parameter(torch.zeros(hidden, len(START_WEIGHTS)), requires_grad=trained)

    def forward(self, h_x_MH: Tensor) -> Tensor:
        """ω at positions (M × Q)."""
        return self.weight_Q + h_x_MH @ self.context_HQ


def tail_facts(features: TailFeatures, years: Sequence[int]) -> np.ndarray:
    """f of all tails (N × Q) at one position; `years` are those that the words before name, the last word first."""
    named_N = np.zeros(len(features.tail), np.float64)
    if years and features.statements is not None:
        named_N[:] = covers(features.statements, years[0])
    return np.column_stack([features.value_NQ, named_N])


def tail_fact_scores(
    features: TailFeatures, weight_TQ: Floats, years: Mapping[int, Sequence[int]], rows: slice
) -> Floats:
    """Σ_q ω_q f_q of all tails at some rows of a text (N × rows); `years` by row, for the rows that name any."""
    score_NT: Floats = features.value_NQ @ weight_TQ[rows, :-1].T
    if features.statements is not None:
        for row, named in years.items():
            if rows.start <= row < rows.stop:
                score_NT[:, row - rows.start] += weight_TQ[row, -1] * covers(features.statements, named[0])
    return score_NT
