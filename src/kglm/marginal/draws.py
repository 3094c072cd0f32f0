"""Draws of steps from the latent variables of a model, by inverse distribution functions: a number for each choice."""

from __future__ import annotations

import numpy as np

from kglm.model.histories import Histories
from kglm.model.text_scores import Fan, Floats, Ints, LatentTables


def draw_columns(mass_KJ: Floats, uniform_K: Floats) -> Ints:
    """A column for each row, with probability as its mass; never one that has none."""
    until_KJ = np.cumsum(mass_KJ, 1)
    column_K = (uniform_K[:, None] * until_KJ[:, -1:] >= until_KJ).sum(1)
    highest_K = mass_KJ.shape[1] - 1 - np.argmax(mass_KJ[:, ::-1] > 0, 1)
    return np.asarray(np.minimum(column_K, highest_K), np.int64)


def draw_related(t: int, histories: Histories, tables: LatentTables, uniform_3K: Floats) -> Ints:
    """An entity for each history, by a parent, a relation and a tail: a number for each."""
    cast = histories.cast
    order = np.argsort(cast.node_C)  # slots are in order of appearance, which is not the same twice
    slot_K = order[draw_columns(np.exp(histories.parents(t, tables))[:, order], uniform_3K[0])]
    found = np.empty(len(slot_K), np.int64)
    for k, slot in enumerate(slot_K.tolist()):
        fan = cast.fan(slot)
        score = tables.relations(t, fan.relation)
        mass = np.exp(score - score.max())
        [r] = draw_columns(mass[None], uniform_3K[1, k : k + 1])
        tails = slice(fan.first[r], fan.first[r] + fan.size[r])
        one = Fan(fan.relation[r : r + 1], np.zeros(1, np.int64), fan.size[r : r + 1], fan.tail[tails])
        [place] = draw_columns(tables.tail_shares(t, one)[None], uniform_3K[2, k : k + 1])
        found[k] = one.tail[place]
    return found


def systematic(share_K: Floats, uniform: float) -> Ints:
    """Who is taken when each is taken as often as its share says, up to one more or less."""
    places = (np.arange(len(share_K)) + uniform) / len(share_K)
    return np.minimum(np.searchsorted(np.cumsum(share_K), places, side="right"), len(share_K) - 1)
