"""What a model holds of a graph: vectors, names of relations, and how often training documents introduce an entity.

Legend: N nodes, X rows of vectors, E real entities, R relation indices, D size of a vector, L words of a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.kg.embedding.vectors import GraphVectors
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.model.annotation import Facts, frequency_bucket
from kglm.text.document import Document
from kglm.text.vocabulary import PADDING_INDEX, Vocabulary

MAX_RELATION_WORDS = 32


class EntityTable(NamedTuple):
    """Nodes share rows of vectors: all dates have one, all quantities another."""

    vector_XD: Tensor
    row_N: Tensor
    """Row of each node."""
    real_E: Tensor
    """Nodes that can be new: everything but literals."""
    frequency_E: Tensor
    """Bucket of the number of training documents that introduce the entity."""
    relation_RD: Tensor
    """v_r of relation indices: two for each relation, the second reversed; 0 is reflexive."""
    relation_word_NL: Tensor
    """Words of the N = R / 2 relations' names, padded."""


def entity_table(
    graph: KnowledgeGraph,
    vectors: GraphVectors,
    vocabulary: Vocabulary,
    words_of: Callable[[str], list[str]],
    introductions: Mapping[int, int],
) -> EntityTable:
    """The tables of a graph as it is now."""
    literal, _ = graph.literal_nodes()
    real_E = np.flatnonzero(~literal)
    frequency_N = np.zeros(len(graph), np.int64)
    for node, count in introductions.items():
        frequency_N[node] = frequency_bucket(count)
    return EntityTable(
        torch.from_numpy(np.concatenate([vectors.entity_RD, vectors.late_LD])),
        torch.from_numpy(vectors.rows(np.arange(len(graph))).astype(np.int64)),
        torch.from_numpy(real_E),
        torch.from_numpy(frequency_N[real_E]),
        torch.from_numpy(np.array(vectors.relation_RD)),
        relation_words(graph, vocabulary, words_of),
    )


def grown(
    table: EntityTable,
    graph: KnowledgeGraph,
    vectors: GraphVectors,
    vocabulary: Vocabulary,
    words_of: Callable[[str], list[str]],
) -> EntityTable:
    """The tables of a graph after edits, from those before them: what has not changed is not made again."""
    literal, _ = graph.literal_nodes()
    real_E = torch.from_numpy(np.flatnonzero(~literal))
    vector_XD, trained = table.vector_XD, len(vectors.entity_RD)
    late_LD = torch.from_numpy(vectors.late_LD).to(vector_XD)
    if not torch.equal(vector_XD[trained:], late_LD):
        vector_XD = torch.cat([vector_XD[:trained], late_LD])
    frequency_E = torch.zeros(len(real_E), dtype=torch.int64)
    frequency_E[: len(table.frequency_E)] = table.frequency_E  # numbers of nodes are given in order: new ones are last
    relation_RD, relation_word_NL = table.relation_RD, table.relation_word_NL
    if graph.relation_count > len(relation_RD):
        late_RD = torch.from_numpy(np.array(vectors.relation_RD[len(relation_RD) :])).to(relation_RD)
        relation_RD = torch.cat([relation_RD, late_RD])
        relation_word_NL = relation_words(graph, vocabulary, words_of)
    row_N = torch.from_numpy(vectors.rows(np.arange(len(graph))).astype(np.int64))
    return EntityTable(vector_XD, row_N, real_E, frequency_E, relation_RD, relation_word_NL)


def relation_words(graph: KnowledgeGraph, vocabulary: Vocabulary, words_of: Callable[[str], list[str]]) -> Tensor:
    """Words of each relation's name and aliases. The reflexive relation has none: it is not said."""
    rows: list[list[int]] = [[]]
    for index in range(2, graph.relation_count, 2):
        words = [word for name in graph.relation_names(graph.relation_id(index)) for word in words_of(name)]
        rows.append(vocabulary.encode(words[:MAX_RELATION_WORDS]))
    width = max(map(len, rows), default=0) or 1
    return torch.tensor([row + [PADDING_INDEX] * (width - len(row)) for row in rows])


def count_introductions(documents: Iterable[Document], graph: KnowledgeGraph, facts: Facts = "all") -> dict[int, int]:
    """In how many documents each entity is new: as the annotation says, or wherever nothing else leads to it."""
    counts: Counter[int] = Counter()
    for document in documents:
        ids = {mention.id for mention in document.mentions if mention.is_new or facts == "none"}
        found = {graph.find(id) for id in ids if not is_literal(id)}
        counts.update(node for node in found if node is not None)
    return dict(counts)
