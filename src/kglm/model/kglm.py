"""KGLM: p(x, z), the joint distribution of words and of the facts behind them.

Legend: B rows, T targets, F = B·T; H size of h_x (= word embedding), D size of an entity vector; S, M as in `chunk`.

    log p(x, z) = Σ_t log p(type_t) + log p(entity_t | type_t) + log p(x_t | entity_t)

The encoder reads words only, so hidden states do not depend on the annotation; h_t is cut into [h_x ; h_p ; h_r].
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

from kglm.model.annotation import Type
from kglm.model.chunk import Chunk
from kglm.model.entities import EntityTable
from kglm.model.parts import KglmConfig, LatentModel, seeded
from kglm.model.render import Renderer, WordScores, real_slots


class Kglm(LatentModel):
    """The generative model."""

    copies = True

    def __init__(
        self,
        config: KglmConfig,
        vocabulary_size: int,
        entities: EntityTable,
        *,
        generator: Generator,
    ) -> None:
        super().__init__(config, vocabulary_size, entities, generator=generator)
        with seeded(generator):
            self.renderer = Renderer(*self.sizes[:2], alias_order=config.latent.alias_order)
        self.word_bias_V = nn.Parameter(torch.zeros(vocabulary_size))

    def score_words(self, h_x_FH: Tensor, chunk: Chunk) -> tuple[Tensor, Tensor]:
        """log p(x_t | entity_t); W is the embedding. The sum over the vocabulary is made once a position."""
        target_F = chunk.targets_BT.flatten()
        plain_F = (chunk.type_BT == Type.NONE).flatten() & chunk.real_BT.flatten()
        at_P = plain_F.nonzero()[:, 0]
        log_p_P = self.words.log_prob(h_x_FH[at_P], target_F[at_P])
        word_F = h_x_FH.new_zeros(len(target_F)).index_copy(0, at_P, log_p_P)
        unknown_F = plain_F & self.words.is_unknown(target_F)
        at_S = chunk.word_position_S
        if not len(at_S):
            return word_F, unknown_F
        words = self.entity_words(
            h_x_FH[at_S],
            chunk.word_entity_S,
            chunk.node_U,
            chunk.alias_UAL,
            target_F[at_S],
            chunk.match_SJ,
            chunk.order_SJ,
        )
        return word_F.index_copy(0, at_S, words.log_p_S), unknown_F.index_copy(0, at_S, words.unknown_S)

    def entity_words(
        self,
        h_x_SH: Tensor,
        place_S: Tensor,
        node_U: Tensor,
        alias_UAL: Tensor,
        target_S: Tensor,
        match_SJ: Tensor,
        order_SJ: Tensor,
        log_z_S: Tensor | None = None,
    ) -> WordScores:
        """log p(x | entity) of words of which `place_S` says whose they are, among the distinct entities.

        `log_z_S` is the sum over the vocabulary, where it is known already.
        """
        words = self.words
        entity_UD = self.latent.entity_vectors(node_U)
        slot_UJH = self.renderer.encode_aliases(words, alias_UAL)
        h_SH = self.renderer.project(h_x_SH, entity_UD[place_S])
        copy_SJ = self.renderer.copy_scores(h_SH, slot_UJH, real_slots(words, alias_UAL), order_SJ, place_S)
        generated_S = words.score(h_SH, target_S)
        if log_z_S is None:
            log_z_S = words.log_sum(h_SH, uneven=True)
        return self.renderer.score(generated_S, log_z_S, copy_SJ, words.is_unknown(target_S), match_SJ)

    def generated_log_z(self, h_x_TH: Tensor, node_U: Tensor, t_P: Tensor, place_P: Tensor) -> Tensor:
        """log Σ over the vocabulary of pairs of position and entity; without gradient."""
        entity_UD = self.latent.entity_vectors(node_U)
        if len(torch.unique(t_P)) + len(node_U) >= len(t_P):
            return self.words.log_sum(self.renderer.project(h_x_TH[t_P], entity_UD[place_P]))
        left_TH, right_UH = self.renderer.project_apart(h_x_TH, entity_UD)
        return self.words.pair_log_sums(left_TH, right_UH, t_P, place_P)

    def plain_words(self, h_x_SH: Tensor) -> Tensor:
        """log p of every word of the vocabulary, outside mentions (S × V)."""
        return self.words.log_probs(h_x_SH)

    def every_word(self, h_x_H: Tensor, node_U: Tensor, alias_UAL: Tensor, order_UJ: Tensor) -> tuple[Tensor, Tensor]:
        """log p of generating every word (U × V) and of copying every slot (U × J), given each entity."""
        slot_UJH = self.renderer.encode_aliases(self.words, alias_UAL)
        h_UH = self.renderer.project(h_x_H.expand(len(node_U), -1), self.latent.entity_vectors(node_U))
        each_U = torch.arange(len(node_U), device=node_U.device)
        copy_UJ = self.renderer.copy_scores(h_UH, slot_UJH, real_slots(self.words, alias_UAL), order_UJ, each_U)
        generated_UV = self.words.scores(h_UH)
        log_p = torch.cat([generated_UV, copy_UJ], -1).log_softmax(-1)
        return log_p[:, : generated_UV.shape[1]], log_p[:, generated_UV.shape[1] :]
