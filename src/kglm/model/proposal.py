"""The proposal q(z | x): the same latent variables, read off the text instead of generating it.

It labels the word it has just read: the encoder sees x_t before z_t is decided (build chunks with `ahead=1`). The masks
are those of the model, so q gives no mass to what p cannot do, and nothing of one row depends on another.
"""

from __future__ import annotations

from torch import Tensor

from kglm.model.base import LatentModel
from kglm.model.chunk import Chunk


class Proposal(LatentModel):
    """The discriminative model. Its scores have no words: they are given."""

    ahead = 1

    def score_words(self, h_x_FH: Tensor, chunk: Chunk) -> tuple[Tensor, Tensor]:
        none_F = h_x_FH.new_zeros(chunk.words.real_BT.numel())
        return none_F, none_F.bool()
