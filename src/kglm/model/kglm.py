"""KGLM: p(x, z), the joint distribution of words and of the facts behind them.

Legend: B rows, T targets, F = B·T; H size of h_x (= word embedding), D size of an entity vector; S, M as in `chunk`.

    log p(x, z) = Σ_t log p(type_t) + log p(entity_t | type_t) + log p(x_t | entity_t)

The encoder reads words only, so hidden states do not depend on the annotation; h_t is cut into [h_x ; h_p ; h_r].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from kglm.errors import ConfigError
from kglm.model.annotation import Type
from kglm.model.chunk import Chunk
from kglm.model.encoder import EncoderConfig, State
from kglm.model.latent import EntityTable, Latent, LatentConfig
from kglm.model.render import Renderer, real_slots
from kglm.text.vocabulary import UNKNOWN_INDEX


@dataclass(frozen=True)
class KglmConfig:
    """Sizes and options of the model. The last layer's size follows: word embedding + 2 × entity vector."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    latent: LatentConfig = field(default_factory=LatentConfig)

    def check(self, entity_size: int) -> None:
        wanted = self.encoder.embedding + 2 * entity_size
        if self.encoder.output != wanted:
            raise ConfigError(
                f"encoder.output is {self.encoder.output}, but h = [h_x ; h_p ; h_r] has {wanted} entries",
                remedy=f"set encoder.output = {wanted} (embedding + 2 × entity vectors of {entity_size})",
            )


class Scores(NamedTuple):
    """Log-probabilities at each target; padding is 0. Their sum is log p(x, z)."""

    type_BT: Tensor
    entity_BT: Tensor
    word_BT: Tensor
    unknown_BT: Tensor
    """Whether the word was paid for as the unknown word: what the unknown-penalised perplexity divides by |U|."""
    unexplained: Tensor
    """How many mention starts no fact explains: they count for type and word only."""
    regularisation: Tensor
    """What training adds to the loss, and evaluation never does."""
    state: State

    @property
    def total_BT(self) -> Tensor:
        return self.type_BT + self.entity_BT + self.word_BT


class Kglm(nn.Module):
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
        super().__init__()
        entity_size = relation_RD.shape[1]
        config.check(entity_size)
        self.config = config
        self.sizes = [config.encoder.embedding, entity_size, entity_size]
        self.encoder = config.encoder.build(vocabulary_size, generator=generator)
        with torch.random.fork_rng():  # modules of torch.nn draw from the global generator
            torch.manual_seed(int(torch.randint(1 << 62, (), generator=generator)))
            self.latent = Latent(config.latent, self.sizes[0], entities, relation_RD)
            self.renderer = Renderer(self.sizes[0], entity_size)
        self.word_bias_V = nn.Parameter(torch.zeros(vocabulary_size))

    def word_logits(self, h_SH: Tensor) -> Tensor:
        """W h + b; W is the embedding."""
        return torch.nn.functional.linear(h_SH, self.encoder.embedding.weight, self.word_bias_V)

    def forward(self, chunk: Chunk, state: State | None = None, *, generator: Generator | None = None) -> Scores:
        """Score the chunk's words and annotation."""
        output = self.encoder(chunk.words_BT, state, generator=generator, reset_B=chunk.reset_B)
        h_x_FH, h_p_FD, h_r_FD = output.h_BTD.flatten(0, 1).split(self.sizes, -1)
        latent = self.latent.score(h_x_FH, h_p_FD, h_r_FD, chunk)
        word_F, unknown_F = self._words(h_x_FH, chunk)
        entity_F = torch.zeros_like(word_F).index_copy(0, chunk.start_position_M, latent.entity_M)
        real_F = chunk.real_BT.flatten()

        def shaped(value_F: Tensor) -> Tensor:
            return value_F.masked_fill(~real_F, 0).view_as(chunk.real_BT)

        return Scores(
            shaped(latent.type_F),
            shaped(entity_F),
            shaped(word_F),
            shaped(unknown_F),
            (~latent.explained_M).sum(),
            self.encoder.regularisation(output, chunk.real_BT),
            output.state,
        )

    def _words(self, h_x_FH: Tensor, chunk: Chunk) -> tuple[Tensor, Tensor]:
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
