"""What relations mean: vectors of their names by a sentence encoder, for any relation of any graph.

How well relation k fits a clause c is the cosine of the clause with the best of its names,

    sim(k, c) = max over names n of k of  enc(c) · enc(n),

which needs no training. Without a sentence encoder there are no such scores, and the heads use the rest.

Besides the relations of the graph, texts may ask for well-known ones that the graph does not have at all (`Known`):
they have numbers behind those of the graph, and no facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import torch
from torch import Tensor

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REVERSE, REVERSE_LABEL
from kglm.text.encoder import Encoder, encode_for_user

NAMES = 12
"""Names of a relation that are encoded."""


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A well-known relation: its id and its names, label first."""

    id: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class RelationList:
    """The relations of a graph and the known ones that it lacks. Relation k has the numbers 2k and 2k + 1 (reverse)."""

    graph: KnowledgeGraph
    added: tuple[Known, ...]

    @classmethod
    def of(cls, graph: KnowledgeGraph, known: Sequence[Known] = ()) -> RelationList:
        """The known relations whose id and label the graph does not have are added."""
        labels = {
            name.casefold()
            for k in range(1, graph.relation_count // 2)
            for name in graph.relation_names(graph.relation_id(2 * k))
        }
        own = {graph.relation_id(relation) for relation in range(2, graph.relation_count, 2)}
        return cls(
            graph, tuple(each for each in known if each.id not in own and each.names[0].casefold() not in labels)
        )

    def __len__(self) -> int:
        """Number of relations, reverse ones not counted."""
        return self.graph.relation_count // 2 + len(self.added)

    def names(self, k: int) -> list[str]:
        """Names of relation k, label first."""
        own = self.graph.relation_count // 2
        if k >= own:
            return list(self.added[k - own].names)
        return self.graph.relation_names(self.graph.relation_id(2 * k))

    def id(self, relation: int) -> str:
        """Id of a relation or of its reverse."""
        if relation < self.graph.relation_count:
            return self.graph.relation_id(relation)
        known = self.added[relation // 2 - self.graph.relation_count // 2]
        return REVERSE + known.id if relation & 1 else known.id

    def label(self, relation: int) -> str:
        """Display name of a relation or of its reverse."""
        if relation < self.graph.relation_count:
            return self.graph.relation_label(relation)
        label = self.names(relation // 2)[0]
        return REVERSE_LABEL + label if relation & 1 else label


@dataclass(frozen=True, eq=False)
class Meanings:
    """Vectors of the names of all relations, by one encoder."""

    encoder: Encoder
    name_YC: Tensor
    relation_Y: Tensor
    """Relation k of each name, in rising order."""
    mean_KC: Tensor
    """Mean of the vectors of a relation's names."""

    @classmethod
    def of(cls, relations: RelationList, encoder: Encoder) -> Meanings:
        """Encode the names of all relations; vectors of the same lists of names are kept in the user's cache folder."""
        own = relations.graph.relation_count // 2
        texts = [relations.names(k)[:NAMES] or [""] for k in range(len(relations))]
        parts = [
            encode_for_user(encoder, [text for each in part for text in each])
            for part in (texts[:own], texts[own:])
            if part
        ]
        name_YC = torch.from_numpy(np.concatenate(parts).copy())
        relation_Y = torch.tensor([k for k, each in enumerate(texts) for _ in each])
        mean_KC = torch.zeros(len(texts), name_YC.shape[1]).index_add(0, relation_Y, name_YC)
        return cls(encoder, name_YC, relation_Y, torch.nn.functional.normalize(mean_KC, dim=-1))

    def clauses(self, texts: Sequence[str]) -> Tensor:
        """Vectors of clauses (N × C)."""
        return torch.from_numpy(self.encoder.encode(texts))

    def similarities(self, clause_NC: Tensor) -> Tensor:
        """sim(k, c) of all relations (N × K)."""
        value_NY = clause_NC @ self.name_YC.T
        found_NK = torch.full((len(clause_NC), len(self.mean_KC)), -1.0)
        return found_NK.scatter_reduce(1, self.relation_Y.expand(len(clause_NC), -1), value_NY, "amax")
