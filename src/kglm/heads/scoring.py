"""What the heads say of a passage, and how the running mention goes on with one subword.

`lattice` sums over all mentions of a text; `step` is one step of that sum, for a text that grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.heads.facts import LocalFacts
from kglm.heads.model import ClauseScores, Heads, MentionState, Type
from kglm.heads.names import Children
from kglm.heads.objective import begun_gain, outside_states
from kglm.heads.prepared import CONTINUE_FEATURE, Prepared
from kglm.heads.tables import GraphTables
from kglm.heads.tail_names import LEAST_READ, LabelReader
from kglm.heads.tails import LEAST, TailGroup, TailInputs, is_scored, tail_inputs, tail_log_probs
from kglm.model.arrays import Floats, array

LIKELY = 0.2
"""p(related) from which the sentence encoder looks at the clause before a word; a trust above 0 does not count."""
DROPPED = 1e-9
"""Share of the probability below which a state is no longer followed; the result is then a lower bound."""


Look = Callable[[Tensor], ClauseScores | None]


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


class ParentVectors(NamedTuple):
    """What the heads say of the linked entities wherever they are."""

    vector_PK: Tensor
    """v_p."""
    lacking_PR: Tensor
    """What the scores of relations gain for parents that lack them, besides the handicap."""

    @classmethod
    def of(cls, heads: Heads, vector_RK: Tensor, has_PR: Tensor, tables: GraphTables) -> ParentVectors:
        """From the relations that the entities have."""
        with torch.no_grad():
            fit_PR = heads.fit_scores(vector_RK, has_PR)
            vector_PK = (has_PR @ vector_RK) / has_PR.sum(-1, keepdim=True).clamp(min=1)
            return cls(vector_PK, heads.lacking_scores(fit_PR, has_PR, tables.graph.relation_count))


@dataclass(frozen=True)
class PassageScores:
    """What the heads say of a passage, as arrays."""

    prepared: Prepared
    heads: Heads
    type_T3: Floats
    """Scores of the types, without mention state and features."""
    none_T3: Floats
    """Probabilities of the types outside of mentions."""
    parent_TP: Floats
    relation_TR: Floats
    handicap_T: Floats
    lacking_PR: Floats
    """What the scores of lacking relations gain, besides the handicap; −inf of those that a parent has."""
    log_z_TP: Floats
    plain_share_T: Floats
    """Share of `related` that emits words of the base: relations that the parents lack, and very large ones."""
    begun_gain_T: Floats
    """p(subword | a name that the base has begun goes on) / p_B(subword)."""
    facts: LocalFacts = field(repr=False)
    base_V: Tensor | None = field(default=None, repr=False)
    """log p_B of all subwords, if this is a single position."""
    labels: LabelReader | None = field(default=None, repr=False)
    """Reads the labels of tails, at the end of a prompt."""
    tails: dict[TailGroup, dict[int, float]] = field(default_factory=dict, repr=False)
    """π(e | p, r) of groups that were asked for."""

    @classmethod
    def of(
        cls,
        heads: Heads,
        prepared: Prepared,
        *,
        trust: float = 0.0,
        g_TG: Tensor | None = None,
        base_V: Tensor | None = None,
        look: Look | None = None,
        facts: LocalFacts | None = None,
        vector_RK: Tensor | None = None,
        parents: ParentVectors | None = None,
        labels: LabelReader | None = None,
    ) -> PassageScores:
        """Run the heads over a passage.

        `trust` is added to the scores of `related` and `continue`: 0 is the trained model, −inf the base alone. Names
        that the base has begun are no facts, so that a trust above 0 does not make them more probable. `g_TG`
        are the states, if they are known, `facts`, `vector_RK` and `parents` as well; `look` gives the clauses to look
        at closely, of positions where a fact is likely. With `base_V`, the passage is the position after a text, and
        with `labels` that text is a prompt.
        """
        features, count = prepared.features, len(prepared.feature_TQ)
        with torch.no_grad():
            if g_TG is None:
                g_TG = heads.states(features.middle_TD[None], features.last_TD[None])[0][0]
            if vector_RK is None:
                vector_RK = heads.relation_vectors(prepared.tables.key_RD)
            score_T3 = heads.types(g_TG)
            legal_T3 = torch.tensor([True, False, False]).repeat(count, 1)
            empty = np.zeros((count, 0))
            parent_TP, log_z_TP, share_T = empty, empty, np.zeros(count)
            lacking_PR = torch.zeros(0, len(prepared.tables.key_RD))
            if len(prepared.local):
                legal_T3[:, Type.RELATED] = (prepared.places.log_p_TP > -math.inf).any(-1)
            legal_T3[:, Type.CONTINUE] = prepared.begun.legal_T
            state_T = outside_states(prepared)
            outside_T3 = score_T3 + torch.tensor([0.0, min(trust, 0.0), min(trust, 0.0)])
            none_T3 = heads.type_log_probs(outside_T3, state_T, prepared.feature_TQ, legal_T3).exp()
            closer = (look or prepared.clauses_before_words)(none_T3[:, Type.RELATED] >= LIKELY)
            if trust > 0:
                outside_T3 = score_T3 + torch.tensor([0.0, trust, 0.0])
                none_T3 = heads.type_log_probs(outside_T3, state_T, prepared.feature_TQ, legal_T3).exp()
            if trust:
                score_T3 = score_T3 + torch.tensor([0.0, trust, trust])
            relation_TR = heads.relation_scores(g_TG, vector_RK, prepared.cues(0, count), closer)
            handicap_T = heads.handicaps(g_TG)
            if len(prepared.local):
                if parents is None:
                    parents = ParentVectors.of(heads, vector_RK, prepared.has_PR, prepared.tables)
                lacking_PR = parents.lacking_PR
                log_z, lacking_TP = heads.log_z(relation_TR, handicap_T, prepared.has_PR, lacking_PR)
                parent = heads.parent_log_probs(g_TG, parents.vector_PK, prepared.places).exp()
                if bool(prepared.large_PR.any()):
                    lacking_TP = lacking_TP + heads.share_of(relation_TR, log_z, prepared.large_PR)
                share_T = array((parent * lacking_TP).sum(-1))
                parent_TP, log_z_TP = array(parent), array(log_z)
            gain_T = begun_gain(heads, prepared).exp() if base_V is None else torch.zeros(count)
        return cls(
            prepared, heads, array(score_T3), array(none_T3), parent_TP, array(relation_TR),
            array(handicap_T), array(lacking_PR), log_z_TP, share_T, array(gain_T),
            prepared.facts if facts is None else facts, base_V, labels,
        )  # fmt: skip

    def base_log_probs(self, t: int, subwords: Sequence[int]) -> Floats:
        """log p_B of some subwords at a position."""
        if self.base_V is not None:
            return array(self.base_V[torch.tensor(subwords)])
        tables, features = self.prepared.tables, self.prepared.features
        weight_ND = tables.embedding_VD[torch.tensor(subwords)]
        scores = (weight_ND * features.last_TD[t].to(weight_ND.dtype)).float().sum(-1) - features.log_z_T[t]
        return array(scores)

    def begun_probs(self, t: int) -> dict[int, float]:
        """p(next subword | a name that the base has begun goes on)."""
        begun = self.prepared.begun
        at = begun.position_Y == t
        with torch.no_grad():
            p_Y = self.heads.begun_scores(begun.log_weight_Y[at], begun.base_Y[at]).softmax(0)
        return dict(zip(begun.subword_Y[at].tolist(), p_Y.tolist(), strict=True))

    def begun_gain(self, t: int, subword: int, p_base: float) -> float:
        """p(subword | a name that the base has begun goes on) / p_B(subword)."""
        if self.base_V is None:
            return float(self.begun_gain_T[t])
        return self.begun_probs(t).get(subword, 0.0) / p_base

    def name_probs(self, t: int, children: Children) -> dict[int, float]:
        """p(next subword | entity, prefix)."""
        base_Y = torch.from_numpy(self.base_log_probs(t, list(children.kinds))).float()
        return _name_probs(self.heads, base_Y, children)

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
        facts = self.facts
        _, fact_X = facts.offering(np.array([subword]))
        for group, tail in zip(facts.group_F[fact_X].tolist(), facts.tail_F[fact_X].tolist(), strict=True):
            slot, relation = int(facts.slot_G[group]), int(facts.relation_G[group])
            parent = float(self.parent_TP[t, slot])
            if parent > 0:
                log_relation = self.relation_TR[t, relation] - self.log_z_TP[t, slot]
                node = self.prepared.local.mentioned.nodes[slot]
                share = self.tail_prob(TailGroup(t, node, relation), tail, int(facts.size_G[group]))
                yield Fact(parent * math.exp(log_relation) * share, node, relation, tail)

    def tail_prob(self, group: TailGroup, tail: int, size: int) -> float:
        """π(e | p, r) at a position, for a relation with `size` tails."""
        if not is_scored(size):
            return 1 / size
        if group not in self.tails:
            self.score_tails([group])
        return self.tails[group][tail]

    def _base_scores(self, position_Y: Tensor, subword_Y: Tensor) -> Tensor:
        return self.prepared.base_scores(position_Y, subword_Y) if self.base_V is None else self.base_V[subword_Y]

    def score_tails(self, groups: Sequence[TailGroup]) -> None:
        """Score the tails of some groups at once."""
        if not groups:
            return
        prepared, surface = self.prepared, self.prepared.passage.surface
        word_T = [len(surface)] if self.base_V is not None else prepared.passage.word_T.tolist()
        inputs = tail_inputs(groups, surface, word_T, prepared.tables, self._base_scores)
        with torch.no_grad():
            p_Y = tail_log_probs(self.heads, inputs, len(groups), self._label_gains(groups, inputs)).exp()
        border = torch.searchsorted(inputs.group_Y, torch.arange(len(groups) + 1)).tolist()
        tails, shares = inputs.tail_Y.tolist(), p_Y.tolist()
        for group, first, end in zip(groups, border, border[1:], strict=False):
            self.tails[group] = dict(zip(tails[first:end], shares[first:end], strict=True))

    def _label_gains(self, groups: Sequence[TailGroup], inputs: TailInputs) -> Tensor | None:
        """What the scores of tails gain by their labels, at the end of a prompt."""
        if self.labels is None:
            return None
        gain_Y = torch.zeros(len(inputs.tail_Y))
        for n, group in enumerate(groups):
            at = inputs.group_Y == n
            if self._relation_prob(group) >= LEAST_READ and self.labels.reads(inputs, at):
                gain_Y[at] = self.labels.gains(inputs.tail_Y[at].tolist())
        return gain_Y

    def _relation_prob(self, group: TailGroup) -> float:
        """p(related) π(p) π(r | p), outside of mentions."""
        t, slot = group.position, self.prepared.local.mentioned.slot(group.parent)
        log_p = self.relation_TR[t, group.relation] - self.log_z_TP[t, slot]
        return float(self.none_T3[t, Type.RELATED] * self.parent_TP[t, slot]) * math.exp(log_p)


def name_probs(heads: Heads, log_p_V: Tensor, children: Children) -> dict[int, float]:
    """p(next subword | a name goes on), given log p_B of all subwords."""
    return _name_probs(heads, log_p_V[torch.tensor(list(children.kinds))], children)


def _name_probs(heads: Heads, base_Y: Tensor, children: Children) -> dict[int, float]:
    kind_Y = torch.tensor([int(kind) for kind in children.kinds.values()])
    with torch.no_grad():
        score_Y = array(heads.name_scores(base_Y, kind_Y))
    p_Y = np.exp(score_Y - score_Y.max())
    return dict(zip(children.kinds, (p_Y / p_Y.sum()).tolist(), strict=True))


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
            plain += weight * p_3[Type.CONTINUE] * scores.begun_gain(t, subword, p_base) * p_base
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
