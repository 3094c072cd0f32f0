"""Mention histories: what has been said of whom so far, for many ways to explain one text side by side.

A history is all of the past that the next step depends on: which entities were mentioned and when last, whether a
mention is running and of whom. By which fact an entity was reached, or whether it was new, does not matter for what
follows, so these are summed out at once. A step is one of

    none              x_t is no mention
    continue          x_t goes on with the running mention
    start of e        p(new) p(e | new) + p(related) Σ_{p, r} π(p) π(r | p) π(e | p, r)

Legend: T targets, K histories, C slots: the entities that some history has mentioned; N entities that may start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kglm.kg.arrays import run_starts
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.model.aliases import AliasTable
from kglm.model.annotation import DISTANCES, AnnotationEncoder, Facts, Type, type_feature
from kglm.model.parents import place_scores, places
from kglm.model.text_scores import Bools, Fan, Floats, Ints, LatentTables, Text

NONE, CONTINUE, FIRST = 0, 1, 2
"""Columns of a table of steps: none, continue, then one for each entity that may start."""


class Cast:
    """The entities that some history of a text has mentioned, each with a slot, and whom they reach."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph
        self.nodes: list[int] = []
        self._node_C = np.empty(0, np.int64)
        self._fans: list[Fan] = []
        self._slot: dict[int, int] = {}
        self._literal: dict[int, bool] = {}
        self._reached: dict[int, list[tuple[int, int, int]]] = {}
        """For each entity, the (slot, relation, number of tails) that lead to it."""
        self._ways: dict[int, Ints] = {}
        """The same as arrays, made when they are asked for."""

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def node_C(self) -> Ints:
        """The node of each slot; the same object as long as there is no new one."""
        if len(self._node_C) < len(self.nodes):
            self._node_C = np.array(self.nodes, np.int64)
        return self._node_C

    def is_literal(self, node: int) -> bool:
        found = self._literal.get(node)
        if found is None:
            found = self._literal[node] = is_literal(self.graph.id(node))
        return found

    def slot(self, node: int) -> int:
        """The slot of an entity; it gets one, and what it reaches is noted, when it is first asked for."""
        found = self._slot.get(node)
        if found is not None:
            return found
        slot = self._slot[node] = len(self.nodes)
        self.nodes.append(node)
        relation, tail = self.graph.edges(node)
        starts = run_starts(relation)
        run, first = np.cumsum(starts) - 1, np.flatnonzero(starts)
        size = np.bincount(run)
        self._fans.append(Fan(relation[first], first, size, tail))
        for r, e, n in zip(relation.tolist(), tail.tolist(), size[run].tolist(), strict=True):
            self._reached.setdefault(e, []).append((slot, r, n))
            self._ways.pop(e, None)
        return slot

    def fan(self, slot: int) -> Fan:
        """What the entity of a slot reaches."""
        return self._fans[slot]

    def ways(self, node: int) -> Ints | None:
        """Columns of slot, relation, number of tails: all facts that lead from a mentioned entity to this one."""
        found = self._ways.get(node)
        if found is None and (reached := self._reached.get(node)):
            found = self._ways[node] = np.array(reached, np.int64)
        return found


@dataclass(frozen=True)
class HistorySettings:
    """What the next step may depend on."""

    facts: Facts = "all"
    parent_window: int | None = None
    continues: bool = True
    """Whether the type `continue` exists."""

    @classmethod
    def of(cls, encoder: AnnotationEncoder) -> HistorySettings:
        """Those that documents are encoded with."""
        return cls(encoder.facts, encoder.parent_window, encoder.mention_types == "continue")


@dataclass
class Histories:
    """K histories of one text, all before the same target."""

    text: Text
    cast: Cast
    aliases: AliasTable
    running_K: Ints
    """The entity whose mention is running, or -1."""
    begun_K: Ints
    """The first target of the running mention."""
    spoke_K: Ints
    """The last target that was a word of a mention, or -1."""
    subject_K: Ints
    """Slot of the first entity mentioned, or -1."""
    last_KC: Ints
    """For each slot, the last target that was a word of it, or -1."""
    settings: HistorySettings

    @classmethod
    def start(cls, count: int, text: Text, cast: Cast, aliases: AliasTable, settings: HistorySettings) -> Histories:
        """So many histories in which nothing has been said."""

        def never() -> Ints:
            return np.full(count, -1, np.int64)

        nobody_KC = np.full((count, len(cast)), -1, np.int64)
        subject_K = never() if text.topic is None else np.full(count, cast.slot(text.topic))
        return cls(text, cast, aliases, never(), never(), never(), subject_K, nobody_KC, settings)

    def __len__(self) -> int:
        return len(self.running_K)

    def select(self, index_K: Ints) -> Histories:
        """These histories, in this order; one may be taken several times."""
        return Histories(
            self.text,
            self.cast,
            self.aliases,
            self.running_K[index_K],
            self.begun_K[index_K],
            self.spoke_K[index_K],
            self.subject_K[index_K],
            self.last_KC[index_K],
            self.settings,
        )

    def key(self, k: int) -> bytes:
        """Equal for histories from which everything follows alike."""
        inside = self.running_K[k] >= 0
        head = np.array([self.running_K[k], self.begun_K[k] * inside, self.spoke_K[k], self.subject_K[k]])
        slots = np.flatnonzero(self.last_KC[k] >= 0)
        return bytes(head.tobytes() + slots.tobytes() + self.last_KC[k, slots].tobytes())

    # Before a step

    def candidates(self, t: int) -> Bools:
        """Which slots can be parents in each history (K × C)."""
        if self.last_KC.shape[1] < len(self.cast):
            more = np.full((len(self), len(self.cast) - self.last_KC.shape[1]), -1, np.int64)
            self.last_KC = np.concatenate([self.last_KC, more], 1)
        spoken_KC: Bools = self.last_KC >= 0
        if self.text.topic is not None:
            spoken_KC[:, self.cast.slot(self.text.topic)] = True
        window = self.settings.parent_window
        return spoken_KC if window is None else spoken_KC & (t - self.last_KC <= window)

    def features(self, t: int) -> Ints:
        """The mention state as the types see it."""
        since_K = t - self.spoke_K
        outside_K = 4 + np.where(self.spoke_K < 0, len(DISTANCES) + 1, np.searchsorted(DISTANCES, since_K))
        result_K = outside_K.astype(np.int64)
        known: dict[tuple[int, int], int] = {}
        for k in np.flatnonzero(self.running_K >= 0).tolist():
            mention = (int(self.running_K[k]), int(self.begun_K[k]))
            if mention not in known:
                goes_on, ends = self.aliases[mention[0]].can_follow(self.text.surface[mention[1] + 1 : t + 1])
                known[mention] = type_feature(True, goes_on, ends, None)
            result_K[k] = known[mention]
        return result_K

    def types(self, t: int, *tables: LatentTables) -> list[Floats]:
        """log p(type) in each history, under each of the models."""
        inside_K = (self.running_K >= 0) & self.settings.continues
        related_K: Bools = np.asarray(self.candidates(t).any(1))
        feature_K = self.features(t)
        return [each.types(t, feature_K, related_K, inside_K) for each in tables]

    def parents(self, t: int, tables: LatentTables) -> Floats:
        """log π(p) over slots in each history; -inf for those that are no candidates, and where there are none."""
        can_KC = self.candidates(t)
        result_KC = np.full(can_KC.shape, -np.inf)
        k_X, c_X = np.nonzero(can_KC)  # of all slots, each history has few
        if not len(k_X):
            return result_KC
        score_X = tables.parents(t, self.cast.node_C)[c_X]
        place_X3 = places(t, int(self.text.boundary_T[t]), self.last_KC[k_X, c_X], c_X == self.subject_K[k_X])
        score_X = score_X + place_scores(tables.parent_places(t), place_X3)
        size_K = can_KC.sum(1)
        size_K = size_K[size_K > 0]  # of those that have candidates
        first_K = np.cumsum(size_K) - size_K
        highest_X = np.repeat(np.maximum.reduceat(score_X, first_K), size_K)
        log_z_X = highest_X + np.log(np.repeat(np.add.reduceat(np.exp(score_X - highest_X), first_K), size_K))
        result_KC[k_X, c_X] = score_X - log_z_X
        return result_KC

    def starts(self, t: int, nodes: Sequence[int], tables: LatentTables, type_KC: Floats) -> Floats:
        """log p(start of e) of each history and entity (K × N), however e is reached."""
        [log_start_KN] = self.starts_by(t, nodes, [(tables, type_KC)])
        return log_start_KN

    def starts_by(self, t: int, nodes: Sequence[int], models: Sequence[tuple[LatentTables, Floats]]) -> list[Floats]:
        """The same under several models, each given with its log p(type)."""
        node_N = np.asarray(nodes, np.int64)
        at_N = np.full(len(node_N), t)
        log_new = [type_KC[:, Type.NEW, None] + tables.new(at_N, node_N) for tables, type_KC in models]
        found = {n: ways for n, node in enumerate(nodes) if (ways := self.cast.ways(node)) is not None}
        if not found:
            return log_new
        columns = list(found)
        slot_W, relation_W, tails_W = np.concatenate(list(found.values())).T
        column_W = np.repeat(np.arange(len(columns)), [len(ways) for ways in found.values()])
        slots, which_W = np.unique(slot_W, return_inverse=True)
        node_S, tail_W = self.cast.node_C[slots], node_N[np.array(columns)[column_W]]
        for (tables, type_KC), log_new_KN in zip(models, log_new, strict=True):
            if not np.isfinite(type_KC[:, Type.RELATED]).any():
                continue
            log_z_W = tables.relations_log_z(t, node_S)[which_W]
            share_W = tables.tail_share(t, tail_W, node_S[which_W], relation_W, tails_W)
            mass_W = np.exp(tables.relations(t, relation_W) - log_z_W) * share_W
            reach_SN = np.bincount(which_W * len(columns) + column_W, mass_W, len(slots) * len(columns))
            parent_KS = np.exp(self.parents(t, tables)[:, slots])
            with np.errstate(divide="ignore"):
                log_reach_KN = np.log(parent_KS @ reach_SN.reshape(len(slots), len(columns)))
            log_related_KN = type_KC[:, Type.RELATED, None] + log_reach_KN
            log_new_KN[:, columns] = np.logaddexp(log_new_KN[:, columns], log_related_KN)
        return log_new

    def steps(self, t: int, nodes: Sequence[int], tables: LatentTables, type_KC: Floats) -> Floats:
        """log p of every step: none, continue, start of each of these entities (K × (2 + N))."""
        parts = [type_KC[:, [Type.NONE]], type_KC[:, [Type.CONTINUE]]]
        if len(nodes):
            parts.append(self.starts(t, nodes, tables, type_KC))
        return np.concatenate(parts, 1)

    def _can_lead(self, node: int) -> bool:
        """Whether an entity is a parent once it was mentioned."""
        if self.settings.facts == "all":
            return not self.cast.is_literal(node)
        return node == self.text.topic

    # A step

    def advance(self, t: int, column_K: Ints, nodes: Sequence[int]) -> None:
        """Each history takes the step of its column of `steps`."""
        self.candidates(t)
        starts_K = np.flatnonzero(column_K >= FIRST)
        if len(starts_K):
            self.running_K[starts_K] = np.asarray(nodes, np.int64)[column_K[starts_K] - FIRST]
            self.begun_K[starts_K] = t
        self.running_K[column_K == NONE] = -1
        speaking_K = np.flatnonzero(column_K != NONE)
        if not len(speaking_K):
            return
        self.spoke_K[speaking_K] = t
        distinct, who_K = np.unique(self.running_K[speaking_K], return_inverse=True)
        slot_D = [self.cast.slot(node) if self._can_lead(node) else -1 for node in distinct.tolist()]
        self.candidates(t)  # makes room for new slots
        slot_K = np.array(slot_D, np.int64)[who_K]
        speaking_K, slot_K = speaking_K[slot_K >= 0], slot_K[slot_K >= 0]
        self.last_KC[speaking_K, slot_K] = t
        self.subject_K[speaking_K] = np.where(self.subject_K[speaking_K] < 0, slot_K, self.subject_K[speaking_K])
