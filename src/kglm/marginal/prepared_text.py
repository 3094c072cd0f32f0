"""A text prepared for the estimators of p(x): its scores under the model, and the candidates at each position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from kglm.errors import KglmError
from kglm.kg.graph import KnowledgeGraph
from kglm.marginal.cache import NO_CACHE, Cache
from kglm.marginal.entity_words import MentionWord, WordTable
from kglm.marginal.windows import KEPT, WINDOW, CueWindows, HiddenWindows, LatentWindows, Recent, empty
from kglm.model.arrays import Floats
from kglm.model.histories import CONTINUE, FIRST, NONE, Histories
from kglm.model.kglm import Kglm
from kglm.model.local_graph import MentionedEntities
from kglm.model.mention_state import inside_state
from kglm.model.text import Components, Text
from kglm.model.types import Type
from kglm.text.document import Document


class Candidates(Protocol):
    """Entities that may start a mention at each position."""

    complete: bool
    """True if no other entity can."""

    def at(self, t: int) -> Sequence[int]:
        """The distinct candidates at position t."""

    def length(self, t: int, node: int) -> int:
        """Likely number of words of a mention of the entity that starts at position t; at least 1."""


class AllEntities:
    """Every node of the graph at every position: for toys."""

    complete = True

    def __init__(self, count: int) -> None:
        self._count = count

    def at(self, t: int) -> Sequence[int]:
        del t
        return range(self._count)

    def length(self, t: int, node: int) -> int:
        del t, node
        return 1


class PreparedText:
    """A text, its scores under one model, and its candidates."""

    def __init__(
        self,
        components: Components,
        model: Kglm,
        document: Document,
        candidates: Candidates,
        cache: Cache = NO_CACHE,
        *,
        window: int = WINDOW,
    ) -> None:
        """`window` is the number of positions whose scores are computed together; it does not change them."""
        features = components.features
        self.model = model
        self.graph: KnowledgeGraph = features.graph
        self.aliases = features.aliases
        self.text = read(components, document)
        self.hidden = HiddenWindows(model, self.text, length=window)
        self.cues = CueWindows(features, self.text, length=window)
        self.latent = LatentWindows(model, self.hidden, self.cues, self.text)
        self.words = WordTable(model, self.hidden, self.text, self.aliases, cache)
        self.candidates = candidates
        self.unknown_types = max(components.vocabulary.unknown_types, 1)
        self._history = components.history
        self._gains = Recent[dict[tuple[int, int, int, float], float]](KEPT)
        """Gains of single words, by window."""

    def __len__(self) -> int:
        return len(self.text)

    def prepare(self, t: int) -> None:
        """Score together, at the first position of a window, what every estimator needs of the candidates there."""
        start, stop = self.hidden.bounds(self.hidden.of(t))
        if t != start or self.candidates.complete:
            return
        nodes_T = {later: self.candidates.at(later) for later in range(start, stop)}
        starts = [later for later, nodes in nodes_T.items() if len(nodes)]
        if starts:
            self.latent.at(t).new_entities.prepare(np.array(starts))
        self.words.prepare(
            MentionWord(later, node, begun)
            for begun in starts
            for node in nodes_T[begun]
            for later in range(begun, min(begun + self.candidates.length(begun, node) + 1, len(self)))
        )

    def histories(self, count: int) -> Histories:
        """Histories before the first word."""
        return Histories.start(count, self.text, MentionedEntities(self.graph), self.aliases, self._history)

    def word_scores(self, t: int, histories: Histories, nodes: Sequence[int], penalty: float) -> Floats:
        """log p(x_t | step) of each history and step (S × Z); an unknown word costs `penalty` more."""
        score_SZ = np.empty((len(histories), FIRST + len(nodes)))
        score_SZ[:, NONE] = self.words.plain_at(t, penalty)
        mentions = list(zip(histories.running_S.tolist(), histories.begun_S.tolist(), strict=True))
        running = sorted({mention for mention in mentions if mention[0] >= 0})
        continued = [MentionWord(t, node, begun) for node, begun in running]
        log_p, unknown = self.words.log_p([*continued, *(MentionWord(t, node, t) for node in nodes)])
        log_p = log_p - penalty * unknown
        of_running = dict(zip(running, log_p[: len(running)].tolist(), strict=True))
        score_SZ[:, CONTINUE] = [of_running.get(mention, 0.0) for mention in mentions]
        score_SZ[:, FIRST:] = log_p[len(running) :]
        return score_SZ

    def joint(self, t: int, histories: Histories, nodes: Sequence[int], penalty: float) -> Floats:
        """log p(z_t, x_t | history) of each history and step."""
        latent = self.latent.at(t)
        [type_SC] = histories.types(t, latent)
        prior_SZ = histories.steps(t, nodes, latent, type_SC)
        return prior_SZ + self.word_scores(t, histories, nodes, penalty)

    # Look-ahead

    def lookahead(self, t: int, histories: Histories, nodes: Sequence[int], penalty: float) -> Floats:
        """Look-ahead bonus: log-likelihood gain of the rest of a name, read as one mention rather than as plain words.

        The first word of a mention includes the cost of choosing the entity, which the later words recover: without the
        bonus, a search would drop the mention too early. It decides which steps are tried, never their weights.
        """
        bonus_SZ = np.zeros((len(histories), FIRST + len(nodes)))
        if self.candidates.complete or t + 1 >= len(self):
            return bonus_SZ
        for column, node in enumerate(nodes):
            bonus_SZ[:, FIRST + column] = self._bonus(t, node, t, penalty)
        bonuses: dict[tuple[int, int], float] = {}
        for s in np.flatnonzero(histories.running_S >= 0).tolist():
            mention = (int(histories.running_S[s]), int(histories.begun_S[s]))
            if mention not in bonuses:
                bonuses[mention] = self._bonus(mention[1], mention[0], t, penalty)
            bonus_SZ[s, CONTINUE] = bonuses[mention]
        return bonus_SZ

    def _bonus(self, begun: int, node: int, t: int, penalty: float) -> float:
        """Gain of the words after t in a mention that began at position `begun`."""
        end = min(begun + self.candidates.length(begun, node), len(self))
        return sum(self._gain(begun, node, later, penalty) for later in range(t + 1, end))

    def _gain(self, begun: int, node: int, t: int, penalty: float) -> float:
        """log p(continue, x_t | entity) − log p(none, x_t), for a mention that began at position `begun`."""
        gains, key = self._gains.get(self.hidden.of(t), empty), (begun, node, t, penalty)
        found = gains.get(key)
        if found is None:
            state = inside_state(self.aliases[node], self.text.surface[begun + 1 : t + 1])
            yes = np.array([True])
            type_C = self.latent.at(t).types.log_probs(t, np.array([state]), yes, yes)[0]
            [log_p], [unknown] = self.words.log_p([MentionWord(t, node, begun)])
            plain = self.words.plain_at(t, penalty)
            found = float(log_p - penalty * unknown + type_C[Type.CONTINUE] - plain - type_C[Type.NONE])
            gains[key] = found
        return found


def read(components: Components, document: Document) -> Text:
    """The words of a document; its annotation is used only to find the topic."""
    if not document.tokens:
        raise KglmError(f"the document {document.title!r} has no words", remedy="leave it out")
    words_N = np.array(components.vocabulary.encode(document.tokens), np.int64)
    topic = components.history.topic(components.features.graph, document)
    return Text(document.title, document.tokens, words_N, topic)
