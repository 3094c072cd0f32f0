"""π(e | p, r) among the tails of a parent and a relation: which of several values the text means.

    score(e) = w · f(p, r, e) + a log (p_B(e's names begin at t) + ε)

f are the features of `kg.tail_features` and whether the statement held in a year that the text names. Among more than
`MAX_TAILS` tails, all are equally probable. At the end of a prompt, the scores of a few tails also have what the base
says of their whole labels: see `tail_names`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.heads.features import Features
from kglm.heads.tables import GraphTables
from kglm.kg.tail_features import MAX_TAILS
from kglm.model.arrays import Ints
from kglm.model.cues import named_years, window
from kglm.model.logsums import segment_logsumexp
from kglm.model.tail_facts import tail_facts

if TYPE_CHECKING:
    from kglm.heads.model import Heads

LEAST = 1e-4
"""Added to probabilities of which the logarithm is a feature."""
BLOCK = 1024
"""Pairs whose states and weights are in memory at a time; more do not fit into the processor's cache."""


class TailGroup(NamedTuple):
    """Position, parent and relation whose tails are scored."""

    position: int
    parent: int
    relation: int


class TailInputs(NamedTuple):
    """Tails of some groups, flattened."""

    group_Y: Tensor
    tail_Y: Tensor
    fact_YQ: Tensor
    begins_Y: Tensor
    """log of the base's probability of the first subwords of a tail's names."""


BaseScores = Callable[[Tensor, Tensor], Tensor]
"""log p_B of subwords at positions."""


def tail_inputs(groups: Sequence[TailGroup], surface: Sequence[str], word_T: Sequence[int], tables: GraphTables,
                base: BaseScores) -> TailInputs:  # fmt: skip
    """Inputs of the scores of all tails of groups with at most `MAX_TAILS` tails; `word_T` as in a passage.

    A position behind the last subword is that of the next one.
    """
    found = [tables.tail_arrays(group.parent, group.relation) for group in groups]
    facts, years_of = [], dict[int, list[int]]()
    for (t, _, _), each in zip(groups, found, strict=True):
        if each.features.statements is None:
            facts.append(each.fact_YQ)
            continue
        row = (int(word_T[t]) if t < len(word_T) else len(surface)) - 1
        if row not in years_of:
            years_of[row] = named_years(window(surface, row))
        facts.append(tail_facts(each.features, years_of[row]))
    size_N = np.array([len(each.features.tail) for each in found], np.int64)
    names_N = np.array([len(each.subword_X) for each in found], np.int64)
    first_N = np.cumsum(size_N) - size_N
    owner_X = _joined([each.owner_X for each in found]) + np.repeat(first_N, names_N)
    position_X = np.repeat([group.position for group in groups], names_N).astype(np.int64)
    score_X = base(torch.from_numpy(position_X), torch.from_numpy(_joined([each.subword_X for each in found])))
    mass_Y = torch.zeros(int(size_N.sum())).index_add(0, torch.from_numpy(owner_X), score_X.exp())
    return TailInputs(
        torch.from_numpy(np.repeat(np.arange(len(groups)), size_N)),
        torch.from_numpy(_joined([each.features.tail.astype(np.int64) for each in found])),
        torch.from_numpy(np.concatenate(facts)).float() if facts else torch.zeros(0, 0),
        (mass_Y + LEAST).log() - math.log(LEAST),
    )


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def tail_log_probs(heads: Heads, inputs: TailInputs, groups: int, gain_Y: Tensor | None = None) -> Tensor:
    """log π(e | p, r) of all tails of the groups; their scores gain `gain_Y`."""
    score_Y = heads.tail_scores(inputs.fact_YQ, inputs.begins_Y)
    if gain_Y is not None:
        score_Y = score_Y + gain_Y
    return score_Y - segment_logsumexp(score_Y, inputs.group_Y, groups)[inputs.group_Y]


def is_scored(size: int) -> bool:
    """True if the tails of a group of this size are scored; otherwise all are equally probable."""
    return 1 < size <= MAX_TAILS


def base_scores(features: Features, embedding_VD: Tensor, position_Y: Tensor, subword_Y: Tensor) -> Tensor:
    """log p_B of subwords at positions; a pair that repeats is computed once."""
    key_U, pair_Y = np.unique(position_Y.numpy() * len(embedding_VD) + subword_Y.numpy(), return_inverse=True)
    position_U = torch.from_numpy(key_U // len(embedding_VD))
    subword_U = torch.from_numpy(key_U % len(embedding_VD))
    score_U = -features.log_z_T[position_U]
    for first in range(0, len(key_U), BLOCK):
        part = slice(first, first + BLOCK)
        weight_UD = embedding_VD[subword_U[part]]
        last_UD = features.last_TD[position_U[part]].to(weight_UD.dtype)
        score_U[part] += (last_UD * weight_UD).sum(-1, dtype=torch.float32)
    return score_U[torch.from_numpy(pair_Y)]
