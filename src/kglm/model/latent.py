"""The latent variables: type, new entity, parent, relation, tail. One module for the model p and the proposal q.

Legend: F flat positions, M mention starts, K candidate parents, E real entities, R relation indices, D size of an
entity vector, H size of h_x; W ways, G groups, Q members as in `chunk`.

With h = [h_x ; h_p ; h_r]:

    type        softmax(W h_x + b), illegal types masked to probability 0
    new         softmax over real entities of v_e · (h_p + h_r) + b_e
    parent      softmax over the candidates of v_p · h_p (+ recency and subject bias)
    relation    softmax over the distinct relations of p of v_r · h_r
    tail        uniform over the n_{p,r} tails

    P(e | related) = Σ_{(p, r, e)} π(p) π(r | p) / n_{p,r}
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from kglm.model.annotation import FEATURES, Type
from kglm.model.chunk import BUCKETS, Chunk

Marginal = Literal["annotated", "all", "entity"]
"""Over which ways to reach an entity a mention's probability is summed: the facts that the annotation lists (the
paper), all facts of the local graph, or all of these and `new` too."""


@dataclass(frozen=True)
class LatentConfig:
    """Options of the latent variables. The defaults are the preset `best`; `PAPER` has every refinement off."""

    marginal: Marginal = "entity"
    """Which explanations of a mention are summed: annotated (the paper), all facts, or entity (new as well)."""
    type_features: bool = True
    """Let the type see the mention state: inside a mention or not, what the aliases allow next, how long since one."""
    recency_bias: bool = True
    """Learn how the chance of a parent falls with the distance to its last mention."""
    subject_bias: bool = True
    """Learn how much more likely the article's subject is a parent."""
    uniform_share: float = 0.05
    """Share of a new entity's probability that is spread evenly: no entity is rarer than share / |E|."""
    entity_bias: bool = True
    """Add a learned bias b_e to the score of each new entity."""
    train_relations: bool = True
    """Train v_r from where TransE left it; otherwise it stays."""


PAPER = LatentConfig("annotated", False, False, False, 0.0, False, False)


class EntityTable(NamedTuple):
    """Vectors of a graph as the model holds them: nodes share rows (all dates one, all quantities another)."""

    vector_XD: Tensor
    row_N: Tensor
    """Row of each node."""
    real_E: Tensor
    """Nodes that can be new: everything but literals."""


class LatentScores(NamedTuple):
    """Log-probabilities of the annotation; a start that nothing explains has entity score 0 and is marked."""

    type_F: Tensor
    entity_M: Tensor
    explained_M: Tensor


class Latent(nn.Module):
    """Distributions over z given hidden states."""

    vector_XD: Tensor
    row_N: Tensor
    real_E: Tensor
    place_N: Tensor
    real_ED: Tensor

    def __init__(self, config: LatentConfig, hidden: int, entities: EntityTable, relation_RD: Tensor) -> None:
        super().__init__()
        self.config = config
        self.type_head = nn.Linear(hidden, len(Type))
        for name, tensor in entities._asdict().items():
            self.register_buffer(name, tensor, persistent=False)
        place_N = torch.full_like(entities.row_N, -1)
        place_N[entities.real_E] = torch.arange(len(entities.real_E))
        self.register_buffer("place_N", place_N, persistent=False)
        # the vectors of real entities in one piece: the product with all of them needs no gathering
        self.register_buffer("real_ED", entities.vector_XD[entities.row_N[entities.real_E]], persistent=False)
        self.relation_RD = nn.Parameter(relation_RD.clone(), requires_grad=config.train_relations)
        self.type_feature = nn.Parameter(torch.zeros(FEATURES, len(Type)), requires_grad=config.type_features)
        self.recency = nn.Parameter(torch.zeros(BUCKETS), requires_grad=config.recency_bias)
        self.subject = nn.Parameter(torch.zeros(()), requires_grad=config.subject_bias)
        self.entity_bias_E = nn.Parameter(torch.zeros(len(entities.real_E)), requires_grad=config.entity_bias)

    def entity_vectors(self, node: Tensor) -> Tensor:
        """v_e of nodes, of any shape."""
        return self.vector_XD[self.row_N[node]]

    def type_log_probs(self, h_FH: Tensor, feature_F: Tensor, related_F: Tensor, continue_F: Tensor) -> Tensor:
        """log p(type) at flat positions; an illegal type has exactly -inf."""
        logits: Tensor = self.type_head(h_FH)
        if self.config.type_features:
            logits = logits + self.type_feature[feature_F]
        illegal = torch.zeros_like(logits, dtype=torch.bool)
        illegal[:, Type.RELATED] = ~related_F
        illegal[:, Type.CONTINUE] = ~continue_F
        return logits.masked_fill(illegal, -math.inf).log_softmax(-1)

    def _new_logits(self, h_MD: Tensor) -> Tensor:
        logits_ME = h_MD @ self.real_ED.T
        return logits_ME + self.entity_bias_E if self.config.entity_bias else logits_ME

    def _mixed(self, log_p: Tensor) -> Tensor:
        share = self.config.uniform_share
        if share == 0:
            return log_p
        even = log_p.new_tensor(math.log(share / len(self.real_E)))
        return torch.logaddexp(log_p + math.log1p(-share), even)

    def new_log_prob(self, h_MD: Tensor, node_M: Tensor) -> Tensor:
        """log p(e | new) of one entity each; a literal is never new: -inf."""
        place_M = self.place_N[node_M]
        logits_ME = self._new_logits(h_MD)
        chosen_M = logits_ME.gather(1, place_M.clamp(min=0)[:, None])[:, 0] - logits_ME.logsumexp(-1)
        return self._mixed(chosen_M).masked_fill(place_M < 0, -math.inf)

    def parent_log_probs(self, h_MD: Tensor, parent_MK: Tensor, bucket_MK: Tensor, subject_MK: Tensor) -> Tensor:
        """log π(p) over the candidates; padding has -inf. Every row needs at least one candidate."""
        node_P, column_MK = torch.unique(parent_MK.clamp(min=0), return_inverse=True)
        scores = (h_MD @ self.entity_vectors(node_P).T).gather(1, column_MK)
        if self.config.recency_bias:
            scores = scores + self.recency[bucket_MK]
        if self.config.subject_bias:
            scores = scores + self.subject * subject_MK
        return scores.masked_fill(parent_MK < 0, -math.inf).log_softmax(-1)

    def relation_scores(self, h_MD: Tensor) -> Tensor:
        """v_r · h_r for all relations; to be normalised over those of a parent."""
        return h_MD @ self.relation_RD.T

    def way_log_probs(self, h_p_MD: Tensor, h_r_MD: Tensor, chunk: Chunk) -> Tensor:
        """log π(p) π(r | p) / n_{p,r} of each way of the chunk."""
        if not len(chunk.way_group_W):
            return h_p_MD.new_zeros(0)
        used_M = torch.unique(chunk.group_start_G)  # starts without a way may have no candidate at all
        row_M = torch.full((len(chunk.start_position_M),), -1).index_copy(0, used_M, torch.arange(len(used_M)))
        log_parent = self.parent_log_probs(
            h_p_MD[used_M], chunk.parent_MK[used_M], chunk.bucket_MK[used_M], chunk.subject_MK[used_M]
        )
        score_MR = self.relation_scores(h_r_MD[used_M])
        row_G = row_M[chunk.group_start_G]
        member_Q = score_MR[row_G[chunk.member_group_Q], chunk.member_relation_Q]
        log_z_G = segment_logsumexp(member_Q, chunk.member_group_Q, len(row_G))
        log_parent_G = log_parent[row_G, chunk.group_parent_G]
        group_W = chunk.way_group_W
        relation_W = score_MR[row_G[group_W], chunk.way_relation_W] - log_z_G[group_W]
        return log_parent_G[group_W] + relation_W - chunk.way_log_tails_W.to(relation_W.dtype)

    def score(self, h_x_FH: Tensor, h_p_FD: Tensor, h_r_FD: Tensor, chunk: Chunk) -> LatentScores:
        """Log-probability of the chunk's annotation, type and entity apart."""
        type_FC = self.type_log_probs(
            h_x_FH, chunk.feature_BT.flatten(), chunk.related_BT.flatten(), chunk.continue_BT.flatten()
        )
        type_F = type_FC.gather(1, chunk.type_BT.flatten()[:, None])[:, 0]
        at_M = chunk.start_position_M
        h_p_MD, h_r_MD = h_p_FD[at_M], h_r_FD[at_M]
        way_W = self.way_log_probs(h_p_MD, h_r_MD, chunk)
        count = len(at_M)
        start_W = chunk.group_start_G[chunk.way_group_W]
        if self.config.marginal == "annotated":
            way_W = way_W.masked_fill(~chunk.way_listed_W, -math.inf)
        related_M = segment_logsumexp(way_W, start_W, count)
        is_new_M = chunk.start_type_M == Type.NEW
        if self.config.marginal == "entity":
            return self._any_type(type_FC, type_F, h_p_MD + h_r_MD, related_M, chunk)
        new_M = torch.full_like(related_M, -math.inf)
        if is_new_M.any():
            new_M = new_M.masked_scatter(
                is_new_M, self.new_log_prob((h_p_MD + h_r_MD)[is_new_M], chunk.start_node_M[is_new_M])
            )
        entity_M = torch.where(is_new_M, new_M, related_M)
        explained_M = entity_M > -math.inf
        return LatentScores(type_F, entity_M.masked_fill(~explained_M, 0.0), explained_M)

    def _any_type(self, type_FC: Tensor, type_F: Tensor, h_MD: Tensor, related_M: Tensor, chunk: Chunk) -> LatentScores:
        """Sum over `new` and `related`: what the annotation calls a mention does not matter, only its entity."""
        at_M = chunk.start_position_M
        if not len(at_M):
            return LatentScores(type_F, related_M, torch.ones_like(at_M, dtype=torch.bool))
        log_new_M = type_FC[at_M, Type.NEW] + self.new_log_prob(h_MD, chunk.start_node_M)
        log_related_M = _plus(type_FC[at_M, Type.RELATED], related_M)
        both_M2 = torch.stack([log_new_M, log_related_M], -1)
        joint_M = masked_logsumexp(both_M2, both_M2 > -math.inf)
        explained_M = joint_M > -math.inf
        log_start_M = torch.logaddexp(type_FC[at_M, Type.NEW], type_FC[at_M, Type.RELATED])
        entity_M = (joint_M.masked_fill(~explained_M, 0.0) - log_start_M).masked_fill(~explained_M, 0.0)
        return LatentScores(type_F.index_copy(0, at_M, log_start_M), entity_M, explained_M)


def masked_logsumexp(score_SJ: Tensor, mask_SJ: Tensor) -> Tensor:
    """log Σ exp over the marked scores of a row; -inf, with no gradient, where none is marked."""
    some_S = mask_SJ.any(-1)
    masked = score_SJ.masked_fill(~mask_SJ, -math.inf)
    safe = torch.where(some_S[:, None], masked, torch.zeros_like(masked))
    return safe.logsumexp(-1).masked_fill(~some_S, -math.inf)


def _plus(log_type: Tensor, log_entity: Tensor) -> Tensor:
    """Their sum, -inf where the entity cannot be reached, without a NaN in the gradient."""
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
