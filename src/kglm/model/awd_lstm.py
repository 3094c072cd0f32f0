"""The plain language model: AWD-LSTM (Merity, Keskar and Socher, 2018), the same encoder and words without facts.

p(x_t) = softmax(W h_x + b) over V
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

from kglm.model.base import ChunkModel, Scores
from kglm.model.chunk import Chunk
from kglm.model.encoders.awd_lstm import EncoderConfig
from kglm.model.encoders.encoder import EncoderState


class AwdLstm(ChunkModel):
    """Words only; annotations are not looked at."""

    def __init__(self, config: EncoderConfig, vocabulary_size: int, *, generator: Generator) -> None:
        super().__init__()
        self.encoder = config.for_words().build(vocabulary_size, generator=generator)
        self.word_bias_V = nn.Parameter(torch.zeros(vocabulary_size))

    def next_words(self, words_BT: Tensor) -> Tensor:
        """log p of every word after the last one (B × V)."""
        return self.words.log_probs(self.encoder(words_BT).h_BTD[:, -1])

    def forward(self, chunk: Chunk, state: EncoderState | None = None, *, generator: Generator | None = None) -> Scores:
        chunk = self.hide(chunk, generator)
        output = self.read(chunk, state, generator)
        at_N = chunk.words.real_BT.flatten().nonzero()[:, 0]
        h_NH, target_N = output.h_BTD.flatten(0, 1)[at_N], chunk.words.target_BT.flatten()[at_N]
        log_p_N = self.words.log_prob(h_NH, target_N)
        none_BT = log_p_N.new_zeros(chunk.words.real_BT.shape)
        word_BT = none_BT.flatten().index_copy(0, at_N, log_p_N).view_as(none_BT)
        unknown_BT = self.words.is_unknown(chunk.words.target_BT) & chunk.words.real_BT
        return Scores(
            none_BT,
            none_BT,
            none_BT,
            none_BT,
            word_BT,
            unknown_BT,
            torch.zeros((), dtype=torch.int64),
            none_BT,
            self.encoder.regularisation(output, chunk.words.real_BT),
            output.state,
        )
