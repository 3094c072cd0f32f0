"""What the model p and the proposal q have in common: sizes, the parts they are built of, the form of their scores.

Legend: B rows, T targets, F = B·T; M mention starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from kglm.errors import ConfigError
from kglm.model.chunk import Chunk
from kglm.model.encoders.awd_lstm import Encoder, EncoderConfig, EncoderOutput, Regularisation, State
from kglm.model.entities import EntityTable
from kglm.model.latent import Hidden, Latent, LatentScores, twin
from kglm.model.options import LatentConfig
from kglm.model.word_head import WordHead

COMPONENTS = ("type", "new", "parent", "relation", "word_entity", "word_none")
"""What the log-probability of a target is made of; words inside mentions and outside are apart."""
COMMON = 200
"""So many words of a vocabulary, the most frequent, are never hidden."""


@dataclass(frozen=True)
class KglmConfig:
    """Sizes and options of the model. The last layer's size follows: word embedding + 2 × entity vector."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    latent: LatentConfig = field(default_factory=LatentConfig)

    def sized(self, entity_size: int) -> EncoderConfig:
        """The encoder for entity vectors of this size."""
        wanted = self.encoder.embedding + 2 * entity_size
        if self.encoder.output not in (0, wanted):
            raise ConfigError(
                f"encoder.output is {self.encoder.output}, but h = [h_x ; h_p ; h_r] has {wanted} entries",
                remedy=f"leave it out, or set {wanted} (embedding + 2 × entity vectors of {entity_size})",
            )
        return replace(self.encoder, output=wanted)


class Scores(NamedTuple):
    """Log-probabilities at each target; padding is 0. Their sum is log p(x, z)."""

    type_BT: Tensor
    new_BT: Tensor
    """At the first word of a mention: its entity, drawn from all;"""
    parent_BT: Tensor
    """or a parent that reaches it,"""
    relation_BT: Tensor
    """and that it is reached."""
    word_BT: Tensor
    unknown_BT: Tensor
    """Whether the word was paid for as the unknown word: what the unknown-penalised perplexity divides by |U|."""
    unexplained: Tensor
    """How many mention starts no fact explains: they count for type and word only."""
    regularisation: Regularisation
    """What training adds to the loss, and evaluation never does."""
    state: State

    @property
    def entity_BT(self) -> Tensor:
        return self.new_BT + self.parent_BT + self.relation_BT

    @property
    def total_BT(self) -> Tensor:
        return self.type_BT + self.entity_BT + self.word_BT


class ChunkModel(nn.Module):
    """A model that scores chunks of documents: what training and evaluation work with."""

    grows: frozenset[str] = frozenset()
    """Tensors with one row for each entity or relation: when a graph has gained some, these keep their first value."""
    ahead = 0
    """Whether inputs end before the target (0) or include it (1): see `ChunkBuilder.build`."""
    copies = False
    """Whether it copies words of names."""

    encoder: Encoder

    def forward(self, chunk: Chunk, state: State | None = None, *, generator: Generator | None = None) -> Scores:
        raise NotImplementedError

    def read(self, chunk: Chunk, state: State | None, generator: Generator | None) -> EncoderOutput:
        """What the encoder makes of the words."""
        output: EncoderOutput = self.encoder(
            chunk.words_BT, state, generator=generator, reset_B=chunk.reset_B, share=chunk.share
        )
        return output

    def hide(self, chunk: Chunk, generator: Generator | None) -> Chunk:
        """In training, the chunk as it would be if some words of names were not in the vocabulary.

        Of each word type, all that stand in names are hidden or none: those that are read, those of aliases, and those
        that can be copied from an alias, which then are copied or nothing. The most frequent words are never hidden.
        """
        share = self.encoder.config.unknown_dropout
        if not self.training or not share:
            return chunk
        if generator is None:
            raise ValueError("training draws which words are hidden: pass a torch.Generator")
        draw_V = torch.rand(len(self.words), generator=generator, device=generator.device)
        unknown = self.words.unknown
        hidden_V = (draw_V < share).to(chunk.words_BT.device)
        hidden_V[:COMMON] = False
        names_BT = chunk.mention_BT if self.ahead else functional.pad(chunk.mention_BT[:, :-1], (1, 0))
        words_BT = chunk.words_BT.masked_fill(hidden_V[chunk.words_BT] & names_BT, unknown)
        if not self.copies:
            return replace(chunk, words_BT=words_BT)
        alias_UAL = chunk.alias_UAL.masked_fill(hidden_V[chunk.alias_UAL], unknown)
        at_S, target_F = chunk.word_position_S[chunk.match_SJ.any(-1)], chunk.targets_BT.flatten()
        target_S = target_F[at_S].masked_fill(hidden_V[target_F[at_S]], unknown)
        targets_BT = target_F.index_copy(0, at_S, target_S).view_as(chunk.targets_BT)
        return replace(chunk, words_BT=words_BT, alias_UAL=alias_UAL, targets_BT=targets_BT)

    @property
    def words(self) -> WordHead:
        """The output layer over words; a model that generates none has no bias."""
        return self.encoder.word_head(getattr(self, "word_bias_V", None))

    def zero_state(self, rows: int) -> State:
        """The state before the first word of a document, for this many batch rows."""
        return self.encoder.zero_state(rows)

    @property
    def dtype(self) -> torch.dtype:
        return self.encoder.dtype

    def score(self, chunk: Chunk, state: State | None = None, *, generator: Generator | None = None) -> Scores:
        """`forward` with its hooks, and with its type."""
        scores: Scores = self(chunk, state, generator=generator)
        return scores


@contextmanager
def seeded(generator: Generator) -> Iterator[None]:
    """Modules of torch.nn draw from the global generator: in here it follows from `generator`, and is then restored."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(1 << 62, (), generator=generator, device=generator.device)))
        yield


class LatentModel(ChunkModel):
    """A model with the latent variables: an encoder, its h = [h_x ; h_p ; h_r] cut into `sizes`, and their heads."""

    grows = frozenset({"latent.relation_RD", "latent.entity_bias_E"})

    def __init__(
        self,
        config: KglmConfig,
        vocabulary_size: int,
        entities: EntityTable,
        *,
        generator: Generator,
    ) -> None:
        super().__init__()
        words, entity_size = config.encoder.embedding, entities.relation_RD.shape[1]
        self.config = config
        self.sizes = [words, entity_size, entity_size]
        self.encoder = config.sized(entity_size).build(vocabulary_size, generator=generator)
        with seeded(generator):
            self.latent = Latent(config.latent, words, entities)

    def forward(self, chunk: Chunk, state: State | None = None, *, generator: Generator | None = None) -> Scores:
        """Score the chunk's annotation, and its words if the model generates them."""
        chunk = self.hide(chunk, generator)
        output = self.read(chunk, state, generator)
        hidden = self.hidden(output.h_BTD.flatten(0, 1))
        latent = self.latent.score(hidden, chunk, self.words)
        word_F, unknown_F = self.score_words(hidden.x, chunk)
        return assemble(latent, word_F, unknown_F, chunk, self.encoder, output)

    def hidden(self, h: Tensor) -> Hidden:
        """[h_x ; h_p ; h_r]: for this encoder parts of its h."""
        return Hidden(*torch.split(h, self.sizes, -1))

    def on(self, entities: EntityTable, trained: int) -> Self:
        """The same model on a graph that was edited since: see `Latent.on`."""
        other = twin(self)
        other._modules["latent"] = self.latent.on(entities, trained)
        return other

    def score_words(self, h_x_FH: Tensor, chunk: Chunk) -> tuple[Tensor, Tensor]:
        """log p(x_t | entity_t) at flat positions, and whether it was paid for as the unknown word."""
        raise NotImplementedError


def assemble(
    latent: LatentScores, word_F: Tensor, unknown_F: Tensor, chunk: Chunk, encoder: Encoder, output: EncoderOutput
) -> Scores:
    """Put the scores of flat positions and of mention starts into the chunk's form."""
    real_F = chunk.real_BT.flatten()

    def shaped(value_F: Tensor) -> Tensor:
        return value_F.masked_fill(~real_F, 0).view_as(chunk.real_BT)

    def at_starts(value_M: Tensor) -> Tensor:
        return shaped(torch.zeros_like(word_F).index_copy(0, chunk.start_position_M, value_M))

    return Scores(
        shaped(latent.type_F),
        at_starts(latent.new_M),
        at_starts(latent.parent_M),
        at_starts(latent.relation_M),
        shaped(word_F),
        shaped(unknown_F),
        (~latent.explained_M).sum(),
        encoder.regularisation(output, chunk.real_BT),
        output.state,
    )
