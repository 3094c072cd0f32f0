"""A passage with everything that its heads need and that does not depend on their weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.heads.all_names import AllNames, Continuations, Range
from kglm.heads.clauses import clause_texts
from kglm.heads.facts import EntityFacts, LocalFacts
from kglm.heads.features import Features
from kglm.heads.local import Link, LocalEntities, Places, sentence_starts
from kglm.heads.model import CUES, TYPE_FEATURES, ClauseScores, PlaceTensors
from kglm.heads.passage import Passage
from kglm.heads.tables import GraphTables
from kglm.heads.tails import LEAST, BaseScores, base_scores
from kglm.model.arrays import Floats, Ints
from kglm.model.cues import FULL, Cues

CONTINUE_FEATURE = 3
"""Column of the type's features: how probable the base finds that a name goes on."""
NO_CUE = 1e-9
"""A smaller cue is rounding."""
BLOCK = 256
"""Positions whose scores of first subwords are in memory at a time."""


class Begun(NamedTuple):
    """Names that the last subwords begin: the ways in which they go on, at each position that has some."""

    position_Y: Tensor
    subword_Y: Tensor
    log_weight_Y: Tensor
    base_Y: Tensor
    """log p_B."""
    legal_T: Tensor
    """True where there are some."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A passage, its features, and its local graph."""

    passage: Passage
    features: Features
    tables: GraphTables
    local: LocalEntities
    places: PlaceTensors
    has_PR: Tensor
    """1 where an entity has a relation whose facts are enumerated; also for larger ones, which are not lacking."""
    large_PR: Tensor
    """1 where a relation has too many tails: its mass emits words of the base."""
    cue_index: tuple[Tensor, Tensor, Tensor]
    """Position, relation number K and [m, [m = 1], a] of the cues that are not 0."""
    max_tails: int
    feature_TQ: Tensor
    """Features of the type at each position, outside of mentions."""
    begun: Begun

    def cues(self, first: int, end: int) -> Tensor:
        """Dense cues of positions [first, end) (T × K × 3)."""
        t_Y, k_Y, value_Y3 = self.cue_index
        inside = (t_Y >= first) & (t_Y < end)
        cue_TK3 = torch.zeros(end - first, len(self.tables.relations), CUES)
        cue_TK3[t_Y[inside] - first, k_Y[inside]] = value_Y3[inside]
        return cue_TK3

    def clause_scores(self, positions: Sequence[int]) -> ClauseScores | None:
        """The clauses before some positions, as the sentence encoder reads them; None without one."""
        meanings = self.tables.meanings
        if meanings is None or not len(positions):
            return None
        clause_NC = meanings.clauses(clause_texts(self.passage, self.local.links, positions))
        return ClauseScores(torch.tensor(list(positions)), clause_NC, meanings.similarities(clause_NC))

    def clauses_before_words(self, chosen_T: Tensor) -> ClauseScores | None:
        """The clauses before the words that begin at chosen positions."""
        return self.clause_scores((chosen_T & torch.from_numpy(self.passage.begins_T)).nonzero()[:, 0].tolist())

    def base_scores(self, position_Y: Tensor, subword_Y: Tensor) -> Tensor:
        """log p_B of subwords at positions."""
        return base_scores(self.features, self.tables.embedding_VD, position_Y, subword_Y)

    @cached_property
    def facts(self) -> LocalFacts:
        """The facts of the linked entities."""
        edges = (self.local.mentioned.edges(slot) for slot in range(len(self.local)))
        return LocalFacts.of([EntityFacts.of(each, self.tables.names, self.max_tails) for each in edges])


def prepare(
    passage: Passage, features: Features, tables: GraphTables, links: Sequence[Link], max_tails: int
) -> Prepared:
    """The passage with its local graph, given the entities that are linked in it.

    Relations with more than `max_tails` tails are not enumerated.
    """
    graph = tables.graph
    local = LocalEntities(graph, links)
    count = len(passage.ids)
    has_PR, large_PR = owned_relations(local, tables, max_tails)
    tables.names.prepare(
        node for slot in range(len(local)) for node in local.mentioned.edges(slot).with_at_most(max_tails).tail.tolist()
    )
    places = place_tensors(local.places(count, sentence_starts(passage)))
    cue_index = _cues(passage, tables.cues)
    begun = _begun(passage, features, tables)
    feature_TQ = type_features(_offered(features, tables, local, max_tails), cue_index, begun)
    return Prepared(passage, features, tables, local, places, has_PR, large_PR, cue_index, max_tails, feature_TQ, begun)


def owned_relations(local: LocalEntities, tables: GraphTables, max_tails: int) -> tuple[Tensor, Tensor]:
    """`has_PR` and `large_PR` of the linked entities (see `Prepared`)."""
    has_PR = torch.zeros(len(local), len(tables.key_RD))
    large_PR = torch.zeros_like(has_PR)
    for slot in range(len(local)):
        edges = local.mentioned.edges(slot)
        has_PR[slot, edges.relation.astype(np.int64)] = 1
        large_PR[slot, edges.relation[edges.size > max_tails].astype(np.int64)] = 1
    return has_PR, large_PR


def place_tensors(places: Places) -> PlaceTensors:
    """Places as tensors."""
    return PlaceTensors(
        torch.from_numpy(places.bucket_TP),
        torch.from_numpy(places.sentence_TP).float(),
        torch.from_numpy(places.subject_TP).float(),
        torch.from_numpy(places.log_p_TP).float(),
    )


def type_features(offered_T: Tensor, cue_index: tuple[Tensor, Tensor, Tensor], begun: Begun) -> Tensor:
    """Features of the type outside of mentions (T × Q): offered names, the best cue, names that have begun."""
    count = len(offered_T)
    feature_TQ = torch.zeros(count, TYPE_FEATURES)
    feature_TQ[:, 0] = (offered_T + LEAST).log() - math.log(LEAST)
    t_Y, _, value_Y3 = cue_index
    for column, part in ((1, 0), (2, 2)):
        feature_TQ[:, column].scatter_reduce_(0, t_Y, value_Y3[:, part], "amax")
    if len(begun.position_Y):
        mass_T = torch.zeros(count).index_add(0, begun.position_Y, begun.base_Y.exp())
        feature_TQ[:, CONTINUE_FEATURE] = torch.where(
            begun.legal_T, (mass_T + LEAST).log() - math.log(LEAST), torch.zeros(())
        )
    return feature_TQ


def _begun(passage: Passage, features: Features, tables: GraphTables) -> Begun:
    """Follow the names that the subwords begin: a function of the text alone."""
    ways: list[tuple[int, Continuations]] = []
    where: Range | None = None
    if tables.all_names is not None:
        for t, (id, begins) in enumerate(zip(passage.ids, passage.begins_T.tolist(), strict=True)):
            if where is not None:
                ways.append((t, tables.all_names.continuations(where)))
            where = following_names(tables.all_names, where, id, begins=begins)
    return begun_names(ways, len(passage.ids), partial(base_scores, features, tables.embedding_VD))


def following_names(names: AllNames, where: Range | None, id: int, *, begins: bool) -> Range | None:
    """The names that the subwords begin after one more, which begins a word or does not."""
    after = None if where is None else names.after(where, id)
    return names.begun([id]) if after is None and begins else after


def begun_names(ways: Sequence[tuple[int, Continuations]], count: int, base: BaseScores) -> Begun:
    """The ways in which names go on at some of `count` positions, as tensors."""
    legal_T = torch.zeros(count, dtype=torch.bool)
    ways = [(t, each) for t, each in ways if len(each.subwords)]
    if not ways:
        none, empty = torch.zeros(0, dtype=torch.int64), torch.zeros(0)
        return Begun(none, none, empty, empty, legal_T)
    legal_T[[t for t, _ in ways]] = True
    position_Y = torch.from_numpy(np.concatenate([np.full(len(each.subwords), t) for t, each in ways]))
    subword_Y = torch.from_numpy(np.concatenate([each.subwords for _, each in ways]).astype(np.int64))
    log_weight_Y = torch.from_numpy(np.concatenate([each.log_weights for _, each in ways])).float()
    return Begun(position_Y, subword_Y, log_weight_Y, base(position_Y, subword_Y), legal_T)


def _cues(passage: Passage, cues: Cues) -> tuple[Tensor, Tensor, Tensor]:
    """Cues before each subword that begins a word; inside of words those of the word's first subword."""
    if not len(passage.ids):
        return torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), torch.zeros(0, CUES)
    m_a_WK2 = cues.relations(passage.surface, 0, len(passage.surface) - 1)
    row_T = np.maximum(passage.word_T - 1, 0)  # position t of the cues is that of the word before
    word_Y, k_Y, value_Y3 = cue_entries(m_a_WK2)
    first_W = np.searchsorted(word_Y, np.arange(len(m_a_WK2) + 1))
    count_T = first_W[row_T + 1] - first_W[row_T]
    t_Y = np.repeat(np.arange(len(row_T)), count_T)
    source_Y = (
        np.arange(len(t_Y)) - np.repeat(np.cumsum(count_T) - count_T, count_T) + np.repeat(first_W[row_T], count_T)
    )
    return torch.from_numpy(t_Y), torch.from_numpy(k_Y[source_Y]), torch.from_numpy(value_Y3[source_Y]).float()


def cue_entries(m_a_WK2: Floats) -> tuple[Ints, Ints, Floats]:
    """Row, relation and [m, [m = 1], a] of the cues that are not 0."""
    m_a_WK2[m_a_WK2 < NO_CUE] = 0
    row_Y, k_Y = np.nonzero(m_a_WK2.any(-1))
    m_Y, a_Y = m_a_WK2[row_Y, k_Y].T
    return row_Y, k_Y, np.stack([m_Y, (m_Y >= FULL).astype(float), a_Y], -1)


def _offered(features: Features, tables: GraphTables, local: LocalEntities, max_tails: int) -> Tensor:
    """The base's own probability of first subwords of names that the local graph offers, at each position."""
    count = len(features.ids_T)
    offered_T = torch.zeros(count)
    first_P: Ints = local.first_positions()
    borders = sorted({min(int(first), count) for first in first_P.tolist()} | {count})
    seen: set[int] = set()
    done = 0
    for begin, end in pairwise(borders):
        while done < len(first_P) and int(first_P[done]) <= begin:
            edges = local.mentioned.edges(done).with_at_most(max_tails)
            seen.update(subword for tail in edges.tail.tolist() for subword in tables.names.first(tail))
            done += 1
        weight_ND = tables.embedding_VD[torch.tensor(sorted(seen), dtype=torch.int64)]
        for first in range(begin, end, BLOCK):
            last = min(first + BLOCK, end)
            logits = (features.last_TD[first:last].to(weight_ND.dtype) @ weight_ND.T).float()
            offered_T[first:last] = (logits - features.log_z_T[first:last, None]).exp().sum(1)
    return offered_T
