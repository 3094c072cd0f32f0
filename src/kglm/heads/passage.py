"""A document as a passage: its readable text as subwords, its words and mentions as spans of subwords."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kglm.kg.graph import KnowledgeGraph
from kglm.model.arrays import Ints
from kglm.pretrained.subwords import Subwords
from kglm.text.document import END, START, Document
from kglm.text.tokenizer import blanks


class SubwordMention(NamedTuple):
    """Subwords [start, end) mention a node; each fact (parent node, relation) is an annotated way to it."""

    start: int
    end: int
    node: int
    facts: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Passage:
    """A text in subwords."""

    title: str
    text: str
    ids: list[int]
    word_T: Ints
    """For each subword, the token of the document in which it ends."""
    begins_T: np.ndarray[tuple[int], np.dtype[np.bool_]]
    """True for the first subword of a word."""
    surface: list[str]
    """The tokens of the document."""
    mentions: tuple[SubwordMention, ...]
    lost: int = 0
    """Mentions that are left out because a subword crosses their border."""

    @property
    def words(self) -> int:
        """Number of words, sentence marks not counted."""
        return sum(token not in (START, END) for token in self.surface)


def passage(document: Document, subwords: Subwords, graph: KnowledgeGraph) -> Passage:
    """The passage of a document. Mentions of entities that the graph lacks are left out."""
    tokens = document.tokens
    parts, ends, length = [], [], 0
    for token, blank in zip(tokens, blanks(tokens), strict=True):
        if token not in (START, END):
            parts.append(f" {token}" if blank else token)
            length += len(parts[-1])
        ends.append(length)
    text = "".join(parts)
    encoded = subwords.encode(text)
    end_W, end_T = np.array(ends, np.int64), np.array(encoded.ends, np.int64)
    word_T = np.searchsorted(end_W, end_T) if len(end_W) else np.zeros(0, np.int64)
    begins_T = np.diff(word_T, prepend=-1) != 0
    place_of = {int(end): place for place, end in enumerate(end_T.tolist())}
    mentions, lost, last = [], 0, 0
    for mention in document.mentions:
        node = graph.find(mention.id)
        if node is None:
            continue
        before = int(end_W[mention.start - 1]) if mention.start else 0
        begin, end = place_of.get(before, -1 if before else None), place_of.get(int(end_W[mention.end - 1]))
        start = 0 if not before else (begin + 1 if begin is not None and begin >= 0 else None)
        if start is None or end is None or start > end or start < last:
            lost += 1
            continue
        last = end + 1
        facts = []
        for parent, relation in mention.explanations:
            found = graph.find(parent), graph.find_relation(relation)
            if found[0] is not None and found[1] is not None:
                facts.append((found[0], found[1]))
        mentions.append(SubwordMention(start, end + 1, node, tuple(facts)))
    return Passage(document.title, text, encoded.ids, word_T, begins_T, list(tokens), tuple(mentions), lost)
