"""Builds the chunks that models are trained on, from pieces of encoded documents."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kglm.kg.arrays import run_starts
from kglm.model.aliases import AliasTable
from kglm.model.arrays import Ints
from kglm.model.buckets import frequency_buckets
from kglm.model.chunk import (
    FIRST_WORD,
    LATER_WORD,
    Chunk,
    HiddenFacts,
    MentionStarts,
    MentionWords,
    OwnIntroductions,
    Paths,
    RelationCues,
    ScoredTails,
    Tracking,
    TypeTargets,
    Words,
)
from kglm.model.cues import named_years, window
from kglm.model.graph_features import GraphFeatures
from kglm.model.parents import places
from kglm.model.tail_facts import tail_facts
from kglm.model.tails import is_scored
from kglm.runs.run import Run
from kglm.text.vocabulary import Vocabulary
from kglm.train.candidates import candidate_parents
from kglm.train.encoding import EncodedDocument, NamedRelations, Start

KEPT_NODES = 1 << 17
"""Nodes whose distinct relations are kept."""


class Piece(NamedTuple):
    """Positions [start, end) of a document; an empty piece fills a row that has nothing to do."""

    document: EncodedDocument | None
    start: int = 0
    end: int = 0


def whole(document: EncodedDocument) -> Piece:
    """All positions of a document."""
    return Piece(document, 0, len(document))


class OwnCounts(NamedTuple):
    """Entities with their frequency buckets if one document is not counted."""

    node_N: Ints
    bucket_N: Ints

    @classmethod
    def none(cls) -> OwnCounts:
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))


class ChunkBuilder:
    """Puts pieces of documents together, for one graph."""

    def __init__(
        self,
        features: GraphFeatures,
        *,
        parent_window: int | None = None,
        introductions: Mapping[int, int] | None = None,
        missing: bool = False,
    ) -> None:
        """`introductions`: number of training documents that introduce a node; nodes that are missing have 0.

        `missing` says whether the model has missing facts.
        """
        self._graph = features.graph
        self._aliases = features.aliases
        self._cues = features.cues
        self._tails = features.tails
        self.introductions = introductions or {}
        self.parent_window = parent_window
        self.missing = missing
        self._distinct_relations = lru_cache(KEPT_NODES)(self._find_relations)
        self._own: dict[int, tuple[EncodedDocument, OwnCounts]] = {}
        """Own introductions of training documents, by the identity of the document."""

    @classmethod
    def of(cls, run: Run) -> ChunkBuilder:
        """The builder for a run's model."""
        history = run.history
        return cls(
            run.features,
            parent_window=history.parent_window,
            introductions=run.introductions,
            missing=history.missing,
        )

    def build(self, pieces: Sequence[Piece], *, ahead: int = 0, training: bool = False) -> Chunk:
        """The chunk of these pieces, one a row, as wide as the longest.

        With `ahead` = 1 the inputs include the word at the position itself: for a proposal, which labels words that it
        has read. A chunk for training has no candidate parents of plain words.
        """
        grid = _Grid(len(pieces), max((piece.end - piece.start for piece in pieces), default=1) or 1)
        mentions, starts = _MentionWords(self._aliases), _Starts(self)
        for row, (document, start, end) in enumerate(pieces):
            if document is None:
                continue
            grid.fill(row, document, start, end, ahead)
            for target in np.flatnonzero(document.node_T[start:end] >= 0).tolist():
                mentions.add(row * grid.width + target, document, start + target)
            first, last = (bisect_left(document.starts, bound, key=lambda s: s.target) for bound in (start, end))
            for mention_start in document.starts[first:last]:
                starts.add(row * grid.width + mention_start.target - start, document, mention_start)
        words, types, tracking = grid.result(pieces)
        cues = _relation_cues(pieces, grid.width)
        introductions, found, hidden = starts.introductions(), starts.result(), starts.hidden()
        candidates = candidate_parents(pieces, grid.width, self) if self.missing and not training else None
        return Chunk(words, types, tracking, mentions.result(), *found, cues, introductions, hidden, candidates)

    def relations_of(self, node: int) -> Ints:
        """The distinct relations of a node."""
        return self._distinct_relations(node)

    def _find_relations(self, node: int) -> Ints:
        relation = self._graph.edges(node).relation  # in order
        return relation[run_starts(relation)].astype(np.int64)

    def tails_of(self, node: int, relation: int) -> Ints:
        """The tails of a node's relation."""
        return self._graph.tails(node, relation).astype(np.int64)

    def hints(self, document: EncodedDocument, target: int, nodes: Sequence[int]) -> list[tuple[bool, bool]]:
        """See `Cues.hints`."""
        if self._cues is None:
            return [(False, False)] * len(nodes)
        return self._cues.hints(document.surface, target, nodes)

    def tail_facts(self, document: EncodedDocument, target: int, node: int, relation: int) -> npt.NDArray[np.float64]:
        """See `tail_facts`; no columns if the model reads none."""
        if self._tails is None:
            return np.zeros((0, 0))
        return tail_facts(self._tails.of(node, relation), named_years(window(document.surface, target)))

    def without_own(self, document: EncodedDocument) -> OwnCounts:
        """The entities that fall into a lower bucket if the document is not counted; found once for each document."""
        if not document.counted:
            return OwnCounts.none()
        if id(document) not in self._own:
            node_N = np.array(document.introduced, np.int64)
            count_N = np.array([self.introductions.get(node, 0) for node in document.introduced], np.int64)
            fewer_N = frequency_buckets(np.maximum(count_N - 1, 0))
            lower_N = fewer_N != frequency_buckets(count_N)
            self._own[id(document)] = document, OwnCounts(node_N[lower_N], fewer_N[lower_N])
        return self._own[id(document)][1]


class _Grid:
    """The rectangular part of a chunk."""

    def __init__(self, rows: int, width: int) -> None:
        self.width = width
        fills = {"input": Vocabulary.padding, "target": Vocabulary.padding, "type": 0, "state": 0, "relation": 0}
        fills |= {"slot": -1, "current": -1}
        self._ints = {name: np.full((rows, width), fill, np.int64) for name, fill in fills.items()}
        flags = ("real", "related", "continue", "after_mention")
        self._bools = {name: np.zeros((rows, width), np.bool_) for name in flags}
        self._named = np.zeros((rows, width, 3))

    def fill(self, row: int, document: EncodedDocument, start: int, end: int, ahead: int) -> None:
        """Fill a row with positions [start, end) of a document."""
        here = slice(0, end - start)
        ints, bools = self._ints, self._bools
        ints["input"][row, here] = document.words_N[start + ahead : end + ahead]
        ints["target"][row, here] = document.words_N[start + 1 : end + 1]
        ints["type"][row, here] = document.type_T[start:end]
        ints["state"][row, here] = document.state_T[start:end]
        ints["relation"][row, here] = document.named.relation_F[start:end]
        ints["slot"][row, here] = document.slot_T[start:end]
        ints["current"][row, here] = document.current(start, end)
        self._named[row, here] = document.named.value_F3[start:end]
        bools["real"][row, here] = True
        bools["related"][row, here] = document.related_T[start:end]
        bools["continue"][row, here] = document.continue_T[start:end]
        bools["after_mention"][row, here] = document.after_mention(start, end)

    def result(self, pieces: Sequence[Piece]) -> tuple[Words, TypeTargets, Tracking]:
        ints = {name: torch.from_numpy(values) for name, values in self._ints.items()}
        bools = {name: torch.from_numpy(values) for name, values in self._bools.items()}
        reset_B = torch.tensor([piece.start == 0 for piece in pieces])
        entity_count_B = torch.tensor([_entities_before(piece) for piece in pieces])
        named = torch.from_numpy(self._named)
        return (
            Words(ints["input"], ints["target"], bools["real"], reset_B),
            TypeTargets(ints["type"], ints["state"], named, ints["relation"], bools["related"], bools["continue"]),
            Tracking(entity_count_B, ints["slot"], ints["current"], bools["after_mention"]),
        )


class _MentionWords:
    """Words inside mentions; each distinct entity is given once."""

    def __init__(self, aliases: AliasTable) -> None:
        self._aliases = aliases
        self._position: list[int] = []
        self._entity: list[int] = []
        self._match: list[tuple[int, int]] = []
        self._order: list[tuple[int, int, int]] = []
        self._nodes: dict[int, int] = {}

    def add(self, position: int, document: EncodedDocument, target: int) -> None:
        node = int(document.node_T[target])
        self._match += [(len(self._position), slot) for slot in document.slots_T[target]]
        first, slots = document.order_T[target]
        self._order += [(len(self._position), slot, FIRST_WORD if first else LATER_WORD) for slot in slots]
        self._position.append(position)
        self._entity.append(self._nodes.setdefault(node, len(self._nodes)))

    def result(self) -> MentionWords:
        alias_UAL = self._aliases.stack(list(self._nodes))
        match_IJ = torch.zeros(len(self._position), alias_UAL.shape[1] * alias_UAL.shape[2], dtype=torch.bool)
        if self._match:
            match_IJ[tuple(torch.tensor(self._match).T)] = True
        order_IJ = torch.zeros(match_IJ.shape, dtype=torch.int64)
        if self._order:
            word, slot, kind = torch.tensor(self._order).T
            order_IJ[word, slot] = kind
        return MentionWords(
            _longs(self._position),
            _longs(self._entity),
            match_IJ,
            order_IJ,
            _longs(list(self._nodes)),
            torch.from_numpy(alias_UAL),
        )


class _Starts:
    """Mention starts, their candidate parents, and the facts that reach their entities."""

    def __init__(self, builder: ChunkBuilder) -> None:
        self._builder = builder
        self._rows: list[tuple[int, EncodedDocument, Start]] = []
        self._paths: list[tuple[int, int, float, bool]] = []
        self._groups: dict[tuple[int, int], int] = {}
        self._members: list[Ints] = []
        self._tails: list[tuple[int, Ints]] = []
        self._hints: list[tuple[bool, bool]] = []
        self._own: list[npt.NDArray[np.bool_]] = []
        self._facts: list[npt.NDArray[np.float64]] = []

    def add(self, position: int, document: EncodedDocument, start: Start) -> None:
        self._rows.append((position, document, start))

    def introductions(self) -> OwnIntroductions:
        """Own introductions of the documents of the starts."""
        own = [self._builder.without_own(document) for _, document, _ in self._rows]
        return OwnIntroductions(
            torch.repeat_interleave(_longs([len(counts.node_N) for counts in own])),
            _end_to_end([counts.node_N for counts in own]),
            _end_to_end([counts.bucket_N for counts in own]),
        )

    def result(self) -> tuple[MentionStarts, Paths, ScoredTails]:
        count = len(self._rows)
        width = max((start.entity_count for _, _, start in self._rows), default=0)
        parent_MP = np.full((count, width), -1, np.int64)
        place_MP3 = np.zeros((count, width, 3), np.int64)
        past = _LastWords()
        for m, (_, document, start) in enumerate(self._rows):
            known, last_P = start.entity_count, past.before(document, start)
            parent_MP[m, :known] = document.entities[:known]
            if self._builder.parent_window is not None:
                parent_MP[m, :known][start.target - last_P > self._builder.parent_window] = -1
            place_MP3[m, :known] = places(start.target, start.boundary, last_P, np.arange(known) == 0)
            self._add_paths(m, document, start)
        starts = MentionStarts(
            _longs([position for position, _, _ in self._rows]),
            _longs([int(start.type) for _, _, start in self._rows]),
            _longs([start.node for _, _, start in self._rows]),
            _longs([start.length for _, _, start in self._rows]),
            _longs([start.entity_count for _, _, start in self._rows]),
            torch.from_numpy(parent_MP),
            torch.from_numpy(place_MP3),
        )
        return starts, *self._path_tensors()

    def _add_paths(self, m: int, document: EncodedDocument, start: Start) -> None:
        for path in start.paths:
            parent = document.entities[path.parent]
            group = self._groups.setdefault((m, path.parent), len(self._groups))
            if group == len(self._members):
                self._members.append(self._builder.relations_of(parent))
            if is_scored(path.tails):
                nodes = self._builder.tails_of(parent, path.relation)
                self._tails.append((len(self._paths), nodes))
                self._own.append(nodes == start.node)
                self._hints += self._builder.hints(document, start.target, nodes.tolist())
                self._facts.append(self._builder.tail_facts(document, start.target, parent, path.relation))
            self._paths.append((group, path.relation, float(np.log(path.tails)), path.listed))

    def hidden(self) -> HiddenFacts:
        """The facts that are hidden at these starts."""
        groups: list[tuple[int, int]] = []
        facts: list[tuple[int, int]] = []
        members: list[Ints] = []
        for m, (_, document, start) in enumerate(self._rows):
            if not start.hides or not self._builder.missing:
                continue
            for parent in sorted({path.parent for path in start.paths if path.listed}):
                paths = [path for path in start.paths if path.parent == parent]
                facts += [(len(groups), path.relation) for path in paths if path.listed]
                groups.append((m, parent))
                own = self._builder.relations_of(document.entities[parent])
                members.append(own[~np.isin(own, [path.relation for path in paths])])
        group_W, relation_W = _longs(facts).view(-1, 2).unbind(1)
        start_G, parent_G = _longs(groups).view(-1, 2).unbind(1)
        member_group_Y = torch.repeat_interleave(_longs([len(own) for own in members]))
        return HiddenFacts(group_W, relation_W, start_G, parent_G, member_group_Y, _end_to_end(members))

    def _path_tensors(self) -> tuple[Paths, ScoredTails]:
        group, relation, log_tails, listed = zip(*self._paths, strict=True) if self._paths else ((), (), (), ())
        paths = Paths(
            _longs(group),
            _longs(relation),
            torch.tensor(log_tails, dtype=torch.float64),
            torch.tensor(listed, dtype=torch.bool),
            _longs([m for m, _ in self._groups]),
            _longs([parent for _, parent in self._groups]),
            torch.repeat_interleave(_longs([len(relations) for relations in self._members])),
            _end_to_end(self._members),
        )
        tails = ScoredTails(
            _longs([path for path, nodes in self._tails for _ in range(len(nodes))]),
            _end_to_end([nodes for _, nodes in self._tails]),
            torch.from_numpy(np.concatenate([np.zeros(0, np.bool_), *self._own])),
            torch.tensor(self._hints, dtype=torch.bool).view(-1, 2),
            torch.from_numpy(np.concatenate(self._facts) if self._facts else np.zeros((0, 0))),
        )
        return paths, tails


class _LastWords:
    """Last positions of the entities of a document; starts must be given in order, document by document."""

    def __init__(self) -> None:
        self._document: EncodedDocument | None = None
        self._target = self._read = 0

    def before(self, document: EncodedDocument, start: Start) -> Ints:
        """For each entity mentioned before the start, its last position inside a mention."""
        if document is not self._document or start.target < self._target:
            self._document, self._read = document, 0
            self._last = np.full(len(document.entities), -1, np.int64)
        words_I3 = document.mention_words_I3
        until = int(np.searchsorted(words_I3[:, 0], start.target))
        read_I3 = words_I3[self._read : until]
        self._last[read_I3[:, 1]] = read_I3[:, 0]  # of words of one entity, the last counts
        self._read, self._target = until, start.target
        return self._last[: start.entity_count]


def _relation_cues(pieces: Sequence[Piece], width: int) -> RelationCues:
    """Relations that the words before name; `width` is the number of positions in a row."""
    rows = [NamedRelations.none()]
    for row, (document, start, end) in enumerate(pieces):
        if document is not None:
            position_Y, relation_Y, value_Y2 = document.cues.between(start, end)
            rows.append(NamedRelations(position_Y + np.int32(row * width - start), relation_Y, value_Y2))
    position_Y, relation_Y, value_Y2 = (np.concatenate(column) for column in zip(*rows, strict=True))
    return RelationCues(_longs(position_Y), _longs(relation_Y), torch.from_numpy(value_Y2))


def _entities_before(piece: Piece) -> int:
    """Number of entities that are mentioned before the first input of a piece."""
    if piece.document is None:
        return 0
    return piece.document.entities_before(max(piece.start - 1, 0))


def _longs(values: npt.ArrayLike) -> Tensor:
    return torch.from_numpy(np.asarray(values, np.int64))


def _end_to_end(lists: Sequence[Ints]) -> Tensor:
    return torch.from_numpy(np.concatenate([np.zeros(0, np.int64), *lists]))
