"""The mention state before a position: all that the distribution of types sees of the mentions so far.

It is one number. Inside a mention: whether some alias of its entity goes on after the words so far, and whether one
ends with them. Outside: the log-bucket of the distance to the last word of a mention, or that there was none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kglm.model.aliases import Aliases, AliasTable
from kglm.model.arrays import Bools, Ints
from kglm.model.buckets import BUCKETS, DISTANCES

INSIDE = 4
"""The first states: inside a mention."""
STATES = INSIDE + BUCKETS + 1


def inside_state(aliases: Aliases, words: Sequence[str]) -> int:
    """State inside a mention of which these words have been read."""
    goes_on, ends = aliases.can_follow(words)
    return goes_on + 2 * ends


def outside_states(t_N: Ints, last_N: Ints) -> Ints:
    """States at positions outside of mentions; `last_N` are the last positions inside one, -1 if there are none."""
    bucket_N = np.searchsorted(DISTANCES, t_N - last_N)
    return np.asarray(INSIDE + np.where(last_N < 0, BUCKETS, bucket_N), np.int64)


def document_states(surface: Sequence[str], node_T: Ints, starts_T: Bools, aliases: AliasTable) -> Ints:
    """States before all positions of an annotated text; `node_T` is -1 outside of mentions."""
    t_T = np.arange(len(node_T))
    last_T = np.maximum.accumulate(np.where(node_T >= 0, t_T, -1))
    state_T = outside_states(t_T, np.concatenate([[-1], last_T])[: len(t_T)])
    begun = 0
    for t in np.flatnonzero(node_T[:-1] >= 0).tolist():
        begun = t if starts_T[t] else begun
        state_T[t + 1] = inside_state(aliases[int(node_T[t])], surface[begun + 1 : t + 2])
    return state_T


def history_states(
    t: int, surface: Sequence[str], running_S: Ints, begun_S: Ints, last_S: Ints, aliases: AliasTable
) -> Ints:
    """States before position t in several histories: entity and first position of the running mention (-1 if none),
    and last position inside a mention."""
    state_S = outside_states(np.full(len(last_S), t), last_S)
    states: dict[tuple[int, int], int] = {}
    for s in np.flatnonzero(running_S >= 0).tolist():
        mention = (int(running_S[s]), int(begun_S[s]))
        if mention not in states:
            states[mention] = inside_state(aliases[mention[0]], surface[mention[1] + 1 : t + 1])
        state_S[s] = states[mention]
    return state_S
