"""What the gain or loss of the heads over their base is made of, in nats.

Let z be the ways in which a subword s can have been said: as the base says it, as the name of a tail of a fact, as more
of a running name, and so on. With q(z) = p(z | s, text before), the posterior, exactly

    log p(s) − log p_B(s) = Σ_z q(z) [log p(z, s) − log q(z)] − log p_B(s)

and log p(z, s) is a sum over the decisions of z. So each decision has a share:

    type        log p(type): what it costs to be ready for facts, and to choose them
    parent      log π(p)
    relation    log π(r | p)
    tail        log π(e | p, r)
    name        log p(subword of a name) − log p_B(subword): what a fact gains
    begun       the same for names that the base has begun
    missing     log of the share of `related` that says a word of the base
    mixture     −Σ q log q and log p(state of the mention): positive where there are several ways

They sum to the gain of each subword.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kglm.heads.lattice import TextScore
from kglm.heads.model import Type
from kglm.heads.scoring import PassageScores, State
from kglm.model.arrays import Floats

NAMES = ("type", "parent", "relation", "tail", "name", "begun", "missing", "mixture")
TYPE, PARENT, RELATION, TAIL, NAME, BEGUN, MISSING, MIXTURE = range(len(NAMES))


class _Way(NamedTuple):
    """One way to say a subword: log p(z, s) − log p_B(s), and the parts of it by component."""

    log_p: float
    parts: tuple[tuple[int, float], ...]


def components(scores: PassageScores, scored: TextScore) -> Floats:
    """The components of each subword's log p − log p of the base (T × C)."""
    part_TC = _plain(scores)
    offered = set(scores.facts.first_subwords.tolist())
    for t, (subword, states) in enumerate(zip(scores.prepared.passage.ids, scored.states, strict=True)):
        if len(states) > 1 or None not in states or subword in offered:
            part_TC[t] = _mixed(list(_ways(scores, scored, t, subword, states)))
    return part_TC


def _plain(scores: PassageScores) -> Floats:
    """The components where no mention runs and no fact offers the subword."""
    type_T3 = scores.none_T3
    factor_T3 = np.ones_like(type_T3)
    factor_T3[:, Type.RELATED], factor_T3[:, Type.CONTINUE] = scores.plain_share_T, scores.begun_gain_T
    with np.errstate(divide="ignore", invalid="ignore"):
        way_T3 = type_T3 * factor_T3
        q_T3 = way_T3 / way_T3.sum(1, keepdims=True)
        terms = [np.where(q_T3 > 0, q_T3 * np.log(each), 0.0) for each in (type_T3, factor_T3, q_T3)]
    part_TC = np.zeros((len(type_T3), len(NAMES)))
    part_TC[:, TYPE] = terms[0].sum(1)
    part_TC[:, MISSING], part_TC[:, BEGUN] = terms[1][:, Type.RELATED], terms[1][:, Type.CONTINUE]
    part_TC[:, MIXTURE] = -terms[2].sum(1)
    return part_TC


def _mixed(ways: list[_Way]) -> Floats:
    """The components of one subword, given all ways to say it."""
    log_N = np.array([way.log_p for way in ways])
    q_N = np.exp(log_N - np.logaddexp.reduce(log_N))
    part_C = np.zeros(len(NAMES))
    for q, way in zip(q_N.tolist(), ways, strict=True):
        if q > 0:
            part_C[MIXTURE] -= q * math.log(q)
            for component, value in way.parts:
                part_C[component] += q * value
    return part_C


def _ways(scores: PassageScores, scored: TextScore, t: int, subword: int, states: dict[State, float]) -> Iterator[_Way]:
    """All ways to say a subword that have a probability."""
    names, local = scores.prepared.tables.names, scores.prepared.local
    related = 0.0
    for state, weight in states.items():
        p_3 = scores.types(t, state)
        related += weight * float(p_3[Type.RELATED])
        yield from _way((MIXTURE, weight), (TYPE, p_3[Type.PLAIN]))
        yield from _way((MIXTURE, weight), (TYPE, p_3[Type.RELATED]), (MISSING, scores.plain_share_T[t]))
        if state is None:
            yield from _way((MIXTURE, weight), (TYPE, p_3[Type.CONTINUE]), (BEGUN, scores.begun_gain_T[t]))
        elif p_3[Type.CONTINUE] > 0 and subword in (children := names.children(*state)).kinds:
            gain = scores.name_probs(t, children)[subword] / math.exp(scored.base_T[t])
            yield from _way((MIXTURE, weight), (TYPE, p_3[Type.CONTINUE]), (NAME, gain))
    if related > 0:
        gain_of: dict[int, float] = {}
        for fact in scores.offered(t, subword):
            if fact.tail not in gain_of:
                p_name = scores.name_probs(t, names.children(fact.tail, ()))[subword]
                gain_of[fact.tail] = p_name / math.exp(scored.base_T[t])
            slot = local.slot_of[fact.parent]
            parent = scores.parent_TP[t, slot]
            relation = math.exp(scores.relation_TR[t, fact.relation] - scores.log_z_TP[t, slot])
            yield from _way(
                (TYPE, related),
                (PARENT, parent),
                (RELATION, relation),
                (TAIL, fact.p / (parent * relation) if parent * relation > 0 else 0.0),
                (NAME, gain_of[fact.tail]),
            )


def _way(*factors: tuple[int, float]) -> Iterator[_Way]:
    if all(p > 0 for _, p in factors):
        parts = tuple((component, math.log(p)) for component, p in factors)
        yield _Way(sum(value for _, value in parts), parts)
