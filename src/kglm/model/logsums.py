"""Sums of probabilities as logarithms, with gradients that are right where a sum is empty."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def masked_logsumexp(score_NJ: Tensor, mask_NJ: Tensor) -> Tensor:
    """log Σ exp over the marked scores of a row; -inf, with no gradient, where none is marked."""
    some_N = mask_NJ.any(-1)
    masked = score_NJ.masked_fill(~mask_NJ, -math.inf)
    safe = torch.where(some_N[:, None], masked, torch.zeros_like(masked))
    return safe.logsumexp(-1).masked_fill(~some_N, -math.inf)


def add_log_probs(log_type: Tensor, log_entity: Tensor) -> Tensor:
    """log_type + log_entity; -inf, without a NaN in the gradient, where log_entity is -inf."""
    reachable = log_entity > -math.inf
    return (log_type.masked_fill(~reachable, 0.0) + log_entity.masked_fill(~reachable, 0.0)).masked_fill(
        ~reachable, -math.inf
    )


def segment_logsumexp(value_W: Tensor, segment_W: Tensor, count: int) -> Tensor:
    """log Σ exp over each segment; -inf, with no gradient, for a segment that is empty or all -inf."""
    highest = value_W.new_full((count,), -math.inf)
    highest = highest.scatter_reduce(0, segment_W, value_W.detach(), "amax")
    finite = highest > -math.inf
    shift = highest.masked_fill(~finite, 0.0)
    total = value_W.new_zeros(count).index_add(0, segment_W, (value_W - shift[segment_W]).exp())
    return (total.masked_fill(~finite, 1.0).log() + shift).masked_fill(~finite, -math.inf)
