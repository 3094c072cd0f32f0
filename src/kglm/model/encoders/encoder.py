"""The seam between models and encoders: what an encoder provides, and all that a model may use of it.

An encoder reads words (indices of the vocabulary) and returns hidden states. It owns its state, its dropout and its
extra losses; models project its h and reach its output layer by `word_head` only.
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
    """h_t before output dropout, for extra losses."""
    state: EncoderState
    """After the chunk's last column. Gradients reach through it until it is detached."""


class ExtraLoss(Protocol):
    """The encoder's own terms of the training loss, of one chunk; in evaluation they are 0."""

    def mean(self, positions: int | None = None, rows: int | None = None) -> Tensor:
        """The terms as means over so many positions and rows: of the chunk, or of the batch that it is a part of."""


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

    def regularisation(self, output: EncoderOutput, real_BT: Tensor | None = None) -> ExtraLoss:
        """Extra terms of the training loss, over the positions flagged in `real_BT`."""

    @property
    def unknown_dropout(self) -> float:
        """Share of word types that training hides in names: see `ChunkModel.hide`."""

    @property
    def size(self) -> int:
        """Length of h."""

    @property
    def dtype(self) -> torch.dtype: ...
