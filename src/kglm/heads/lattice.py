"""Exact log p(text): all mentions that a text may make of its facts, and a forward pass over them.

Given the entities that are linked so far, which are a function of the text, the only latent state between two subwords
is the running mention: none, or an entity with the part of its name that was said. So

    α_t(m) = p(s_1 … s_t, m),    α_{t+1}(m') = Σ_m α_t(m) p(s_{t+1}, m' | m),    p(text) = Σ_m α_N(m)

sums over all annotations in one pass, without sampling. A mention can begin where the local graph offers the subword
that is said, and it runs while the text spells the name; so all states are known beforehand (the lattice), and what
the heads say of them is computed at once. `scoring.step` is the same for one subword and given states.

Legend: F facts that offer the subword that is said; N mentions that may begin; S states, those of a mention in a row;
Y subwords with which the names of these may go on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from kglm.heads.model import MentionState, Type
from kglm.heads.names import Children, NameTable
from kglm.heads.prepared import CONTINUE_FEATURE
from kglm.heads.scoring import DROPPED, PassageScores, Running, State
from kglm.heads.tails import LEAST, TailGroup
from kglm.kg.tail_features import MAX_TAILS
from kglm.model.arrays import Floats, Ints, array


class _Branches(NamedTuple):
    """How names go on from some places of the trie: Σ p_B of the ways, and the p of the one that the text goes."""

    mass_X: Floats
    said_X: Floats
    some_X: Ints
    """Number of ways."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """The states of all mentions of a text, with their probabilities."""

    begin_N: Ints
    node_N: Ints
    p_N: Floats
    """p(the entity, and the subword that is said | related)."""
    state_N: Ints
    """The first state of a mention, behind its first subword."""
    mention_S: Ints
    position_S: Ints
    """Number of subwords before the state."""
    leaves_S: Floats
    """p(the mention ends, and a subword of the base is said) / p_B(subword)."""
    related_S: Floats
    """p(related)."""
    goes_on_S: Floats
    """p(the name goes on with the subword that is said)."""

    @classmethod
    def of(cls, scores: PassageScores) -> Lattice:
        """All mentions of a passage."""
        prepared = scores.prepared
        begin_N, node_N, fact_N = _mentions(scores)
        names, ids = prepared.tables.names, prepared.passage.ids
        roots = [names.children(node, ()) for node in node_N.tolist()]
        root = _branches(scores, roots, begin_N)
        mention, position, children, state_N = _states(names, ids, begin_N, node_N)
        mention_S, position_S = np.array(mention, np.int64), np.array(position, np.int64)
        inside_S = position_S < len(ids)
        inside = np.flatnonzero(inside_S)
        found = _branches(scores, [children[s] for s in inside.tolist()], position_S[inside])
        p_X3 = _types(scores, position_S[inside], [children[s].complete for s in inside.tolist()], found)
        leaves_S, related_S, goes_on_S = (np.zeros(len(mention_S)) for _ in range(3))
        share_X = scores.plain_share_T[position_S[inside]]
        leaves_S[inside] = p_X3[:, Type.PLAIN] + p_X3[:, Type.RELATED] * share_X
        related_S[inside] = p_X3[:, Type.RELATED]
        goes_on_S[inside] = p_X3[:, Type.CONTINUE] * found.said_X
        return cls(
            begin_N, node_N, fact_N * root.said_X, state_N, mention_S, position_S, leaves_S, related_S, goes_on_S
        )


def _mentions(scores: PassageScores) -> tuple[Ints, Ints, Floats]:
    """Position and entity of the mentions that may begin, and Σ p(fact | related) over the facts that lead to it."""
    id_T, facts = np.array(scores.prepared.passage.ids, np.int64), scores.facts
    subword_X, fact_X = facts.offering(np.unique(id_T))
    first_T, end_T = np.searchsorted(subword_X, id_T), np.searchsorted(subword_X, id_T, "right")
    t_F = np.repeat(np.arange(len(id_T)), end_T - first_T)
    place_F = np.arange(len(t_F)) - np.repeat(np.cumsum(end_T - first_T) - end_T, end_T - first_T)
    fact_F = fact_X[place_F]
    group_F, tail_F = facts.group_F[fact_F], facts.tail_F[fact_F]
    slot_F, relation_F, size_F = facts.slot_G[group_F], facts.relation_G[group_F], facts.size_G[group_F]
    possible = scores.parent_TP[t_F, slot_F] > 0
    t_F, slot_F, relation_F, tail_F, size_F = (each[possible] for each in (t_F, slot_F, relation_F, tail_F, size_F))
    log_relation_F = scores.relation_TR[t_F, relation_F] - scores.log_z_TP[t_F, slot_F]
    p_F = scores.parent_TP[t_F, slot_F] * np.exp(log_relation_F) / size_F
    scored = np.flatnonzero((size_F > 1) & (size_F <= MAX_TAILS))
    node_P = np.array(scores.prepared.local.mentioned.nodes, np.int64)
    groups = list(map(TailGroup, t_F[scored].tolist(), node_P[slot_F[scored]].tolist(), relation_F[scored].tolist()))
    scores.score_tails(list(dict.fromkeys(groups)))
    share = [scores.tails[group][tail] for group, tail in zip(groups, tail_F[scored].tolist(), strict=True)]
    p_F[scored] *= size_F[scored] * np.array(share)
    count = len(scores.prepared.tables.graph)
    key_N, which_F = np.unique(t_F * count + tail_F, return_inverse=True)
    return key_N // count, key_N % count, np.bincount(which_F, p_F, len(key_N)).astype(np.float64)


def _states(
    names: NameTable, ids: list[int], begin_N: Ints, node_N: Ints
) -> tuple[list[int], list[int], list[Children], Ints]:
    """Mention, position and children of each state, and the first state of each mention."""
    mention: list[int] = []
    position: list[int] = []
    children: list[Children] = []
    first = []
    for n, (begin, node) in enumerate(zip(begin_N.tolist(), node_N.tolist(), strict=True)):
        first.append(len(mention))
        for t in range(begin + 1, len(ids) + 1):
            found = names.children(node, tuple(ids[begin:t]))
            mention.append(n)
            position.append(t)
            children.append(found)
            if t == len(ids) or ids[t] not in found.kinds:
                break
    return mention, position, children, np.array(first, np.int64)


def _branches(scores: PassageScores, children: list[Children], t_X: Ints) -> _Branches:
    """The ways in which names go on at positions t."""
    count = len(children)
    some_X = np.array([len(each.kinds) for each in children], np.int64)
    owner_Y = np.repeat(np.arange(count), some_X)
    subword_Y = np.array([subword for each in children for subword in each.kinds], np.int64)
    kind_Y = torch.tensor([int(kind) for each in children for kind in each.kinds.values()], dtype=torch.int64)
    t_Y = t_X[owner_Y]
    base_Y = scores.prepared.base_scores(torch.from_numpy(t_Y), torch.from_numpy(subword_Y))
    with torch.no_grad():
        score_Y = array(scores.heads.name_scores(base_Y, kind_Y))
    highest_X = np.full(count, -math.inf)
    np.maximum.at(highest_X, owner_Y, score_Y)
    p_Y = np.exp(score_Y - highest_X[owner_Y])
    total_X = np.bincount(owner_Y, p_Y, count)
    said = subword_Y == np.array(scores.prepared.passage.ids, np.int64)[t_Y]
    said_X = np.bincount(owner_Y[said], p_Y[said], count) / np.maximum(total_X, 1e-300)
    mass_X = np.bincount(owner_Y, np.exp(array(base_Y)), count).astype(np.float64)
    return _Branches(mass_X, said_X, some_X)


def _types(scores: PassageScores, t_X: Ints, complete: list[bool], found: _Branches) -> Floats:
    """p(type) of states at positions t (X × 3)."""
    complete_X, goes_on_X = np.array(complete, np.bool_), found.some_X > 0
    kind_X = np.where(complete_X, int(MentionState.MAY_END), int(MentionState.INSIDE))
    kind_X = np.where(goes_on_X, kind_X, int(MentionState.ENDED))
    feature_XQ = array(scores.prepared.feature_TQ)[t_X]
    feature_XQ[:, CONTINUE_FEATURE] = np.where(goes_on_X, np.log(found.mass_X + LEAST) - math.log(LEAST), 0.0)
    weight_Q3, state_53 = array(scores.heads.type_features), array(scores.heads.type_state_53)
    legal_X3 = np.ones((len(t_X), len(Type)), np.bool_)
    legal_X3[:, Type.RELATED] = scores.none_T3[t_X, Type.RELATED] > 0
    legal_X3[:, Type.CONTINUE] = goes_on_X
    score_X3 = np.where(legal_X3, scores.type_T3[t_X] + state_53[kind_X] + feature_XQ @ weight_Q3, -math.inf)
    p_X3 = np.exp(score_X3 - score_X3.max(1, keepdims=True, initial=-math.inf))
    return np.asarray(p_X3 / p_X3.sum(1, keepdims=True))


@dataclass(frozen=True, eq=False)
class TextScore:
    """log p of each subword given those before it, and of the base alone."""

    log_p_T: Floats
    base_T: Floats
    _ids: list[int] = field(repr=False)
    _lattice: Lattice = field(repr=False)
    _weights: list[dict[int, float]] = field(repr=False)
    """Posterior before each subword and after the last one, by number of state; −1 where no mention runs."""

    @cached_property
    def states(self) -> list[dict[State, float]]:
        """Posterior of the running mention before each subword."""
        return [self._named(weights) for weights in self._weights[:-1]]

    @cached_property
    def end(self) -> dict[State, float]:
        """Posterior of the running mention after the last subword."""
        return self._named(self._weights[-1])

    def _named(self, weights: dict[int, float]) -> dict[State, float]:
        return {self._state(number): p for number, p in weights.items()}

    def _state(self, number: int) -> State:
        if number < 0:
            return None
        lattice = self._lattice
        n = int(lattice.mention_S[number])
        prefix = tuple(self._ids[int(lattice.begin_N[n]) : int(lattice.position_S[number])])
        return Running(int(lattice.node_N[n]), prefix)


def score_text(scores: PassageScores) -> TextScore:
    """log p of each subword of a passage, summed over all annotations."""
    base_T, ids = array(scores.prepared.features.log_p_T), scores.prepared.passage.ids
    emitted_T = scores.none_T3[:, Type.PLAIN] + scores.none_T3[:, Type.RELATED] * scores.plain_share_T
    emitted_T = emitted_T + scores.none_T3[:, Type.CONTINUE] * scores.begun_gain_T
    log_p_T = np.log(emitted_T) + base_T
    lattice = Lattice.of(scores)
    leaves, related, goes_on = lattice.leaves_S.tolist(), lattice.related_S.tolist(), lattice.goes_on_S.tolist()
    first, p_begin = lattice.state_N.tolist(), lattice.p_N.tolist()
    border = np.searchsorted(lattice.begin_N, np.arange(len(ids) + 1)).tolist()
    weights = {-1: 1.0}
    posterior = [weights]
    for t, (p_base, emitted, p_related) in enumerate(
        zip(np.exp(base_T).tolist(), emitted_T.tolist(), scores.none_T3[:, Type.RELATED].tolist(), strict=True)
    ):
        if border[t] == border[t + 1] and len(weights) == 1 and -1 in weights:
            posterior.append(weights)
            continue
        none = weights.get(-1, 0.0)
        plain, begins = none * emitted, none * p_related
        after = {-1: 0.0}
        for s, weight in weights.items():
            if s >= 0:
                plain += weight * leaves[s]
                begins += weight * related[s]
                if goes_on[s] > 0:
                    after[s + 1] = weight * goes_on[s]
        after[-1] = plain * p_base
        if begins > 0:
            for n in range(border[t], border[t + 1]):
                after[first[n]] = begins * p_begin[n]
        total = sum(after.values())
        log_p_T[t] = math.log(total)
        weights = {s: p / total for s, p in after.items() if p > DROPPED * total}
        posterior.append(weights)
    return TextScore(log_p_T, base_T, ids, lattice, posterior)
