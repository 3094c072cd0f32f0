"""The proposal q(z | x): the same latent variables, read off the text instead of generating it.

It labels the word it has just read: the encoder sees x_t before z_t is decided (build chunks with `ahead=1`). The masks
are those of the model, so q gives no mass to what p cannot do, and nothing of one row depends on another.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from kglm.model.chunk import Chunk
from kglm.model.encoder import State
from kglm.model.latent import EntityTable
from kglm.model.parts import ChunkModel, KglmConfig, Scores, assemble, build_parts


class Proposal(ChunkModel):
    """The discriminative model. Its scores have no words: they are given."""

    ahead = 1

    def __init__(
        self,
        config: KglmConfig,
        vocabulary_size: int,
        entities: EntityTable,
        relation_RD: Tensor,
        *,
        generator: Generator,
    ) -> None:
        super().__init__()
        self.config = config
        self.sizes, self.encoder, self.latent = build_parts(config, vocabulary_size, entities, relation_RD, generator)

    def forward(self, chunk: Chunk, state: State | None = None, *, generator: Generator | None = None) -> Scores:
        """Score the chunk's annotation given its words."""
        output = self.encoder(chunk.words_BT, state, generator=generator, reset_B=chunk.reset_B)
        h_x_FH, h_p_FD, h_r_FD = output.h_BTD.flatten(0, 1).split(self.sizes, -1)
        latent = self.latent.score(h_x_FH, h_p_FD, h_r_FD, chunk)
        none_F = torch.zeros_like(latent.type_F)
        return assemble(latent, none_F, none_F.bool(), chunk, self.encoder, output)
