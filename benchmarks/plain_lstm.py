"""The smallest recurrent language model to compare with: layers of `nn.LSTM` and a tied softmax (a helper module)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from kglm.model.encoders.awd_lstm import EncoderConfig


class PlainLstm(nn.Module):
    """Layers of `nn.LSTM` and a tied softmax."""

    def __init__(self, config: EncoderConfig, words: int) -> None:
        super().__init__()
        sizes = [config.embedding, *[config.hidden] * (config.layers - 1), config.embedding]
        self.embedding = nn.Embedding(words, config.embedding)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.layers = nn.ModuleList(nn.LSTM(a, b, batch_first=True) for a, b in pairwise(sizes))
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, words_BT: Tensor, targets_BT: Tensor, state: list[Any] | None) -> tuple[Tensor, list[Any]]:
        """Mean loss of the targets, and the state after the last word."""
        x, after = self.embedding(words_BT), []
        for number, layer in enumerate(self.layers):
            x, (h, c) = layer(x, None if state is None else state[number])
            after.append((h.detach(), c.detach()))
        logits = nn.functional.linear(x.flatten(0, 1), self.embedding.weight, self.bias)
        return nn.functional.cross_entropy(logits, targets_BT.flatten()), after
