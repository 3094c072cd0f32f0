"""Small encoders, with dropout and without."""

from __future__ import annotations

import dataclasses

import torch
from torch import Generator, Tensor

from kglm.model.encoders.awd_lstm import AwdLstmEncoder, EncoderConfig

WORDS = 30
SMALL = EncoderConfig(embedding=8, hidden=12, layers=3, output=10)
PLAIN = dataclasses.replace(
    SMALL, output_dropout=0, hidden_dropout=0, input_dropout=0, embedding_dropout=0, weight_drop=0
)


def seeded(seed: int) -> Generator:
    return Generator().manual_seed(seed)


def make(config: EncoderConfig = SMALL, *, training: bool = False) -> AwdLstmEncoder:
    return config.build(WORDS, generator=seeded(0)).train(training)


def words(rows: int, length: int, seed: int = 1) -> Tensor:
    return torch.randint(0, WORDS, (rows, length), generator=seeded(seed))
