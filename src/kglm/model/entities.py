"""Vectors of the entities and relations of a graph, and how often training documents introduce each entity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from kglm.kg.embedding.vectors import GraphVectors
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.model.buckets import BUCKETS, frequency_buckets
from kglm.model.options import Facts
from kglm.text.document import Document
from kglm.text.vocabulary import Vocabulary

MAX_RELATION_WORDS = 32


@dataclass(frozen=True, eq=False)
class EntityTable:
    """Vectors by node and relation. Nodes share rows: all dates have one, all quantities another."""

    vector_XD: Tensor
    row_N: Tensor
    """Row of each node."""
    real_E: Tensor
    """Nodes that can be new: all but literals."""
    frequency_E: Tensor
    """Bucket of the number of training documents that introduce the entity."""
    relation_RD: Tensor
    """v_r before training, by relation index; 0 is reflexive."""
    relation_word_KL: Tensor
    """Words of the relations' names, padded."""
    place_N: Tensor
    """Index of each node in `real_E`, or -1."""
    real_EQ: Tensor
    """[v_e ; 1 at the frequency bucket of e], in one piece: a product with all of them needs no gathering."""

    @classmethod
    def make(
        cls,
        vector_XD: Tensor,
        row_N: Tensor,
        real_E: Tensor,
        frequency_E: Tensor,
        relation_RD: Tensor,
        relation_word_KL: Tensor,
    ) -> EntityTable:
        """A table, with what follows from the other columns."""
        place_N, real_EQ = _places(row_N, real_E), _with_buckets(vector_XD[row_N[real_E]], frequency_E)
        return cls(vector_XD, row_N, real_E, frequency_E, relation_RD, relation_word_KL, place_N, real_EQ)

    @classmethod
    def of(
        cls,
        graph: KnowledgeGraph,
        vectors: GraphVectors,
        vocabulary: Vocabulary,
        words_of: Callable[[str], list[str]],
        introductions: Mapping[int, int],
    ) -> EntityTable:
        """The table of a graph; `introductions` counts the training documents that introduce a node."""
        literal, _ = graph.literal_nodes()
        real_E = np.flatnonzero(~literal)
        count_N = np.zeros(len(graph), np.int64)
        count_N[list(introductions)] = list(introductions.values())
        frequency_N = frequency_buckets(count_N)
        return cls.make(
            torch.from_numpy(np.concatenate([vectors.entity_RD, vectors.late_LD])),
            torch.from_numpy(vectors.rows(np.arange(len(graph))).astype(np.int64)),
            torch.from_numpy(real_E),
            torch.from_numpy(frequency_N[real_E]),
            torch.from_numpy(np.array(vectors.relation_RD)),
            relation_words(graph, vocabulary, words_of),
        )

    def on(
        self,
        graph: KnowledgeGraph,
        vectors: GraphVectors,
        vocabulary: Vocabulary,
        words_of: Callable[[str], list[str]],
    ) -> EntityTable:
        """The table of a graph that was edited since; only what the edits touch is computed again."""
        literal, _ = graph.literal_nodes()
        real_E = torch.from_numpy(np.flatnonzero(~literal))
        vector_XD, trained = self.vector_XD, len(vectors.entity_RD)
        late_XD = torch.from_numpy(vectors.late_LD).to(vector_XD)
        if not torch.equal(vector_XD[trained:], late_XD):
            vector_XD = torch.cat([vector_XD[:trained], late_XD])
        old = len(self.real_E)
        frequency_E = torch.zeros(len(real_E), dtype=torch.int64)
        frequency_E[:old] = self.frequency_E  # nodes are numbered in order of time: new ones are last
        relation_RD, relation_word_KL = self.relation_RD, self.relation_word_KL
        if graph.relation_count > len(relation_RD):
            late_RD = torch.from_numpy(np.array(vectors.relation_RD[len(relation_RD) :])).to(relation_RD)
            relation_RD = torch.cat([relation_RD, late_RD])
            relation_word_KL = relation_words(graph, vocabulary, words_of)
        row_N = torch.from_numpy(vectors.rows(np.arange(len(graph))).astype(np.int64))
        row_E, real_EQ = row_N[self.real_E], self.real_EQ
        moved = ((row_E != self.row_N[self.real_E]) | (row_E >= trained)).nonzero()[:, 0]
        if len(real_E) > old or len(moved):
            late_EQ = _with_buckets(vector_XD[row_N[real_E[old:]]], frequency_E[old:])
            real_EQ = torch.cat([real_EQ, late_EQ])
            real_EQ[moved] = _with_buckets(vector_XD[row_E[moved]], self.frequency_E[moved])
        place_N = _places(row_N, real_E)
        return EntityTable(vector_XD, row_N, real_E, frequency_E, relation_RD, relation_word_KL, place_N, real_EQ)

    def map(self, function: Callable[[Tensor], Tensor]) -> EntityTable:
        """The table with a function applied to all of its tensors, to move them or to change their type."""
        return EntityTable(*(function(getattr(self, each.name)) for each in fields(self)))

    def vectors(self, node: Tensor) -> Tensor:
        """v_e of nodes, of any shape."""
        return self.vector_XD[self.row_N[node]]

    @property
    def size(self) -> int:
        """Length of an entity vector."""
        return self.relation_RD.shape[1]


def _places(row_N: Tensor, real_E: Tensor) -> Tensor:
    place_N = torch.full_like(row_N, -1)
    place_N[real_E] = torch.arange(len(real_E), device=place_N.device)
    return place_N


def _with_buckets(vector_ED: Tensor, frequency_E: Tensor) -> Tensor:
    return torch.cat([vector_ED, functional.one_hot(frequency_E, BUCKETS + 1).to(vector_ED)], -1)


def relation_words(graph: KnowledgeGraph, vocabulary: Vocabulary, words_of: Callable[[str], list[str]]) -> Tensor:
    """Words of each relation's name and aliases, padded. The reflexive relation has none."""
    rows: list[list[int]] = [[]]
    for index in range(2, graph.relation_count, 2):
        words = [word for name in graph.relation_names(graph.relation_id(index)) for word in words_of(name)]
        rows.append(vocabulary.encode(words[:MAX_RELATION_WORDS]))
    width = max(map(len, rows), default=0) or 1
    return torch.tensor([row + [vocabulary.padding] * (width - len(row)) for row in rows])


def count_introductions(documents: Iterable[Document], graph: KnowledgeGraph, facts: Facts = "all") -> dict[int, int]:
    """In how many documents each entity is new: by the annotation, or in all that mention it if no facts are used."""
    counts: Counter[int] = Counter()
    for document in documents:
        ids = {mention.id for mention in document.mentions if mention.is_new or facts == "none"}
        found = {graph.find(id) for id in ids if not is_literal(id)}
        counts.update(node for node in found if node is not None)
    return dict(counts)
