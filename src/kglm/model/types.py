"""The type of a position: no mention, the start of a new or related mention, or a further word of one.

    p(type) = softmax(W h_x + b), illegal types masked to probability 0

`related` needs a candidate parent, `continue` a running mention; `new` is illegal if only the topic's facts are used.

Refinements, not in the paper: the mention state (see `mention_state`) adds a learned score, and so do words before the
position that name a relation (see `cues`): [m, [m = 1], a] (w' + U' h_x) with the largest m and a of any relation, and
s v_r W' for the relation r of the largest s = (m + a) / 2. After "married to" comes a name, after "capital of" more
often "the".
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kglm.model.arrays import Bools, Floats, Ints, array
from kglm.model.cues import RELATION_WEIGHTS, NamedRelation, cue_features
from kglm.model.mention_state import STATES
from kglm.model.options import Facts, LatentConfig


class Type(IntEnum):
    """What a position is."""

    NONE = 0
    NEW = 1
    RELATED = 2
    CONTINUE = 3


def _mask_illegal(score_NC: Any, related_N: Any, continue_N: Any, facts: Facts) -> None:
    """Set the scores of illegal types to -inf, in place: tensors or arrays."""
    score_NC[~related_N, int(Type.RELATED)] = -math.inf
    score_NC[~continue_N, int(Type.CONTINUE)] = -math.inf
    if facts == "topic":
        score_NC[:, int(Type.NEW)] = -math.inf


class TypeHead(nn.Module):
    """p(type) at flat positions."""

    def __init__(self, config: LatentConfig, hidden: int, entity_size: int) -> None:
        super().__init__()
        self.config = config
        types, uses_cues = len(Type), config.type_cues and config.facts != "none"
        self.head = nn.Linear(hidden, types)
        self.state_QC = nn.Parameter(torch.zeros(STATES, types), requires_grad=config.type_features)
        self.cue_3C = nn.Parameter(torch.zeros(RELATION_WEIGHTS, types), requires_grad=uses_cues)
        self.relation_DC = nn.Parameter(torch.zeros(entity_size, types), requires_grad=uses_cues)
        self.cue_H3C = nn.Parameter(torch.zeros(hidden, RELATION_WEIGHTS, types), requires_grad=uses_cues)

    def scores(self, h_x_FH: Tensor, named: NamedRelation | None, relation_RD: Tensor) -> Tensor:
        """W h_x + b, plus the score of the relation that the words before name."""
        score_FC: Tensor = self.head(h_x_FH)
        if not self.config.type_cues or named is None:
            return score_FC
        value_F3: Tensor = named.value_F3.to(h_x_FH.dtype)
        weight_F3C: Tensor = self.cue_3C + torch.tensordot(h_x_FH, self.cue_H3C, 1)
        of_relation_FC = (relation_RD @ self.relation_DC)[2 * named.relation_F]
        cue_F3 = cue_features(value_F3[:, :2])
        return score_FC + (cue_F3[..., None] * weight_F3C).sum(1) + value_F3[:, 2:] * of_relation_FC

    def state_scores(self) -> Tensor:
        """What each mention state adds (Q × C)."""
        return self.state_QC if self.config.type_features else torch.zeros_like(self.state_QC)

    def log_probs(
        self,
        h_x_FH: Tensor,
        state_F: Tensor,
        named: NamedRelation | None,
        related_F: Tensor,
        continue_F: Tensor,
        relation_RD: Tensor,
    ) -> Tensor:
        """log p(type); `related_F` and `continue_F` say where these two are legal. An illegal type has exactly -inf."""
        score_FC = self.scores(h_x_FH, named, relation_RD) + self.state_scores()[state_F]
        _mask_illegal(score_FC, related_F, continue_F, self.config.facts)
        return score_FC.log_softmax(-1)


class TextTypes:
    """p(type) along one text, for many histories."""

    def __init__(
        self,
        head: TypeHead,
        h_x_TH: Tensor,
        named: NamedRelation | None,
        relation_RD: Tensor,
        *,
        first: int,
        scale: float,
    ) -> None:
        self._first = first
        self._facts = head.config.facts
        self._score_TC = array(head.scores(h_x_TH, named, relation_RD)) * scale
        self._state_QC = array(head.state_scores()) * scale

    def log_probs(self, t: int, state_S: Ints, related_S: Bools, continue_S: Bools) -> Floats:
        """log p(type) at position t in each history; an illegal type has exactly -inf."""
        score_SC = self._score_TC[t - self._first] + self._state_QC[state_S]
        _mask_illegal(score_SC, related_S, continue_S, self._facts)
        highest_S1 = score_SC.max(1, keepdims=True)
        log_z_S1: Floats = highest_S1 + np.log(np.exp(score_SC - highest_S1).sum(1, keepdims=True))
        log_p_SC: Floats = score_SC - log_z_S1
        return log_p_SC

    def likely_starts(self, chance: float) -> Ints:
        """Positions where a mention starts with more than this probability, in the median of the mention states."""
        score_QTC = self._score_TC + self._state_QC[:, None]
        mass_QTC = np.exp(score_QTC - score_QTC.max(-1, keepdims=True))
        start_QT = (mass_QTC[..., Type.NEW] + mass_QTC[..., Type.RELATED]) / mass_QTC.sum(-1)
        return self._first + np.flatnonzero(np.median(start_QT, 0) > chance)
