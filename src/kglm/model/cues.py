"""Words before a mention that speak for a fact by themselves: its relation's name, or what kind of thing its tail is.

After "The capital of Italy is", `capital` is named; after "a city in the state of", of two places that the city lies in
the one that is a state. No relation or kind needs training for that: what they are called is in the graph.

A name of a relation is worth the share of its words that stand in the window, rarer words more:

    m(n, t) = Σ_{w ∈ n, w in the window before t} idf(w) / Σ_{w ∈ n} idf(w),    m(r, t) = max over the names n of r,

and nothing below `FLOOR`. What stands right before the mention says more: a(n, t) is the same share for the words at
the end of n that are the last of the window, if one of them is more than a function word ("in the state of" is nearly
all of "is in the state of", and nothing of "state"). A relation's score gains α m + β [m = 1] + ζ a, with others for
reverse relations; a tail's score gains γ if a word of its kinds (`instance of`) stands in the window, and δ if it is a
date with a day: after "born on" it is due, and not a year alone. How much all this is heeded depends on the text, so
[α β ζ α' β' ζ' γ δ] = w + U h_x, all learned.

Words that name a relation also announce that a mention is due: the type's scores gain [m, [m = 1], a] (w' + U' h_x)
with the largest m and a of any relation, and s v_r W' for the relation r whose s = (m + a) / 2 is the largest: after
"married to" comes a name, after "capital of" more often "the".

Legend: N relations (not indices: a relation and its reverse share their names), P names, T targets, Y nodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import INSTANCE_OF
from kglm.kg.literals.dates import DAY
from kglm.text.document import END, START
from kglm.text.function_words import is_content

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
WINDOW = 12
"""Words before a mention that are looked at; those of an earlier sentence never are."""
FLOOR = 0.5
SMALL = 0.3
"""What a function word counts against others: "in" tells "born in" from "born on", but names nothing."""
SLACK = 1e-9
"""Sums of the same shares in another order differ by less."""
DIGITS = 9
"""What differs by less in s is equal."""
BLOCK = 256
"""Targets at once: bounds the memory."""
FULL = 1 - SLACK
"""What counts as all words of a name."""
DAY_DATE = f"T::{DAY}::"
MAX_KINDS = 8
START_WEIGHTS = (2.0, 1.5, 2.0, 1.0, 0.75, 1.0, 1.5, 0.0)
"""Where training starts: α, β and ζ of relations, of reverse ones, γ and δ."""
OF_RELATIONS = 3
"""Weights of a relation, and as many of its reverse; then those of tails."""


@dataclass
class _Ending:
    """A place in the tree of names read backwards."""

    longer: dict[str, _Ending] = field(default_factory=dict)
    covered: dict[int, float] = field(default_factory=dict)
    """a of the relations that have a name with this ending."""


class Named(NamedTuple):
    """How far the words before targets (of any shape, here F) name a relation, whichever."""

    value_F3: Any
    """The largest m, the largest a, the largest s."""
    relation_F: Any
    """Whose s is the largest; the first of equals, 0 where all are 0."""

    @classmethod
    def of(cls, cue_TN2: Floats) -> Named:
        """At consecutive targets."""
        s_TN = cue_TN2.mean(-1).round(DIGITS)
        return cls(np.column_stack([cue_TN2.max(1), s_TN.max(1)]), s_TN.argmax(1))


class Cues:
    """The words that hint at relations and kinds, for one graph."""

    def __init__(self, graph: KnowledgeGraph, words_of: Callable[[str], Sequence[str]]) -> None:
        self.graph = graph
        self._words_of = words_of
        names: list[tuple[int, frozenset[str]]] = []
        written: list[tuple[int, tuple[str, ...]]] = []
        for relation in range(1, graph.relation_count // 2):
            said = graph.relation_names(graph.relation_id(2 * relation))
            cut = dict.fromkeys(tuple(word.casefold() for word in words_of(name)) for name in said)
            written += [(relation, words) for words in cut if any(map(is_content, words))]
            distinct = dict.fromkeys(map(frozenset, cut))
            names += [(relation, words) for words in distinct if any(map(is_content, words))]
        times = Counter(word for _, words in names for word in words)
        idf = {
            word: math.log1p(len(names) / count) * (1 if is_content(word) else SMALL) for word, count in times.items()
        }
        named_by: dict[str, tuple[list[int], list[float]]] = {}
        for number, (_, words) in enumerate(names):
            total = math.fsum(idf[word] for word in words)  # the same in every process, whatever the order of a set
            for word in words:
                places, shares = named_by.setdefault(word, ([], []))
                places.append(number)
                shares.append(idf[word] / total)
        self._postings = {word: (np.array(at), np.array(share)) for word, (at, share) in named_by.items()}
        self._relation_P = np.array([relation for relation, _ in names], np.int64)
        self._first = np.flatnonzero(np.diff(self._relation_P, prepend=-1))
        self._endings = _endings(written, idf)
        self.kind_words = lru_cache(1 << 18)(self._find_kind_words)

    def on(self, graph: KnowledgeGraph) -> Cues:
        """The same after edits of the graph."""
        if graph.relation_count != self.graph.relation_count:
            return Cues(graph, self._words_of)
        other = Cues.__new__(Cues)
        other.__dict__.update(self.__dict__)
        other.graph = graph
        other.kind_words = lru_cache(1 << 18)(other._find_kind_words)
        return other

    def relations(self, surface: Sequence[str], first: int = 0, count: int | None = None) -> Floats:
        """m(r, t) and a(r, t) of all relations (T × N × 2) at the targets [first, first + count) of a text."""
        count = max(len(surface) - 1, 0) - first if count is None else count
        found_TN2 = np.zeros((count, self.graph.relation_count // 2, 2))
        words = ["" if word in (START, END) else word.casefold() for word in surface[: first + count]]
        for start in range(0, count, BLOCK):
            stop = min(start + BLOCK, count)
            self._add_shares(words, first + start, found_TN2[start:stop, :, 0])
        for row in range(count):
            self._add_endings(words, first + row, found_TN2[row, :, 1])
        return found_TN2

    def _add_shares(self, words: Sequence[str], first: int, m_TN: Floats) -> None:
        """m at consecutive targets. A word counts from where it stands to where the window has left it."""
        count = len(m_TN)
        if not len(self._relation_P):
            return
        change_TP = np.zeros((count + 1, len(self._relation_P)))
        ends = dict[str, int]()
        boundary = first + count
        for place in range(first + count - 1, max(first - WINDOW, -1), -1):
            word = words[place]
            if not word:
                ends, boundary = {}, place
                continue
            start, end = max(place, first), min(place + WINDOW, ends.get(word, boundary))
            ends[word] = place  # said twice, it counts once
            if word in self._postings and start < end:
                at, share = self._postings[word]
                change_TP[start - first, at] += share
                change_TP[end - first, at] -= share
        share_TP = change_TP[:-1].cumsum(0)
        best = np.maximum.reduceat(share_TP, self._first, axis=1)
        m_TN[:, self._relation_P[self._first]] = np.where(best >= FLOOR - SLACK, best, 0.0)

    def _add_endings(self, words: Sequence[str], t: int, a_N: Floats) -> None:
        """a at one target: the tree of names is climbed for as long as the last words go."""
        ending: _Ending | None = self._endings
        for place in range(t, max(t - WINDOW, -1), -1):
            ending = ending.longer.get(words[place]) if ending is not None else None
            if ending is None:
                return
            for relation, covered in ending.covered.items():
                a_N[relation] = max(a_N[relation], covered)

    def is_day(self, node: int) -> bool:
        """Whether a node is a date with a day."""
        return self.graph.id(node).startswith(DAY_DATE)

    def _find_kind_words(self, node: int) -> frozenset[str]:
        relation = self.graph.find_relation(INSTANCE_OF)
        kinds = [] if relation is None else self.graph.tails(node, relation).tolist()[:MAX_KINDS]
        names = (name for kind in kinds for name in self.graph.names(kind)[:1])
        return frozenset(word.casefold() for name in names for word in self._words_of(name) if is_content(word))


def _endings(written: Sequence[tuple[int, tuple[str, ...]]], idf: dict[str, float]) -> _Ending:
    """The tree of all names read backwards."""
    root = _Ending()
    for relation, words in written:
        total, share, content, at = math.fsum(idf[word] for word in words), 0.0, False, root
        for word in reversed(words):
            share, content = share + idf[word] / total, content or is_content(word)
            at = at.longer.setdefault(word, _Ending())
            if content and share >= FLOOR - SLACK:
                at.covered[relation] = max(at.covered.get(relation, 0.0), share)
    return root


def window(surface: Sequence[str], t: int) -> list[str]:
    """The words before target t, which is word t + 1, as far as they count; the last one first."""
    found: list[str] = []
    for place in range(t, max(t - WINDOW, -1), -1):
        if surface[place] in (START, END):
            break
        found.append(surface[place].casefold())
    return found


class TextCues:
    """Cues at the targets [first, first + count) of a text."""

    def __init__(self, cues: Cues, surface: Sequence[str], first: int, count: int) -> None:
        self._cues = cues
        windows = [window(surface, t) for t in range(first, first + count)]
        self.relation_TN2 = cues.relations(surface, first, count)
        self._where: dict[str, Bools] = {}
        for row, words in enumerate(windows):
            for word in words:
                self._where.setdefault(word, np.zeros(count, np.bool_))[row] = True

    def named(self, device: torch.device) -> Named:
        """Which relation is named most."""
        return Named(*(torch.from_numpy(part).to(device) for part in Named.of(self.relation_TN2)))

    def days(self, node_Y: Sequence[int]) -> Floats:
        """Which nodes are dates with a day."""
        return np.array([self._cues.is_day(node) for node in node_Y], np.float64)

    def kinds(self, node_Y: Sequence[int], here: slice) -> Floats | None:
        """Whether a word of each node's kinds stands in the windows of these rows (Y × rows); None if nowhere."""
        found: Floats | None = None
        for row, node in enumerate(node_Y):
            for word in self._cues.kind_words(node):
                if (where := self._where.get(word)) is not None and where[here].any():
                    if found is None:
                        found = np.zeros((len(node_Y), len(where[here])))
                    found[row] = np.maximum(found[row], where[here])
        return found
