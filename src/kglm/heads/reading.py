"""What the heads say at the end of a text, and as it grows subword by subword.

    reader = Reader(heads, tables, trust=2.0)
    reading = reader.read(GrowingText.of(text_passage("Marie Curie was born in", subwords), subwords), links)
    reading.scores                    # p(type), facts, … of the next subword; see also `following`
    longer = reading.step(id)

A given text is read as a passage, by the same functions as in training; each further subword costs one step of the base
and one position of the heads. Readings are immutable; those of one text share the base's keys and values (`fork` gives
a copy of its own, for beams). The posterior of the running mention is exact: see `scoring`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from kglm.heads.all_names import Range
from kglm.heads.clauses import clause_texts
from kglm.heads.facts import EntityFacts, LocalFacts
from kglm.heads.features import Features, next_log_probs
from kglm.heads.growing import BaseStates, Growing, HeadStates, words_before
from kglm.heads.lattice import score_text
from kglm.heads.local import Link, LocalEntities, last_sentence
from kglm.heads.model import ClauseScores, Heads
from kglm.heads.names import Children
from kglm.heads.prepared import (
    Prepared,
    begun_names,
    cue_entries,
    following_names,
    owned_relations,
    place_tensors,
    prepare,
    type_features,
)
from kglm.heads.scoring import ParentVectors, PassageScores, Running, State, name_probs, step
from kglm.heads.tables import GraphTables
from kglm.heads.tail_names import LabelReader
from kglm.text.document import END

BEGINS = 0.2
"""Probability that the next subword begins a word from which the clause before it is looked at."""
ENTITIES_KEPT = 256
"""Entities whose facts are kept with the first subwords of their names."""


@dataclass(frozen=True, eq=False)
class Reader:
    """Heads on one graph, with a trust."""

    heads: Heads
    tables: GraphTables
    trust: float = 0.0
    """Added to the scores of facts and of going on with names: 0 is the trained model, −inf the base alone."""
    least_scored: float = 0.0
    """Probability of a relation below which its tails count as equally probable, which saves time."""

    @cached_property
    def vector_RK(self) -> Tensor:
        """v_r of all relations."""
        with torch.no_grad():
            return self.heads.relation_vectors(self.tables.key_RD)

    def read(self, text: Growing, links: Sequence[Link] = ()) -> Reading:
        """Read a given text in which entities are linked."""
        passage, count = text.passage, len(text.passage.ids)
        states = HeadStates(self.heads, BaseStates(self.tables.base), passage.ids)
        found, g_1TG = states.read_all()
        linked = self.linked(links)
        weights: dict[State, float] = {None: 1.0}
        origins: dict[int, tuple[PassageScores, int]] = {}
        if count and len(linked.local):
            ids_T = torch.tensor(passage.ids)
            base = next_log_probs(self.tables.base, found.last_TD[:-1], ids_T)
            features = Features(ids_T, found.middle_TD[:-1], found.last_TD[:-1].half(), *base)
            prepared = prepare(passage, features, self.tables, links, self.heads.config.max_tails)
            scores = PassageScores.of(
                self.heads, prepared, trust=self.trust, g_TG=g_1TG[0, :-1], facts=linked.facts,
                vector_RK=self.vector_RK, parents=linked.parents,
            )  # fmt: skip
            weights = score_text(scores).end
            origins = {t: (scores, t) for t in _beginnings(weights, count)}
        begun = self._begun(text)
        return Reading(self, text, linked, states, begun, weights, origins, at_end=True, reads_labels=True)

    def linked(self, links: Sequence[Link]) -> LinkedEntities:
        """The linked entities with their facts; facts are looked up once for each entity."""
        local = LocalEntities(self.tables.graph, links)
        most = self.heads.config.max_tails
        entities = []
        for slot, node in enumerate(local.mentioned.nodes):
            if node not in self._facts:
                if len(self._facts) >= ENTITIES_KEPT:
                    self._facts.clear()
                self._facts[node] = EntityFacts.of(local.mentioned.edges(slot), self.tables.names, most)
            entities.append(self._facts[node])
        has_PR, large_PR = owned_relations(local, self.tables, most)
        parents = ParentVectors.of(self.heads, self.vector_RK, has_PR, self.tables)
        return LinkedEntities(tuple(links), local, has_PR, large_PR, LocalFacts.of(entities), parents)

    @cached_property
    def _facts(self) -> dict[int, EntityFacts]:
        return {}

    def _begun(self, text: Growing) -> Range | None:
        """The names that the last subwords of a text begin."""
        where: Range | None = None
        if self.tables.all_names is not None:
            for id, begins in zip(text.passage.ids, text.passage.begins_T.tolist(), strict=True):
                where = following_names(self.tables.all_names, where, id, begins=begins)
        return where


def _beginnings(weights: dict[State, float], count: int) -> set[int]:
    """Positions at which the running mentions of a text of `count` subwords begin."""
    return {count - len(state.prefix) for state in weights if state is not None}


@dataclass(frozen=True, eq=False)
class LinkedEntities:
    """The entities that are linked in a text, and their facts."""

    links: tuple[Link, ...]
    local: LocalEntities
    has_PR: Tensor
    large_PR: Tensor
    facts: LocalFacts
    parents: ParentVectors

    @cached_property
    def first_N(self) -> Tensor:
        """First subwords of the names that the facts offer."""
        return torch.from_numpy(self.facts.first_subwords)


@dataclass(frozen=True, eq=False)
class Reading:
    """The state after a text; it predicts the next subword."""

    reader: Reader
    text: Growing
    linked: LinkedEntities
    states: HeadStates
    begun: Range | None
    """Names of the graph that the last subwords begin."""
    weights: dict[State, float]
    """Posterior of the running mention; sums to 1."""
    origins: dict[int, tuple[PassageScores, int]]
    """What the heads said where the running mentions begin, by position."""
    at_end: bool = False
    """True at the end of a prompt, where the sentence encoder always looks at the clause."""
    reads_labels: bool = False
    """True if the base reads the labels of a few tails (see `tail_names`)."""

    @property
    def position(self) -> int:
        """Number of subwords read."""
        return len(self.text.passage.ids)

    @property
    def g_1G(self) -> Tensor:
        """State of the heads."""
        return self.states.g_1G

    @cached_property
    def _logits_V(self) -> Tensor:
        return self.reader.tables.base.model.logits(self.states.states.last_TD)[0]

    @cached_property
    def log_p_V(self) -> Tensor:
        """log p_B of each subword."""
        return self._logits_V.log_softmax(-1)

    @cached_property
    def base_V(self) -> Tensor:
        """p_B of each subword."""
        return self.log_p_V.exp()

    @cached_property
    def surface(self) -> list[str]:
        """The words before the next one."""
        return words_before(self.text.passage)

    @cached_property
    def prepared(self) -> Prepared:
        """The next position, as a passage of one subword that is not known."""
        tables, linked = self.reader.tables, self.linked
        none = torch.zeros(0)
        state = self.states.states
        log_z_1 = self._logits_V[:1] - self.log_p_V[:1]
        features = Features(none.long(), state.middle_TD, state.last_TD.half(), log_z_1, none)
        row_Y, k_Y, value_Y3 = cue_entries(tables.cues.at_end(self.surface))
        cue_index = torch.from_numpy(row_Y), torch.from_numpy(k_Y), torch.from_numpy(value_Y3).float()
        names = tables.all_names
        ways = [] if names is None or self.begun is None else [(0, names.continuations(self.begun))]
        begun = begun_names(ways, 1, lambda _, subword_Y: self.log_p_V[subword_Y])
        offered_1 = self.base_V[linked.first_N].sum()[None]
        places = linked.local.places_at(self.position, self.sentence)
        return Prepared(
            self.text.passage,
            features,
            tables,
            linked.local,
            place_tensors(places),
            linked.has_PR,
            linked.large_PR,
            cue_index,
            self.reader.heads.config.max_tails,
            type_features(offered_1, cue_index, begun),
            begun,
        )

    @property
    def sentence(self) -> int:
        """Position at which the sentence of the next subword begins."""
        return self.position if self.surface[-1:] == [END] else last_sentence(self.text.passage)

    @cached_property
    def scores(self) -> PassageScores:
        """What the heads say of the next subword, as the scores of one position."""
        return PassageScores.of(
            self.reader.heads, self.prepared, trust=self.reader.trust, g_TG=self.g_1G, base_V=self.log_p_V,
            look=self._look, facts=self.linked.facts, vector_RK=self.reader.vector_RK, parents=self.linked.parents,
            labels=self._labels,
        )  # fmt: skip

    @property
    def _labels(self) -> LabelReader | None:
        if not self.reads_labels:
            return None
        return LabelReader(self.states.base, self.text.passage, self.log_p_V, self.reader.tables.graph)

    def _look(self, likely_1: Tensor) -> ClauseScores | None:
        meanings = self.reader.tables.meanings
        if meanings is None or not len(self.linked.local):
            return None
        if not self.at_end and not (bool(likely_1.any()) and self._begins_word()):
            return None
        texts = clause_texts(self.text.passage, self.linked.links, [self.position])
        clause_1C = meanings.clauses(texts)
        return ClauseScores(torch.zeros(1, dtype=torch.int64), clause_1C, meanings.similarities(clause_1C))

    def _begins_word(self) -> bool:
        """True if the next subword probably begins a word."""
        begins_V = self.text.begins_V
        return begins_V is None or float(self.base_V[begins_V].sum()) >= BEGINS

    def step(self, id: int, weights: dict[State, float] | None = None) -> Reading:
        """Read one more subword; `weights` are the posterior of the running mention after it, if it is chosen."""
        if weights is None:
            weights = self.posterior(id)
        text, tables = self.text.extended(id), self.reader.tables
        passage, begun = text.passage, self.begun
        if tables.all_names is not None:
            begun = following_names(tables.all_names, begun, id, begins=bool(passage.begins_T[-1]))
        beginnings = _beginnings(weights, self.position + 1)
        origins = {t: place for t, place in self.origins.items() if t in beginnings}
        if self.position in beginnings:
            origins[self.position] = self.scores, 0
        states = self.states.longer(passage.ids)
        return Reading(self.reader, text, self.linked, states, begun, weights, origins)

    def posterior(self, id: int) -> dict[State, float]:
        """Posterior of the running mention after one more subword."""
        if not len(self.linked.local) and self.weights.keys() == {None}:
            return {None: 1.0}
        return step(self.scores, 0, id, self.weights, float(self.log_p_V[id].exp()))[1]

    def with_links(self, links: Sequence[Link]) -> Reading:
        """The same text with other links, from here on."""
        return replace(self, linked=self.reader.linked(links))

    def with_weights(self, weights: dict[State, float]) -> Reading:
        """The same text, given the running mention."""
        return replace(self, weights=weights)

    def name_probs(self, children: Children) -> dict[int, float]:
        """p(next subword | the name of an entity goes on)."""
        return name_probs(self.reader.heads, self.log_p_V, children)

    def fork(self) -> Reading:
        """A copy with keys and values of its own."""
        return replace(self, states=self.states.fork())

    def origin(self, running: Running) -> tuple[PassageScores, int] | None:
        """What the heads said where a running mention begins, and the row of it."""
        return self.origins.get(self.position - len(running.prefix))
