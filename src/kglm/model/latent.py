"""The latent variables: type, new entity, parent, relation, tail. One module for the model p and the proposal q.

Legend: F flat positions, M mention starts, A those that are asked for, K candidate parents, E real entities, R relation
indices, D size of an entity vector (C with what is counted of it), H size of h_x; W ways, G groups, Q members as in
`chunk`.

With h = [h_x ; h_p ; h_r]:

    type        softmax(W h_x + b), illegal types masked to probability 0
    new         softmax over real entities of v_e · (h_p + h_r) + b_e
    parent      softmax over the candidates of v_p · h_p (+ b_p, what its place in the text adds: see `parents`)
    relation    softmax over the distinct relations of p of v_r · h_r
    tail        uniform over the n_{p,r} tails

    P(e | related) = Σ_{(p, r, e)} π(p) π(r | p) π(e | p, r),    π(e | p, r) = 1 / n_{p,r}

What the paper does not have: b_e is learned for each entity, and for each log-bucket of the number of training
documents that introduce e, the document at hand not counted (or every entity of training would look frequent); v_r sees
the relation's name, v_r = v_r' + P mean(words of r), with another P for reverse relations; and among up to
`MAX_SCORED_TAILS` tails, π(e | p, r) is a softmax of v_e · Q h_x ("in the state of" wants the state, not the county).
Relations and tails that the words before a mention name are more likely, and so is a mention where they name any: see
`cues`.
"""

from __future__ import annotations

import copy
import math
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from kglm.model.annotation import FEATURES, Type
from kglm.model.chunk import Chunk
from kglm.model.cues import FULL, OF_RELATIONS, START_WEIGHTS, Named
from kglm.model.entities import EntityTable
from kglm.model.logsums import masked_logsumexp, plus, segment_logsumexp
from kglm.model.options import LatentConfig
from kglm.model.parents import BUCKETS, ParentBias
from kglm.model.softmax import Changes, linear_logsumexp
from kglm.model.word_head import WordHead

ModuleT = TypeVar("ModuleT", bound=nn.Module)


class Hidden(NamedTuple):
    """h cut into what types and words, parents, and relations are scored with; of any leading shape."""

    x: Tensor
    p: Tensor
    r: Tensor


class Tables(NamedTuple):
    """What follows from the parameters alone: computed once for a chunk, or for a whole inference."""

    relation_RD: Tensor
    """v_r."""
    bias_E: Tensor | None
    """b_e, but for the part of the frequencies."""


class LatentScores(NamedTuple):
    """Log-probabilities of the annotation, by component; a start that nothing explains has 0 and is marked.

    A mention's entity is paid for as `new_M`, or as `parent_M` (that some parent is drawn which reaches it) plus
    `relation_M` (that it is then reached).
    """

    type_F: Tensor
    new_M: Tensor
    parent_M: Tensor
    relation_M: Tensor
    explained_M: Tensor


class Ways(NamedTuple):
    """What reaches the entities of the mention starts."""

    reached_M: Tensor
    """log P(e | related)."""
    parent_M: Tensor
    """log of the share of the parents that reach e at all."""


class Latent(nn.Module):
    """Distributions over z given hidden states."""

    vector_XD: Tensor
    row_N: Tensor
    real_E: Tensor
    frequency_E: Tensor
    relation_word_NL: Tensor
    place_N: Tensor
    real_EC: Tensor

    def __init__(self, config: LatentConfig, hidden: int, entities: EntityTable) -> None:
        super().__init__()
        self.config = config
        self.type_head = nn.Linear(hidden, len(Type))
        for name, tensor in entities._asdict().items():
            if name != "relation_RD":
                self.register_buffer(name, tensor, persistent=False)
        self.register_buffer("place_N", _places(entities), persistent=False)
        self.register_buffer("real_EC", self._real(entities, entities.real_E, entities.frequency_E), persistent=False)
        size, relates, renews = entities.relation_RD.shape[1], config.facts != "none", config.facts != "topic"
        chooses = config.facts == "all"  # among parents
        self.relation_RD = nn.Parameter(entities.relation_RD.clone(), requires_grad=config.train_relations and relates)
        self.text_2HD = nn.Parameter(torch.zeros(2, hidden, size), requires_grad=config.relation_text and relates)
        self.tail_HD = nn.Parameter(torch.zeros(hidden, size), requires_grad=config.tail_scores and relates)
        self.cue = nn.Parameter(torch.tensor(START_WEIGHTS), requires_grad=config.cues and relates)
        self.cue_HQ = nn.Parameter(torch.zeros(hidden, len(START_WEIGHTS)), requires_grad=config.cues and relates)
        announces = config.type_cues and relates
        self.type_cue_3C = nn.Parameter(torch.zeros(OF_RELATIONS, len(Type)), requires_grad=announces)
        self.type_cue_DC = nn.Parameter(torch.zeros(size, len(Type)), requires_grad=announces)
        self.type_cue_H3C = nn.Parameter(torch.zeros(hidden, OF_RELATIONS, len(Type)), requires_grad=announces)
        self.frequency = nn.Parameter(torch.zeros(BUCKETS + 1), requires_grad=config.frequency_bias and renews)
        self.type_feature = nn.Parameter(torch.zeros(FEATURES, len(Type)), requires_grad=config.type_features)
        self.parent_bias = ParentBias(
            hidden,
            recency=config.recency_bias and chooses,
            subject=config.subject_bias and chooses,
            sentence=config.sentence_bias and chooses,
        )
        self.entity_bias_E = nn.Parameter(torch.zeros(len(self.real_E)), requires_grad=config.entity_bias and renews)

    def _real(self, entities: EntityTable, node_E: Tensor, frequency_E: Tensor) -> Tensor:
        """The vectors of real entities in one piece: the product with all of them needs no gathering.

        The bias of a frequency is one more part of it, [v_e ; 1 at the bucket of e] · [h ; biases]: a gradient by the
        way.
        """
        real_EC = entities.vector_XD[entities.row_N[node_E]]
        if self.config.frequency_bias:
            bucket_EF = torch.nn.functional.one_hot(frequency_E, BUCKETS + 1).to(real_EC)
            real_EC = torch.cat([real_EC, bucket_EF], -1)
        return real_EC

    @property
    def entities(self) -> EntityTable:
        """What it holds of the graph."""
        return EntityTable(
            self.vector_XD, self.row_N, self.real_E, self.frequency_E, self.relation_RD.detach(), self.relation_word_NL
        )

    def on(self, entities: EntityTable, trained: int) -> Latent:
        """The same distributions on a graph that was edited since; weights are shared, not copied.

        The first `trained` rows of vectors are the same as before.
        """
        other, old = twin(self), len(self.real_E)
        for name, tensor in entities._asdict().items():
            if name != "relation_RD":
                other._buffers[name] = tensor
        other._buffers["place_N"] = _places(entities)
        row_E = entities.row_N[self.real_E]
        moved = ((row_E != self.row_N[self.real_E]) | (row_E >= trained)).nonzero()[:, 0]
        if len(entities.real_E) > old or len(moved):
            late_EC = self._real(entities, entities.real_E[old:], entities.frequency_E[old:])
            real_EC = torch.cat([self.real_EC, late_EC])
            real_EC[moved] = self._real(entities, self.real_E[moved], self.frequency_E[moved])
            late_E = self.entity_bias_E.new_zeros(len(late_EC))
            other._buffers["real_EC"] = real_EC
            other._parameters["entity_bias_E"] = nn.Parameter(torch.cat([self.entity_bias_E.detach(), late_E]))
        if len(entities.relation_RD) > len(self.relation_RD):
            other._parameters["relation_RD"] = nn.Parameter(entities.relation_RD)
        return other

    def entity_vectors(self, node: Tensor) -> Tensor:
        """v_e of nodes, of any shape."""
        return self.vector_XD[self.row_N[node]]

    def type_scores(self, h_FH: Tensor, named: Named | None, tables: Tables) -> Tensor:
        """W h_x + b, and what it adds that the words before name a relation."""
        logits: Tensor = self.type_head(h_FH)
        if not self.config.type_cues or named is None:
            return logits
        value_F3: Tensor = named.value_F3.to(h_FH.dtype)
        weight_F3C: Tensor = self.type_cue_3C + torch.tensordot(h_FH, self.type_cue_H3C, 1)
        of_relation_FC = (tables.relation_RD @ self.type_cue_DC)[2 * named.relation_F]
        cue_F3 = cue_features(value_F3[:, :2])
        return logits + (cue_F3[..., None] * weight_F3C).sum(1) + value_F3[:, 2:] * of_relation_FC

    def type_log_probs(
        self,
        h_FH: Tensor,
        feature_F: Tensor,
        named: Named,
        related_F: Tensor,
        continue_F: Tensor,
        tables: Tables,
    ) -> Tensor:
        """log p(type) at flat positions; an illegal type has exactly -inf."""
        logits = self.type_scores(h_FH, named, tables)
        if self.config.type_features:
            logits = logits + self.type_feature[feature_F]
        illegal = torch.zeros_like(logits, dtype=torch.bool)
        illegal[:, Type.RELATED] = ~related_F
        illegal[:, Type.CONTINUE] = ~continue_F
        illegal[:, Type.NEW] = self.config.facts == "topic"
        return logits.masked_fill(illegal, -math.inf).log_softmax(-1)

    def tables(self, words: WordHead) -> Tables:
        """v_r and b_e as they are now."""
        config = self.config
        relation_RD: Tensor = self.relation_RD
        if config.relation_text:
            text_NH = words.mean_embedding(self.relation_word_NL)
            relation_RD = relation_RD + torch.einsum("nh,khd->nkd", text_NH, self.text_2HD).flatten(0, 1)
        return Tables(relation_RD, self.entity_bias_E if config.entity_bias else None)

    def _mixed(self, log_p: Tensor) -> Tensor:
        share = self.config.uniform_share
        if share == 0:
            return log_p
        even = log_p.new_tensor(math.log(share / len(self.real_E)))
        return torch.logaddexp(log_p + math.log1p(-share), even)

    def new_log_prob(self, h_MD: Tensor, chunk: Chunk, asked_M: Tensor, tables: Tables) -> Tensor:
        """log p(e | new) of the entity of each start that is asked for; -inf for the others, and for literals."""
        place_M = self.place_N[chunk.start_node_M]
        at_A = (asked_M & (place_M >= 0)).nonzero()[:, 0]
        h_AC, place_A = h_MD[at_A], place_M[at_A]
        if self.config.frequency_bias:
            h_AC = torch.cat([h_AC, self.frequency.expand(len(h_AC), -1)], -1)
        score_A = (h_AC * self.real_EC[place_A]).sum(-1)
        if tables.bias_E is not None:
            score_A = score_A + tables.bias_E[place_A]
        changes = None
        if self.config.frequency_bias and len(chunk.own_start_O):
            changes = self._without_own(chunk, at_A)
            of_chosen_O = changes.column_O == place_A[changes.row_O]
            score_A = score_A.index_add(0, changes.row_O[of_chosen_O], changes.amount_O[of_chosen_O])
        log_z_A = linear_logsumexp(h_AC, self.real_EC, tables.bias_E, changes, uneven=True)
        none_M = h_MD.new_full((len(place_M),), -math.inf)
        return none_M.index_copy(0, at_A, self._mixed(score_A - log_z_A))

    def _without_own(self, chunk: Chunk, at_A: Tensor) -> Changes:
        """Changes of b_e where a document's own introductions are left out of the count; row = place in `at_A`."""
        row_M = at_A.new_full((len(chunk.start_position_M),), -1)
        row_M[at_A] = torch.arange(len(at_A), device=at_A.device)
        row_O = row_M[chunk.own_start_O]
        asked_O = row_O >= 0
        column_O = self.place_N[chunk.own_node_O[asked_O]]
        amount_O = self.frequency[chunk.own_frequency_O[asked_O]] - self.frequency[self.frequency_E[column_O]]
        return Changes(row_O[asked_O], column_O, amount_O)

    def parent_log_probs(self, h_x_MH: Tensor, h_p_MD: Tensor, parent_MK: Tensor, place_MK3: Tensor) -> Tensor:
        """log π(p) over the candidates; padding has -inf. Every row needs at least one candidate."""
        node_P, column_MK = torch.unique(parent_MK.clamp(min=0), return_inverse=True)
        scores = (h_p_MD @ self.entity_vectors(node_P).T).gather(1, column_MK)
        scores = scores + self.parent_bias.scores(h_x_MH, place_MK3)
        return scores.masked_fill(parent_MK < 0, -math.inf).log_softmax(-1)

    def cue_weights(self, h_x_MH: Tensor) -> Tensor:
        """How much the words before are heeded: [α β ζ α' β' ζ' γ δ]."""
        return self.cue + h_x_MH @ self.cue_HQ

    def _cue_scores(self, weight_MQ: Tensor, chunk: Chunk, row_M: Tensor, like_MR: Tensor) -> Tensor:
        """What the words before the starts add to the scores of relations."""
        row_V = row_M[chunk.cue_start_V]
        used_V = row_V >= 0
        feature_V3 = cue_features(chunk.cue_value_V2[used_V].to(like_MR.dtype))
        weight_V23 = weight_MQ[row_V[used_V], : 2 * OF_RELATIONS].view(-1, 2, OF_RELATIONS)
        both_V2 = (weight_V23 * feature_V3[:, None]).sum(-1)  # of the relation, of its reverse
        none_MN2 = torch.zeros_like(like_MR).view(len(like_MR), -1, 2)
        return none_MN2.index_put((row_V[used_V], chunk.cue_relation_V[used_V]), both_V2).flatten(1)

    def tail_log_probs(self, h_x_MH: Tensor, chunk: Chunk) -> Tensor:
        """log π(e | p, r) of each way."""
        log_p_W = -chunk.way_log_tails_W.to(h_x_MH.dtype)
        if not self.config.tail_scores or not len(chunk.tail_way_Y):
            return log_p_W
        start_W = chunk.group_start_G[chunk.way_group_W]
        query_MD = h_x_MH @ self.tail_HD
        score_Y = (query_MD[start_W[chunk.tail_way_Y]] * self.entity_vectors(chunk.tail_node_Y)).sum(-1)
        if self.config.cues:
            weight_M2 = self.cue_weights(h_x_MH)[:, 2 * OF_RELATIONS :]
            score_Y = score_Y + (weight_M2[start_W[chunk.tail_way_Y]] * chunk.hint_Y2).sum(-1)
        log_z_W = segment_logsumexp(score_Y, chunk.tail_way_Y, len(start_W))
        scored = torch.unique(chunk.tail_way_Y)
        own_M = (query_MD * self.entity_vectors(chunk.start_node_M)).sum(-1)
        if self.config.cues:
            own_M = own_M + (weight_M2 * chunk.hint_M2).sum(-1)
        return log_p_W.index_copy(0, scored, own_M[start_W[scored]] - log_z_W[scored])

    def ways(self, h_x_MH: Tensor, h_p_MD: Tensor, h_r_MD: Tensor, chunk: Chunk, tables: Tables) -> Ways:
        """Sum π(p) π(r | p) π(e | p, r) over the ways to each start's entity: all, or those that are listed."""
        count = len(chunk.start_position_M)
        if not len(chunk.way_group_W):
            none_M = h_p_MD.new_full((count,), -math.inf)
            return Ways(none_M, none_M)
        used_M = torch.unique(chunk.group_start_G)  # starts without a way may have no candidate at all
        row_M = torch.full((count,), -1, device=used_M.device)
        row_M[used_M] = torch.arange(len(used_M), device=used_M.device)
        log_parent = self.parent_log_probs(
            h_x_MH[used_M], h_p_MD[used_M], chunk.parent_MK[used_M], chunk.place_MK3[used_M]
        )
        score_MR = h_r_MD[used_M] @ tables.relation_RD.T
        if self.config.cues and len(chunk.cue_start_V):
            score_MR = score_MR + self._cue_scores(self.cue_weights(h_x_MH[used_M]), chunk, row_M, score_MR)
        row_G = row_M[chunk.group_start_G]
        member_Q = score_MR[row_G[chunk.member_group_Q], chunk.member_relation_Q]
        log_z_G = segment_logsumexp(member_Q, chunk.member_group_Q, len(row_G))
        log_parent_G = log_parent[row_G, chunk.group_parent_G]
        group_W = chunk.way_group_W
        relation_W = score_MR[row_G[group_W], chunk.way_relation_W] - log_z_G[group_W]
        relation_W = relation_W + self.tail_log_probs(h_x_MH, chunk)
        if self.config.marginal == "annotated":
            relation_W = relation_W.masked_fill(~chunk.way_listed_W, -math.inf)
        way_W = log_parent_G[group_W] + relation_W
        reaches_G = torch.zeros_like(row_G).index_add(0, group_W, (relation_W > -math.inf).long()) > 0
        reaching_G = log_parent_G.detach().masked_fill(~reaches_G, -math.inf)
        return Ways(
            segment_logsumexp(way_W, chunk.group_start_G[group_W], count),
            segment_logsumexp(reaching_G, chunk.group_start_G, count),
        )

    def score(self, hidden: Hidden, chunk: Chunk, words: WordHead) -> LatentScores:
        """Log-probability of the chunk's annotation, by component."""
        h_x_FH, h_p_FD, h_r_FD = hidden
        tables = self.tables(words)
        type_FC = self.type_log_probs(
            h_x_FH,
            chunk.feature_BT.flatten(),
            chunk.named,
            chunk.related_BT.flatten(),
            chunk.continue_BT.flatten(),
            tables,
        )
        type_F = type_FC.gather(1, chunk.type_BT.flatten()[:, None])[:, 0]
        at_M = chunk.start_position_M
        log_start_M = torch.logaddexp(type_FC[at_M, Type.NEW], type_FC[at_M, Type.RELATED])
        # where the annotation has a type that is not legal here, what is paid for is that a mention begins
        type_F = type_F.index_copy(0, at_M, torch.where(type_F[at_M] > -math.inf, type_F[at_M], log_start_M))
        h_p_MD, h_r_MD = h_p_FD[at_M], h_r_FD[at_M]
        reached_M, parent_M = self.ways(h_x_FH[at_M], h_p_MD, h_r_MD, chunk, tables)
        is_new_M = chunk.start_type_M == Type.NEW
        both = self.config.marginal == "entity" and self.config.facts != "topic"
        new_M = self.new_log_prob(h_p_MD + h_r_MD, chunk, torch.ones_like(is_new_M) if both else is_new_M, tables)
        if both:
            # what the annotation calls a mention does not matter, only its entity: its type is "new or related"
            log_new_M, log_related_M = type_FC[at_M, Type.NEW], type_FC[at_M, Type.RELATED]
            both_M2 = torch.stack([plus(log_new_M, new_M), plus(log_related_M, reached_M)], -1)
            entity_M = plus(-log_start_M, masked_logsumexp(both_M2, both_M2 > -math.inf))
            type_F = type_F.index_copy(0, at_M, log_start_M)
        else:
            entity_M = torch.where(is_new_M, new_M, reached_M)
        explained_M = entity_M > -math.inf
        entity_M = entity_M.masked_fill(~explained_M, 0.0)
        as_new_M = is_new_M | (parent_M == -math.inf)
        # a mention that is called related may be new all the same: then the share of parents is not what it costs
        parent_M = torch.maximum(parent_M, entity_M.detach()).masked_fill(as_new_M, 0.0)
        return LatentScores(
            type_F,
            entity_M.masked_fill(~as_new_M, 0.0),
            parent_M,
            (entity_M - parent_M).masked_fill(as_new_M, 0.0),
            explained_M,
        )


def twin(module: ModuleT) -> ModuleT:
    """Another module with the same parts, of which some can then be exchanged."""
    other = copy.copy(module)
    for name in ("_parameters", "_buffers", "_modules"):
        other.__dict__[name] = dict(other.__dict__[name])
    return other


def cue_features(found_Z2: Tensor) -> Tensor:
    """[m, [m = 1], a] of m and a."""
    m_Z, a_Z = found_Z2.unbind(-1)
    return torch.stack([m_Z, (m_Z >= FULL).to(m_Z), a_Z], -1)


def _places(entities: EntityTable) -> Tensor:
    """The place of each node among the real entities, or -1."""
    place_N = torch.full_like(entities.row_N, -1)
    place_N[entities.real_E] = torch.arange(len(entities.real_E), device=place_N.device)
    return place_N
