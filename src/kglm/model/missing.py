"""Missing facts: the text asks for a relation that the parent lacks in the graph.

The paper draws a relation among those that the parent has. Refinement: it is drawn among all relations, with a learned
handicap κ for those that the parent lacks (κ → −∞ is the paper's distribution):

    π(r | p) = e^{s(r)} / z(p) for a relation of p,    e^{s(r) + κ} / z(p) for one that p lacks
    z(p)     = own(p) + e^κ (Σ_{all r} e^{s(r)} − own(p)),    own(p) = Σ_{r of p} e^{s(r)}
    κ        = b + u · h_x + w · [m, [m = 1], a]

s(r) is the score of `relations`, and m and a those of the relations that the words before name best (see `cues`). A
relation that p lacks leads to no entity: the word is a plain word and starts no mention. So

    p(plain word x) = (p(∅) + p(related) Σ_p π(p) Σ_{r lacking} π(r | p)) p(x | ∅)

and every sum over steps is still 1. An entity without any fact may be the parent of a missing fact. The cost of a
parent is that of its own relations, because the sum over all relations is the same for all parents.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from kglm.kg.graph import KnowledgeGraph
from kglm.model.arrays import Floats, Ints, array
from kglm.model.chunk import Candidates, HiddenFacts
from kglm.model.cues import RELATION_WEIGHTS, NamedRelation, cue_features
from kglm.model.logsums import masked_logsumexp, segment_logsumexp
from kglm.model.relations import REVERSE_REFLEXIVE, TextRelations

START_WEIGHT = 3.0
"""Initial e^κ times the number of relations. If all scores are equal, all relations that a parent lacks are together as
probable as three that it has, however many relations the graph has."""
LEAST = 1e-30
"""Least share that is not treated as 0 in logarithms."""


class MissingHead(nn.Module):
    """κ, and the shares of the relations that candidate parents lack."""

    def __init__(self, hidden: int, relations: int, *, cues: bool) -> None:
        super().__init__()
        self.uses_cues = cues
        self.bias = nn.Parameter(torch.tensor([math.log(START_WEIGHT / relations)]))
        self.context_H = nn.Parameter(torch.zeros(hidden))
        self.cue_3 = nn.Parameter(torch.zeros(RELATION_WEIGHTS), requires_grad=cues)

    def handicap(self, h_x_FH: Tensor, named: NamedRelation | None) -> Tensor:
        """κ at flat positions."""
        value_F = self.bias + h_x_FH @ self.context_H
        if self.uses_cues and named is not None:
            value_F = value_F + cue_features(named.value_F3[:, :2].to(value_F)) @ self.cue_3
        return value_F

    def log_lacking(self, log_own: Tensor, log_total: Tensor, handicap: Tensor) -> Tensor:
        """κ + log (Σ_{all r} e^{s(r)} − own(p))."""
        return handicap + log_total + (1 - (log_own - log_total).exp()).clamp(min=LEAST).log()

    def log_z(self, log_own: Tensor, log_total: Tensor, handicap: Tensor) -> Tensor:
        """log z(p)."""
        return torch.logaddexp(log_own, self.log_lacking(log_own, log_total, handicap))

    def log_shares(
        self, score_FR: Tensor, log_total_F: Tensor, handicap_F: Tensor, log_parent_BTP: Tensor, candidates: Candidates
    ) -> Tensor:
        """log Σ_p π(p) Σ_{r lacking} π(r | p) at flat positions; -inf where there is no candidate."""
        rows, length, _ = log_parent_BTP.shape
        highest_F = score_FR.detach().amax(1)
        mass_FR = (score_FR - highest_F[:, None]).exp()
        mass_YT = mass_FR.view(rows, length, -1).transpose(1, 2).flatten(0, 1)  # a row for each row and relation
        parent_Y, relation_Y = candidates.member_parent_Y, candidates.member_relation_Y
        of_row_Y = parent_Y // max(candidates.node_BP.shape[1], 1) * score_FR.shape[1] + relation_Y
        own_NT = mass_FR.new_zeros(candidates.node_BP.numel(), length).index_add(0, parent_Y, mass_YT[of_row_Y])
        log_own_BTP = own_NT.view(rows, -1, length).transpose(1, 2).clamp(min=LEAST).log()
        log_own_BTP = log_own_BTP + highest_F.view(rows, length, 1)
        shape = (rows, length, 1)
        log_lacking_BTP = self.log_lacking(log_own_BTP, log_total_F.view(shape), handicap_F.view(shape))
        log_z_BTP = torch.logaddexp(log_own_BTP, log_lacking_BTP)
        share_FP = (log_parent_BTP + log_lacking_BTP - log_z_BTP).flatten(0, 1)
        return masked_logsumexp(share_FP, share_FP > -math.inf)

    def log_asked(
        self,
        score_W: Tensor,
        log_own_G: Tensor,
        log_total_G: Tensor,
        handicap_G: Tensor,
        log_parent_G: Tensor,
        hidden: HiddenFacts,
        starts: int,
    ) -> Tensor:
        """log Σ π(p) π(r | p) over the hidden facts of each mention start; -inf where none is hidden.

        `log_own_G` is the sum over the relations that each parent keeps.
        """
        log_rest_G = log_parent_G + handicap_G - self.log_z(log_own_G, log_total_G, handicap_G)
        return segment_logsumexp(score_W + log_rest_G[hidden.group_W], hidden.group_start_G[hidden.group_W], starts)


class TextMissing:
    """Missing facts along one text."""

    def __init__(
        self,
        head: MissingHead,
        h_x_TH: Tensor,
        named: NamedRelation | None,
        relations: TextRelations,
        graph: KnowledgeGraph,
        *,
        first: int,
        scale: float,
    ) -> None:
        self._first = first
        self._relations = relations
        self._graph = graph
        self._handicap_T = array(head.handicap(h_x_TH, named)) * scale
        self._log_total_T = relations.log_totals()

    def log_shares(self, t: int, node_P: Ints) -> tuple[Floats, Floats]:
        """log of the shares of π(r | p) that the relations of p have together, and that those have which p lacks."""
        row, log_own_P = t - self._first, self._relations.log_z(t, node_P)
        with np.errstate(divide="ignore"):
            log_rest_P = np.log(-np.expm1(np.minimum(log_own_P - self._log_total_T[row], 0.0)))
        log_lacking_P = self._handicap_T[row] + self._log_total_T[row] + log_rest_P
        log_z_P = np.logaddexp(log_own_P, log_lacking_P)
        return log_own_P - log_z_P, log_lacking_P - log_z_P

    def of_parent(self, t: int, node: int) -> Floats:
        """Probability of each relation, given that the text asks for one that this entity lacks."""
        score_R = self._relations.scores(t, np.arange(self._graph.relation_count))
        lacking_R = np.ones(len(score_R), np.bool_)
        lacking_R[self._graph.edges(node).relation] = lacking_R[REVERSE_REFLEXIVE] = False
        mass_R = np.exp(score_R - score_R[lacking_R].max(initial=-np.inf), where=lacking_R, out=np.zeros(len(score_R)))
        return np.asarray(mass_R / max(mass_R.sum(), LEAST))
