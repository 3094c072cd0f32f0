"""Sample the latent variables of a model by inverting distribution functions: one uniform number for each choice."""

from __future__ import annotations

import numpy as np

from kglm.model.histories import Histories
from kglm.model.text_scores import Fan, Floats, Ints, LatentTables


def draw_columns(mass_KJ: Floats, uniform_K: Floats) -> Ints:
    """Draw one column for each row in proportion to its mass; columns without mass are never drawn."""
    until_KJ = np.cumsum(mass_KJ, 1)
    column_K = (uniform_K[:, None] * until_KJ[:, -1:] >= until_KJ).sum(1)
    highest_K = mass_KJ.shape[1] - 1 - np.argmax(mass_KJ[:, ::-1] > 0, 1)
    return np.asarray(np.minimum(column_K, highest_K), np.int64)


def draw_related(t: int, histories: Histories, tables: LatentTables, uniform_3K: Floats) -> Ints:
    """Draw a related entity for each history: first its parent, then the relation, then the tail."""
    cast = histories.cast
    order = np.argsort(cast.node_C)  # by entity: the order of slots differs between runs
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
    """Systematic resampling: ancestor of each new particle; each old one gets K · share copies, rounded up or down."""
    places = (np.arange(len(share_K)) + uniform) / len(share_K)
    return np.minimum(np.searchsorted(np.cumsum(share_K), places, side="right"), len(share_K) - 1)
