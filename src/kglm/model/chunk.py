"""A rectangle of targets, from up to B documents, with everything a model needs to score it.

Legend: B rows, T targets a row, F = B·T flat positions (row · T + t), S words inside mentions, U distinct entities,
A aliases of L words, J = A·L alias slots, M mention starts, K candidate parents (padded), W ways (paths), G groups: the
distinct (start, parent) pairs of the ways, Q members: the distinct relations of each group's parent, end to end; Y
tails that a way's entity competes with, end to end; O introductions of entities by the document itself.

Documents are cut into contiguous chunks; what the annotation needs of the past (which entities were mentioned, when) is
in the encoded document, so a chunk can start anywhere. Only the recurrent state has to be carried.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.kg.arrays import run_starts
from kglm.kg.graph import KnowledgeGraph
from kglm.model.aliases import AliasTable
from kglm.model.annotation import EncodedDocument, Ints, Start, Type, frequency_bucket
from kglm.model.cues import Cues, Named, window
from kglm.model.encoders.awd_lstm import Share
from kglm.model.parents import places
from kglm.text.vocabulary import PADDING_INDEX

MAX_SCORED_TAILS = 64
"""Among more tails of one relation each is as likely as the other."""
FIRST_WORD, LATER_WORD = 1, 2
"""Of a slot that comes next in its alias: at the first word of a mention, and at a further one."""


class Piece(NamedTuple):
    """Targets [start, end) of a document; an empty piece fills a row that has nothing to do."""

    document: EncodedDocument | None
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """Inputs and annotation of B × T targets."""

    words_BT: Tensor
    """Inputs w_t."""
    targets_BT: Tensor
    """Targets x_t = w_{t+1}, as vocabulary indices."""
    real_BT: Tensor
    """False for padding."""
    reset_B: Tensor
    """Whether the row starts a document."""
    known_B: Tensor
    """Entities of the document whose mentions lie before the chunk, but for its last word, which is the first input."""
    type_BT: Tensor
    feature_BT: Tensor
    named_BT3: Tensor
    """How far the words before name a relation,"""
    named_relation_BT: Tensor
    """and which one (not its index): see `cues`."""
    related_BT: Tensor
    continue_BT: Tensor
    column_BT: Tensor
    """Place of the target's entity among those of its document, in order of first mention, or -1;"""
    current_BT: Tensor
    """that of the last entity that was mentioned before, or -1;"""
    spoke_BT: Tensor
    """whether the word before is a word of it."""

    word_position_S: Tensor
    word_entity_S: Tensor
    """Places in `node_U`."""
    match_SJ: Tensor
    """Whether slot j of the entity says the target."""
    order_SJ: Tensor
    """Whether slot j comes next in its alias: FIRST_WORD or LATER_WORD as the word is, 0 if it does not."""

    node_U: Tensor
    alias_UAL: Tensor

    start_position_M: Tensor
    start_type_M: Tensor
    start_node_M: Tensor
    start_length_M: Tensor
    """Words of the mention, also those beyond the chunk."""
    start_known_M: Tensor
    """Entities of the document that were mentioned before."""
    parent_MK: Tensor
    """Nodes of the candidate parents; -1 is padding."""
    place_MK3: Tensor
    """Where they stand in the text: see `parents`."""

    way_group_W: Tensor
    way_relation_W: Tensor
    way_log_tails_W: Tensor
    way_listed_W: Tensor
    tail_way_Y: Tensor
    """For ways by a relation with several tails, but not too many: all of these,"""
    tail_node_Y: Tensor
    """one after the other."""
    hint_Y2: Tensor
    """Whether the words before the start name a kind of the tail; whether it is a date with a day;"""
    hint_M2: Tensor
    """the same of the start's own entity."""
    cue_start_V: Tensor
    """For starts whose words before name relations, all of these: the start,"""
    cue_relation_V: Tensor
    """the relation (not its index),"""
    cue_value_V2: Tensor
    """and how far it is named, by all words and by the last."""
    group_start_G: Tensor
    group_parent_G: Tensor
    """Column K of the group's parent."""
    member_group_Q: Tensor
    member_relation_Q: Tensor

    own_start_O: Tensor
    """For starts in training documents, the entities whose frequency falls into another bucket"""
    own_node_O: Tensor
    own_frequency_O: Tensor
    """when the document itself is not counted: this one."""

    share: Share | None = None
    """Which rows of a larger batch these are, if they are not all."""

    @property
    def targets(self) -> int:
        return int(self.real_BT.sum())

    @property
    def named(self) -> Named:
        """How far the words before name a relation, at flat positions."""
        return Named(self.named_BT3.flatten(0, 1), self.named_relation_BT.flatten())

    @property
    def mention_BT(self) -> Tensor:
        """Whether the target is a word of a mention."""
        return self.type_BT != int(Type.NONE)

    def to(self, device: torch.device) -> Chunk:
        """The same chunk on another device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {name: value.to(device) for name, value in values.items() if isinstance(value, Tensor)}
        return replace(self, **moved)


class ChunkBuilder:
    """Puts pieces of documents together, for one graph."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        aliases: AliasTable,
        *,
        parent_window: int | None = None,
        introductions: Mapping[int, int] | None = None,
        cues: Cues | None = None,
    ) -> None:
        """`introductions`: in how many training documents each node is introduced; those of no node are 0."""
        self.cues = cues
        self._graph = graph
        self.introductions = introductions or {}
        self._aliases = aliases
        self.parent_window = parent_window

    def build(self, pieces: Sequence[Piece], *, ahead: int = 0) -> Chunk:
        """The chunk of these pieces, one a row, as wide as the longest.

        `ahead` = 1 gives inputs that include the target itself: for a model that labels words instead of
        generating them.
        """
        rows, width = len(pieces), max((piece.end - piece.start for piece in pieces), default=1) or 1
        fills = {"words": PADDING_INDEX, "targets": PADDING_INDEX, "type": 0, "feature": 0, "column": -1, "current": -1}
        fills["relation"] = 0
        grid = {name: np.full((rows, width), fill, np.int64) for name, fill in fills.items()}
        real, related, continues, spoke = (np.zeros((rows, width), np.bool_) for _ in range(4))
        named = np.zeros((rows, width, 3))
        mentions, starts = _Mentions(self._aliases), _Starts(self)
        for row, (document, start, end) in enumerate(pieces):
            if document is None:
                continue
            here = slice(0, end - start)
            grid["words"][row, here] = document.words_N[start + ahead : end + ahead]
            grid["targets"][row, here] = document.words_N[start + 1 : end + 1]
            grid["type"][row, here] = document.type_T[start:end]
            grid["feature"][row, here] = document.feature_T[start:end]
            grid["column"][row, here] = document.column_T[start:end]
            grid["current"][row, here] = document.current_T[start:end]
            spoke[row, here] = document.spoke_T[start:end]
            named[row, here] = document.named.value_F3[start:end]
            grid["relation"][row, here] = document.named.relation_F[start:end]
            real[row, here] = True
            related[row, here] = document.related_T[start:end]
            continues[row, here] = document.continue_T[start:end]
            for target in np.flatnonzero(document.node_T[start:end] >= 0).tolist():
                mentions.add(row * width + target, document, start + target)
            first, last = (bisect_left(document.starts, bound, key=lambda s: s.target) for bound in (start, end))
            for mention_start in document.starts[first:last]:
                starts.add(row * width + mention_start.target - start, document, mention_start)
        return Chunk(
            words_BT=torch.from_numpy(grid["words"]),
            targets_BT=torch.from_numpy(grid["targets"]),
            real_BT=torch.from_numpy(real),
            reset_B=torch.tensor([piece.start == 0 for piece in pieces]),
            known_B=torch.tensor([_known(piece) for piece in pieces]),
            type_BT=torch.from_numpy(grid["type"]),
            feature_BT=torch.from_numpy(grid["feature"]),
            named_BT3=torch.from_numpy(named),
            named_relation_BT=torch.from_numpy(grid["relation"]),
            related_BT=torch.from_numpy(related),
            continue_BT=torch.from_numpy(continues),
            column_BT=torch.from_numpy(grid["column"]),
            current_BT=torch.from_numpy(grid["current"]),
            spoke_BT=torch.from_numpy(spoke),
            **mentions.tensors(),
            **starts.tensors(),
        )

    def relations_of(self, node: int) -> Ints:
        """The distinct relations of a node."""
        relation = self._graph.edges(node).relation  # in order
        return relation[run_starts(relation)].astype(np.int64)

    def tails_of(self, node: int, relation: int) -> Ints:
        """The tails of a node's relation."""
        return self._graph.tails(node, relation).astype(np.int64)

    def hints(self, document: EncodedDocument, target: int, nodes: Sequence[int]) -> list[tuple[bool, bool]]:
        """Whether the words before a target name a kind of each node, and whether it is a date with a day."""
        if self.cues is None:
            return [(False, False)] * len(nodes)
        before = window(document.surface, target)
        kinds = [not self.cues.kind_words(node).isdisjoint(before) for node in nodes]
        return list(zip(kinds, map(self.cues.is_day, nodes), strict=True))

    def without_own(self, document: EncodedDocument) -> list[tuple[int, int]]:
        """(node, frequency) of what a training document introduces and would be rarer without it, by buckets."""
        if not document.counted:
            return []
        counts = [(node, self.introductions.get(node, 0)) for node in document.introduced]
        fewer = [(node, frequency_bucket(max(count - 1, 0)), frequency_bucket(count)) for node, count in counts]
        return [(node, without) for node, without, known in fewer if without != known]


class _Mentions:
    """Words inside mentions; each distinct entity is encoded once."""

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

    def tensors(self) -> dict[str, Any]:
        match_SJ = torch.zeros(len(self._position), self._aliases.slots, dtype=torch.bool)
        if self._match:
            match_SJ[tuple(torch.tensor(self._match).T)] = True
        order_SJ = torch.zeros(len(self._position), self._aliases.slots, dtype=torch.int64)
        if self._order:
            word, slot, kind = torch.tensor(self._order).T
            order_SJ[word, slot] = kind
        tables = [self._aliases[node].words_AL for node in self._nodes]
        alias_UAL = np.stack(tables) if tables else np.zeros((0, *self._aliases.shape), np.int64)
        return {
            "word_position_S": _longs(self._position),
            "word_entity_S": _longs(self._entity),
            "match_SJ": match_SJ,
            "order_SJ": order_SJ,
            "node_U": _longs(list(self._nodes)),
            "alias_UAL": torch.from_numpy(alias_UAL),
        }


class _Starts:
    """Mention starts, their candidate parents, and the facts that reach their entities."""

    def __init__(self, builder: ChunkBuilder) -> None:
        self._builder = builder
        self._rows: list[tuple[int, EncodedDocument, Start]] = []

    def add(self, position: int, document: EncodedDocument, start: Start) -> None:
        self._rows.append((position, document, start))

    def tensors(self) -> dict[str, Any]:
        count = len(self._rows)
        width = max((start.known for _, _, start in self._rows), default=0)
        parent_MK = np.full((count, width), -1, np.int64)
        place_MK3 = np.zeros((count, width, 3), np.int64)
        ways: list[tuple[int, int, float, bool]] = []
        groups: dict[tuple[int, int], int] = {}
        members: list[Ints] = []
        own: list[tuple[int, int, int]] = []
        tails: list[tuple[int, Ints]] = []
        hints: list[tuple[bool, bool]] = []
        hint_M2, cues = np.zeros((count, 2), np.bool_), list[tuple[int, int, float, float]]()
        past = _Past()
        own_of: dict[int, list[tuple[int, int]]] = {}
        for m, (_, document, start) in enumerate(self._rows):
            known, last_K = start.known, past.last_words(document, start)
            parent_MK[m, :known] = document.entities[:known]
            if self._builder.parent_window is not None:
                parent_MK[m, :known][start.target - last_K > self._builder.parent_window] = -1
            place_MK3[m, :known] = places(start.target, start.boundary, last_K, np.arange(known) == 0)
            for path in start.paths:
                group = groups.setdefault((m, path.parent), len(groups))
                if group == len(members):
                    members.append(self._builder.relations_of(document.entities[path.parent]))
                if 1 < path.tails <= MAX_SCORED_TAILS:
                    parent = document.entities[path.parent]
                    nodes = self._builder.tails_of(parent, path.relation)
                    tails.append((len(ways), nodes))
                    found = self._builder.hints(document, start.target, nodes.tolist())
                    hint_M2[m] = found[nodes.tolist().index(start.node)]
                    hints += found
                ways.append((group, path.relation, float(np.log(path.tails)), path.listed))
            cues += [(m, *cue) for cue in start.cues]
            if id(document) not in own_of:
                own_of[id(document)] = self._builder.without_own(document)
            own += [(m, node, frequency) for node, frequency in own_of[id(document)]]
        columns = list(zip(*ways, strict=True)) if ways else [(), (), (), ()]
        return {
            "start_position_M": _longs([position for position, _, _ in self._rows]),
            "start_type_M": _longs([int(start.type) for _, _, start in self._rows]),
            "start_node_M": _longs([start.node for _, _, start in self._rows]),
            "start_length_M": _longs([start.length for _, _, start in self._rows]),
            "start_known_M": _longs([start.known for _, _, start in self._rows]),
            "parent_MK": torch.from_numpy(parent_MK),
            "place_MK3": torch.from_numpy(place_MK3),
            "way_group_W": _longs(columns[0]),
            "way_relation_W": _longs(columns[1]),
            "way_log_tails_W": torch.tensor(columns[2], dtype=torch.float64),
            "way_listed_W": torch.tensor(columns[3], dtype=torch.bool),
            "tail_way_Y": _longs([way for way, nodes in tails for _ in range(len(nodes))]),
            "tail_node_Y": torch.from_numpy(np.concatenate([np.zeros(0, np.int64), *(nodes for _, nodes in tails)])),
            "hint_Y2": torch.tensor(hints, dtype=torch.bool).view(-1, 2),
            "hint_M2": torch.from_numpy(hint_M2),
            "cue_start_V": _longs([cue[0] for cue in cues]),
            "cue_relation_V": _longs([cue[1] for cue in cues]),
            "cue_value_V2": torch.tensor([cue[2:] for cue in cues], dtype=torch.float64).view(-1, 2),
            "group_start_G": _longs([m for m, _ in groups]),
            "group_parent_G": _longs([parent for _, parent in groups]),
            "member_group_Q": torch.repeat_interleave(_longs([len(relations) for relations in members])),
            "member_relation_Q": torch.from_numpy(np.concatenate([np.zeros(0, np.int64), *members])),
            "own_start_O": _longs([m for m, _, _ in own]),
            "own_node_O": _longs([node for _, node, _ in own]),
            "own_frequency_O": _longs([frequency for _, _, frequency in own]),
        }


class _Past:
    """When each entity of a document was last mentioned; starts must come in order, document by document."""

    def __init__(self) -> None:
        self._document: EncodedDocument | None = None
        self._target = self._read = 0

    def last_words(self, document: EncodedDocument, start: Start) -> Ints:
        """For each entity mentioned before the start, the last target that was a word of it."""
        if document is not self._document or start.target < self._target:
            self._document, self._read = document, 0
            self._last = np.full(len(document.entities), -1, np.int64)
        until = bisect_left(document.spoken, (start.target, -1), self._read)
        for target, column in document.spoken[self._read : until]:
            self._last[column] = target
        self._read, self._target = until, start.target
        return self._last[: start.known]


def _known(piece: Piece) -> int:
    if piece.document is None:
        return 0
    return 1 + int(piece.document.column_T[: max(piece.start - 1, 0)].max(initial=-1))


def _longs(values: Sequence[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


def whole(document: EncodedDocument) -> Piece:
    """All targets of a document."""
    return Piece(document, 0, len(document))
