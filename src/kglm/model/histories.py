"""Mention histories: many ways to explain one text, side by side.

A history is all of the past that the next step depends on: the entities mentioned and their last positions, and the
running mention. Whether an entity was new, or which fact reached it, does not matter for what follows, so these are
summed out at once. A step is one of

    none              x_t is no mention: no entity is meant, or the text asks for a fact that is missing
    continue          x_t goes on with the running mention
    start of e        p(new) p(e | new) + p(related) Σ_{p, r} π(p) π(r | p) π(e | p, r)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kglm.model.aliases import AliasTable
from kglm.model.arrays import Bools, Floats, Ints
from kglm.model.latent import TextLatent
from kglm.model.local_graph import MentionedEntities
from kglm.model.mention_state import history_states
from kglm.model.text import HistoryConfig, Text
from kglm.model.types import Type

NONE, CONTINUE, FIRST = 0, 1, 2
"""Columns of a table of steps: none, continue, then one for each entity that may start."""


@dataclass
class Histories:
    """S histories of one text, all before the same position."""

    text: Text
    mentioned: MentionedEntities
    aliases: AliasTable
    config: HistoryConfig
    running_S: Ints
    """Entity of the running mention, or -1."""
    begun_S: Ints
    """First position of the running mention."""
    last_S: Ints
    """Last position inside a mention, or -1."""
    subject_S: Ints
    """Slot of the first entity mentioned, or -1."""
    last_SP: Ints
    """For each slot, its last position inside a mention, or -1."""

    @classmethod
    def start(
        cls, count: int, text: Text, mentioned: MentionedEntities, aliases: AliasTable, config: HistoryConfig
    ) -> Histories:
        """Histories before the first word."""

        def never() -> Ints:
            return np.full(count, -1, np.int64)

        last_SP = np.full((count, len(mentioned)), -1, np.int64)
        subject_S = never() if text.topic is None else np.full(count, mentioned.slot(text.topic))
        return cls(text, mentioned, aliases, config, never(), never(), never(), subject_S, last_SP)

    def __len__(self) -> int:
        return len(self.running_S)

    def select(self, index_S: Ints) -> Histories:
        """These histories, in this order; one may be taken several times."""
        return replace(
            self,
            running_S=self.running_S[index_S],
            begun_S=self.begun_S[index_S],
            last_S=self.last_S[index_S],
            subject_S=self.subject_S[index_S],
            last_SP=self.last_SP[index_S],
        )

    def key(self, s: int) -> bytes:
        """Key of history s: histories with equal keys have the same distribution of all further steps."""
        slots = np.flatnonzero(self.last_SP[s] >= 0)
        [head] = self.heads(slice(s, s + 1))
        return bytes(np.array(head).tobytes() + slots.tobytes() + self.last_SP[s, slots].tobytes())

    def heads(self, index: slice = slice(None)) -> list[tuple[int, ...]]:
        """The part of each history's key that does not grow with the text."""
        begun_S = self.begun_S[index] * (self.running_S[index] >= 0)
        columns = (self.running_S[index], begun_S, self.last_S[index], self.subject_S[index])
        return list(zip(*(column.tolist() for column in columns), strict=True))

    # Probabilities of the next step

    def candidates(self, t: int) -> Bools:
        """Which slots are candidate parents in each history (S × P)."""
        if self.last_SP.shape[1] < len(self.mentioned):
            more = np.full((len(self), len(self.mentioned) - self.last_SP.shape[1]), -1, np.int64)
            self.last_SP = np.concatenate([self.last_SP, more], 1)
        candidate_SP: Bools = self.last_SP >= 0
        if self.text.topic is not None:
            candidate_SP[:, self.mentioned.slot(self.text.topic)] = True
        window = self.config.parent_window
        return candidate_SP if window is None else candidate_SP & (t - self.last_SP <= window)

    def states(self, t: int) -> Ints:
        """The mention state of each history."""
        return history_states(t, self.text.surface, self.running_S, self.begun_S, self.last_S, self.aliases)

    def types(self, t: int, *models: TextLatent) -> list[Floats]:
        """log p(type) of the step in each history, under each of the models.

        A missing fact makes no mention, so its probability is part of `none`, and `related` is that of a mention.
        """
        results = self.drawn_types(t, *models)
        for type_SC, model in zip(results, models, strict=True):
            if model.missing is not None and np.isfinite(type_SC[:, Type.RELATED]).any():
                exists_SP, missing_SP = self._parents(t, model)
                related_S1 = type_SC[:, [Type.RELATED]]
                none_SP = np.concatenate([type_SC[:, [Type.NONE]], related_S1 + missing_SP], 1)
                type_SC[:, Type.NONE] = np.logaddexp.reduce(none_SP, 1)
                type_SC[:, Type.RELATED] = np.logaddexp.reduce(related_S1 + exists_SP, 1)
        return results

    def drawn_types(self, t: int, *models: TextLatent) -> list[Floats]:
        """log p(type) as the models draw it, where `related` may turn out to be missing."""
        inside_S = (self.running_S >= 0) & self.config.continues
        related_S: Bools = np.asarray(self.candidates(t).any(1))
        state_S = self.states(t)
        return [model.types.log_probs(t, state_S, related_S, inside_S) for model in models]

    def parents(self, t: int, latent: TextLatent) -> Floats:
        """log π(p) of a mention over slots in each history; -inf for slots that are no candidates."""
        log_p_SP, _ = self._parents(t, latent)
        if latent.missing is None:
            return log_p_SP
        log_z_S1 = np.logaddexp.reduce(log_p_SP, 1, keepdims=True)
        return log_p_SP - np.where(np.isfinite(log_z_S1), log_z_S1, 0.0)

    def missing(self, t: int, latent: TextLatent) -> Floats:
        """Probability that the text asks for a missing fact, in each history and by parent (S × P)."""
        [type_SC] = self.drawn_types(t, latent)
        _, missing_SP = self._parents(t, latent)
        return np.asarray(np.exp(type_SC[:, [Type.RELATED]] + missing_SP))

    def _parents(self, t: int, latent: TextLatent) -> tuple[Floats, Floats]:
        """log π(p) of each history and slot, split into that of facts that exist and of missing ones."""
        candidate_SP = self.candidates(t)
        boundary, node_P = int(self.text.boundary_T[t]), self.mentioned.node_P
        log_p_SP = latent.parents.log_probs(t, boundary, node_P, candidate_SP, self.last_SP, self.subject_S)
        if latent.missing is None:
            return log_p_SP, np.full(log_p_SP.shape, -np.inf)
        exists_P, missing_P = latent.missing.log_shares(t, node_P)
        return log_p_SP + exists_P, log_p_SP + missing_P

    def starts(self, t: int, nodes: Sequence[int], *models: tuple[TextLatent, Floats]) -> list[Floats]:
        """log p(start of e) of each history and entity (S × N), for each pair (model, log p(type)) in `models`."""
        node_N = np.asarray(nodes, np.int64)
        paths = self.mentioned.paths_to(nodes)
        results = []
        for latent, type_SC in models:
            log_p_SN = latent.new_starts(t, node_N, type_SC)
            if paths is not None and np.isfinite(type_SC[:, Type.RELATED]).any():
                parent_SP = np.exp(self.parents(t, latent))
                log_p_SN = latent.add_related_starts(
                    log_p_SN, t, node_N, type_SC, parent_SP, self.mentioned.node_P, paths
                )
            results.append(log_p_SN)
        return results

    def steps(self, t: int, nodes: Sequence[int], latent: TextLatent, type_SC: Floats) -> Floats:
        """log p of every step: none, continue, start of each of these entities (S × (2 + N))."""
        columns = [type_SC[:, [Type.NONE]], type_SC[:, [Type.CONTINUE]]]
        if len(nodes):
            columns += self.starts(t, nodes, (latent, type_SC))
        return np.concatenate(columns, 1)

    # A step

    def _becomes_parent(self, node: int) -> bool:
        """True if an entity is a candidate parent once it is mentioned."""
        if self.config.facts == "all":
            return not self.mentioned.is_literal(node)
        return node == self.text.topic

    def advance(self, t: int, column_S: Ints, nodes: Sequence[int]) -> None:
        """Update each history by its step; `column_S` are columns of `steps`."""
        self.candidates(t)
        starts_S = np.flatnonzero(column_S >= FIRST)
        if len(starts_S):
            self.running_S[starts_S] = np.asarray(nodes, np.int64)[column_S[starts_S] - FIRST]
            self.begun_S[starts_S] = t
        self.running_S[column_S == NONE] = -1
        inside_S = np.flatnonzero(column_S != NONE)
        if not len(inside_S):
            return
        self.last_S[inside_S] = t
        distinct, entity_S = np.unique(self.running_S[inside_S], return_inverse=True)
        slot_U = [self.mentioned.slot(node) if self._becomes_parent(node) else -1 for node in distinct.tolist()]
        self.candidates(t)  # makes room for new slots
        slot_S = np.array(slot_U, np.int64)[entity_S]
        inside_S, slot_S = inside_S[slot_S >= 0], slot_S[slot_S >= 0]
        self.last_SP[inside_S, slot_S] = t
        self.subject_S[inside_S] = np.where(self.subject_S[inside_S] < 0, slot_S, self.subject_S[inside_S])
