"""Exact log p(text), and the distribution of the next subword, by a forward pass over the states of a mention.

Given the entities that are linked so far, which are a function of the text, the only latent state between two subwords
is the running mention: none, or an entity with the part of its name that was said. So

    α_t(m) = p(s_1 … s_t, m),    α_{t+1}(m') = Σ_m α_t(m) p(s_{t+1}, m' | m),    p(text) = Σ_m α_N(m)

sums over all annotations in one pass, without sampling. Only positions where a mention runs, or where the local graph
offers the subword that is said, need more than the base's probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.heads.model import Heads, MentionState, Type
from kglm.heads.names import Children
from kglm.heads.objective import begun_gain, outside_states
from kglm.heads.prepared import CONTINUE_FEATURE, Prepared, Start
from kglm.heads.tails import LEAST, TailGroup, is_scored, tail_inputs, tail_log_probs
from kglm.model.arrays import Floats, array

LIKELY = 0.05
"""p(related) from which the sentence encoder takes a closer look at the clause before a word."""
DROPPED = 1e-9
"""Share of the probability below which a state is no longer followed; the result is then a lower bound."""


class Running(NamedTuple):
    """A mention that is running: the entity, and the subwords of its name so far."""

    node: int
    prefix: tuple[int, ...]


State = Running | None
"""A running mention, or none."""


class Fact(NamedTuple):
    """A fact (parent, relation, tail) that can be said now, and its probability given the type `related`."""

    p: float
    parent: int
    relation: int
    tail: int


@dataclass(frozen=True)
class PassageScores:
    """What the heads say of a passage, as arrays."""

    prepared: Prepared
    heads: Heads
    g_TG: Tensor
    type_T3: Floats
    """Scores of the types, without mention state and features."""
    none_T3: Floats
    """Probabilities of the types outside of mentions."""
    parent_TP: Floats
    relation_TR: Floats
    handicap_T: Floats
    log_z_TP: Floats
    plain_share_T: Floats
    """Share of `related` that emits words of the base: relations that the parents lack, and very large ones."""
    begun_gain_T: Floats
    """p(subword | a name that the base has begun goes on) / p_B(subword)."""
    starts: list[dict[int, list[Start]]] = field(repr=False)
    tails: dict[TailGroup, dict[int, float]] = field(default_factory=dict, repr=False)
    """π(e | p, r) of groups that were asked for."""

    @classmethod
    def of(cls, heads: Heads, prepared: Prepared) -> PassageScores:
        """Run the heads over a passage."""
        features, count = prepared.features, len(prepared.passage.ids)
        with torch.no_grad():
            g_TG = heads.states(features.middle_TD[None], features.last_TD[None])[0][0]
            vector_RK = heads.relation_vectors(prepared.tables.key_RD)
            score_T3 = heads.types(g_TG)
            legal_T3 = torch.tensor([True, False, False]).repeat(count, 1)
            empty = np.zeros((count, 0))
            parent_TP, log_z_TP, share_T = empty, empty, np.zeros(count)
            if len(prepared.local):
                legal_T3[:, Type.RELATED] = (prepared.places.log_p_TP > -math.inf).any(-1)
            legal_T3[:, Type.CONTINUE] = prepared.begun.legal_T
            none_T3 = heads.type_log_probs(score_T3, outside_states(prepared), prepared.feature_TQ, legal_T3).exp()
            likely_T = (none_T3[:, Type.RELATED] >= LIKELY) & torch.from_numpy(prepared.passage.begins_T)
            closer = prepared.clause_scores(likely_T.nonzero()[:, 0].tolist())
            relation_TR = heads.relation_scores(g_TG, vector_RK, prepared.cues(0, count), closer)
            handicap_T = heads.handicaps(g_TG)
            if len(prepared.local):
                log_z, lacking_TP = heads.log_z(relation_TR, handicap_T, prepared.has_PR)
                vector_PK = (prepared.has_PR @ vector_RK) / prepared.has_PR.sum(-1, keepdim=True).clamp(min=1)
                parent = heads.parent_log_probs(g_TG, vector_PK, prepared.places).exp()
                if bool(prepared.large_PR.any()):
                    lacking_TP = lacking_TP + heads.share_of(relation_TR, log_z, prepared.large_PR)
                share_T = array((parent * lacking_TP).sum(-1))
                parent_TP, log_z_TP = array(parent), array(log_z)
            gain_T = begun_gain(heads, prepared).exp()
        return cls(
            prepared, heads, g_TG, array(score_T3), array(none_T3), parent_TP, array(relation_TR), array(handicap_T),
            log_z_TP, share_T, array(gain_T), prepared.starts(),
        )  # fmt: skip

    def base_log_probs(self, t: int, subwords: list[int]) -> Floats:
        """log p_B of some subwords at a position."""
        tables, features = self.prepared.tables, self.prepared.features
        weight_ND = tables.embedding_VD[torch.tensor(subwords)]
        scores = (weight_ND * features.last_TD[t].to(weight_ND.dtype)).float().sum(-1) - features.log_z_T[t]
        return array(scores)

    def name_probs(self, t: int, children: Children) -> dict[int, float]:
        """p(next subword | entity, prefix)."""
        subwords = list(children.kinds)
        kind_Y = torch.tensor([int(kind) for kind in children.kinds.values()])
        with torch.no_grad():
            score_Y = array(self.heads.name_scores(torch.from_numpy(self.base_log_probs(t, subwords)).float(), kind_Y))
        p_Y = np.exp(score_Y - score_Y.max())
        return dict(zip(subwords, (p_Y / p_Y.sum()).tolist(), strict=True))

    def types(self, t: int, state: State) -> Floats:
        """p(type) at a position, given the running mention."""
        if state is None:
            return np.asarray(self.none_T3[t])
        children = self.prepared.tables.names.children(*state)
        kind = MentionState.INSIDE if not children.complete else MentionState.MAY_END
        feature_Q = array(self.prepared.feature_TQ[t]).copy()
        feature_Q[CONTINUE_FEATURE] = 0
        if children.kinds:
            mass = float(np.exp(self.base_log_probs(t, list(children.kinds))).sum())
            feature_Q[CONTINUE_FEATURE] = math.log(mass + LEAST) - math.log(LEAST)
        else:
            kind = MentionState.ENDED
        with torch.no_grad():
            weights, bias = array(self.heads.type_features), array(self.heads.type_state_53[kind])
        score_3 = self.type_T3[t] + bias + feature_Q @ weights
        legal = [True, bool(self.none_T3[t, Type.RELATED] > 0), bool(children.kinds)]
        p_3 = np.where(legal, np.exp(score_3 - score_3[legal].max()), 0.0)
        return np.asarray(p_3 / p_3.sum())

    def offered(self, t: int, subword: int) -> Iterator[Fact]:
        """Facts whose tails have a name that begins with a subword, given the type `related`."""
        for slot, starts in enumerate(self.starts):
            parent = float(self.parent_TP[t, slot])
            for start in starts.get(subword, ()) if parent > 0 else ():
                log_relation = self.relation_TR[t, start.relation] - self.log_z_TP[t, slot]
                node = self.prepared.local.mentioned.nodes[slot]
                share = self.tail_prob(TailGroup(t, node, start.relation), start)
                yield Fact(parent * math.exp(log_relation) * share, node, start.relation, start.tail)

    def tail_prob(self, group: TailGroup, start: Start) -> float:
        """π(e | p, r) at a position."""
        if not is_scored(start.size):
            return 1 / start.size
        if group not in self.tails:
            prepared = self.prepared
            surface, word_T = prepared.passage.surface, prepared.passage.word_T.tolist()
            inputs = tail_inputs([group], surface, word_T, prepared.tables, prepared.features)
            with torch.no_grad():
                g_YG = self.g_TG[group.position].expand(len(inputs.tail_Y), -1)
                p_Y = tail_log_probs(self.heads, g_YG, inputs, 1).exp()
            self.tails[group] = dict(zip(inputs.tail_Y.tolist(), p_Y.tolist(), strict=True))
        return self.tails[group][start.tail]


class TextScore(NamedTuple):
    """log p of each subword given those before it, and of the base alone."""

    log_p_T: Floats
    base_T: Floats
    states: list[dict[State, float]]
    """Posterior of the running mention before each subword."""


def score_text(scores: PassageScores) -> TextScore:
    """log p of each subword of a passage, summed over all annotations."""
    base_T = array(scores.prepared.features.log_p_T)
    ids = scores.prepared.passage.ids
    log_p_T = np.zeros(len(ids))
    emitted_T = scores.none_T3[:, Type.PLAIN] + scores.none_T3[:, Type.RELATED] * scores.plain_share_T
    emitted_T = emitted_T + scores.none_T3[:, Type.CONTINUE] * scores.begun_gain_T
    weights: dict[State, float] = {None: 1.0}
    states = []
    offered = set().union(*scores.starts) if scores.starts else set()
    for t, subword in enumerate(ids):
        states.append(weights)
        if len(weights) == 1 and None in weights and subword not in offered:
            log_p_T[t] = math.log(emitted_T[t]) + base_T[t]
            continue
        total, weights = step(scores, t, subword, weights, math.exp(base_T[t]))
        log_p_T[t] = math.log(total)
    return TextScore(log_p_T, base_T, states)


def step(
    scores: PassageScores, t: int, subword: int, weights: Mapping[State, float], p_base: float
) -> tuple[float, dict[State, float]]:
    """p(subword), and the posterior of the running mention after it."""
    names = scores.prepared.tables.names
    after: dict[State, float] = {}
    p_related = 0.0
    for state, weight in weights.items():
        p_3 = scores.types(t, state)
        plain = weight * (p_3[Type.PLAIN] + p_3[Type.RELATED] * scores.plain_share_T[t]) * p_base
        if state is None:
            plain += weight * p_3[Type.CONTINUE] * scores.begun_gain_T[t] * p_base
        after[None] = after.get(None, 0.0) + float(plain)
        p_related += weight * float(p_3[Type.RELATED])
        if state is not None and p_3[Type.CONTINUE] > 0:
            children = names.children(*state)
            if subword in children.kinds:
                longer = Running(state.node, (*state.prefix, subword))
                p = weight * float(p_3[Type.CONTINUE]) * scores.name_probs(t, children)[subword]
                after[longer] = after.get(longer, 0.0) + p
    if p_related > 0:
        mass: dict[int, float] = {}
        for fact in scores.offered(t, subword):
            mass[fact.tail] = mass.get(fact.tail, 0.0) + fact.p
        for node, p in mass.items():
            begun = Running(node, (subword,))
            said = p_related * p * scores.name_probs(t, names.children(node, ()))[subword]
            after[begun] = after.get(begun, 0.0) + said
    total = sum(after.values())
    kept = {state: p / total for state, p in after.items() if p > DROPPED * total}
    return total, kept
