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
from kglm.model.latent import EntityTable
from kglm.model.parts import KglmConfig, LatentModel, seeded
from kglm.model.render import Renderer, real_slots
from kglm.text.vocabulary import UNKNOWN_INDEX


class Kglm(LatentModel):
    """The generative model."""

    def __init__(
        self,
        config: KglmConfig,
        vocabulary_size: int,
        entities: EntityTable,
        relation_RD: Tensor,
        *,
        generator: Generator,
    ) -> None:
        super().__init__(config, vocabulary_size, entities, relation_RD, generator=generator)
        with seeded(generator):
            self.renderer = Renderer(*self.sizes[:2])
        self.word_bias_V = nn.Parameter(torch.zeros(vocabulary_size))

    def word_logits(self, h_SH: Tensor) -> Tensor:
        """W h + b; W is the embedding."""
        return torch.nn.functional.linear(h_SH, self.encoder.embedding.weight, self.word_bias_V)

    def score_words(self, h_x_FH: Tensor, chunk: Chunk) -> tuple[Tensor, Tensor]:
        """log p(x_t | entity_t); the vocabulary softmax is computed once a position, plain or projected."""
        target_F = chunk.targets_BT.flatten()
        plain_F = (chunk.type_BT == Type.NONE).flatten() & chunk.real_BT.flatten()
        at_P = plain_F.nonzero()[:, 0]
        log_plain = -torch.nn.functional.cross_entropy(self.word_logits(h_x_FH[at_P]), target_F[at_P], reduction="none")
        word_F = h_x_FH.new_zeros(len(target_F)).index_copy(0, at_P, log_plain)
        unknown_F = plain_F & (target_F == UNKNOWN_INDEX)
        at_S = chunk.word_position_S
        if not len(at_S):
            return word_F, unknown_F
        entity_UD = self.latent.entity_vectors(chunk.node_U)
        slot_UJH = self.renderer.encode_aliases(self.encoder.embedding.weight, chunk.alias_UAL)
        h_SH = self.renderer.project(h_x_FH[at_S], entity_UD[chunk.word_entity_S])
        copy_SJ = self.renderer.copy_scores(
            h_SH, slot_UJH[chunk.word_entity_S], real_slots(chunk.alias_UAL)[chunk.word_entity_S]
        )
        words = self.renderer.score(self.word_logits(h_SH), copy_SJ, target_F[at_S], chunk.match_SJ)
        return word_F.index_copy(0, at_S, words.log_p_S), unknown_F.index_copy(0, at_S, words.unknown_S)
