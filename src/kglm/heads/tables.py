"""What the heads read of a graph, besides its edges: names as subwords, cues, and fixed vectors of its relations.

tables = GraphTables.of(graph, base, encoder=SentenceEncoder.installed(), known=known)
tables.on(edited)          # after an edit: what the edit does not touch is shared
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from torch import Tensor

from kglm.heads.all_names import AllNames
from kglm.heads.keys import relation_keys
from kglm.heads.meanings import Known, Meanings, RelationList
from kglm.heads.names import NameTable
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.tail_features import TailFeatureReader, TailFeatures
from kglm.model.arrays import Floats, Ints
from kglm.model.cues import Cues
from kglm.model.tail_facts import tail_facts
from kglm.pretrained.base import BaseModel
from kglm.text.encoder import Encoder
from kglm.text.tokenizer import tokenizer

GROUPS_KEPT = 1 << 14
"""Pairs (p, r) whose tails are kept as arrays."""


class TailArrays(NamedTuple):
    """The tails of one parent and relation, in the order of their features."""

    features: TailFeatures
    fact_YQ: Floats
    """The features with that of named years, where none is named."""
    owner_X: Ints
    """The tail of each first subword of their names."""
    subword_X: Ints


@dataclass(frozen=True, eq=False)
class GraphTables:
    """What the heads read of a graph."""

    base: BaseModel
    relations: RelationList
    names: NameTable
    cues: Cues
    tails: TailFeatureReader
    meanings: Meanings | None
    """Vectors of relation names; None without a sentence encoder."""
    key_RD: Tensor
    """Fixed vectors of relations."""
    embedding_VD: Tensor
    """The base's output matrix."""
    all_names: AllNames | None = None
    """Names that the base may begin and the graph go on with."""

    @cached_property
    def tail_arrays(self) -> Callable[[int, int], TailArrays]:
        """The tails of a parent and a relation; those of earlier calls are kept."""
        return lru_cache(GROUPS_KEPT)(self._tail_arrays)

    def _tail_arrays(self, parent: int, relation: int) -> TailArrays:
        features = self.tails.of(parent, relation)
        nodes = features.tail.tolist()
        self.names.prepare(nodes)
        first = [self.names.first(node) for node in nodes]
        owner_X = np.repeat(np.arange(len(nodes)), [len(each) for each in first])
        subword_X = np.array([subword for each in first for subword in each], np.int64)
        return TailArrays(features, tail_facts(features, ()), owner_X, subword_X)

    @classmethod
    def of(
        cls,
        graph: KnowledgeGraph,
        base: BaseModel,
        *,
        encoder: Encoder | None = None,
        known: Sequence[Known] = (),
        all_names: bool = True,
    ) -> GraphTables:
        """Read a graph; `known` are well-known relations that texts may ask for."""
        relations = RelationList.of(graph, known)
        meanings = None if encoder is None else Meanings.of(relations, encoder)
        return cls(
            base,
            relations,
            NameTable(graph, base.subwords),
            Cues(graph, tokenizer().words),
            TailFeatureReader(graph),
            meanings,
            relation_keys(base, relations, meanings),
            base.model.embedding_table,
            AllNames.stored(graph, base) if all_names else None,
        )

    @property
    def graph(self) -> KnowledgeGraph:
        return self.relations.graph

    def on(self, graph: KnowledgeGraph) -> GraphTables:
        """The tables of an edited graph."""
        same = graph.relation_count == self.graph.relation_count
        relations = RelationList(graph, self.relations.added) if same else RelationList.of(graph, self.relations.added)
        changed = replace(
            self,
            relations=relations,
            names=self.names.on(graph),
            cues=self.cues.on(graph),
            tails=TailFeatureReader(graph),
        )
        if same:
            return changed
        meanings = None if self.meanings is None else Meanings.of(relations, self.meanings.encoder)
        return replace(changed, meanings=meanings, key_RD=relation_keys(self.base, relations, meanings))
