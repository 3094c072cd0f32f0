"""Link the names of a text that grows: who is meant depends on the words so far, never on those to come.

    running = RunningLinker(linker)
    running.replace(0, ["Paris"])              # the last words may still change …
    running.replace(0, ["Paris", "Hilton"])
    running.settle(2)                          # … until they are settled
    running.names                              # mentions of the sentence so far; those before it are final

A name is linked as soon as its last word is there, and again when `STAGES` words follow it, because what follows tells
a lot: "Paris", "Paris Hilton", "Paris is a god". When a longer name goes on, it replaces the shorter one. When the
sentence ends, its mentions stay as they are. Pronouns, "the band" and surnames refer to earlier mentions.

All rules and weights are those of `Linker` and `GraphResolver`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

from kglm.linking.coreference import RunningResolver
from kglm.linking.linker import (
    CONTEXT,
    Candidate,
    LinkedName,
    LinkedText,
    Linker,
    Memory,
    Mention,
    is_name,
    is_small_name,
    raised_word,
)
from kglm.linking.name_index import Beginning
from kglm.linking.prompts import reliability
from kglm.linking.spans import LinkedSpan
from kglm.linking.unknown import with_unknown_names
from kglm.text.document import END, START

STAGES = (0, 1, 2, 4, 9)
"""Numbers of words after a name at which it is linked again."""
LONGEST = 60
"""Words of a sentence after which its first ones are settled too."""
STILL_OPEN = 16
"""Words that are then left open."""


@dataclass
class _Open:
    """A name of the sentence so far."""

    mention: Mention
    given: bool
    read: int
    """Number of words of the text that its probabilities depend on."""
    name: LinkedName
    memory: Memory
    span: LinkedSpan | None
    """The name as an antecedent, if it is linked."""


class _Word(NamedTuple):
    """Names that end with a word, and beginnings of longer ones, with capital and with small letters."""

    ended: list[Mention]
    small_ended: list[Mention]
    beginnings: list[Beginning]
    small_beginnings: list[Beginning]


_NO_NAMES = _Word([], [], [], [])


def _opened(mention: Mention, given: bool, read: int, name: LinkedName) -> _Open:
    node = name.node
    span = None if node is None else LinkedSpan(name.start, name.end, node, "NEL")
    return _Open(mention, given, read, name, Memory(set(), []), span)


class RunningLinker:
    """The mentions of one text that grows."""

    def __init__(self, linker: Linker) -> None:
        self.words: list[str] = []
        """Words so far, with the marks of sentences."""
        self.open_from = 0
        """Mentions of the words before this one are final."""
        self.names: list[LinkedName] = []
        """Mentions of the other words, as far as they are known."""
        self.given: list[tuple[int, int, int]] = []
        """Words [start, end) that mention a node, for certain."""
        self._linker = linker
        self._text = LinkedText(linker, self.words, (), ())
        self._resolver = RunningResolver(linker.graph, linker.traits, self.words)
        self._settled = 0
        self._word_W: list[_Word] = []
        """One for each word that is not final."""
        self._open: list[_Open] = []
        self._closed: list[Mention] = []
        self._p_of: dict[int, float] = {}
        """Highest probability with which a final name refers to each entity."""

    def replace(self, position: int, words: Sequence[str]) -> bool:
        """The words from a position on are these; those before it stay. False if nothing has changed."""
        if self.words[position:] == words:
            return False
        keep = position
        while keep < min(len(self.words), position + len(words)) and self.words[keep] == words[keep - position]:
            keep += 1
        assert keep >= self._settled
        shortened = keep < len(self.words)
        del self.words[keep:], self._word_W[keep - self.open_from :]
        self._forget(next((n for n, each in enumerate(self._open) if each.read > keep), len(self._open)))
        for word in words[keep - position :]:
            self._word_W.append(self._names_ended(word))
            self.words.append(word)
        if not (self._link() or shortened or self._may_refer(keep)):
            return False
        self.names = self._with_coreference()
        return True

    def _may_refer(self, first: int) -> bool:
        """True if the words from a position on may change what refers to earlier names, or which names are unknown."""
        return any(word[:1].isupper() for word in self.words[first:]) or self._resolver.is_pending(first)

    def fork(self) -> RunningLinker:
        """A copy that goes on with other words."""
        other = copy(self)
        other.words, other.names, other.given = list(self.words), list(self.names), list(self.given)
        other._text = self._text.fork(other.words)
        other._resolver = self._resolver.fork(other.words)
        other._word_W, other._closed = list(self._word_W), list(self._closed)
        other._open = [replace(each) for each in self._open]
        other._p_of = dict(self._p_of)
        return other

    def settle(self, count: int) -> None:
        """The first words will not change any more. Mentions become final at the end of their sentence."""
        for position in range(self._settled, count):
            self._text.view.add_word(position)
        marks = [place for place in range(max(self._settled, self.open_from), count) if self.words[place] == END]
        self._settled = max(count, self._settled)
        if marks:
            self._close(marks[-1] + 1)
        elif count - self.open_from > LONGEST:
            inside = {place for each in self._open for place in range(each.mention[0] + 1, each.mention[1])}
            end = count - STILL_OPEN
            while end in inside:
                end -= 1
            self._close(end)

    def _names_ended(self, word: str) -> _Word:
        """Look up the names that end with the next word."""
        position = len(self.words)
        if word in (START, END):
            return _NO_NAMES
        before = self._word_W[-1] if self._word_W else _NO_NAMES
        names = self._linker.names
        begins = any(char.isupper() or char.isdigit() for char in word)
        ended, beginnings = names.grown(before.beginnings, position, word, begins=begins)
        small_ended: list[tuple[int, int]] = []
        small: list[Beginning] = []
        if word == word.lower():
            small_ended, small = names.grown(
                before.small_beginnings, position, raised_word(word), begins=word.islower()
            )
        return _Word(
            [
                (start, position + 1, nodes)
                for start, hashed in ended
                if is_name([*self.words[start:], word]) and (nodes := names.nodes(hashed))
            ],
            [
                (start, position + 1, nodes)
                for start, hashed in small_ended
                if is_small_name([*self.words[start:], word]) and (nodes := names.nodes(hashed))
            ],
            beginnings,
            small,
        )

    def _mentions(self) -> list[tuple[Mention, bool]]:
        """Names and given spans of the open words, in order."""
        given = [span for span in self.given if self.open_from <= span[0] and span[1] <= len(self.words)]
        given_mentions: list[Mention] = [(start, end, [node]) for start, end, node in given]
        capital = [each for word in self._word_W for each in word.ended]
        small = [each for word in self._word_W for each in word.small_ended]
        if not capital and not small:
            return [(each, True) for each in given_mentions]
        found = self._linker.without_overlaps(self.words, capital, small, given_mentions)
        return sorted([*((each, True) for each in given_mentions), *((each, False) for each in found)])

    def _link(self) -> bool:
        """Link the names of the open words that are new, or that enough words follow; False if there are none."""
        mentions = self._mentions()
        same = 0
        for (mention, given), each in zip(mentions, self._open, strict=False):
            if mention != each.mention or given != each.given or self._is_due(each):
                break
            same += 1
        if same == len(mentions) == len(self._open):
            return False
        before = {each.mention[:2]: each for each in self._open[same:]}
        self._forget(same)
        for mention, _ in mentions[same:]:
            self._text.view.named.update(range(*mention[:2]))
        fresh = False
        for n, (mention, given) in enumerate(mentions[same:], same):
            start, end, nodes = mention
            known = before.get((start, end))
            if given:
                known = _opened(mention, True, end, LinkedName.certain(start, end, nodes[0]))
            elif known is None or known.mention != mention or fresh or self._is_due(known):
                others = [other for k, (other, _) in enumerate(mentions) if k != n]
                name = self._text.linked(start, end, nodes, [*self._closed_near(start), *others])
                fresh = fresh or known is None or known.span is None or known.span.node != name.node
                known = _opened(mention, False, len(self.words), name)
            known.memory = self._text.remember(known.name)
            self._open.append(known)
        return True

    def _is_due(self, each: _Open) -> bool:
        """True if more words follow a name than when it was linked, by the steps of `STAGES`."""
        end = each.mention[1]
        return not each.given and any(each.read - end < stage <= len(self.words) - end for stage in STAGES)

    def _forget(self, first: int) -> None:
        """Take back the open names from an index on."""
        while len(self._open) > first:
            each = self._open.pop()
            self._text.forget(each.memory)
            self._text.view.named.difference_update(range(*each.mention[:2]))

    def _closed_near(self, start: int) -> list[Mention]:
        """Final names in the context of a position."""
        first = bisect_left(self._closed, start - CONTEXT, key=lambda mention: mention[0])
        return self._closed[first:]

    def _with_coreference(self) -> list[LinkedName]:
        """The open names, and what refers to earlier ones; no names that are parts of longer unknown names."""
        names = [each.name for each in self._open]
        antecedents = [each.span for each in self._open if each.span is not None]
        resolved = self._resolver.tentative(antecedents, self.open_from)
        if resolved:
            taken = {position for name in names for position in range(name.start, name.end)}
            p_of: dict[int, float] = {}
            for each in self._open:
                if each.span is not None:
                    p_of[each.span.node] = max(p_of.get(each.span.node, 0.0), each.name.candidates[0].p)
            names += [
                LinkedName(span.start, span.end, (Candidate(span.node, p * reliability(self.words, span)),))
                for span in resolved
                if taken.isdisjoint(range(span.start, span.end))
                and (p := max(p_of.get(span.node, 0.0), self._p_of.get(span.node, 0.0)))
            ]
        if len(antecedents) < len(self._open):
            return self._without_parts(sorted(names))
        return sorted(names)

    def _without_parts(self, names: list[LinkedName]) -> list[LinkedName]:
        """The names except those that are probably NIL and lie in a longer name that is not in the graph."""
        first = self.open_from
        moved = [LinkedName(name.start - first, name.end - first, name.candidates) for name in names]
        return [
            LinkedName(name.start + first, name.end + first, name.candidates)
            for name in with_unknown_names(self.words[first:], moved)
            if name.candidates
        ]

    def _close(self, end: int) -> None:
        """Make the mentions of the words before `end` final."""
        for name in self.names:
            if name.end <= end and (node := name.node) is not None:
                self._p_of[node] = max(self._p_of.get(node, 0.0), name.candidates[0].p)
        self._resolver.settle([each.span for each in self._open if each.span is not None], self.open_from, end)
        closed = sum(each.mention[1] <= end for each in self._open)
        self._closed += [each.mention for each in self._open[:closed]]
        del self._open[:closed], self._word_W[: end - self.open_from]
        self.open_from = end
        self.names = [name for name in self.names if name.start >= end]
