"""A batch of positions from up to B documents, with everything that a model needs to score them.

Documents are cut into contiguous chunks. What the annotation needs of earlier positions (the entities mentioned, and
where) is in the chunk, so a chunk can start anywhere in a document; only the state of the encoder is carried over.
`train.chunks` builds chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from kglm.model.cues import NamedRelation
from kglm.model.encoders.encoder import Share
from kglm.model.types import Type

FIRST_WORD, LATER_WORD = 1, 2
"""Kinds of an alias slot that comes next: at the first word of a mention, and at a later one. 0: it does not."""
DataT = TypeVar("DataT")


@dataclass(frozen=True, slots=True)
class Words:
    """What is read and predicted."""

    input_BT: Tensor
    target_BT: Tensor
    """Vocabulary indices of the words that are predicted."""
    real_BT: Tensor
    """False for padding."""
    reset_B: Tensor
    """True if the row starts a document."""


@dataclass(frozen=True, slots=True)
class TypeTargets:
    """Annotated type of each position, with the features and the legality of p(type)."""

    type_BT: Tensor
    state_BT: Tensor
    """See `mention_state`."""
    named_BT3: Tensor
    """See `cues.NamedRelation`."""
    named_relation_BT: Tensor
    related_BT: Tensor
    """True where `related` is legal."""
    continue_BT: Tensor
    """True where `continue` is legal."""

    @property
    def named(self) -> NamedRelation:
        """The relation that is named best, at flat positions."""
        return NamedRelation(self.named_BT3.flatten(0, 1), self.named_relation_BT.flatten())


@dataclass(frozen=True, slots=True)
class Tracking:
    """Entities of a document by slot, in order of first mention; -1 is none."""

    entity_count_B: Tensor
    """Number of entities mentioned before the first input of the row."""
    slot_BT: Tensor
    """The entity that the position is a word of."""
    current_BT: Tensor
    """The entity mentioned last before the position."""
    after_mention_BT: Tensor
    """True if the previous word is inside a mention."""


@dataclass(frozen=True, slots=True)
class MentionWords:
    """Words inside mentions; the aliases of each distinct entity are given once."""

    position_I: Tensor
    entity_I: Tensor
    """Row of the entity in `node_U`."""
    match_IJ: Tensor
    """True if the alias slot holds the word."""
    order_IJ: Tensor
    """FIRST_WORD or LATER_WORD if the alias slot comes next after the words of the mention so far, else 0."""
    node_U: Tensor
    alias_UAL: Tensor


@dataclass(frozen=True, slots=True)
class MentionStarts:
    """First words of mentions."""

    position_M: Tensor
    type_M: Tensor
    node_M: Tensor
    length_M: Tensor
    """Words of the mention, including those after the chunk."""
    entity_count_M: Tensor
    """Number of entities mentioned before the start."""
    parent_MP: Tensor
    """Nodes of the candidate parents; -1 is padding."""
    place_MP3: Tensor
    """Their places in the text: see `parents`."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Facts that reach the entities of mention starts, and the relations that each parent offers."""

    group_W: Tensor
    relation_W: Tensor
    log_tails_W: Tensor
    """log n_{p,r}."""
    listed_W: Tensor
    """True if the annotation lists the fact."""
    group_start_G: Tensor
    group_parent_G: Tensor
    """Column of the parent in `MentionStarts.parent_MP`."""
    member_group_Y: Tensor
    member_relation_Y: Tensor
    """The distinct relations of each group's parent."""


@dataclass(frozen=True, slots=True)
class ScoredTails:
    """All tails of the relations whose tails are scored: see `tails`."""

    path_Y: Tensor
    node_Y: Tensor
    own_Y: Tensor
    """True for the entity of the mention: one tail of each path."""
    hint_Y2: Tensor
    """See `Cues.hints`."""
    fact_YQ: Tensor
    """See `tail_facts`; no columns if the model reads none."""


@dataclass(frozen=True, slots=True)
class HiddenFacts:
    """Facts that training also asks for as if the graph lacked them: see `train.hidden`.

    A group is one parent of one mention start, with the relations that it has without the hidden facts.
    """

    group_W: Tensor
    relation_W: Tensor
    """The relation of each hidden fact."""
    group_start_G: Tensor
    group_parent_G: Tensor
    """Column of the parent in `MentionStarts.parent_MP`."""
    member_group_Y: Tensor
    member_relation_Y: Tensor
    """The distinct relations of each group's parent, without the hidden ones."""


@dataclass(frozen=True, slots=True)
class RelationCues:
    """Relations that the words before name: see `cues`. At mention starts or, for missing facts, at all positions."""

    position_Y: Tensor
    relation_Y: Tensor
    value_Y2: Tensor
    """m and a."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidate parents at all positions, and the relations that they have: what missing facts are scored with."""

    node_BP: Tensor
    """Entities of each row; -1 is padding."""
    place_BTP3: Tensor
    """Their places in the text (see `parents`), as bytes; the first is -1 where an entity is no candidate."""
    member_parent_Y: Tensor
    """Flat index of the parent in `node_BP`."""
    member_relation_Y: Tensor
    """The distinct relations of each parent."""


@dataclass(frozen=True, slots=True)
class OwnIntroductions:
    """Entities that a training document itself introduces, and that have another frequency without it."""

    start_Y: Tensor
    node_Y: Tensor
    frequency_Y: Tensor
    """Frequency bucket if the document is not counted."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Inputs and annotation of B × T positions."""

    words: Words
    types: TypeTargets
    tracking: Tracking
    mention_words: MentionWords
    starts: MentionStarts
    paths: Paths
    tails: ScoredTails
    cues: RelationCues
    own: OwnIntroductions
    hidden: HiddenFacts
    candidates: Candidates | None = None
    """None in training, which does not use them, and if the model has no missing facts."""
    share: Share | None = None
    """Which rows of a larger batch these are, if they are not all."""

    @property
    def targets(self) -> int:
        """Number of positions that are not padding."""
        return int(self.words.real_BT.sum())

    @property
    def mention_BT(self) -> Tensor:
        """True for words inside mentions."""
        return self.types.type_BT != int(Type.NONE)

    def to(self, device: torch.device) -> Chunk:
        """The chunk on another device."""
        return _moved(self, device)


def _moved(data: DataT, device: torch.device) -> DataT:
    """The dataclass with all its tensors, at any depth, on a device."""
    moved: dict[str, Any] = {}
    for field in fields(data):  # type: ignore[arg-type]
        value = getattr(data, field.name)
        if isinstance(value, Tensor):
            moved[field.name] = value.to(device)
        elif is_dataclass(value):
            moved[field.name] = _moved(value, device)
    return replace(data, **moved)  # type: ignore[type-var]
