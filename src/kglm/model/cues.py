"""Cues: words before a mention that name a relation, or the kind of its tail.

After "The capital of Italy is", `capital` is named; after "a city in the state of", of two places that the city lies in
the one that is a state. No relation or kind needs training for that: their names are in the graph.

The score of a name is the share of its words that stand in the window before the mention, rare words counting more:

    m(n, t) = Σ_{w ∈ n, w in the window before t} idf(w) / Σ_{w ∈ n} idf(w),    m(r, t) = max over the names n of r,

and 0 below `FLOOR`. a(n, t) scores adjacency: the share of n that is covered by its longest suffix that ends right
before the mention, if that has a content word ("in the state of" is nearly all of "is in the state of", and nothing of
"state"). A relation's score gains α m + β [m = 1] + ζ a, with other weights for reverse relations;
a tail's score gains γ if a word of its kinds (`instance of`) stands in the window, and δ if it is a date with a day:
"born on" asks for one, not for a year alone. How much the cues count depends on the text:

    [α β ζ α' β' ζ' γ δ] = w + U h_x,    all learned.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import INSTANCE_OF
from kglm.kg.literals.dates import DAY
from kglm.model.arrays import Bools, Floats
from kglm.text.document import END, START
from kglm.text.function_words import is_content

WINDOW = 12
"""Words before a mention that can be cues; words of an earlier sentence cannot."""
FLOOR = 0.5
FUNCTION_WORD = 0.3
"""Weight of a function word against a content word: "in" tells "born in" from "born on", but names nothing alone."""
SLACK = 1e-9
"""Sums of the same shares in another order differ by less."""
DIGITS = 9
"""Decimals of s that count in comparisons."""
BLOCK = 256
"""Positions scored at once, to bound the memory."""
FULL = 1 - SLACK
"""A share from which all words of a name are counted as present."""
DAY_DATE = f"T::{DAY}::"
MAX_KINDS = 8
YEAR_WORD = re.compile(r"[1-9][0-9]{2,3}")
START_WEIGHTS = (2.0, 1.5, 2.0, 1.0, 0.75, 1.0, 1.5, 0.0)
"""Initial α β ζ α' β' ζ' γ δ."""
RELATION_WEIGHTS = 3
"""α β ζ of a relation; the same number for its reverse; then the weights of tails."""


class NamedRelation(NamedTuple):
    """The relation that the words before each position name best; tensors or arrays."""

    value_F3: Any
    """Largest m, largest a and largest s = (m + a) / 2 of any relation."""
    relation_F: Any
    """The relation of the largest s: the first of equals, 0 where all are 0."""

    @classmethod
    def of(cls, cue_TK2: Floats) -> NamedRelation:
        """From m and a of all relations."""
        s_TK = cue_TK2.mean(-1).round(DIGITS)
        return cls(np.column_stack([cue_TK2.max(1), s_TK.max(1)]), s_TK.argmax(1))

    def at(self, index: Any) -> NamedRelation:
        """Those at some positions."""
        return NamedRelation(self.value_F3[index], self.relation_F[index])


# Weights


def cue_features(cue_Y2: Tensor) -> Tensor:
    """[m, [m = 1], a] of [m, a]."""
    m_Y, a_Y = cue_Y2.unbind(-1)
    return torch.stack([m_Y, (m_Y >= FULL).to(m_Y), a_Y], -1)


class CueWeights(nn.Module):
    """w + U h_x."""

    def __init__(self, hidden: int, *, trained: bool) -> None:
        super().__init__()
        self.weight_Q = nn.Parameter(torch.tensor(START_WEIGHTS), requires_grad=trained)
        self.context_HQ = nn.Parameter(torch.zeros(hidden, len(START_WEIGHTS)), requires_grad=trained)

    def forward(self, h_x_MH: Tensor) -> Tensor:
        """[α β ζ α' β' ζ' γ δ] at positions (M × Q)."""
        return self.weight_Q + h_x_MH @ self.context_HQ


def relation_cue_scores(weight_MQ: Tensor, cue_MK2: Tensor) -> Tensor:
    """α m + β [m = 1] + ζ a of relations, and the same with α' β' ζ' of their reverses (M × K × 2)."""
    weight_M23 = weight_MQ[:, : 2 * RELATION_WEIGHTS].reshape(-1, 2, RELATION_WEIGHTS)
    return cue_features(cue_MK2) @ weight_M23.transpose(1, 2)


def tail_weights(weight_MQ: Tensor) -> Tensor:
    """γ and δ (M × 2)."""
    return weight_MQ[:, 2 * RELATION_WEIGHTS :]


# Cues of a graph


@dataclass
class _Suffix:
    """A node of the trie of relation names, read backwards."""

    longer: dict[str, _Suffix] = field(default_factory=dict)
    share: dict[int, float] = field(default_factory=dict)
    """a of each relation that has a name with this suffix."""


class Cues:
    """Names of the relations and kinds of one graph, indexed by word."""

    def __init__(self, graph: KnowledgeGraph, words_of: Callable[[str], Sequence[str]]) -> None:
        """`words_of` splits a name into words."""
        self.graph = graph
        self._words_of = words_of
        names: list[tuple[int, frozenset[str]]] = []
        sequences: list[tuple[int, tuple[str, ...]]] = []
        for relation in range(1, graph.relation_count // 2):
            labels = graph.relation_names(graph.relation_id(2 * relation))
            distinct = dict.fromkeys(tuple(word.casefold() for word in words_of(label)) for label in labels)
            sequences += [(relation, words) for words in distinct if any(map(is_content, words))]
            sets = dict.fromkeys(map(frozenset, distinct))
            names += [(relation, words) for words in sets if any(map(is_content, words))]
        times = Counter(word for _, words in names for word in words)
        idf = {
            word: math.log1p(len(names) / count) * (1 if is_content(word) else FUNCTION_WORD)
            for word, count in times.items()
        }
        postings: dict[str, tuple[list[int], list[float]]] = {}
        for number, (_, words) in enumerate(names):
            total = math.fsum(idf[word] for word in words)  # the same in every process, whatever the order of a set
            for word in words:
                numbers, shares = postings.setdefault(word, ([], []))
                numbers.append(number)
                shares.append(idf[word] / total)
        self._postings = {word: (np.array(numbers), np.array(shares)) for word, (numbers, shares) in postings.items()}
        self._relation_N = np.array([relation for relation, _ in names], np.int64)
        self._first = np.flatnonzero(np.diff(self._relation_N, prepend=-1))
        self._suffixes = _suffix_trie(sequences, idf)
        self.kind_words = lru_cache(1 << 18)(self._find_kind_words)

    def on(self, graph: KnowledgeGraph) -> Cues:
        """The cues of an edited graph: kinds may differ; names are indexed again only if there are new relations."""
        if graph.relation_count != self.graph.relation_count:
            return Cues(graph, self._words_of)
        other = Cues.__new__(Cues)
        other.__dict__.update(self.__dict__)
        other.graph = graph
        other.kind_words = lru_cache(1 << 18)(other._find_kind_words)
        return other

    def relations(self, surface: Sequence[str], first: int = 0, count: int | None = None) -> Floats:
        """m(r, t) and a(r, t) of all relations (T × K × 2) at the positions [first, first + count) of a text."""
        count = max(len(surface) - 1, 0) - first if count is None else count
        cue_TK2 = np.zeros((count, self.graph.relation_count // 2, 2))
        skipped = max(first - WINDOW, 0)  # no earlier word can be a cue
        first -= skipped
        surface = surface[skipped : skipped + first + count]
        words = ["" if word in (START, END) else word.casefold() for word in surface]
        for start in range(0, count, BLOCK):
            stop = min(start + BLOCK, count)
            self._add_shares(words, first + start, cue_TK2[start:stop, :, 0])
        for row in range(count):
            self._add_suffix_shares(words, first + row, cue_TK2[row, :, 1])
        return cue_TK2

    def at_end(self, surface: Sequence[str]) -> Floats:
        """m(r, t) and a(r, t) of all relations (1 × K × 2) after the last word of a text."""
        words = ["" if word in (START, END) else word.casefold() for word in surface[-WINDOW:]]
        cue_1K2 = np.zeros((1, self.graph.relation_count // 2, 2))
        share_N = np.zeros(len(self._relation_N))
        seen = set[str]()
        for word in reversed(words):
            if not word:
                break
            if word not in seen and word in self._postings:  # a repeated word counts once
                at, share = self._postings[word]
                share_N[at] += share
            seen.add(word)
        if len(share_N):
            best = np.maximum.reduceat(share_N, self._first)
            cue_1K2[0, self._relation_N[self._first], 0] = np.where(best >= FLOOR - SLACK, best, 0.0)
        self._add_suffix_shares(words, len(words) - 1, cue_1K2[0, :, 1])
        return cue_1K2

    def _add_shares(self, words: Sequence[str], first: int, m_TK: Floats) -> None:
        """Fill in m at consecutive positions: a word counts from its position on, until it leaves the window."""
        count = len(m_TK)
        if not len(self._relation_N):
            return
        change_TN = np.zeros((count + 1, len(self._relation_N)))
        ends = dict[str, int]()
        boundary = first + count
        for place in range(first + count - 1, max(first - WINDOW, -1), -1):
            word = words[place]
            if not word:
                ends, boundary = {}, place
                continue
            start, end = max(place, first), min(place + WINDOW, ends.get(word, boundary))
            ends[word] = place  # a repeated word counts once
            if word in self._postings and start < end:
                at, share = self._postings[word]
                change_TN[start - first, at] += share
                change_TN[end - first, at] -= share
        share_TN = change_TN[:-1].cumsum(0)
        best = np.maximum.reduceat(share_TN, self._first, axis=1)
        m_TK[:, self._relation_N[self._first]] = np.where(best >= FLOOR - SLACK, best, 0.0)

    def _add_suffix_shares(self, words: Sequence[str], t: int, a_K: Floats) -> None:
        """Fill in a at one position: descend the trie with the last words of the window."""
        suffix: _Suffix | None = self._suffixes
        for place in range(t, max(t - WINDOW, -1), -1):
            suffix = suffix.longer.get(words[place]) if suffix is not None else None
            if suffix is None:
                return
            for relation, share in suffix.share.items():
                a_K[relation] = max(a_K[relation], share)

    def is_day(self, node: int) -> bool:
        """True if a node is a date with a day."""
        return self.graph.id(node).startswith(DAY_DATE)

    def _find_kind_words(self, node: int) -> frozenset[str]:
        """Content words in the labels of a node's kinds."""
        relation = self.graph.find_relation(INSTANCE_OF)
        kinds = [] if relation is None else self.graph.tails(node, relation).tolist()[:MAX_KINDS]
        names = (name for kind in kinds for name in self.graph.names(kind)[:1])
        return frozenset(word.casefold() for name in names for word in self._words_of(name) if is_content(word))

    def hints(self, surface: Sequence[str], t: int, nodes: Sequence[int]) -> list[tuple[bool, bool]]:
        """For each node: whether a word of its kinds stands in the window before t, and whether it is a day."""
        before = window(surface, t)
        return [(not self.kind_words(node).isdisjoint(before), self.is_day(node)) for node in nodes]


def _suffix_trie(sequences: Sequence[tuple[int, tuple[str, ...]]], idf: dict[str, float]) -> _Suffix:
    root = _Suffix()
    for relation, words in sequences:
        total, share, content, at = math.fsum(idf[word] for word in words), 0.0, False, root
        for word in reversed(words):
            share, content = share + idf[word] / total, content or is_content(word)
            at = at.longer.setdefault(word, _Suffix())
            if content and share >= FLOOR - SLACK:
                at.share[relation] = max(at.share.get(relation, 0.0), share)
    return root


def window(surface: Sequence[str], t: int) -> list[str]:
    """The words before word t + 1 that can be cues, the last one first."""
    found: list[str] = []
    for place in range(t, max(t - WINDOW, -1), -1):
        if surface[place] in (START, END):
            break
        found.append(surface[place].casefold())
    return found


def named_years(words: Sequence[str]) -> list[int]:
    """Years among words: numbers of three or four digits.

    >>> named_years(["1985", "in", "room", "12", "0007"])
    [1985]
    """
    return [int(word) for word in words if YEAR_WORD.fullmatch(word)]


class TextCues:
    """The cues at positions [first, first + count) of a text."""

    def __init__(self, cues: Cues, surface: Sequence[str], first: int, count: int) -> None:
        self._cues = cues
        windows = [window(surface, t) for t in range(first, first + count)]
        self.relation_TK2 = cues.relations(surface, first, count)
        self.years = {row: years for row, words in enumerate(windows) if (years := named_years(words))}
        """Years that the words before each position name, for the rows that have any."""
        self._where: dict[str, Bools] = {}
        for row, words in enumerate(windows):
            for word in words:
                self._where.setdefault(word, np.zeros(count, np.bool_))[row] = True

    def named(self, device: torch.device) -> NamedRelation:
        """The relation that is named best at each position."""
        return NamedRelation(*(torch.from_numpy(values).to(device) for values in NamedRelation.of(self.relation_TK2)))

    def days(self, nodes: Sequence[int]) -> Floats:
        """1 for the nodes that are dates with a day."""
        return np.array([self._cues.is_day(node) for node in nodes], np.float64)

    def kinds(self, nodes: Sequence[int], rows: slice) -> Floats | None:
        """1 where a word of a node's kinds stands in the window of these rows (N × T); None if nowhere."""
        found_NT: Floats | None = None
        for row, node in enumerate(nodes):
            for word in self._cues.kind_words(node):
                if (where_T := self._where.get(word)) is not None and where_T[rows].any():
                    if found_NT is None:
                        found_NT = np.zeros((len(nodes), len(where_T[rows])))
                    found_NT[row] = np.maximum(found_NT[row], where_T[rows])
        return found_NT
