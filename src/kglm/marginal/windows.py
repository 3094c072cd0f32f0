"""A text in windows: hidden states and tables of scores for a few windows at a time.

Estimators read a text forwards. What depends on its words alone is computed for one window of positions at a time, from
the encoder's state before the window, and dropped behind; so the memory does not grow with the length of the text.
The results do not depend on the size of the windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from kglm.model.base import ChunkModel, LatentModel
from kglm.model.cues import TextCues
from kglm.model.encoders.encoder import EncoderState
from kglm.model.graph_features import GraphFeatures
from kglm.model.latent import TextLatent
from kglm.model.new_entities import TextNewEntities
from kglm.model.text import Text

WINDOW = 500
"""Positions in a window."""
KEPT = 4
"""Windows whose tables are kept; look-ahead reads the one after the present."""
KEPT_POSITIONS = 1 << 14
"""Positions whose hidden states are kept. Those of a longer text are computed again when they are needed again."""

ValueT = TypeVar("ValueT")


class Recent(Generic[ValueT]):
    """Values by number, made when they are needed; the latest ones are kept."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: dict[int, ValueT] = {}

    def get(self, number: int, make: Callable[[int], ValueT]) -> ValueT:
        """The value of a number, made if it is not kept."""
        if number in self._kept:
            value = self._kept[number] = self._kept.pop(number)  # the latest is the last
            return value
        value = make(number)
        self._kept[number] = value
        while len(self._kept) > self._count:
            del self._kept[next(iter(self._kept))]
        return value

    def __contains__(self, number: int) -> bool:
        return number in self._kept

    def values(self) -> Sequence[ValueT]:
        """The values that are kept."""
        return list(self._kept.values())


def empty(_: int) -> dict[Any, Any]:
    """Make an empty dictionary."""
    return {}


class HiddenWindows:
    """h of one text under one model, by window."""

    def __init__(self, model: ChunkModel, text: Text, *, ahead: int | None = None, length: int = WINDOW) -> None:
        """With `ahead` = 1, h_t has read the word that it predicts; None: as the model is trained."""
        ahead = model.ahead if ahead is None else ahead
        self.length = length
        self._positions = len(text)
        self._encoder = model.encoder
        self._words_T = torch.from_numpy(text.words_N[ahead : len(text) + ahead])
        self._states: list[EncoderState | None] = [None]
        """The encoder's state before each window that has been reached."""
        self._hidden = Recent[Tensor](max(KEPT, KEPT_POSITIONS // length))

    def of(self, t: int) -> int:
        """Number of the window of position t."""
        return t // self.length

    def bounds(self, number: int) -> tuple[int, int]:
        """First position of a window, and the one after its last."""
        return number * self.length, min((number + 1) * self.length, self._positions)

    def ends(self) -> Sequence[int]:
        """For each window, the position after its last."""
        return [min(start + self.length, self._positions) for start in range(0, self._positions, self.length)]

    def __getitem__(self, number: int) -> Tensor:
        """h at the positions of a window (T × size of h)."""
        return self._hidden.get(number, self._read)

    def between(self, start: int, stop: int) -> Tensor:
        """h at the positions [start, stop)."""
        numbers = range(self.of(start), self.of(max(stop - 1, start)) + 1)
        first = numbers[0] * self.length
        return torch.cat([self[number] for number in numbers])[start - first : stop - first]

    def _read(self, number: int) -> Tensor:
        for earlier in range(len(self._states) - 1, number):
            self._read(earlier)
        start, stop = self.bounds(number)
        with torch.no_grad():
            h_TD, state = self._encoder.read_text(self._words_T[start:stop], self._states[number])
        if number + 1 == len(self._states):
            self._states.append(state)
        return h_TD


class CueWindows:
    """The cues of one text, by window; models share them."""

    def __init__(self, features: GraphFeatures, text: Text, *, length: int = WINDOW) -> None:
        self._features, self._text, self._length = features, text, length
        self._cues = Recent[TextCues | None](KEPT)

    def __getitem__(self, number: int) -> TextCues | None:
        return self._cues.get(number, self._find)

    def _find(self, number: int) -> TextCues | None:
        start = number * self._length
        return self._features.text_cues(self._text.surface, start, min(self._length, len(self._text) - start))


class LatentWindows:
    """Distributions of the latent variables along one text, under one model."""

    def __init__(
        self, model: LatentModel, hidden: HiddenWindows, cues: CueWindows, text: Text, *, temperature: float = 1.0
    ) -> None:
        self.hidden = hidden
        self._model, self._cues, self._temperature = model, cues, temperature
        with torch.no_grad():
            self._relation_RD = model.relation_vectors()
        self._log_z_T = np.full(len(text), np.nan)
        """Sums over all entities of p(e | new), which take longest: they are kept for the whole text."""
        self._tables = Recent[TextLatent](KEPT)

    def at(self, t: int) -> TextLatent:
        """The distributions at position t and at the other positions of its window."""
        return self._tables.get(self.hidden.of(t), self._make)

    def new_entities_at(self, t: int) -> TextNewEntities:
        """p(e | new) at position t and at the other positions of its window."""
        number = self.hidden.of(t)
        if number in self._tables:
            return self.at(t).new_entities
        start, stop = self.hidden.bounds(number)
        _, h_p_TD, h_r_TD = self._model.hidden(self.hidden[number])
        return TextNewEntities(
            self._model.latent.new_entities,
            h_p_TD + h_r_TD,
            self._model.entities,
            first=start,
            scale=1 / self._temperature,
            log_z_T=self._log_z_T[start:stop],
        )

    def _make(self, number: int) -> TextLatent:
        start, stop = self.hidden.bounds(number)
        with torch.no_grad():
            return self._model.text_latent(
                self.hidden[number],
                self._cues[number],
                first=start,
                temperature=self._temperature,
                relation_RD=self._relation_RD,
                log_z_T=self._log_z_T[start:stop],
            )
