"""Entity linker: find the names in a text and give a probability to each candidate entity and to NIL, none of them.

A mention is the longest name of the graph at its position; its first word has a capital letter or a digit. A name of
several words in small letters ("barack obama") counts as well. All entities of that name are candidates, and the
entities whose full name the text has used before ("Abraham Lincoln … Lincoln"). The score of a candidate e is a
weighted sum of features f(e): its number of facts, whether the name is its label, links with this text elsewhere, the
overlap of the context with its relations and neighbours, the kind of thing that the text states, the relations that it
asks for. The score of NIL weighs features g of the mention (see `context`): part of a longer name, a plain word.

    p(e) ∝ exp(β w · f(e)),    p(NIL) ∝ exp(β v · g),    Σ_e p(e) + p(NIL) = 1

β, the sharpness, changes no decision: it makes the probabilities as high as the links are often right (see `weights`).

`benchmarks/linker.py` fits the weights (a conditional logit with a Gaussian prior) and measures them.

Legend: N candidates of one mention, F features of candidates, G features of NIL.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.kg.graph import KnowledgeGraph
from kglm.linking.anchors import Anchors
from kglm.linking.candidates import CandidateFacts, CandidateReader, RelationNames
from kglm.linking.context import TextView
from kglm.linking.kinds import Kind, agreement, stated_nouns
from kglm.linking.name_index import NameIndex, hash_name
from kglm.linking.traits import TraitReader
from kglm.linking.weights import NIL_WEIGHTS, SHARPNESS, WEIGHTS
from kglm.text.document import END, START
from kglm.text.function_words import is_content

Floats = npt.NDArray[np.float64]
FEATURES = (
    "facts",
    "label",
    "introductions",
    "links",
    "link of this text",
    "related words",
    "neighbour words",
    "facts with others",
    "facts with near others",
    "more of them",
    "stated class",
    "stated kind",
    "named relation",
    "relation after it",
    "title",
    "short name",
    "earlier",
    "no proper name",
)
RELATIVE = tuple(FEATURES.index(name) for name in ("facts", "introductions", "more of them"))
"""Features that only compare candidates: how well known the best one is says nothing about NIL."""
MAX_CANDIDATES = 30
CONTEXT = 40
"""Words on each side of a mention that form its context."""
NEAR = 12
"""Words to another name that counts as near."""
BEFORE, AFTER = 5, 9
"""Words before and after a mention, in its sentence, that may name one of its relations."""
NUMERALS = frozenset(("ii", "iii", "iv", "vi", "vii", "viii", "ix", "xii", "xiii", "xiv", "xv", "xvi"))
"""Numbers in the names of monarchs and wars, without those that are names as well."""
DIRECTLY = 4
"""Words right after a mention that may say what it has: "X was born in" is a person."""
SURE = 0.5
"""Probability from which an entity is remembered for later names of the text."""


class Candidate(NamedTuple):
    """An entity that a mention may refer to, with its probability."""

    node: int
    p: float


class LinkedName(NamedTuple):
    """A name in a text, words [start, end), and its candidates, the most probable first; with NIL they sum to 1."""

    start: int
    end: int
    candidates: tuple[Candidate, ...]

    @classmethod
    def certain(cls, start: int, end: int, node: int) -> LinkedName:
        """A name whose entity is given."""
        return cls(start, end, (Candidate(node, 1.0),))

    @property
    def p_nil(self) -> float:
        """Probability that the name refers to no entity of the graph."""
        return max(0.0, 1.0 - sum(candidate.p for candidate in self.candidates))

    @property
    def node(self) -> int | None:
        """The most probable entity; None if NIL is more probable."""
        best = next(iter(self.candidates), None)
        return None if best is None or best.p < self.p_nil else best.node


Mention = tuple[int, int, Sequence[int]]
"""Start, end and candidates of a name."""


class Linker:
    """Links names in texts to the entities of one graph."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        names: NameIndex | None = None,
        introductions: Mapping[int, int] | None = None,
        weights: tuple[Sequence[float], Sequence[float]] = (WEIGHTS, NIL_WEIGHTS),
        anchors: Anchors | None = None,
        traits: TraitReader | None = None,
        nil_bias: float = 0.0,
        sharpness: float = SHARPNESS,
    ) -> None:
        """`introductions`: number of training mentions by node; `weights`: of `FEATURES` and of `NIL_FEATURES`.

        `nil_bias` is added to the score of NIL, for texts that name entities of the graph more often than articles do;
        `sharpness` is β.
        """
        self._sharpness = sharpness
        self.graph = graph
        self.names = NameIndex.for_graph(graph) if names is None else names
        self._anchors = anchors or Anchors()
        if anchors is not None:
            self.names = self.names.including(anchors.names())
        self._weight_F, self._weight_G = (np.array(each, np.float64) for each in weights)
        self._weight_G[0] += nil_bias  # the weight of the constant feature
        self.traits = traits or TraitReader(graph)
        self._candidates = CandidateReader(graph, self.traits, introductions or {})
        self._relations = RelationNames(graph)

    def link(self, words: Sequence[str], given: Sequence[tuple[int, int, int]] = ()) -> list[LinkedName]:
        """Link all names, in order. Spans `given` as (start, end, node) stay and help to disambiguate the others."""
        mentions = self.mentions(words, given)
        spans = sorted([*((start, end, [node]) for start, end, node in given), *mentions])
        given_spans = {(start, end) for start, end, _ in given}
        starts = [start for start, _, _ in spans]
        text = LinkedText(self, words, given, [(start, end) for start, end, _ in spans])
        found = []
        for index, (start, end, nodes) in enumerate(spans):
            if (start, end) in given_spans:
                name = LinkedName.certain(start, end, nodes[0])
            else:
                around = range(bisect_left(starts, start - CONTEXT), bisect_right(starts, end + CONTEXT))
                name = text.linked(start, end, nodes, [spans[other] for other in around if other != index])
            text.remember(name)
            found.append(name)
        return found

    def probabilities(self, words: Sequence[str], start: int, end: int, nodes: Sequence[int]) -> Floats:
        """Probability of each candidate in `nodes` that words [start, end) refer to it, given that they do to one."""
        p_of = dict(LinkedText(self, words, (), [(start, end)]).linked(start, end, nodes).candidates)
        p_N = np.array([p_of[node] for node in nodes])
        return np.asarray(p_N / p_N.sum())

    def mentions(
        self, words: Sequence[str], given: Sequence[tuple[int, int, int]] = ()
    ) -> list[tuple[int, int, list[int]]]:
        """(start, end, candidates) of the names outside the given spans; where names overlap, the longest wins.

        Names in small letters come last. "Vancouver, British Columbia" is two names, of which the first is unambiguous.
        """
        capital = [span for span in self.names.spans(words) if is_name(words[span[0] : span[1]])]
        given_mentions = [(start, end, [node]) for start, end, node in given]
        return self.without_overlaps(words, capital, self._small_names(words), given_mentions)

    def without_overlaps(
        self, words: Sequence[str], capital: Iterable[Mention], small: Iterable[Mention], given: Iterable[Mention] = ()
    ) -> list[tuple[int, int, list[int]]]:
        """The mentions among spans that are names: those of names with capital letters, and of `small` ones."""
        covered = np.zeros(len(words), np.bool_)
        for start, end, _ in given:
            covered[start:end] = True
        found = []
        for spans in (capital, small):
            for start, end, nodes in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
                if covered[start:end].any():
                    continue
                if "," in words[start + 1 : end - 1]:
                    end, nodes = self._before_comma(words, start, end, nodes)
                covered[start:end] = True
                found.append((start, end, self.highest_degree(nodes)))
        return sorted(found)

    def _before_comma(
        self, words: Sequence[str], start: int, end: int, nodes: Sequence[int]
    ) -> tuple[int, Sequence[int]]:
        """End and candidates of the part of a name before its first comma, if the part is a name of the same entity."""
        comma = list(words).index(",", start, end)
        same = sorted(set(self.names[words[start:comma]]) & set(nodes))
        return (comma, same) if same else (end, nodes)

    def _small_names(self, words: Sequence[str]) -> list[tuple[int, int, Sequence[int]]]:
        """Names of several content words that the text has in small letters."""
        raised = [raised_word(word) for word in words]
        return [span for span in self.names.spans(raised) if is_small_name(words[span[0] : span[1]])]

    def candidates(self, name: Sequence[str]) -> list[int]:
        """Entities of a name; above `MAX_CANDIDATES`, those with the most facts."""
        return self.highest_degree(self.names[name])

    def highest_degree(self, nodes: Sequence[int]) -> list[int]:
        """At most `MAX_CANDIDATES` nodes, those with the most facts."""
        if len(nodes) <= MAX_CANDIDATES:
            return list(nodes)
        degree = self.graph.degrees(nodes)
        return [nodes[n] for n in np.argsort(-degree, kind="stable")[:MAX_CANDIDATES].tolist()]


class Memory(NamedTuple):
    """What a name has changed in a `LinkedText`."""

    unknown: set[str]
    """New words of unknown names."""
    before: list[tuple[tuple[str, ...], int, float | None]]
    """Names and entities, with their probability before."""


class LinkedText:
    """One text while its names are linked from left to right."""

    def __init__(
        self,
        linker: Linker,
        words: Sequence[str],
        given: Sequence[tuple[int, int, int]],
        spans: Collection[tuple[int, int]],
    ) -> None:
        """`spans`: all names of the text."""
        self._linker = linker
        self._words = words
        self.view = TextView(words, spans)
        """What is known about the words."""
        self._own = {hash_name(words[start:end]): node for start, end, node in given}
        """Entity of each given span by the hash H of its words; the last one wins."""
        self._earlier: dict[tuple[str, ...], dict[int, float]] = {}
        """Probability of the entities that names and short names of this text have referred to."""

    def fork(self, words: Sequence[str]) -> LinkedText:
        """A copy for a text that begins with the same words."""
        other = copy(self)
        other._words, other.view = words, self.view.fork(words)
        other._earlier = {name: dict(nodes) for name, nodes in self._earlier.items()}
        return other

    def linked(self, start: int, end: int, nodes: Sequence[int], others: Sequence[Mention] = ()) -> LinkedName:
        """The name at words [start, end) with the probabilities of its candidates, given `others` around it."""
        nodes = self.candidates(start, end, nodes)
        feature_NF, nil_G = self.features(start, end, nodes, others)
        linker = self._linker
        score_N = linker._sharpness * np.append(feature_NF @ linker._weight_F, nil_G @ linker._weight_G)
        p_N = np.exp(score_N - score_N.max())
        p_N = p_N[:-1] / p_N.sum()
        order = np.argsort(-p_N, kind="stable").tolist()
        return LinkedName(start, end, tuple(Candidate(nodes[n], float(p_N[n])) for n in order))

    def candidates(self, start: int, end: int, nodes: Sequence[int]) -> list[int]:
        """Entities with this name, and those that the text has called so before."""
        return list(dict.fromkeys([*nodes, *self._earlier.get(tuple(self._words[start:end]), ())]))

    def remember(self, name: LinkedName) -> Memory:
        """Take a linked name into account for the later ones; returns what `forget` needs to take it back."""
        if name.node is None or name.candidates[0].p < SURE:
            return Memory(self.view.add_unknown(name.start, name.end) if name.node is None else set(), [])
        node, p = name.candidates[0]
        words = tuple(self._words[name.start : name.end])
        parts: set[tuple[str, ...]] = {words}
        if node >= 0:
            entity = self._linker._candidates.of(node)
            parts |= {(part,) for part in entity.name_parts}
            if entity.kind in (None, "person") and len(words) > 1:
                parts |= {(words[0],), (words[-1],)}
        before = []
        for part in parts:
            nodes = self._earlier.setdefault(part, {})
            before.append((part, node, nodes.get(node)))
            nodes[node] = max(p, nodes.get(node, 0.0))
        return Memory(set(), before)

    def forget(self, memory: Memory) -> None:
        """Take back the name that was remembered last."""
        self.view.unknown -= memory.unknown
        for part, node, p in memory.before:
            if p is None:
                del self._earlier[part][node]
            else:
                self._earlier[part][node] = p

    def features(self, start: int, end: int, nodes: Sequence[int], others: Sequence[Mention]) -> tuple[Floats, Floats]:
        """Features of each candidate (N × F) and of NIL (G)."""
        linker, words, view = self._linker, self._words, self.view
        name = hash_name(words[start:end])
        around = [*words[max(start - CONTEXT, 0) : start], *words[end : end + CONTEXT]]
        context = {word.casefold() for word in around if is_content(word)}
        linked = self._own.get(name)
        around_M = _nodes(others)
        near_M = _nodes([other for other in others if other[0] - end < NEAR and start - other[1] < NEAR])
        nouns = stated_nouns(words, start, end)
        after = _sentence(words, end, end + AFTER, 1)
        named = linker._relations.within(_sentence(words, start - BEFORE, start, -1)) | linker._relations.within(after)
        asked = linker._relations.within(after[:DIRECTLY])
        asked_kinds = {kind for each in asked if (kind := linker._relations.kind(each))}
        titled = view.titled(start)
        earlier = self._earlier.get(tuple(words[start:end]), {})
        single = words[start] if end == start + 1 else ""
        rows = []
        for node in nodes:
            candidate = linker._candidates.of(node)
            is_label = candidate.label == name
            near = np.log1p(_common(near_M, candidate.tails))
            rows.append(
                (
                    candidate.facts,
                    is_label,
                    candidate.introductions,
                    linker._anchors.log_share(name, node),
                    linked == node,
                    np.log1p(len(candidate.relation_words & context)),
                    np.log1p(len(candidate.neighbour_words & context)),
                    np.log1p(_common(around_M, candidate.tails)),
                    near,
                    near,
                    *agreement(nouns, candidate.traits, candidate.kind),
                    not named.isdisjoint(candidate.relations),
                    _fits(candidate, asked, asked_kinds),
                    titled and (1.0 if candidate.traits.human else -1.0),
                    not is_label and single in candidate.name_parts,
                    earlier.get(node, 0.0),
                    candidate.improper,
                )
            )
        feature_NF = np.array(rows, np.float64).reshape(len(nodes), len(FEATURES))
        for column in RELATIVE:
            feature_NF[:, column] -= feature_NF[:, column].max(initial=0.0)
        return feature_NF, np.array(view.nil_features(start, end), np.float64)


def _fits(candidate: CandidateFacts, asked: set[int], kinds: set[Kind]) -> float:
    """1 if the candidate has one of these relations, −1 if all entities that have them are of other kinds."""
    if not candidate.relations.isdisjoint(asked):
        return 1.0
    return -1.0 if kinds and candidate.kind is not None and candidate.kind not in kinds else 0.0


def _nodes(mentions: Iterable[Mention]) -> npt.NDArray[np.int32]:
    """Candidates of the mentions, each once."""
    nodes = set[int]().union(*(each[2] for each in mentions))
    return np.fromiter(nodes, np.int32, len(nodes))


def _sentence(words: Sequence[str], start: int, end: int, step: int) -> Sequence[str]:
    """The words [start, end) that are in the sentence of the name before (step 1) or after (step −1) them."""
    part = list(words[max(start, 0) : end])
    marks = [place for place, word in enumerate(part) if word in (START, END)]
    if not marks:
        return part
    return part[: marks[0]] if step > 0 else part[marks[-1] + 1 :]


def _common(near_M: npt.NDArray[np.int32], tails: npt.NDArray[np.int32]) -> int:
    """Number of elements of `near_M` in the sorted array `tails`."""
    if not len(tails) or not len(near_M):
        return 0
    return int((tails[np.minimum(np.searchsorted(tails, near_M), len(tails) - 1)] == near_M).sum())


def raised_word(word: str) -> str:
    """A word as names have it: content words with a capital letter, numbers of monarchs in capitals."""
    if word in NUMERALS:
        return word.upper()
    return word.capitalize() if is_content(word) else word


def is_small_name(words: Sequence[str]) -> bool:
    """True for several content words, all in small letters."""
    return words[0].islower() and sum(map(is_content, words)) > 1 and all(word == word.lower() for word in words)


def is_name(words: Sequence[str]) -> bool:
    """True if the first word has a capital letter or digit ("iPod" too) and any word is a content word."""
    return any(char.isupper() or char.isdigit() for char in words[0]) and any(is_content(word) for word in words)
