"""The proposal q(z | x): the same latent variables, read off the text instead of generating it.

It labels the word it has just read: the encoder sees x_t before z_t is decided (build chunks with `ahead=1`). The masks
are those of the model, so q gives no mass to what p cannot do, and nothing of one row depends on another. A missing
fact makes no mention (see `missing`), so q has no step for it: its type `none` stands for all plain words.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Generator, Tensor

from kglm.model.base import KglmConfig, LatentModel
from kglm.model.chunk import Chunk
from kglm.model.graph_features import GraphFeatures


class Proposal(LatentModel):
    """The discriminative model. Its scores have no words: they are given."""

    ahead = 1

    def __init__(
        self, config: KglmConfig, vocabulary_size: int, features: GraphFeatures, *, generator: Generator
    ) -> None:
        config = replace(config, latent=replace(config.latent, missing=False))
        super().__init__(config, vocabulary_size, features, generator=generator)

    def score_words(self, h_x_FH: Tensor, chunk: Chunk) -> tuple[Tensor, Tensor]:
        none_F = h_x_FH.new_zeros(chunk.words.real_BT.numel())
        return none_F, none_F.bool()
