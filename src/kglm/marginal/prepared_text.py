"""All that the estimators of p(x) share: a text, its tables under the model, and who may be mentioned where.

Legend: T targets, K histories, N entities that may start; columns of steps are none, continue, then these entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from kglm.errors import KglmError
from kglm.kg.graph import KnowledgeGraph
from kglm.marginal.cache import NO_CACHE, Cache
from kglm.marginal.entity_words import Said, WordTable
from kglm.model.aliases import AliasTable
from kglm.model.annotation import AnnotationEncoder, Type, type_feature
from kglm.model.histories import CONTINUE, FIRST, NONE, Cast, Histories, HistorySettings
from kglm.model.kglm import Kglm
from kglm.model.text_scores import Floats, LatentTables, Text, hidden_states
from kglm.text.document import Document
from kglm.text.vocabulary import Vocabulary


class Parts(Protocol):
    """What a run has: a model and what it takes to use it."""

    graph: KnowledgeGraph
    vocabulary: Vocabulary
    aliases: AliasTable
    encoder: AnnotationEncoder


class Candidates(Protocol):
    """Which entities may start a mention where."""

    complete: bool
    """Whether nothing else can."""

    def at(self, t: int) -> Sequence[int]:
        """The entities that are weighed at target t; no doubles."""

    def length(self, t: int, node: int) -> int:
        """How many words from target t on are probably one mention of the entity; at least 1."""


@dataclass(frozen=True)
class AllEntities:
    """Every node of the graph, everywhere: for toys."""

    count: int
    complete = True

    def at(self, t: int) -> Sequence[int]:
        del t
        return range(self.count)

    def length(self, t: int, node: int) -> int:
        del t, node
        return 1


class Scene:
    """A text as a model sees it."""

    def __init__(
        self, parts: Parts, model: Kglm, document: Document, candidates: Candidates, cache: Cache = NO_CACHE
    ) -> None:
        self.parts = parts
        self.model = model
        self.text = read(parts, document)
        with torch.no_grad():
            h_TD = hidden_states(model, self.text)
            self.cues = parts.encoder.text_cues(self.text.surface, 0, len(self.text))
            self.latent = LatentTables(model, h_TD, parts.graph, self.cues)
            self.words = WordTable(model, h_TD, self.text, parts.aliases, cache)
        self.candidates = candidates
        self.unknown_types = max(parts.vocabulary.unknown_types, 1)
        self._gains: dict[tuple[int, int, int, float], float] = {}

    def __len__(self) -> int:
        return len(self.text)

    def histories(self, count: int, cast: Cast) -> Histories:
        settings = HistorySettings.of(self.parts.encoder)
        return Histories.start(count, self.text, cast, self.parts.aliases, settings)

    def word_scores(self, t: int, histories: Histories, nodes: Sequence[int], penalty: float) -> Floats:
        """log p(x_t | step) of each history and column; an unknown word costs `penalty` more (K × (2 + N))."""
        score_KJ = np.empty((len(histories), FIRST + len(nodes)))
        score_KJ[:, NONE] = self.words.plain(penalty)[t]
        mentions = list(zip(histories.running_K.tolist(), histories.begun_K.tolist(), strict=True))
        running = sorted({mention for mention in mentions if mention[0] >= 0})
        going_on = [Said(t, node, begun) for node, begun in running]
        log_p, unknown = self.words.log_p([*going_on, *(Said(t, node, t) for node in nodes)])
        log_p = log_p - penalty * unknown
        of_running = dict(zip(running, log_p[: len(running)].tolist(), strict=True))
        score_KJ[:, CONTINUE] = [of_running.get(mention, 0.0) for mention in mentions]
        score_KJ[:, FIRST:] = log_p[len(running) :]
        return score_KJ

    def joint(self, t: int, histories: Histories, nodes: Sequence[int], penalty: float) -> Floats:
        """log p(z_t, x_t | history) of each history and column."""
        [type_KC] = histories.types(t, self.latent)
        prior_KJ = histories.steps(t, nodes, self.latent, type_KC)
        return prior_KJ + self.word_scores(t, histories, nodes, penalty)

    # Looking ahead

    def hopes(self, t: int, histories: Histories, nodes: Sequence[int], penalty: float) -> Floats:
        """How much better the rest of a mention is said as one than word by word, if it is as long as it looks.

        A step that begins or goes on with a name pays for the entity now and is repaid by the words that follow; to
        judge it by now alone is to drop it before it is repaid. Only decides what is tried, never what it weighs.
        """
        hope_KJ = np.zeros((len(histories), FIRST + len(nodes)))
        if self.candidates.complete or t + 1 >= len(self):
            return hope_KJ
        for column, node in enumerate(nodes):
            hope_KJ[:, FIRST + column] = self._hope(t, node, t, penalty)
        known: dict[tuple[int, int], float] = {}
        for k in np.flatnonzero(histories.running_K >= 0).tolist():
            mention = (int(histories.running_K[k]), int(histories.begun_K[k]))
            if mention not in known:
                known[mention] = self._hope(mention[1], mention[0], t, penalty)
            hope_KJ[k, CONTINUE] = known[mention]
        return hope_KJ

    def _hope(self, begun: int, node: int, t: int, penalty: float) -> float:
        """The gain of the words after t of a mention that began at `begun`."""
        end = min(begun + self.candidates.length(begun, node), len(self))
        return sum(self._gain(begun, node, later, penalty) for later in range(t + 1, end))

    def _gain(self, begun: int, node: int, t: int, penalty: float) -> float:
        """log p(continue, x_t | entity) − log p(none, x_t), for a mention that began at `begun`."""
        key = (begun, node, t, penalty)
        found = self._gains.get(key)
        if found is None:
            goes_on, ends = self.parts.aliases[node].can_follow(self.text.surface[begun + 1 : t + 1])
            inside = np.array([type_feature(True, goes_on, ends, None)])
            yes = np.array([True])
            type_C = self.latent.types(t, inside, yes, yes)[0]
            [log_p], [unknown] = self.words.log_p([Said(t, node, begun)])
            plain = self.words.plain(penalty)[t]
            found = float(log_p - penalty * unknown + type_C[Type.CONTINUE] - plain - type_C[Type.NONE])
            self._gains[key] = found
        return found


def read(parts: Parts, document: Document) -> Text:
    """The words of a document; its annotation is not looked at, but for the topic where that is given."""
    if not document.tokens:
        raise KglmError(f"the document {document.title!r} has no words", remedy="leave it out")
    words_N = np.array(parts.vocabulary.encode(document.tokens), np.int64)
    return Text(document.title, document.tokens, words_N, parts.encoder.topic(document))
