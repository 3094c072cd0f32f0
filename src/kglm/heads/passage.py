"""A text as a passage: its subwords, and its words and mentions as spans of subwords.

    passage(document, subwords, graph)       a linked document
    text_passage(text, subwords)             a text of a user
    question_passage(question, subwords)     a question in the chat format of the base

In a linked document, the mark `@@ANSWER@@` ends a question; what follows it is the answer. The marks of the chat format
are subwords that belong to no word of their own: they count as part of the word before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kglm.errors import ConfigError
from kglm.kg.graph import KnowledgeGraph
from kglm.model.arrays import Bools, Ints
from kglm.pretrained.subwords import Subwords
from kglm.text.document import ANSWER, END, START, Document
from kglm.text.tokenizer import blanks, tokenizer


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
    end_T: Ints
    """For each subword, the character of the text behind it."""
    word_T: Ints
    """For each subword, the token of the surface in which it ends."""
    begins_T: Bools
    """True for the first subword of a word."""
    surface: list[str]
    """The tokens: words, `@@START@@` first, `@@END@@` between sentences."""
    mentions: tuple[SubwordMention, ...] = ()
    lost: int = 0
    """Mentions that are left out because a subword crosses their border."""

    @property
    def words(self) -> int:
        """Number of words, marks not counted."""
        return sum(token not in (START, END, ANSWER) for token in self.surface)

    def span(self, begin: int, end: int) -> tuple[int, int] | None:
        """Subwords [start, end) of characters [begin, end), a leading blank included; None if a subword crosses."""
        last = int(np.searchsorted(self.end_T, end))
        if last >= len(self.end_T) or self.end_T[last] != end:
            return None
        first = int(np.searchsorted(self.end_T, begin, side="right"))
        before = int(self.end_T[first - 1]) if first else 0
        if before != begin and self.text[before:begin] != " ":
            return None
        return (first, last + 1) if first <= last else None


def passage(document: Document, subwords: Subwords, graph: KnowledgeGraph | None = None) -> Passage:
    """The passage of a document. Mentions of entities that the graph lacks are left out; without a graph all are."""
    tokens = document.tokens
    chat = subwords.chat if ANSWER in tokens else None
    if ANSWER in tokens and chat is None:
        raise ConfigError("this language model has no chat format", remedy="use texts without questions")
    parts = [] if chat is None else [chat.before]
    length = sum(map(len, parts))
    ends, glued = [], False
    for token, blank in zip(tokens, blanks(tokens), strict=True):
        if token == ANSWER and chat is not None:
            parts.append(chat.after)
            length += len(parts[-1])
            glued = True
        elif token not in (START, END):
            begins = chat is not None and length == len(chat.before)
            parts.append(token if glued or begins or not blank else f" {token}")
            length += len(parts[-1])
            glued = False
        ends.append(length)
    if chat is not None:
        parts.append(chat.end)
    found = _build(document.title, "".join(parts), tokens, ends, subwords)
    if graph is None:
        return found
    mentions, lost, last = [], 0, 0
    for mention in document.mentions:
        node = graph.find(mention.id)
        if node is None:
            continue
        begin = ends[mention.start - 1] if mention.start else 0
        span = found.span(begin, ends[mention.end - 1])
        if span is None or span[0] < last:
            lost += 1
            continue
        last = span[1]
        facts = []
        for parent, relation in mention.explanations:
            ids = graph.find(parent), graph.find_relation(relation)
            if ids[0] is not None and ids[1] is not None:
                facts.append((ids[0], ids[1]))
        mentions.append(SubwordMention(*span, node, tuple(facts)))
    return Passage(
        found.title, found.text, found.ids, found.end_T, found.word_T, found.begins_T, found.surface,
        tuple(mentions), lost,
    )  # fmt: skip


def text_passage(text: str, subwords: Subwords) -> Passage:
    """The passage of a text of a user; its words are those of the tokenizer."""
    surface, ends = [START], [0]
    for sentence in tokenizer().sentences(text):
        if len(surface) > 1:
            surface.append(END)
            ends.append(ends[-1])
        surface += [token.text for token in sentence]
        ends += [token.end for token in sentence]
    return _build("", text, surface, ends, subwords)


def question_passage(question: str, subwords: Subwords) -> Passage:
    """A question in the chat format, up to where the answer begins."""
    chat = subwords.chat
    if chat is None:
        raise ConfigError("this language model has no chat format", remedy="use kglm complete, or another base")
    tokens = tokenizer().tokens(question)
    surface = [START, *(token.text for token in tokens), ANSWER]
    text = f"{chat.before}{question}{chat.after}"
    ends = [len(chat.before), *(len(chat.before) + token.end for token in tokens), len(text)]
    return _build("", text, surface, ends, subwords)


def _build(title: str, text: str, surface: Sequence[str], ends: Sequence[int], subwords: Subwords) -> Passage:
    """`ends`: the character behind each token of the surface."""
    encoded = subwords.encode(text)
    end_W, end_T = np.array(ends, np.int64), np.array(encoded.ends, np.int64)
    word_T = np.searchsorted(end_W, end_T) if len(end_W) else np.zeros(0, np.int64)
    word_T = np.minimum(word_T, max(len(end_W) - 1, 0))
    marks = np.array([token in (START, END, ANSWER) for token in surface], np.bool_)
    begins_T = (np.diff(word_T, prepend=-1) != 0) & ~(marks[word_T] if len(marks) else np.zeros(len(word_T), np.bool_))
    return Passage(title, text, encoded.ids, end_T, word_T, begins_T, list(surface))
