"""log Σ_v exp(W h + b)_v without ever holding all scores: the heart of every softmax over words or entities here.

A softmax over 30,000 words or 100,000 entities costs three matrix products in training, and about as much again in
moving S × V numbers through memory. Here the scores live in blocks of a few rows that stay in the cache. What the
gradient needs is found in the forward pass, while a block is there:

    ∂/∂h_s = Σ_v p_sv W_v          times the gradient of row s, whatever that will be
    ∂/∂W   = Σ_s g_s p_s h_sᵀ      with g = 1; if all rows turn out to have one gradient g, as the words of a loss do,
                                   it is g times that, else (rows `uneven`) the blocks are computed once more

Legend: S rows, V columns, H size of a row, O single scores that are changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

PAIR_BLOCK = 1 << 25
"""Numbers that are kept for the left sides of pairs."""
TINY = 1e-20
"""A smaller sum of products may have lost something: no v is near the highest of both sides."""
BLOCK = 1 << 23
"""Numbers in a block of scores; measured on S = 4,000, V = 24,000: within 5 % of the bare products."""


class Changes(NamedTuple):
    """Single scores that differ: `amount_O` is added to the score at (row_O, column_O); no place occurs twice."""

    row_O: Tensor
    column_O: Tensor
    amount_O: Tensor


def linear_logsumexp(
    h_SH: Tensor,
    weight_VH: Tensor,
    bias_V: Tensor | None = None,
    changes: Changes | None = None,
    *,
    uneven: bool = False,
) -> Tensor:
    """log Σ_v exp(W_v · h_s + b_v) of each row. `uneven` says that rows will have different gradients."""
    if not len(h_SH):
        return h_SH.sum(-1)
    none = h_SH.new_zeros(0)
    index = torch.zeros(0, dtype=torch.int64, device=h_SH.device)
    row_O, column_O, amount_O = changes or (index, index, none)
    bias_V = weight_VH.new_zeros(len(weight_VH)) if bias_V is None else bias_V
    if not torch.is_grad_enabled():  # nothing is kept for a gradient, which would cost twice the scores
        blocks = _blocks(h_SH, weight_VH, bias_V, row_O, column_O, amount_O)
        return torch.cat([(block.exp_SV.sum(-1).log() + block.highest_S1[:, 0]) for block in blocks])
    apply: Callable[..., Tensor] = _LinearLogSumExp.apply
    return apply(h_SH, weight_VH, bias_V, row_O, column_O, amount_O, uneven)


def pair_logsumexp(
    left_TH: Tensor, right_UH: Tensor, weight_VH: Tensor, bias_V: Tensor, left_P: Tensor, right_P: Tensor
) -> Tensor:
    """log Σ_v exp(W_v · (a_t + c_u) + b_v) of many pairs (t, u) of few t and few u; without gradient.

    exp(W_v · (a_t + c_u)) is a product: what costs most, the scores of all v, is made for each t and each u alone.
    """
    result_P = left_TH.new_empty(len(left_P))
    size = max(1, BLOCK // len(weight_VH))
    distinct = torch.unique(left_P)
    for at_T in distinct.split(max(size, PAIR_BLOCK // len(weight_VH))):
        exp_TV, highest_T = _exponentials(torch.nn.functional.linear(left_TH[at_T], weight_VH, bias_V))
        row_T = left_P.new_full((len(left_TH),), -1)
        row_T[at_T] = torch.arange(len(at_T), device=at_T.device)
        here_P = (row_T[left_P] >= 0).nonzero()[:, 0]
        here_P = here_P[right_P[here_P].argsort()]
        of_U, count_U = torch.unique_consecutive(right_P[here_P], return_counts=True)
        until_U = count_U.cumsum(0).tolist()
        for start in range(0, len(of_U), size):
            at_U = of_U[start : start + size]
            exp_UV, highest_U = _exponentials(torch.nn.functional.linear(right_UH[at_U], weight_VH))
            for place in range(start, start + len(at_U)):
                pair_P = here_P[until_U[place] - int(count_U[place]) : until_U[place]]
                row_P = row_T[left_P[pair_P]]
                total_P = exp_TV[row_P] @ exp_UV[place - start]
                log_total_P = total_P.log().masked_fill(total_P < TINY, math.nan)
                result_P[pair_P] = log_total_P + highest_T[row_P] + highest_U[place - start]
    lost = result_P.isnan().nonzero()[:, 0]
    result_P[lost] = linear_logsumexp(left_TH[left_P[lost]] + right_UH[right_P[lost]], weight_VH, bias_V)
    return result_P


def _exponentials(score_SV: Tensor) -> tuple[Tensor, Tensor]:
    highest_S = score_SV.amax(-1)
    return score_SV.sub_(highest_S[:, None]).exp_(), highest_S


def linear_score(h_SH: Tensor, weight_VH: Tensor, bias_V: Tensor, column_S: Tensor) -> Tensor:
    """W_v · h_s + b_v of one column v for each row."""
    return (h_SH * torch.nn.functional.embedding(column_S, weight_VH)).sum(-1) + bias_V[column_S]


def linear_log_prob(h_SH: Tensor, weight_VH: Tensor, bias_V: Tensor, column_S: Tensor) -> Tensor:
    """log softmax(W h_s + b) at one column for each row."""
    return linear_score(h_SH, weight_VH, bias_V, column_S) - linear_logsumexp(h_SH, weight_VH, bias_V)


def linear_log_probs(h_SH: Tensor, weight_VH: Tensor, bias_V: Tensor) -> Tensor:
    """log softmax(W h_s + b) at every column: for few rows, as all of them are held."""
    return torch.nn.functional.linear(h_SH, weight_VH, bias_V).log_softmax(-1)


class _Block(NamedTuple):
    rows: slice
    changed: Tensor
    """Which of the changes fall into these rows."""
    place: tuple[Tensor, Tensor]
    """Their places within the block."""
    exp_SV: Tensor
    """exp(score − highest of its row)."""
    highest_S1: Tensor


def _blocks(
    h_SH: Tensor, weight_VH: Tensor, bias_V: Tensor, row_O: Tensor, column_O: Tensor, amount_O: Tensor
) -> Iterator[_Block]:
    """Exponentiated scores, block by block in one buffer: a block is gone when the next one comes."""
    size = max(1, min(len(h_SH), BLOCK // len(weight_VH)))
    buffer = h_SH.new_empty(size, len(weight_VH))
    for start in range(0, len(h_SH), size):
        rows = slice(start, min(start + size, len(h_SH)))
        scores_SV = buffer[: rows.stop - start]
        torch.addmm(bias_V, h_SH[rows], weight_VH.T, out=scores_SV)
        changed = ((row_O >= start) & (row_O < rows.stop)).nonzero()[:, 0]
        place = (row_O[changed] - start, column_O[changed])
        scores_SV.index_put_(place, amount_O[changed], accumulate=True)
        highest_S1 = scores_SV.amax(-1, keepdim=True)
        yield _Block(rows, changed, place, scores_SV.sub_(highest_S1).exp_(), highest_S1)


class _LinearLogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        h_SH: Tensor,
        weight_VH: Tensor,
        bias_V: Tensor,
        row_O: Tensor,
        column_O: Tensor,
        amount_O: Tensor,
        uneven: bool,
    ) -> Tensor:
        need_h, need_weight, need_bias, _, _, need_amount, _ = ctx.needs_input_grad
        now_weight, now_bias = need_weight and not uneven, need_bias and not uneven
        mean_SH = torch.empty_like(h_SH) if need_h else None
        sum_VH = torch.zeros_like(weight_VH) if now_weight else None
        sum_V = torch.zeros_like(bias_V) if now_bias else None
        share_O = torch.empty_like(amount_O)
        lse_S = h_SH.new_empty(len(h_SH))
        for block in _blocks(h_SH, weight_VH, bias_V, row_O, column_O, amount_O):
            total_S1 = block.exp_SV.sum(-1, keepdim=True)
            lse_S[block.rows] = (total_S1.log() + block.highest_S1)[:, 0]
            if mean_SH is not None:
                torch.mm(block.exp_SV, weight_VH, out=mean_SH[block.rows])
                mean_SH[block.rows].div_(total_S1)
            if sum_VH is not None:
                sum_VH.addmm_(block.exp_SV.T, h_SH[block.rows] / total_S1)
            if sum_V is not None:
                sum_V.addmv_(block.exp_SV.T, 1 / total_S1[:, 0])
            if need_amount:
                share_O[block.changed] = block.exp_SV[block.place] / total_S1[block.place[0], 0]
        ctx.sums = mean_SH, sum_VH, sum_V, share_O
        ctx.save_for_backward(h_SH, weight_VH, bias_V, row_O, column_O, amount_O, lse_S)
        return lse_S

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient_S: Tensor) -> tuple[Tensor | None, ...]:
        h_SH, weight_VH, bias_V, row_O, column_O, amount_O, lse_S = ctx.saved_tensors
        mean_SH, sum_VH, sum_V, share_O = ctx.sums
        _, need_weight, need_bias, _, _, need_amount, _ = ctx.needs_input_grad
        even = bool((gradient_S == gradient_S[0]).all())
        if (need_weight or need_bias) and not (even and (sum_VH is not None or sum_V is not None)):
            sum_VH, sum_V = torch.zeros_like(weight_VH), torch.zeros_like(bias_V)
            for block in _blocks(h_SH, weight_VH, bias_V, row_O, column_O, amount_O):
                scale_S = gradient_S[block.rows] * (block.highest_S1[:, 0] - lse_S[block.rows]).exp()
                sum_VH.addmm_(block.exp_SV.T, h_SH[block.rows] * scale_S[:, None])
                sum_V.addmv_(block.exp_SV.T, scale_S)
        else:
            sum_VH = sum_VH * gradient_S[0] if sum_VH is not None else None
            sum_V = sum_V * gradient_S[0] if sum_V is not None else None
        return (
            mean_SH * gradient_S[:, None] if mean_SH is not None else None,
            sum_VH if need_weight else None,
            sum_V if need_bias else None,
            None,
            None,
            share_O * gradient_S[row_O] if need_amount else None,
            None,
        )
