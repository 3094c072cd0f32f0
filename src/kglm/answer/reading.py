"""The state of the model after a text: encoder state, and weighted mention histories.

There is one history if the mentions of the text are given, and several if they are uncertain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.errors import DataError
from kglm.model.arrays import Floats, Ints
from kglm.model.encoders.encoder import EncoderState
from kglm.model.histories import CONTINUE, FIRST, NONE, Histories
from kglm.model.kglm import Kglm
from kglm.model.latent import TextLatent
from kglm.model.local_graph import MentionedEntities
from kglm.model.text import Components, Text
from kglm.text.document import START, Document


class Span(NamedTuple):
    """Words [start, end) of a text are a mention of a node."""

    start: int
    end: int
    node: int


Annotation = Sequence[Span]


@dataclass(frozen=True)
class Reading:
    """The state before position t, which predicts the next word. Immutable: `step` returns another one."""

    components: Components
    model: Kglm
    surface: tuple[str, ...]
    """The words read, `@@START@@` first."""
    state: EncoderState
    h_D: Tensor
    histories: Histories
    weight_S: Floats
    """Probabilities of the histories; they sum to 1."""
    annotations: tuple[Annotation, ...] = ()
    """Mentions in each history when the text was read, by positions in `surface`; `step` and `follow` add none."""

    @property
    def t(self) -> int:
        """The position that predicts the next word."""
        return len(self.surface) - 1

    @cached_property
    def latent(self) -> TextLatent:
        """Distributions of the latent variables at the next position."""
        with torch.no_grad():
            cues = self.components.features.text_cues(self.surface, self.t, 1)
            return self.model.text_latent(self.h_D[None], cues, first=self.t)

    def running_words(self, s: int) -> tuple[str, ...]:
        """The words so far of the mention that is running in history s."""
        if self.histories.running_S[s] < 0:
            return ()
        return self.surface[int(self.histories.begun_S[s]) + 1 :]

    def only(self, s: int) -> Reading:
        """The reading with history s as the only one."""
        return self.select(np.array([s]))

    def select(self, index_S: Ints) -> Reading:
        """The reading given that one of these histories is true."""
        weight_S = self.weight_S[index_S]
        annotations = tuple(self.annotations[s] for s in index_S.tolist()) if self.annotations else ()
        return replace(
            self,
            histories=self.histories.select(index_S),
            weight_S=weight_S / weight_S.sum(),
            annotations=annotations,
        )

    def step(self, word: str, column: int, node: int = -1) -> Reading:
        """Read one more word in the only history, by a column of `Histories.steps` and the node that it starts."""
        if len(self.weight_S) != 1:
            raise ValueError(f"{len(self.weight_S)} histories cannot take one step: choose one with `only`")
        return self._advanced(word, column, node, np.ones(1))

    def follow(self, word: str, column: int, node: int = -1) -> Reading:
        """Read one more word if all histories take the same step: p(z_<t | x_<t, z_t) are their weights after it."""
        if len(self.weight_S) == 1:
            return self._advanced(word, column, node, np.ones(1))
        with np.errstate(divide="ignore"):
            log_p_S = np.log(self.weight_S) + self._step_log_probs(column, node)
        return self._advanced(word, column, node, np.exp(log_p_S - np.logaddexp.reduce(log_p_S)))

    def log_p(self, column: int, node: int = -1) -> float:
        """log p(z_t) of a step, over all histories."""
        with np.errstate(divide="ignore"):
            return float(np.logaddexp.reduce(np.log(self.weight_S) + self._step_log_probs(column, node)))

    def _step_log_probs(self, column: int, node: int) -> Floats:
        """log p(z_t) of a step in each history."""
        [type_SC] = self.histories.types(self.t, self.latent)
        nodes = [node] if column == FIRST else []
        step_S: Floats = self.histories.steps(self.t, nodes, self.latent, type_SC)[:, column]
        return step_S

    def _advanced(self, word: str, column: int, node: int, weight_S: Floats) -> Reading:
        """The reading after one more word and the same step in all histories."""
        histories = self.histories.select(np.arange(len(weight_S)))
        surface = (*self.surface, word)
        histories.text = _text(surface, histories.text.topic)
        histories.advance(self.t, np.full(len(weight_S), column), [node])
        h_D, state = encode(self.model, self.components.vocabulary.encode([word]), self.state)
        return replace(self, surface=surface, state=state, h_D=h_D, histories=histories, weight_S=weight_S)


def read(
    components: Components,
    model: Kglm,
    words: Sequence[str],
    annotations: Sequence[tuple[float, Annotation]] = ((1.0, ()),),
) -> Reading:
    """Read a text with its possible annotations and their probabilities.

    `words` may begin with `@@START@@`; spans count the words as they are given.
    """
    shift = 0 if words and words[0] == START else 1
    surface = (*([START] * shift), *words)
    weight_S = np.array([weight for weight, _ in annotations], np.float64)
    if not len(weight_S) or not (weight_S >= 0).all() or not weight_S.sum() > 0:
        raise DataError("no annotation has a probability above 0", remedy="give at least one")
    features, config = components.features, components.history
    topic = config.topic(features.graph, Document("", list(surface)))
    if topic is None and config.facts == "topic":  # then the first entity mentioned
        topic = next((node for _, annotation in annotations for _, _, node in annotation), None)
    histories = Histories.start(
        len(weight_S), _text(surface, topic), MentionedEntities(features.graph), features.aliases, config
    )
    steps = [_steps(len(surface), annotation, shift, config.continues) for _, annotation in annotations]
    for t in range(len(surface) - 1):
        nodes = sorted({node for step_T in steps if (node := step_T[t][1]) >= 0})
        columns = [FIRST + nodes.index(node) if node >= 0 else column for column, node in (s[t] for s in steps)]
        histories.advance(t, np.array(columns), nodes)
    h_D, state = encode(model, components.vocabulary.encode(surface))
    given = tuple([Span(start + shift, end + shift, node) for start, end, node in each] for _, each in annotations)
    return Reading(components, model, surface, state, h_D, histories, weight_S / weight_S.sum(), given)


def _text(surface: Sequence[str], topic: int | None) -> Text:
    return Text("prompt", surface, np.zeros(len(surface), np.int64), topic)


def _steps(length: int, annotation: Annotation, shift: int, continues: bool) -> list[tuple[int, int]]:
    """The step of each position: a column of `Histories.steps`, and the node that it starts or -1."""
    result = [(NONE, -1)] * (length - 1)
    check_annotation(length - shift, annotation, first=1 - shift)
    for start, end, node in annotation:
        for target in range(start + shift - 1, end + shift - 1):
            first = target == start + shift - 1 or not continues
            result[target] = (FIRST, node) if first else (CONTINUE, -1)
    return result


def check_annotation(length: int, annotation: Annotation, *, first: int = 0) -> None:
    """Raise an error unless the spans are words from `first` on of a text of this length and do not overlap."""
    last = first
    for start, end, _ in sorted(annotation):
        if start < last or end <= start or end > length:
            inside = 0 <= start < end <= length
            raise DataError(
                f"mention {start}:{end} " + ("overlaps another one" if inside else f"in a text of {length} words"),
                remedy="give mentions that do not overlap" if inside else f"give start < end <= {length}",
            )
        last = end


def encode(model: Kglm, words: Sequence[int], state: EncoderState | None = None) -> tuple[Tensor, EncoderState]:
    """h after the last of these words, and the encoder's state."""
    with torch.no_grad():
        h_TD, state = model.encoder.read_text(torch.tensor(words), state)
    return h_TD[-1], state
