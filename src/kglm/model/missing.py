"""A missing fact: the text asks for a relation that the parent lacks in the graph.

The paper draws a relation among those that the parent has. Refinement: it is drawn among all relations, with a learned
handicap κ for those that the parent lacks (κ → −∞ is the paper's distribution):

    π(r | p) = e^{s(r)} / z(p) for a relation of p,    e^{l(r)} / z(p) for one that p lacks,    l(r) = s(r) + κ(r)
    z(p)     = Σ_{r of p} e^{s(r)} + Σ_{r lacking} e^{l(r)}
    κ(r)     = b + u · h_x + w · [m, [m = 1], a] + λ log q(r),    q(r) = e^{s(r)} / Σ_{all r} e^{s(r)}

s(r) is the score of `relations`, and m and a those of the relations that the words before name best (see `cues`). q(r)
says how clearly the text asks for r: a relation that is not asked for is hardly missing, however many there are.

A relation that p lacks leads to no entity: the word is a plain word and starts no mention. So

    p(plain word x) = (p(∅) + p(related) Σ_p π(p) Σ_{r lacking} π(r | p)) p(x | ∅)

and every sum over steps is still 1. An entity without any fact may be the parent of a missing fact. The cost of a
parent is that of its own relations, because Σ e^{l(r)} over all relations is the same for all parents.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from kglm.model.arrays import Floats, Ints, array
from kglm.model.chunk import Candidates
from kglm.model.cues import RELATION_WEIGHTS, NamedRelation, cue_features
from kglm.model.logsums import masked_logsumexp, segment_logsumexp
from kglm.model.node_cache import NodeScores
from kglm.model.relations import REVERSE_REFLEXIVE, TextRelations

START_BIAS, START_CLARITY = -1.0, 1.0
"""Initial b and λ."""
LEAST = 1e-30
"""Least share that is not treated as 0 in logarithms."""


class LackingScores(NamedTuple):
    """Scores of relations at positions for parents that lack them."""

    score_NR: Tensor
    """l(r); -inf for the reverse of the reflexive relation."""
    log_total_N: Tensor
    """log Σ e^{l(r)} over all relations."""


class MissingHead(nn.Module):
    """κ, and the shares of the relations that candidate parents lack."""

    def __init__(self, hidden: int, *, cues: bool) -> None:
        super().__init__()
        self.uses_cues = cues
        self.bias = nn.Parameter(torch.tensor([START_BIAS]))
        self.clarity = nn.Parameter(torch.tensor([START_CLARITY]))
        self.context_H = nn.Parameter(torch.zeros(hidden))
        self.cue_3 = nn.Parameter(torch.zeros(RELATION_WEIGHTS), requires_grad=cues)

    def handicap(self, h_x_NH: Tensor, named: NamedRelation | None) -> Tensor:
        """The part of κ(r) that is the same for all relations."""
        value_N = self.bias + h_x_NH @ self.context_H
        if self.uses_cues and named is not None:
            value_N = value_N + cue_features(named.value_F3[:, :2].to(value_N)) @ self.cue_3
        return value_N

    def scores(self, score_NR: Tensor, h_x_NH: Tensor, named: NamedRelation | None) -> LackingScores:
        """l(r) from s(r)."""
        none_R = torch.arange(score_NR.shape[1], device=score_NR.device) == REVERSE_REFLEXIVE
        log_q_NR = score_NR - score_NR.masked_fill(none_R, -math.inf).logsumexp(1, keepdim=True)
        lacking_NR = score_NR + self.handicap(h_x_NH, named)[:, None] + self.clarity * log_q_NR
        lacking_NR = lacking_NR.masked_fill(none_R, -math.inf)
        return LackingScores(lacking_NR, lacking_NR.logsumexp(1))

    def log_z(self, log_own: Tensor, log_own_lacking: Tensor, log_total: Tensor) -> tuple[Tensor, Tensor]:
        """log z(p), and log Σ e^{l(r)} over the relations that p lacks.

        Given are log Σ e^{s(r)} and log Σ e^{l(r)} over the relations of p, and log Σ e^{l(r)} over all relations.
        """
        log_lacking = log_total + (1 - (log_own_lacking - log_total).exp()).clamp(min=LEAST).log()
        return torch.logaddexp(log_own, log_lacking), log_lacking

    def log_probs(
        self, score_FR: Tensor, lacking: LackingScores, log_parent_BTP: Tensor, candidates: Candidates
    ) -> tuple[Tensor, Tensor]:
        """log Σ_p π(p) Σ_{r lacking} π(r | p) at flat positions, and log Σ π(p) π(r | p) over the hidden facts there.

        Both are -inf where there are none.
        """
        rows, length, _ = log_parent_BTP.shape
        log_own_BTP, log_own_lacking_BTP = (
            _sums_of_parents(each_FR, candidates, length) for each_FR in (score_FR, lacking.score_NR)
        )
        log_total_BT1 = lacking.log_total_N.view(rows, length, 1)
        log_z_BTP, log_lacking_BTP = self.log_z(log_own_BTP, log_own_lacking_BTP, log_total_BT1)
        share_FP = (log_parent_BTP + log_lacking_BTP - log_z_BTP).flatten(0, 1)
        at_Y, slot_Y = candidates.hidden_position_Y, candidates.hidden_parent_Y
        log_p_Y = (log_parent_BTP - log_z_BTP).flatten(0, 1)[at_Y, slot_Y]
        log_p_Y = log_p_Y + lacking.score_NR[at_Y, candidates.hidden_relation_Y]
        return masked_logsumexp(share_FP, share_FP > -math.inf), segment_logsumexp(log_p_Y, at_Y, len(share_FP))


def _sums_of_parents(score_FR: Tensor, candidates: Candidates, length: int) -> Tensor:
    """log Σ exp over the relations of each candidate parent (B × T × P)."""
    rows, parents = candidates.node_BP.shape
    highest_F = score_FR.detach().amax(1)
    mass_FR = (score_FR - highest_F[:, None]).exp()
    mass_NT = mass_FR.view(rows, length, -1).transpose(1, 2).flatten(0, 1)  # a row for each batch row and relation
    parent_Y = candidates.member_parent_Y
    at_Y = parent_Y // parents * score_FR.shape[1] + candidates.member_relation_Y
    own_NT = mass_NT.new_zeros(rows * parents, length).index_add(0, parent_Y, mass_NT[at_Y])
    log_own_BTP = own_NT.view(rows, parents, length).transpose(1, 2).clamp(min=LEAST).log()
    return log_own_BTP + highest_F.view(rows, length, 1)


class TextMissing:
    """Missing facts along one text."""

    def __init__(
        self,
        head: MissingHead,
        h_x_TH: Tensor,
        named: NamedRelation | None,
        relations: TextRelations,
        *,
        first: int,
    ) -> None:
        self._first = first
        self._relations = relations
        score_TR = torch.from_numpy(relations.all_scores()).to(h_x_TH.device)
        self._lacking_TR = array(head.scores(score_TR, h_x_TH, named).score_NR)
        self._highest_T = self._lacking_TR.max(1)
        self._mass_RT = np.exp(self._lacking_TR - self._highest_T[:, None]).T.copy()
        self._total_T = self._mass_RT.sum(0)
        self._log_sums = NodeScores(len(h_x_TH), self._sums_of)

    def log_shares(self, t: int, node_P: Ints) -> tuple[Floats, Floats]:
        """log of the shares of π(r | p) that the relations of p have together, and that those have which p lacks."""
        log_own_P, log_lacking_P = self._relations.log_z(t, node_P), self._log_sums.at(t - self._first, node_P)
        log_z_P = np.logaddexp(log_own_P, log_lacking_P)
        return log_own_P - log_z_P, log_lacking_P - log_z_P

    def _sums_of(self, node_N: Ints, rows: slice) -> Floats:
        """log Σ e^{l(r)} over the relations that each node lacks."""
        own_NT = np.stack([self._mass_RT[self._relations.of(node), rows].sum(0) for node in node_N.tolist()])
        with np.errstate(divide="ignore"):
            return np.asarray(self._highest_T[rows] + np.log(np.maximum(self._total_T[rows] - own_NT, 0.0)))

    def of_parent(self, t: int, node: int) -> Floats:
        """Probability of each relation, given that the text asks for one that this entity lacks."""
        mass_R = self._mass_RT[:, t - self._first].copy()
        mass_R[self._relations.of(node)] = 0.0
        return np.asarray(mass_R / max(mass_R.sum(), LEAST))
