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
from kglm.model.render import Renderer, real_slots
from kglm.model.softmax import linear_logsumexp, linear_score
from kglm.text.vocabulary import UNKNOWN_INDEX


class Kglm(LatentModel):
    """The generative model."""

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
            self.renderer = Renderer(*self.sizes[:2])
        self.word_bias_V = nn.Parameter(torch.zeros(vocabulary_size))

    def score_words(self, h_x_FH: Tensor, chunk: Chunk) -> tuple[Tensor, Tensor]:
        """log p(x_t | entity_t); W is the embedding. The sum over the vocabulary is made once a position."""
        target_F = chunk.targets_BT.flatten()
        plain_F = (chunk.type_BT == Type.NONE).flatten() & chunk.real_BT.flatten()
        at_P = plain_F.nonzero()[:, 0]
        weight_VH, bias_V = self.encoder.embedding.weight, self.word_bias_V
        score_P = linear_score(h_x_FH[at_P], weight_VH, bias_V, target_F[at_P])
        log_p_P = score_P - linear_logsumexp(h_x_FH[at_P], weight_VH, bias_V)
        word_F = h_x_FH.new_zeros(len(target_F)).index_copy(0, at_P, log_p_P)
        unknown_F = plain_F & (target_F == UNKNOWN_INDEX)
        at_S = chunk.word_position_S
        if not len(at_S):
            return word_F, unknown_F
        entity_UD = self.latent.entity_vectors(chunk.node_U)
        slot_UJH = self.renderer.encode_aliases(weight_VH, chunk.alias_UAL)
        h_SH = self.renderer.project(h_x_FH[at_S], entity_UD[chunk.word_entity_S])
        copy_SJ = self.renderer.copy_scores(
            h_SH, slot_UJH[chunk.word_entity_S], real_slots(chunk.alias_UAL)[chunk.word_entity_S]
        )
        generated_S = linear_score(h_SH, weight_VH, bias_V, target_F[at_S])
        log_z_S = linear_logsumexp(h_SH, weight_VH, bias_V, uneven=True)
        words = self.renderer.score(generated_S, log_z_S, copy_SJ, target_F[at_S], chunk.match_SJ)
        return word_F.index_copy(0, at_S, words.log_p_S), unknown_F.index_copy(0, at_S, words.unknown_S)
