"""The entities that are linked in a passage, their places, and the facts that lead on from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kglm.heads.passage import Passage
from kglm.kg.graph import KnowledgeGraph
from kglm.model.arrays import Bools, Floats, Ints
from kglm.model.buckets import BUCKETS, DISTANCES
from kglm.model.local_graph import MentionedEntities
from kglm.text.document import END

NEVER = -1


class Link(NamedTuple):
    """Subwords [start, end) mention an entity with probability p: from position `end` on it can be a parent."""

    start: int
    end: int
    node: int
    p: float = 1.0


class Places(NamedTuple):
    """Places of the linked entities at each position."""

    bucket_TP: Ints
    """Bucket of the distance to the last mention; `BUCKETS` before the first one."""
    sentence_TP: Bools
    """True if the same sentence mentions it."""
    log_p_TP: Floats
    """log of the probability that it is mentioned at all; −inf before its first link."""


class LocalEntities:
    """Linked entities of a passage as slots, in the order of their first links."""

    def __init__(self, graph: KnowledgeGraph, links: Sequence[Link]) -> None:
        self.links = sorted((link for link in links if link.p > 0), key=lambda link: link.end)
        self.mentioned = MentionedEntities(graph)
        self.slot_of = {link.node: self.mentioned.slot(link.node) for link in self.links}

    def __len__(self) -> int:
        return len(self.mentioned)

    def first_positions(self) -> Ints:
        """Position from which each slot can be a parent."""
        first_P = np.full(len(self), np.iinfo(np.int64).max)
        for link in self.links:
            slot = self.slot_of[link.node]
            first_P[slot] = min(first_P[slot], link.end)
        return first_P

    def places(self, count: int, sentence_T: Ints) -> Places:
        """Places at positions 0 … count − 1; `sentence_T` is where the sentence of each position begins."""
        last_TP = np.full((count, len(self)), NEVER, np.int64)
        p_TP = np.zeros((count, len(self)))
        for link in self.links:
            slot = self.slot_of[link.node]
            last_TP[link.end :, slot] = link.end
            p_TP[link.end :, slot] = 1 - (1 - p_TP[link.end :, slot]) * (1 - link.p)
        distance_TP = np.arange(count)[:, None] - last_TP + 1
        bucket_TP = np.where(last_TP == NEVER, BUCKETS, np.searchsorted(DISTANCES, distance_TP))
        with np.errstate(divide="ignore"):
            return Places(bucket_TP, last_TP >= sentence_T[:, None], np.log(p_TP))


def annotated_links(passage: Passage, graph: KnowledgeGraph) -> list[Link]:
    """Links of the annotated mentions: an entity can be a parent from the end of its mention on."""
    literal = graph.are_literals([mention.node for mention in passage.mentions]).tolist() if passage.mentions else []
    return [
        Link(mention.start, mention.end, mention.node)
        for mention, is_value in zip(passage.mentions, literal, strict=True)
        if not is_value
    ]


def sentence_starts(passage: Passage) -> Ints:
    """For each subword, the position at which its sentence begins."""
    ends = np.array([token == END for token in passage.surface])
    sentence_W = np.cumsum(ends)  # an END belongs to the next sentence here, but no subword ends in it
    sentence_T = sentence_W[passage.word_T] if len(passage.ids) else np.zeros(0, np.int64)
    first = np.flatnonzero(np.diff(sentence_T, prepend=-1))
    return np.asarray(np.repeat(first, np.diff(first, append=len(sentence_T))), np.int64)
