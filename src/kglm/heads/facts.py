"""The facts of the linked entities as arrays, with the first subwords of the names that they lead to.

Legend: G relations of an entity (groups of facts), F facts, U distinct tails of one entity, Y first subwords of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.heads.names import NameTable
from kglm.model.arrays import Ints
from kglm.model.local_graph import EdgeGroups


class EntityFacts(NamedTuple):
    """The facts of one entity."""

    relation_G: Ints
    size_G: Ints
    """Number of tails of each relation."""
    group_F: Ints
    tail_F: Ints
    which_F: Ints
    """Number of the tail in U."""
    node_U: Ints
    owner_Y: Ints
    """Number of the tail in U."""
    subword_Y: Ints
    kind_Y: Ints
    """Kind of the name."""

    @classmethod
    def of(cls, edges: EdgeGroups, names: NameTable, max_tails: int) -> EntityFacts:
        """The facts of the relations with at most `max_tails` tails."""
        edges = edges.with_at_most(max_tails)
        tail_F = edges.tail.astype(np.int64)
        node_U, which_F = np.unique(tail_F, return_inverse=True)
        names.prepare(node_U.tolist())
        kinds = [names.children(node, ()).kinds for node in node_U.tolist()]
        return cls(
            edges.relation.astype(np.int64),
            edges.size.astype(np.int64),
            np.repeat(np.arange(len(edges.size)), edges.size),
            tail_F,
            which_F,
            node_U,
            np.repeat(np.arange(len(kinds)), [len(each) for each in kinds]),
            np.array([subword for each in kinds for subword in each], np.int64),
            np.array([int(kind) for each in kinds for kind in each.values()], np.int64),
        )


@dataclass(frozen=True, eq=False)
class LocalFacts:
    """The facts of several entities; those of one entity are in a row."""

    entities: tuple[EntityFacts, ...]
    slot_G: Ints
    relation_G: Ints
    size_G: Ints
    group_F: Ints
    tail_F: Ints
    which_F: Ints
    node_U: Ints
    owner_Y: Ints
    subword_Y: Ints
    kind_Y: Tensor

    @classmethod
    def of(cls, entities: Sequence[EntityFacts]) -> LocalFacts:
        """The facts of entities in the order of their slots."""
        groups = np.cumsum([0, *(len(each.relation_G) for each in entities)])
        tails = np.cumsum([0, *(len(each.node_U) for each in entities)])
        none = np.zeros(0, np.int64)

        def joined(parts: Sequence[Ints]) -> Ints:
            return np.concatenate([none, *parts])

        return cls(
            tuple(entities),
            np.repeat(np.arange(len(entities)), np.diff(groups)),
            joined([each.relation_G for each in entities]),
            joined([each.size_G for each in entities]),
            joined([each.group_F + first for each, first in zip(entities, groups, strict=False)]),
            joined([each.tail_F for each in entities]),
            joined([each.which_F + first for each, first in zip(entities, tails, strict=False)]),
            joined([each.node_U for each in entities]),
            joined([each.owner_Y + first for each, first in zip(entities, tails, strict=False)]),
            joined([each.subword_Y for each in entities]),
            torch.from_numpy(joined([each.kind_Y for each in entities])),
        )

    @cached_property
    def first_subwords(self) -> Ints:
        """The first subwords of all names, sorted."""
        return np.unique(self.subword_Y)

    @cached_property
    def _of_tail(self) -> tuple[Ints, Ints]:
        """Facts in the order of their tails, and the first of each tail."""
        order = np.argsort(self.which_F, kind="stable")
        return order, np.searchsorted(self.which_F[order], np.arange(len(self.node_U) + 1))

    def offering(self, subwords: Ints) -> tuple[Ints, Ints]:
        """The pairs of a subword and a fact whose tail has a name that begins with it, sorted by the subword."""
        at = np.flatnonzero(np.isin(self.subword_Y, subwords))
        at = at[np.argsort(self.subword_Y[at], kind="stable")]
        order, first_U = self._of_tail
        owner = self.owner_Y[at]
        count = first_U[owner + 1] - first_U[owner]
        place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first_U[owner], count)
        return np.repeat(self.subword_Y[at], count), order[place]
