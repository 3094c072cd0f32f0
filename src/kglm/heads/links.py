"""Link events of a text: from which position on each entity that the words name can be a parent.

    links = links_of(passage, linker)              of a whole text
    events = LinkEvents(linker)                    of a text that grows by subwords
    events.add("Paris"); events.links

Entities enter a text by being linked. A link at position t depends on the characters before subword t alone: words that
have begun are read as far as they go, names are linked at their end, and what later words tell replaces the link from
there on (see `kglm.linking.running`). So the links are a function of the text so far, and p(text) is normalised.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from copy import copy

from kglm.heads.local import Link
from kglm.heads.passage import Passage
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.linker import Linker
from kglm.linking.name_index import NameIndex
from kglm.linking.prompts import NIL_BIAS
from kglm.linking.running import RunningLinker
from kglm.text.document import END, START
from kglm.text.tokenizer import Token, open_chunk, tokenizer

LEAST = 0.1
"""Probability from which a candidate is linked."""
MOST = 3
"""Candidates of one mention that are linked."""
SHORT = 3
"""Letters of the last word of a text below which it names nothing yet: it may be the beginning of a longer word."""
CHANGE = 0.05
"""Difference of a probability from which a new link replaces the old one."""
STOPS = frozenset("!?…‽。！？؟।.\n\r")
"""Characters that may end a sentence …"""
NEAR = 8
"""… if they are among the last characters before a word."""
LONGEST = 600
"""Characters of a sentence after which its beginning is not looked at again."""


class LinkEvents:
    """The links of one text that grows by subwords."""

    def __init__(self, linker: Linker, given: Sequence[tuple[int, int, int]] = ()) -> None:
        """Characters `given` as (begin, end, node) mention these entities: whole words, without blanks around them."""
        self.links: list[Link] = []
        """All links so far, also those that do not hold any more."""
        self.ends: list[int] = []
        """The character behind each subword."""
        self._given = given
        self._running = RunningLinker(linker)
        self._running.replace(0, [START])
        self._running.settle(1)
        self._span_W: list[tuple[int, int]] = [(0, 0)]
        """Characters of each word; marks of sentences are empty."""
        self._text, self._at = "", 0
        """The sentence so far, and where it begins."""
        self._fixed = 0
        """Characters of it whose words do not change any more."""
        self._words = 1
        """Number of words that do not change any more."""
        self._current: dict[tuple[int, int, int], int] = {}
        """Index of the link that holds, by characters and node, of mentions that may still change."""

    def add(self, piece: str) -> None:
        """The text goes on with the characters of the next subword."""
        self._text += piece
        self.ends.append(self._at + len(self._text))
        tokens, sentences = self._read()
        spans = [(self._at + token.start, self._at + token.end) for token in tokens]
        words = [token.text for token in tokens]
        for n in reversed(sentences):
            spans.insert(n, (spans[n][0], spans[n][0]))
            words.insert(n, END)
        self._span_W[self._words :] = spans
        self._fragment = self._words + len(words) - 1 if words and len(words[-1]) < SHORT else -1
        if self._given:
            self._running.given = self._given_words()
        if self._running.replace(self._words, words):
            self._update()
        fixed = open_chunk(self._text, self._fixed)
        settled = [n for n, (_, end) in enumerate(spans) if end <= self._at + fixed]
        if fixed > self._fixed and settled:
            self._settle(fixed, self._words + settled[-1] + 1)

    def fork(self) -> LinkEvents:
        """A copy that goes on with another text."""
        other = copy(self)
        other.links, other.ends, other._span_W = list(self.links), list(self.ends), list(self._span_W)
        other._running, other._current = self._running.fork(), dict(self._current)
        return other

    def _read(self) -> tuple[list[Token], list[int]]:
        """The tokens that may still change, and those of them that begin sentences."""
        tail = [
            Token(token.text, token.start + self._fixed, token.end + self._fixed)
            for token in tokenizer().tokens(self._text[self._fixed :])
        ]
        if not tail or not self._fixed or STOPS.isdisjoint(self._text[max(self._fixed - NEAR, 0) :]):
            return tail, []
        starts = {sentence[0].start for sentence in tokenizer().sentences(self._text)}
        return tail, [n for n, token in enumerate(tail) if token.start in starts]

    def _settle(self, fixed: int, words: int) -> None:
        """The words of the first characters of the sentence will not change; forget the sentence if it has ended."""
        self._running.settle(words)
        marks = [n for n in range(self._words, words) if self._running.words[n] == END]
        before, self._words, self._fixed = self._fixed, words, fixed
        begin = self._span_W[marks[-1]][0] - self._at if marks else before if before > LONGEST else 0
        self._text, self._at, self._fixed = self._text[begin:], self._at + begin, self._fixed - begin
        open_from = self._running.open_from
        final = self._span_W[open_from][0] if open_from < len(self._span_W) else self.ends[-1]
        self._current = {key: n for key, n in self._current.items() if key[0] >= final}

    def _given_words(self) -> list[tuple[int, int, int]]:
        """The given mentions that are there, in words."""
        begins = {begin: n for n, (begin, end) in enumerate(self._span_W) if begin < end}
        ends = {end: n + 1 for n, (begin, end) in enumerate(self._span_W) if begin < end}
        return [(begins[begin], ends[end], node) for begin, end, node in self._given if begin in begins and end in ends]

    def _update(self) -> None:
        """Add links for what is new, and take back what does not hold any more."""
        now = len(self.ends)
        found: dict[tuple[int, int, int], float] = {}
        for name in self._running.names:
            if name.end - 1 == self._fragment:
                continue
            begin, end = self._span_W[name.start][0], self._span_W[name.end - 1][1]
            for node, p in name.candidates[:MOST]:
                if p >= LEAST:
                    found[begin, end, node] = p
        for key, n in list(self._current.items()):
            if key in found and abs(found[key] - self.links[n].p) < CHANGE:
                del found[key]
            else:
                self.links[n] = self.links[n]._replace(until=now)
                del self._current[key]
        for (begin, end, node), p in found.items():
            start, stop = bisect_right(self.ends, begin), bisect_left(self.ends, end) + 1
            self._current[begin, end, node] = len(self.links)
            self.links.append(Link(start, stop, node, p, now))


def text_linker(graph: KnowledgeGraph, names: NameIndex | None = None) -> Linker:
    """The linker of texts that heads read, here and in use."""
    return Linker(graph, names, nil_bias=NIL_BIAS)


def links_of(passage: Passage, linker: Linker, given: Sequence[tuple[int, int, int]] = ()) -> list[Link]:
    """The links of a whole text, each from where the text so far tells it; `given` in characters."""
    events, last = LinkEvents(linker, given), 0
    for end in passage.end_T.tolist():
        events.add(passage.text[last:end])
        last = end
    return events.links
