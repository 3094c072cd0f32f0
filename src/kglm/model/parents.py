"""The parent: which of the entities mentioned so far the next mention is related to.

    π(p) = softmax over the candidates of v_p · h_p + b_p

Refinement, not in the paper: b_p is a learned score of the candidate's place in the text. After "Japan lies in Asia.
The capital of France is" the parent is France, which stands in the sentence; after "… Its capital is" it is the subject
of the article. Which of these counts how much depends on the text:

    b_p = Σ_q f_q(p, t) (w + U h_x)_q

with a feature for each log-bucket of the distance to its last mention, one for the first entity mentioned, and one for
a mention in the same sentence.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from kglm.model.arrays import Bools, Floats, Ints, array
from kglm.model.buckets import BUCKETS, DISTANCES
from kglm.model.entities import EntityTable
from kglm.model.logsums import masked_logsumexp
from kglm.model.node_cache import NodeScores
from kglm.model.options import LatentConfig

SUBJECT, SENTENCE = BUCKETS, BUCKETS + 1
PLACES = BUCKETS + 2
"""Number of features of a candidate's place in the text: distance buckets, subject, same sentence."""
DISTANCE_BUCKETS = np.searchsorted(DISTANCES, np.arange(DISTANCES[-1] + 2))
"""Bucket of each distance; longer ones are in the last bucket."""
START_SENTENCE = 1.0
"""Initial weight of a mention in the same sentence."""


def places(t: int | Ints, boundary: int | Ints, last_P: Ints, subject_P: Bools) -> Ints:
    """Places of candidates at position t: bucket of the distance, 1 if the subject, 1 if in the same sentence (P × 3).

    `last_P` are their last positions inside a mention, `boundary` the word before the sentence. Several positions, with
    a row of `last_P` each, are given as columns.
    """
    bucket_P = np.searchsorted(DISTANCES, np.maximum(t - last_P, 1))
    return np.stack(np.broadcast_arrays(bucket_P, subject_P, last_P + 1 > boundary), -1)


class ParentHead(nn.Module):
    """π(p) at mention starts. The weights of features that are switched off are 0."""

    used_Q: Tensor

    def __init__(self, config: LatentConfig, hidden: int) -> None:
        super().__init__()
        switches = [config.recency_bias] * BUCKETS + [config.subject_bias, config.sentence_bias]
        used_Q = torch.tensor(switches) & (config.facts == "all")
        start_Q = torch.zeros(PLACES)
        start_Q[SENTENCE] = START_SENTENCE
        self.register_buffer("used_Q", used_Q, persistent=False)
        self.weight_Q = nn.Parameter(start_Q, requires_grad=bool(used_Q.any()))
        self.context_HQ = nn.Parameter(torch.zeros(hidden, PLACES), requires_grad=bool(used_Q.any()))

    def place_weights(self, h_x_MH: Tensor) -> Tensor:
        """w + U h_x (M × Q)."""
        return (self.weight_Q + h_x_MH @ self.context_HQ) * self.used_Q

    def log_probs(
        self, h_x_MH: Tensor, h_p_MD: Tensor, parent_MP: Tensor, place_MP3: Tensor, entities: EntityTable
    ) -> Tensor:
        """log π(p) over the candidates; padding (-1) has -inf. Every row needs at least one candidate."""
        node_N, column_MP = torch.unique(parent_MP.clamp(min=0), return_inverse=True)
        score_MP = (h_p_MD @ entities.vectors(node_N).T).gather(1, column_MP)
        score_MP = score_MP + self._place_scores(self.place_weights(h_x_MH), place_MP3)
        return score_MP.masked_fill(parent_MP < 0, -math.inf).log_softmax(-1)

    def log_probs_of_rows(
        self, h_x_BTH: Tensor, h_p_BTD: Tensor, node_BP: Tensor, place_BTP3: Tensor, entities: EntityTable
    ) -> Tensor:
        """log π(p) at all positions of rows with their own lists of entities (B × T × P).

        An entity that is no candidate at a position has -1 as its first place, and -inf here.
        """
        candidate_BTP = place_BTP3[..., 0] >= 0
        score_BTP = h_p_BTD @ entities.vectors(node_BP.clamp(min=0)).transpose(1, 2)
        score_BTP = score_BTP + self._place_scores(self.place_weights(h_x_BTH), place_BTP3.clamp(min=0).long())
        log_z_N = masked_logsumexp(score_BTP.flatten(0, 1), candidate_BTP.flatten(0, 1))
        log_z_BT1 = log_z_N.masked_fill(log_z_N == -math.inf, 0.0).view(*score_BTP.shape[:2], 1)
        return (score_BTP - log_z_BT1).masked_fill(~candidate_BTP, -math.inf)

    def _place_scores(self, weight_MQ: Tensor, place_MP3: Tensor) -> Tensor:
        """b_p of candidates; further axes may come first."""
        flag_MP2 = place_MP3[..., 1:].to(weight_MQ)
        subject_sentence_MP = (flag_MP2 @ weight_MQ[..., SUBJECT:, None])[..., 0]
        return weight_MQ.gather(-1, place_MP3[..., 0]) + subject_sentence_MP


class TextParents:
    """π(p) along one text, for many histories."""

    def __init__(
        self,
        head: ParentHead,
        h_x_TH: Tensor,
        h_p_TD: Tensor,
        entities: EntityTable,
        *,
        first: int,
        scale: float,
    ) -> None:
        self._first, self._scale = first, scale
        self._h_p_TD = h_p_TD
        self._entities = entities
        self._weight_TQ = array(head.place_weights(h_x_TH)) * scale
        self._score = NodeScores(len(h_p_TD), self._products)

    def _products(self, node_N: Ints, rows: slice) -> Floats:
        with torch.no_grad():
            vector_ND = self._entities.vectors(torch.from_numpy(node_N).to(self._h_p_TD.device))
            return array(vector_ND @ self._h_p_TD[rows].T) * self._scale

    def log_probs(
        self, t: int, boundary: int, node_P: Ints, candidate_SP: Bools, last_SP: Ints, subject_S: Ints
    ) -> Floats:
        """log π(p) over the slots of mentioned entities in each history; -inf for those that are no candidates.

        `last_SP` are last positions inside a mention, `subject_S` the slot of each history's subject.
        """
        log_p_SP = np.full(candidate_SP.shape, -np.inf)
        s_Y, p_Y = np.nonzero(candidate_SP)  # of all slots, each history has few
        if not len(s_Y):
            return log_p_SP
        weight_Q, last_Y = self._weight_TQ[t - self._first], last_SP[s_Y, p_Y]
        distance_Y = np.clip(t - last_Y, 1, len(DISTANCE_BUCKETS) - 1)
        bias_Y = weight_Q[DISTANCE_BUCKETS][distance_Y] + weight_Q[SENTENCE] * (last_Y + 1 > boundary)
        bias_Y[p_Y == subject_S[s_Y]] += weight_Q[SUBJECT]
        score_Y = self._score.at(t - self._first, node_P)[p_Y] + bias_Y
        size_S = candidate_SP.sum(1)
        size_S = size_S[size_S > 0]
        first_S = np.cumsum(size_S) - size_S
        highest_Y = np.repeat(np.maximum.reduceat(score_Y, first_S), size_S)
        log_z_Y = highest_Y + np.log(np.repeat(np.add.reduceat(np.exp(score_Y - highest_Y), first_S), size_S))
        log_p_SP[s_Y, p_Y] = score_Y - log_z_Y
        return log_p_SP
