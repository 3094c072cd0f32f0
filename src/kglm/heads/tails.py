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
    facts: list[Tensor] = []
    number: list[int] = []
    tails: list[int] = []
    owners: list[int] = []
    subwords: list[int] = []
    positions: list[int] = []
    for n, (t, parent, relation) in enumerate(groups):
        found = tables.tails.of(parent, relation)
        row = (int(word_T[t]) if t < len(word_T) else len(surface)) - 1
        facts.append(torch.from_numpy(tail_facts(found, named_years(window(surface, row)))).float())
        tables.names.prepare(found.tail.tolist())
        for tail in found.tail.tolist():
            first = tables.names.first(tail)
            owners += [len(tails)] * len(first)
            subwords += first
            positions += [t] * len(first)
            number.append(n)
            tails.append(tail)
    owner_X, subword_X = torch.tensor(owners, dtype=torch.int64), torch.tensor(subwords, dtype=torch.int64)
    score_X = base(torch.tensor(positions, dtype=torch.int64), subword_X)
    mass_Y = torch.zeros(len(tails)).index_add(0, owner_X, score_X.exp())
    return TailInputs(
        torch.tensor(number, dtype=torch.int64),
        torch.tensor(tails, dtype=torch.int64),
        torch.cat(facts) if facts else torch.zeros(0, 0),
        (mass_Y + LEAST).log() - math.log(LEAST),
    )


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
