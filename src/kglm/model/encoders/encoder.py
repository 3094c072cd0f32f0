"""The seam between models and encoders: what an encoder provides, and all that a model may use of it.

An encoder reads words and returns hidden states. It owns its vocabulary of inputs, its state, its dropout and its extra
losses; models project its h and reach its output layer by `word_head` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, Self

import torch
from torch import Generator, Tensor

from kglm.model.word_head import WordHead


class EncoderState(Protocol):
    """The state of an encoder after some words, for each row of a batch. Callers carry it and do not look inside."""

    def select(self, row_B: Tensor) -> Self:
        """The state of these batch rows, in this order."""

    def detach(self) -> Self:
        """The same state without its gradients."""

    def tensors(self) -> dict[str, Tensor]:
        """The state as named tensors with one line for each batch row, for checkpoints."""


class EncoderOutput(NamedTuple):
    """Hidden states of a chunk, and the state after it."""

    h_BTD: Tensor
    """h_t after word t, with output dropout in training."""
    raw_h_BTD: Tensor
    """h_t before output dropout."""
    state: EncoderState
    """After the chunk's last column. Gradients reach through it until it is detached."""


class Regularisation(NamedTuple):
    """α and β terms of the training loss as sums, with the counts that turn them into means.

    They are sums because a chunk may be a part of a batch that several processes share: the means are over the batch.
    """

    activation: Tensor
    """α Σ_t mean(h_t²) over features, over the real positions, after output dropout."""
    temporal: Tensor
    """β Σ_t mean((h_t − h_{t−1})²), over pairs of neighbours that both are real, before output dropout."""
    positions: int
    pairs: int

    def mean(self, positions: int | None = None, pairs: int | None = None) -> Tensor:
        """α mean(h_t²) + β mean((h_t − h_{t−1})²); the counts are those of the whole batch, by default our own."""
        positions, pairs = positions or self.positions, pairs or self.pairs
        return self.activation / max(positions, 1) + self.temporal / max(pairs, 1)


class Share(NamedTuple):
    """Which rows of a larger batch these are. Masks are drawn for all rows, so that they do not depend on the cut."""

    rows: Tensor
    total: int


class Encoder(Protocol):
    """What a model needs of its encoder, which is a torch module."""

    def __call__(
        self,
        words_BT: Tensor,
        state: EncoderState | None = None,
        generator: Generator | None = None,
        reset_B: Tensor | None = None,
        share: Share | None = None,
    ) -> EncoderOutput:
        """Read one chunk of words per row; rows flagged in `reset_B` start a document. `generator` draws dropout."""

    def read_text(self, words_T: Tensor, state: EncoderState | None = None) -> tuple[Tensor, EncoderState]:
        """h after each word of one text (T × D), and the state after the last."""

    def word_head(self, bias_V: Tensor | None = None) -> WordHead:
        """The output layer over words; its bias belongs to the model."""

    def zero_state(self, rows: int) -> EncoderState:
        """The state before the first word of a document."""

    def state_from(self, tensors: Mapping[str, Tensor]) -> EncoderState:
        """The state that `EncoderState.tensors` was called on."""

    def regularisation(self, output: EncoderOutput, real_BT: Tensor | None = None) -> Regularisation:
        """Extra terms of the training loss, over the positions flagged in `real_BT`; 0 in evaluation."""

    @property
    def unknown_dropout(self) -> float:
        """Share of word types that training hides in names: see `ChunkModel.hide`."""

    @property
    def size(self) -> int:
        """Length of h."""

    @property
    def dtype(self) -> torch.dtype: ...
