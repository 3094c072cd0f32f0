"""KGLM: p(x, z), the joint distribution of words and of the facts behind them.

    log p(x, z) = Σ_t log p(type_t) + log p(entity_t | type_t) + log p(x_t | entity_t)

The encoder reads words only, so hidden states do not depend on the annotation; h_t is cut into [h_x ; h_p ; h_r].
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

from kglm.model.base import KglmConfig, LatentModel, seeded
from kglm.model.chunk import Chunk
from kglm.model.graph_features import GraphFeatures
from kglm.model.render import Renderer, WordScores, real_slots
from kglm.model.types import Type


class Kglm(LatentModel):
    """The generative model."""

    copies = True

    def __init__(
        self,
        config: KglmConfig,
        vocabulary_size: int,
        features: GraphFeatures,
        *,
        generator: Generator,
    ) -> None:
        super().__init__(config, vocabulary_size, features, generator=generator)
        with seeded(generator):
            self.renderer = Renderer(*self.sizes[:2], alias_order=config.latent.alias_order)
        self.word_bias_V = nn.Parameter(torch.zeros(vocabulary_size))

    def score_words(self, h_x_FH: Tensor, chunk: Chunk) -> tuple[Tensor, Tensor]:
        """log p(x_t | entity_t) at flat positions, and whether it is scored as the unknown word."""
        target_F, inside = chunk.words.target_BT.flatten(), chunk.mention_words
        plain_F = (chunk.types.type_BT == Type.NONE).flatten() & chunk.words.real_BT.flatten()
        at_N = plain_F.nonzero()[:, 0]
        log_p_N = self.words.log_prob(h_x_FH[at_N], target_F[at_N])
        word_F = h_x_FH.new_zeros(len(target_F)).index_copy(0, at_N, log_p_N)
        unknown_F = plain_F & self.words.is_unknown(target_F)
        at_I = inside.position_I
        if not len(at_I):
            return word_F, unknown_F
        words = self.entity_words(
            h_x_FH[at_I],
            inside.entity_I,
            inside.node_U,
            inside.alias_UAL,
            target_F[at_I],
            inside.match_IJ,
            inside.order_IJ,
        )
        return word_F.index_copy(0, at_I, words.log_p_I), unknown_F.index_copy(0, at_I, words.unknown_I)

    def entity_words(
        self,
        h_x_IH: Tensor,
        entity_I: Tensor,
        node_U: Tensor,
        alias_UAL: Tensor,
        target_I: Tensor,
        match_IJ: Tensor,
        order_IJ: Tensor,
        log_z_I: Tensor | None = None,
    ) -> WordScores:
        """log p(x | entity) of words; `entity_I` are rows of the distinct entities `node_U` and `alias_UAL`.

        `log_z_I` is the sum over the vocabulary, if it has been computed already.
        """
        words = self.words
        entity_UD = self.entities.vectors(node_U)
        slot_UJH = self.renderer.encode_aliases(words, alias_UAL)
        h_IH = self.renderer.project(h_x_IH, entity_UD[entity_I])
        copy_IJ = self.renderer.copy_scores(h_IH, slot_UJH, real_slots(words, alias_UAL), order_IJ, entity_I)
        generated_I = words.score(h_IH, target_I)
        if log_z_I is None:
            log_z_I = words.log_sum(h_IH, uneven=True)
        return self.renderer.score(generated_I, log_z_I, copy_IJ, words.is_unknown(target_I), match_IJ)

    def generated_log_z(self, h_x_TH: Tensor, node_U: Tensor, t_N: Tensor, entity_N: Tensor) -> Tensor:
        """log Σ over the vocabulary of pairs of position and entity; without gradient."""
        entity_UD = self.entities.vectors(node_U)
        if len(torch.unique(t_N)) + len(node_U) >= len(t_N):
            return self.words.log_sum(self.renderer.project(h_x_TH[t_N], entity_UD[entity_N]))
        left_TH, right_UH = self.renderer.project_apart(h_x_TH, entity_UD)
        return self.words.pair_log_sums(left_TH, right_UH, t_N, entity_N)

    def plain_words(self, h_x_NH: Tensor) -> Tensor:
        """log p of every word of the vocabulary, outside mentions (N × V)."""
        return self.words.log_probs(h_x_NH)

    def every_word(self, h_x_H: Tensor, node_U: Tensor, alias_UAL: Tensor, order_UJ: Tensor) -> tuple[Tensor, Tensor]:
        """log p of generating every word (U × V) and of copying every slot (U × J), given each entity."""
        slot_UJH = self.renderer.encode_aliases(self.words, alias_UAL)
        h_UH = self.renderer.project(h_x_H.expand(len(node_U), -1), self.entities.vectors(node_U))
        each_U = torch.arange(len(node_U), device=node_U.device)
        copy_UJ = self.renderer.copy_scores(h_UH, slot_UJH, real_slots(self.words, alias_UAL), order_UJ, each_U)
        generated_UV = self.words.scores(h_UH)
        log_p = torch.cat([generated_UV, copy_UJ], -1).log_softmax(-1)
        return log_p[:, : generated_UV.shape[1]], log_p[:, generated_UV.shape[1] :]
