"""Candidate parents at every position of a chunk, with their relations: for missing facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch

from kglm.model.arrays import Ints
from kglm.model.chunk import Candidates
from kglm.model.parents import places
from kglm.train.encoding import EncodedDocument

Piece = tuple[EncodedDocument | None, int, int]
"""Positions [start, end) of a document."""


class Relations(Protocol):
    """What is known of candidate parents: a chunk builder."""

    parent_window: int | None

    def relations_of(self, node: int) -> Ints: ...


def candidate_parents(pieces: Sequence[Piece], width: int, relations: Relations) -> Candidates:
    """The candidates of these pieces, one a row; `width` is the number of positions in a row."""
    counts = [0 if document is None else _known(document, end) for document, _, end in pieces]
    entities = max(counts, default=0)
    node_BP = np.full((len(pieces), entities), -1, np.int64)
    place_BTP3 = np.zeros((len(pieces), width, entities, 3), np.int8)
    place_BTP3[..., 0] = -1
    member_parents, member_relations = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for row, ((document, start, end), count) in enumerate(zip(pieces, counts, strict=True)):
        if document is None or not count:
            continue
        nodes = document.entities[:count]
        node_BP[row, :count] = nodes
        place_BTP3[row, : end - start, :count] = _places(document, start, end, count, relations.parent_window)
        for slot, node in enumerate(nodes):
            own = relations.relations_of(node)
            member_relations.append(own)
            member_parents.append(np.full(len(own), row * entities + slot))
    return Candidates(
        torch.from_numpy(node_BP),
        torch.from_numpy(place_BTP3),
        torch.from_numpy(np.concatenate(member_parents)),
        torch.from_numpy(np.concatenate(member_relations)),
    )


def _known(document: EncodedDocument, end: int) -> int:
    """Number of entities that are candidates at some position before `end`."""
    return max(document.given, document.entities_before(end - 1))


def _places(document: EncodedDocument, start: int, end: int, count: int, window: int | None) -> Ints:
    """Places of the first `count` entities at positions [start, end); the first place of no candidate is -1."""
    words_I3 = document.mention_words_I3
    before, after = np.searchsorted(words_I3[:, 0], [start, end - 1])
    last_TP = np.full((end - start, count), -1, np.int64)
    last_P = last_TP[0].copy()
    last_P[words_I3[:before, 1]] = words_I3[:before, 0]  # of words of one entity, the last counts
    last_TP[:] = last_P
    for position, slot in words_I3[before:after, :2].tolist():
        last_TP[position + 1 - start :, slot] = position
    t_T1 = np.arange(start, end)[:, None]
    boundary_T1 = document.boundary_T[start:end, None].astype(np.int64)
    place_TP3 = places(t_T1, boundary_T1, last_TP, np.arange(count) == 0)
    candidate_TP = (last_TP >= 0) | (np.arange(count) < document.given)
    if window is not None:
        candidate_TP &= t_T1 - last_TP <= window
    place_TP3[..., 0][~candidate_TP] = -1
    return place_TP3
