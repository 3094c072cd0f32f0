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
FOREVER = 1 << 62


class Link(NamedTuple):
    """Subwords [start, end) mention an entity with probability p: from position `end` on it can be a parent.

    What is known of a mention may change as the text goes on: a link holds at positions [`first`, `until`).
    """

    start: int
    end: int
    node: int
    p: float = 1.0
    since: int = 0
    until: int = FOREVER

    @property
    def first(self) -> int:
        """First position at which it holds."""
        return max(self.end, self.since)

    def holds(self, position: int) -> bool:
        """True if it is known, and not taken back, when the subword at this position is predicted."""
        return self.first <= position < self.until


class Places(NamedTuple):
    """Places of the linked entities at each position."""

    bucket_TP: Ints
    """Bucket of the distance to the last mention; `BUCKETS` before the first one."""
    sentence_TP: Bools
    """True if the same sentence mentions it."""
    subject_TP: Bools
    """True for the subject of the text: the most probable entity of its first mention."""
    log_p_TP: Floats
    """log of the probability that it is mentioned at all; −inf before its first link."""


class LocalEntities:
    """Linked entities of a passage as slots, in the order of their first links."""

    def __init__(self, graph: KnowledgeGraph, links: Sequence[Link]) -> None:
        given = (link for link in links if link.p > 0 and link.first < link.until)
        self.links = sorted(given, key=lambda link: (link.first, link.start, -link.p))
        self.mentioned = MentionedEntities(graph)
        self.slot_of = {link.node: self.mentioned.slot(link.node) for link in self.links}

    def __len__(self) -> int:
        return len(self.mentioned)

    def first_positions(self) -> Ints:
        """Position from which each slot can be a parent."""
        first_P = np.full(len(self), np.iinfo(np.int64).max)
        for link in self.links:
            slot = self.slot_of[link.node]
            first_P[slot] = min(first_P[slot], link.first)
        return first_P

    def places(self, count: int, sentence_T: Ints) -> Places:
        """Places at positions 0 … count − 1; `sentence_T` is where the sentence of each position begins."""
        last_PT = np.full((len(self), count), NEVER, np.int64)
        none_PT = np.ones((len(self), count))
        subject_T = np.full(count, NEVER)
        for link in sorted(self.links, key=lambda link: link.end):
            holds, slot = slice(link.first, link.until), self.slot_of[link.node]
            last_PT[slot, holds] = link.end
            none_PT[slot, holds] *= 1 - link.p
        for link in sorted(self.links, key=lambda link: (-link.start, link.p)):
            subject_T[link.first : link.until] = self.slot_of[link.node]
        last_TP = last_PT.T
        distance_TP = np.arange(count)[:, None] - last_TP + 1
        bucket_TP = np.where(last_TP == NEVER, BUCKETS, np.searchsorted(DISTANCES, distance_TP))
        subject_TP = subject_T[:, None] == np.arange(len(self))
        with np.errstate(divide="ignore"):
            return Places(bucket_TP, last_TP >= sentence_T[:, None], subject_TP, np.log(1 - none_PT).T)

    def places_at(self, t: int, sentence: int) -> Places:
        """Places at one position; `sentence` is where its sentence begins."""
        last_P, none_P = np.full(len(self), NEVER, np.int64), np.ones(len(self))
        subject, best = NEVER, (1, 0.0)
        for link in self.links:
            if link.holds(t):
                slot = self.slot_of[link.node]
                last_P[slot] = max(int(last_P[slot]), link.end)
                none_P[slot] *= 1 - link.p
                if (-link.start, link.p) >= best or subject == NEVER:
                    subject, best = slot, (-link.start, link.p)
        bucket_P = np.where(last_P == NEVER, BUCKETS, np.searchsorted(DISTANCES, t - last_P + 1))
        with np.errstate(divide="ignore"):
            log_p_P = np.log(1 - none_P)
        return Places(
            bucket_P[None], (last_P >= sentence)[None], (np.arange(len(self)) == subject)[None], log_p_P[None]
        )


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


def last_sentence(passage: Passage) -> int:
    """The position at which the last subword's sentence begins; 0 without subwords."""
    if not len(passage.ids):
        return 0
    word = int(passage.word_T[-1])
    while word >= 0 and passage.surface[word] != END:
        word -= 1
    return int(np.searchsorted(passage.word_T, max(word, 0)))
