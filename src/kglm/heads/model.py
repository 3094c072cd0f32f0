"""The heads: what a position of the text asks for. All that is trained of KGLM on a pretrained model.

With f_t the frozen features of position t and g_t = GRU(f)_t:

    type       softmax(W g_t + u[mention state] + …), illegal types masked
    parent     π(p)     = softmax over linked entities of  q(g_t) · v_p + b(place of p, g_t) + log p(p is linked)
    relation   π(r | p) = softmax over all relations of    k(g_t) · v_r + cues + h(g_t) [p lacks r]
    tail       π(e | p, r) = softmax over the tails of w · f(e) + a log p_B(e's names begin), f see `kg.tail_features`
    name       see `names`

v_r = P · (a fixed vector of the relation's label), so it exists for any relation of any graph. v_p is the mean of the
vectors of p's relations: the kind of thing that p is. h ≤ 0 is the handicap of relations that p lacks in the graph:
their mass emits a word of the base, and the fact (p, r) is reported as missing. Which relations a thing like p could
have follows from those that it has: a lacking relation also gains c(p, r) = (A v_p) · v_r.

At some positions (where a fact is likely, and at the end of a prompt) a sentence encoder takes a closer look at the
clause c so far; there the score of a relation gains

    w sim(r, c) + P' enc(c) · v_r,

sim the cosine of the clause with the names of r (see `meanings`), which needs no training. The type does not see it.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kglm.heads.keys import ENCODED
from kglm.heads.names import NameKind
from kglm.heads.options import HeadsConfig
from kglm.model.buckets import BUCKETS
from kglm.model.tail_facts import START_WEIGHTS as TAIL_WEIGHTS

CUES = 3
"""Features of a relation's cue, for each direction: m, [m = 1], a (see `kglm.model.cues`)."""
START_CUES = (2.0, 1.5, 2.0, 1.0, 0.75, 1.0)
START_HANDICAP = -4.0
START_SIMILAR = (12.0, 10.0)
"""Initial weight of the similarity with a clause, for relations and their reverses."""
START_TAIL_BASE = 0.5
SENTENCE, SUBJECT = BUCKETS + 1, BUCKETS + 2
PLACES = BUCKETS + 3
TYPE_FEATURES = 5


class Type(IntEnum):
    """What happens at a subword."""

    PLAIN = 0
    """The base says it."""
    RELATED = 1
    """A fact of the local graph begins a name."""
    CONTINUE = 2
    """The name of the running mention goes on, or a name that the base has begun."""


class MentionState(IntEnum):
    """State of the running mention, a feature of the type."""

    NONE = 0
    INSIDE = 1
    """The name goes on, and what was said is no name."""
    MAY_END = 2
    """The name may go on or end."""
    ENDED = 3
    """No name goes on."""
    BEGUN = 4
    """No mention runs, but the last subwords begin a name of the graph."""


class PlaceTensors(NamedTuple):
    """Places of the linked entities, as tensors (see `local.Places`)."""

    bucket_TP: Tensor
    sentence_TP: Tensor
    subject_TP: Tensor
    log_p_TP: Tensor


class ClauseScores(NamedTuple):
    """A closer look at some positions: clauses as read by the sentence encoder."""

    position_N: Tensor
    clause_NC: Tensor
    similar_NK: Tensor
    """sim(k, c) of all relations."""


class Heads(nn.Module):
    """The trained heads."""

    def __init__(self, config: HeadsConfig, hidden: int, key: int) -> None:
        """`hidden` is the size of the base's states, `key` that of the vectors of relations."""
        super().__init__()
        self.config = config
        self.hidden, self.key = hidden, key
        self.norm = nn.LayerNorm(2 * hidden)
        self.reduce = nn.Linear(2 * hidden, config.state)
        self.gru = nn.GRU(config.state, config.state, batch_first=True)
        self.types = nn.Linear(config.state, 3)
        self.type_state_53 = nn.Parameter(torch.zeros(len(MentionState), 3))
        self.type_features = nn.Parameter(torch.zeros(TYPE_FEATURES, 3))
        self.places = nn.Linear(config.state, PLACES)
        self.query = nn.Linear(config.state, config.relation)
        self.asked = nn.Linear(config.state, config.relation)
        self.project = nn.Linear(key, config.relation)
        self.direction_2K = nn.Parameter(torch.zeros(2, config.relation))
        self.reflexive_K = nn.Parameter(torch.zeros(config.relation))
        self.similar = nn.Parameter(torch.tensor(START_SIMILAR))
        self.clause = nn.Linear(ENCODED, config.relation, bias=False)
        self.tail_facts = nn.Parameter(torch.tensor(TAIL_WEIGHTS))
        self.tail_base = nn.Parameter(torch.tensor(START_TAIL_BASE))
        self.cue = nn.Parameter(torch.tensor(START_CUES))
        self.cue_context = nn.Linear(config.state, 2 * CUES, bias=False)
        self.handicap = nn.Linear(config.state, 1)
        self.fits = nn.Linear(config.relation, config.relation, bias=False)
        self.name_weight = nn.Parameter(torch.ones(()))
        self.name_kind = nn.Parameter(torch.zeros(len(NameKind)))
        self.begun_weights = nn.Parameter(torch.tensor([0.5, 1.0]))
        with torch.no_grad():
            for linear in (self.places, self.cue_context, self.clause, self.fits):
                linear.weight.zero_()
            self.places.bias.zero_()
            self.handicap.weight.zero_()
            self.handicap.bias.fill_(START_HANDICAP)
            self.types.bias.copy_(torch.tensor([2.0, -1.0, 0.0]))
            self.type_state_53[MentionState.INSIDE, Type.CONTINUE] = 4.0
            self.type_state_53[MentionState.MAY_END, Type.CONTINUE] = 1.0
            self.type_state_53[MentionState.BEGUN, Type.CONTINUE] = -1.0
        self.dropout = nn.Dropout(config.dropout)

    def states(self, middle_BTD: Tensor, last_BTD: Tensor, start: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g_t at all positions of rows of equal length, and the state to go on from."""
        f_BTD = self.norm(torch.cat([middle_BTD.float(), last_BTD.float()], -1))
        g_BTG, end = self.gru(self.dropout(functional.silu(self.reduce(self.dropout(f_BTD)))), start)
        return self.dropout(g_BTG), end

    def relation_vectors(self, key_RD: Tensor) -> Tensor:
        """v_r of all relations of a graph (R × K)."""
        vector_RK = self.project(key_RD)
        direction_RK = self.direction_2K.repeat(len(key_RD) // 2, 1)
        vector_RK = vector_RK + direction_RK
        return torch.cat([(vector_RK[:1] + self.reflexive_K), vector_RK[1:]])

    def relation_scores(
        self, g_TG: Tensor, vector_RK: Tensor, cue_TK3: Tensor | None, closer: ClauseScores | None = None
    ) -> Tensor:
        """Scores of all relations for a parent that has them (T × R). `cue_TK3`: m, [m = 1], a.

        The positions of `closer` are rows of g.
        """
        score_TR: Tensor = self.asked(g_TG) @ vector_RK.T / math.sqrt(self.config.relation)
        if cue_TK3 is not None:
            weight_T23 = (self.cue + self.cue_context(g_TG)).view(-1, 2, CUES)
            pair_TK2 = torch.einsum("tkc,tdc->tkd", cue_TK3, weight_T23)
            score_TR = score_TR + pair_TK2.flatten(1)
        if closer is not None and len(closer.position_N):
            pair_NK2 = closer.similar_NK[..., None] * self.similar
            learned_NR = self.clause(self.dropout(closer.clause_NC)) @ vector_RK.T
            score_TR = score_TR.index_add(0, closer.position_N, pair_NK2.flatten(1) + learned_NR)
        return score_TR

    def tail_scores(self, fact_NQ: Tensor, begins_N: Tensor) -> Tensor:
        """Scores of tails: features of the graph, and log of how much of p_B falls on first subwords of their names."""
        return fact_NQ @ self.tail_facts + self.tail_base * begins_N

    def scalars(self) -> list[nn.Parameter]:
        """Weights of single features, which need larger steps than matrices."""
        return [
            self.type_state_53, self.type_features, self.similar, self.tail_facts, self.tail_base, self.cue,
            self.name_weight, self.name_kind, self.begun_weights, self.types.bias, self.places.bias, self.handicap.bias,
        ]  # fmt: skip

    def parent_log_probs(self, g_TG: Tensor, vector_PK: Tensor, places: PlaceTensors) -> Tensor:
        """log π(p) of the linked entities; rows without any have −inf everywhere."""
        weight_TQ = self.places(g_TG)
        score_TP = self.query(g_TG) @ vector_PK.T / math.sqrt(self.config.relation) + places.log_p_TP
        score_TP = score_TP + weight_TQ.gather(1, places.bucket_TP) + weight_TQ[:, SENTENCE, None] * places.sentence_TP
        score_TP = score_TP + weight_TQ[:, SUBJECT, None] * places.subject_TP
        none_TP = ~(places.log_p_TP > -math.inf)
        some_T1 = ~none_TP.all(-1, keepdim=True)
        return torch.where(some_T1, score_TP, 0.0).log_softmax(-1).masked_fill(none_TP, -math.inf)

    def fit_scores(self, vector_RK: Tensor, has_PR: Tensor) -> Tensor:
        """c(p, r) of all relations (P × R).

        In training, c sees half of the relations of p, so that it does not learn that p has those that are hidden.
        """
        seen_PR = has_PR * (torch.rand_like(has_PR) < 0.5) if self.training else has_PR
        vector_PK = (seen_PR @ vector_RK) / seen_PR.sum(-1, keepdim=True).clamp(min=1)
        score_PR: Tensor = self.fits(vector_PK) @ vector_RK.T / math.sqrt(self.config.relation)
        return score_PR

    def lacking_scores(self, fit_PR: Tensor, has_PR: Tensor, stored: int) -> Tensor:
        """What the scores of relations gain for parents that lack them, besides h; −inf for those that have them.

        Relations from number `stored` on are not in the graph at all.
        """
        outside_R = torch.zeros(fit_PR.shape[1])
        outside_R[stored:] = self.config.outside
        return (fit_PR + outside_R).masked_fill(has_PR > 0, -math.inf)

    def log_z(
        self, relation_TR: Tensor, handicap_T: Tensor, has_PR: Tensor, lacking_PR: Tensor
    ) -> tuple[Tensor, Tensor]:
        """For each parent: log Σ_r of all relations, and the share of those that it lacks (T × P each)."""
        shift_T1 = relation_TR.max(-1, keepdim=True).values.detach()
        mass_TR = (relation_TR - shift_T1).exp()
        own_TP = mass_TR @ has_PR.T
        if not self.config.missing:
            return own_TP.clamp(min=1e-30).log() + shift_T1, torch.zeros_like(own_TP)
        lacking_TP = (mass_TR @ lacking_PR.exp().T) * handicap_T[:, None].exp()
        total_TP = (own_TP + lacking_TP).clamp(min=1e-30)
        return total_TP.log() + shift_T1, lacking_TP / total_TP

    def share_of(self, relation_TR: Tensor, log_z_TP: Tensor, chosen_PR: Tensor) -> Tensor:
        """Σ π(r | p) of chosen relations that the parents have (T × P)."""
        shift_T1 = relation_TR.max(-1, keepdim=True).values.detach()
        return ((relation_TR - shift_T1).exp() @ chosen_PR.T) * (shift_T1 - log_z_TP).exp()

    def handicaps(self, g_TG: Tensor) -> Tensor:
        """h(g_t)."""
        handicap_T1: Tensor = self.handicap(g_TG)
        return handicap_T1[:, 0]

    def type_log_probs(self, score_N3: Tensor, state_N: Tensor, feature_NQ: Tensor, legal_N3: Tensor) -> Tensor:
        """log p(type) in mention states, with illegal types masked."""
        score_N3 = score_N3 + self.type_state_53[state_N] + feature_NQ @ self.type_features
        return score_N3.masked_fill(~legal_N3, -math.inf).log_softmax(-1)

    def begun_scores(self, log_weight_Y: Tensor, base_Y: Tensor) -> Tensor:
        """Scores of the ways in which a name that has begun goes on: γ log W + β z_s."""
        return self.begun_weights[0] * log_weight_Y + self.begun_weights[1] * base_Y

    def name_scores(self, base_Y: Tensor, kind_Y: Tensor) -> Tensor:
        """Scores of children in the trie of names: β z_s + b_k."""
        return self.name_weight * base_Y + self.name_kind[kind_Y]
