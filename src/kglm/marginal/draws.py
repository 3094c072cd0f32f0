"""Sample the latent variables of a model by inverting distribution functions: one uniform number for each choice."""

from __future__ import annotations

import numpy as np

from kglm.model.arrays import Floats, Ints
from kglm.model.histories import Histories
from kglm.model.latent import TextLatent
from kglm.model.local_graph import EdgeGroups


def draw_columns(mass_SZ: Floats, uniform_S: Floats) -> Ints:
    """Draw one column for each row in proportion to its mass; columns without mass are never drawn."""
    until_SZ = np.cumsum(mass_SZ, 1)
    column_S = (uniform_S[:, None] * until_SZ[:, -1:] >= until_SZ).sum(1)
    highest_S = mass_SZ.shape[1] - 1 - np.argmax(mass_SZ[:, ::-1] > 0, 1)
    return np.asarray(np.minimum(column_S, highest_S), np.int64)


def draw_related(t: int, histories: Histories, latent: TextLatent, uniform_3S: Floats) -> Ints:
    """Draw a related entity for each history: first its parent, then the relation, then the tail."""
    mentioned = histories.mentioned
    order = np.argsort(mentioned.node_P)  # by entity: the order of slots differs between runs
    slot_S = order[draw_columns(np.exp(histories.parents(t, latent))[:, order], uniform_3S[0])]
    log_z_S = latent.relations.log_z(t, mentioned.node_P[slot_S])
    found = np.empty(len(slot_S), np.int64)
    for k, slot in enumerate(slot_S.tolist()):
        edges = mentioned.edges(slot)
        mass = np.exp(latent.relations.log_probs(t, edges.relation, log_z_S[k]))
        [r] = draw_columns(mass[None], uniform_3S[1, k : k + 1])
        tails = slice(edges.first[r], edges.first[r] + edges.size[r])
        relation, size = edges.relation[r : r + 1], edges.size[r : r + 1]
        one = EdgeGroups(edges.node, relation, np.zeros(1, np.int64), size, edges.tail[tails])
        [place] = draw_columns(latent.tails.of_edges(t, one)[None], uniform_3S[2, k : k + 1])
        found[k] = one.tail[place]
    return found


def systematic(share_S: Floats, uniform: float) -> Ints:
    """Systematic resampling: ancestor of each new particle; particle s gets S · share_s copies, rounded up or down."""
    places = (np.arange(len(share_S)) + uniform) / len(share_S)
    return np.minimum(np.searchsorted(np.cumsum(share_S), places, side="right"), len(share_S) - 1)
