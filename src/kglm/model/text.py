"""The words of a document, as estimation and completion read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.model.arrays import Ints
from kglm.model.base import ChunkModel
from kglm.model.graph_features import GraphFeatures
from kglm.model.options import Facts, MentionTypes
from kglm.text.document import END, START, Document
from kglm.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Text:
    """The words of a document; position t predicts word t + 1."""

    title: str
    surface: Sequence[str]
    words_N: Ints
    topic: int | None = None
    """Node of the document's topic, for models that are given one."""

    @cached_property
    def boundary_T(self) -> Ints:
        """For each position, the index of the word before its sentence, or -1."""
        return boundaries(self.surface)

    def __len__(self) -> int:
        """Number of positions."""
        return max(len(self.words_N) - 1, 0)

    def target(self, t: int) -> str:
        """The word that position t predicts."""
        return self.surface[t + 1]


def boundaries(surface: Sequence[str]) -> Ints:
    """For each position, the last word before it that begins or ends a sentence; -1 if there is none."""
    return np.maximum.accumulate(
        [at if word in (START, END) else -1 for at, word in enumerate(surface)], dtype=np.int64
    )


@dataclass(frozen=True)
class HistoryConfig:
    """What the latent variables may depend on."""

    facts: Facts = "all"
    parent_window: int | None = None
    """Positions after its last mention for which an entity is a candidate parent; None: always."""
    mention_types: MentionTypes = "continue"
    missing: bool = False
    """True if a text may ask for facts that the graph lacks."""

    @property
    def continues(self) -> bool:
        """True if the type `continue` exists."""
        return self.mention_types == "continue"

    def topic(self, graph: KnowledgeGraph, document: Document) -> int | None:
        """Topic of a document, if the model is given one: by its title, else the first entity of its annotation."""
        if self.facts != "topic":
            return None
        id = graph.store.by_title(document.title)
        ids = [id or "", *(mention.id for mention in document.mentions if not is_literal(mention.id))]
        return next((node for id in ids if (node := graph.find(id)) is not None), None)


class Components(Protocol):
    """What reading a text takes besides the model: a run has all of it."""

    @property
    def features(self) -> GraphFeatures: ...
    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def history(self) -> HistoryConfig: ...


def hidden_states(model: ChunkModel, text: Text, *, ahead: int | None = None) -> Tensor:
    """h_t at every position (T × size of h); with `ahead` = 1, h_t has read the word that it predicts."""
    ahead = model.ahead if ahead is None else ahead
    h_TD, _ = model.encoder.read_text(torch.from_numpy(text.words_N[ahead : len(text) + ahead]))
    return h_TD
