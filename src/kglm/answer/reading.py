"""A text as far as it has been read: what the model remembers of it before the next word.

Legend: K mention histories, each with a weight: one if it is known who is mentioned where, several if it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.errors import DataError
from kglm.marginal.prepared_text import Parts
from kglm.model.encoders.awd_lstm import State
from kglm.model.histories import CONTINUE, FIRST, NONE, Cast, Histories, HistorySettings
from kglm.model.kglm import Kglm
from kglm.model.text_scores import Floats, LatentTables, Text
from kglm.text.document import START, Document


class Span(NamedTuple):
    """Words [start, end) of a text name a node."""

    start: int
    end: int
    node: int


Annotation = Sequence[Span]


@dataclass(frozen=True)
class Reading:
    """The state before target t, the word after the last one read. Nothing changes it: a step gives another."""

    parts: Parts
    model: Kglm
    surface: tuple[str, ...]
    """The words read, `@@START@@` first."""
    state: State
    h_D: Tensor
    histories: Histories
    weight_K: Floats
    """How probable the histories are; they sum to 1."""

    @property
    def t(self) -> int:
        """The number of the next target."""
        return len(self.surface) - 1

    def tables(self) -> LatentTables:
        """Scores of the latent variables of the next target."""
        with torch.no_grad():
            cues = self.parts.encoder.text_cues(self.surface, self.t, 1)
            return LatentTables(self.model, self.h_D[None], self.parts.graph, cues, first=self.t)

    def said(self, k: int) -> tuple[str, ...]:
        """The words of the mention that is running in a history."""
        if self.histories.running_K[k] < 0:
            return ()
        return self.surface[int(self.histories.begun_K[k]) + 1 :]

    def only(self, k: int) -> Reading:
        """As if history k were the only one."""
        return replace(self, histories=self.histories.select(np.array([k])), weight_K=np.ones(1))

    def step(self, word: str, column: int, node: int = -1) -> Reading:
        """Read one more word in the only history: no mention, the next word of the running one, or the first of one."""
        if len(self.weight_K) != 1:
            raise ValueError(f"{len(self.weight_K)} histories cannot take one step: choose one with `only`")
        histories = self.histories.select(np.zeros(1, np.int64))
        surface = (*self.surface, word)
        histories.text = _text(surface, histories.text.topic)
        histories.advance(self.t, np.array([column]), [node])
        h_D, state = encode(self.model, self.parts.vocabulary.encode([word]), self.state)
        return replace(self, surface=surface, state=state, h_D=h_D, histories=histories, weight_K=np.ones(1))


def read(
    parts: Parts, model: Kglm, words: Sequence[str], annotations: Sequence[tuple[float, Annotation]] = ((1.0, ()),)
) -> Reading:
    """Read a text of which it is known, or known with some probability, who is mentioned where.

    `words` may begin with `@@START@@`; the places of mentions count the words as they are given.
    """
    shift = 0 if words and words[0] == START else 1
    surface = (*([START] * shift), *words)
    weight_K = np.array([weight for weight, _ in annotations], np.float64)
    if not len(weight_K) or not (weight_K >= 0).all() or not weight_K.sum() > 0:
        raise DataError("no annotation has a probability above 0", remedy="give at least one")
    settings = HistorySettings.of(parts.encoder)
    topic = parts.encoder.topic(Document("", list(surface)))
    if topic is None and settings.facts == "topic":  # then whoever is known to be mentioned first
        topic = next((node for _, annotation in annotations for _, _, node in annotation), None)
    histories = Histories.start(len(weight_K), _text(surface, topic), Cast(parts.graph), parts.aliases, settings)
    steps = [_steps(len(surface), annotation, shift, settings.continues) for _, annotation in annotations]
    for t in range(len(surface) - 1):
        nodes = sorted({node for step_T in steps if (node := step_T[t][1]) >= 0})
        columns = [FIRST + nodes.index(node) if node >= 0 else column for column, node in (s[t] for s in steps)]
        histories.advance(t, np.array(columns), nodes)
    h_D, state = encode(model, parts.vocabulary.encode(surface))
    return Reading(parts, model, surface, state, h_D, histories, weight_K / weight_K.sum())


def _text(surface: Sequence[str], topic: int | None) -> Text:
    return Text("prompt", surface, np.zeros(len(surface), np.int64), topic)


def _steps(length: int, annotation: Annotation, shift: int, continues: bool) -> list[tuple[int, int]]:
    """What each target is: a column of a table of steps, and for the start of a mention its node."""
    result = [(NONE, -1)] * (length - 1)
    last = 1 - shift
    for start, end, node in sorted(annotation):
        if start < last or end <= start or end > length - shift:
            raise DataError(
                f"a mention of words {start} to {end} of {length - shift}", remedy="mentions lie apart, inside the text"
            )
        for target in range(start + shift - 1, end + shift - 1):
            first = target == start + shift - 1 or not continues
            result[target] = (FIRST, node) if first else (CONTINUE, -1)
        last = end
    return result


def encode(model: Kglm, words: Sequence[int], state: State | None = None) -> tuple[Tensor, State]:
    """The hidden state after words, and the recurrent state."""
    with torch.no_grad():
        h_TD, state = model.encoder.read_text(torch.tensor(words), state)
    return h_TD[-1], state
