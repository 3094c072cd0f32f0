"""What all models have in common: how they are called, the form of their scores; and the base of p and q."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from kglm.model.arrays import Floats
from kglm.model.chunk import Chunk
from kglm.model.cues import TextCues
from kglm.model.encoders.awd_lstm import EncoderConfig
from kglm.model.encoders.encoder import Encoder, EncoderOutput, EncoderState, ExtraLoss
from kglm.model.entities import EntityTable
from kglm.model.graph_features import GraphFeatures
from kglm.model.latent import Hidden, Latent, LatentScores, TextLatent
from kglm.model.options import LatentConfig
from kglm.model.word_head import WordHead

COMPONENTS = ("type", "new", "parent", "relation", "word_entity", "word_none")
"""Components of the log-probability of a position; words inside and outside of mentions are apart."""
COMMON = 200
"""The most frequent words of a vocabulary, which are never hidden."""


@dataclass(frozen=True)
class KglmConfig:
    """Sizes and options of the model. The last layer's size follows: word embedding + 2 × entity vector."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    latent: LatentConfig = field(default_factory=LatentConfig)


class Scores(NamedTuple):
    """Log-probabilities at each position; padding is 0. `total_BT` sums to log p(x, z)."""

    type_BT: Tensor
    new_BT: Tensor
    """At mention starts: log p(entity | new), or 0 for related mentions."""
    parent_BT: Tensor
    """At starts of related mentions: log P(a parent with a path to the entity)."""
    relation_BT: Tensor
    """At starts of related mentions: log P(relation and tail | such a parent)."""
    word_BT: Tensor
    unknown_BT: Tensor
    """True if the word is scored as the unknown word: unknown-penalised perplexity divides its probability by |U|."""
    unexplained: Tensor
    """Number of mention starts that no fact explains: only their type and words are scored."""
    asked_BT: Tensor
    """What training adds, beside log p(x, z): log p(the text asks for the facts that are hidden there | related)."""
    regularisation: ExtraLoss
    """Terms that training adds to the loss; evaluation never does."""
    state: EncoderState

    @property
    def entity_BT(self) -> Tensor:
        return self.new_BT + self.parent_BT + self.relation_BT

    @property
    def total_BT(self) -> Tensor:
        return self.type_BT + self.entity_BT + self.word_BT


class ChunkModel(nn.Module):
    """A model that scores chunks of documents: what training and evaluation work with."""

    grows: frozenset[str] = frozenset()
    """Parameters with a row for each entity or relation. If a graph has gained some since training, the rows of these
    keep their initial values."""
    ahead = 0
    """1 if the inputs include the word at the position itself: see `ChunkBuilder.build`."""
    copies = False
    """True if it copies words of names."""

    encoder: Encoder

    def forward(self, chunk: Chunk, state: EncoderState | None = None, *, generator: Generator | None = None) -> Scores:
        raise NotImplementedError

    def score(self, chunk: Chunk, state: EncoderState | None = None, *, generator: Generator | None = None) -> Scores:
        """`forward` with its hooks, and with its type."""
        scores: Scores = self(chunk, state, generator=generator)
        return scores

    def read(self, chunk: Chunk, state: EncoderState | None, generator: Generator | None) -> EncoderOutput:
        """Run the encoder over the words."""
        output: EncoderOutput = self.encoder(
            chunk.words.input_BT, state, generator=generator, reset_B=chunk.words.reset_B, share=chunk.share
        )
        return output

    def on(self, features: GraphFeatures) -> Self:
        """The same weights with the features of another graph; a model without facts stays as it is."""
        del features
        return self

    def hide(self, chunk: Chunk, generator: Generator | None) -> Chunk:
        """In training: the chunk as it would be if some words of names were not in the vocabulary.

        A hidden word type is hidden everywhere in names: in the inputs, in aliases, and in targets that can be copied,
        which then can only be copied. The most frequent words are never hidden.
        """
        share = self.encoder.unknown_dropout
        if not self.training or not share:
            return chunk
        if generator is None:
            raise ValueError("training draws which words are hidden: pass a torch.Generator")
        words, inside = chunk.words, chunk.mention_words
        draw_V = torch.rand(len(self.words), generator=generator, device=generator.device)
        unknown = self.words.unknown
        hidden_V = (draw_V < share).to(words.input_BT.device)
        hidden_V[:COMMON] = False
        names_BT = chunk.mention_BT if self.ahead else functional.pad(chunk.mention_BT[:, :-1], (1, 0))
        input_BT = words.input_BT.masked_fill(hidden_V[words.input_BT] & names_BT, unknown)
        if not self.copies:
            return replace(chunk, words=replace(words, input_BT=input_BT))
        alias_UAL = inside.alias_UAL.masked_fill(hidden_V[inside.alias_UAL], unknown)
        at_I, target_F = inside.position_I[inside.match_IJ.any(-1)], words.target_BT.flatten()
        target_I = target_F[at_I].masked_fill(hidden_V[target_F[at_I]], unknown)
        target_BT = target_F.index_copy(0, at_I, target_I).view_as(words.target_BT)
        words = replace(words, input_BT=input_BT, target_BT=target_BT)
        return replace(chunk, words=words, mention_words=replace(inside, alias_UAL=alias_UAL))

    @property
    def words(self) -> WordHead:
        """The output layer over words; a model that generates none has no bias."""
        return self.encoder.word_head(getattr(self, "word_bias_V", None))

    def zero_state(self, rows: int) -> EncoderState:
        """The state before the first word of a document, for this many batch rows."""
        return self.encoder.zero_state(rows)

    def state_from(self, tensors: Mapping[str, Tensor]) -> EncoderState:
        """The state whose `tensors` are given, from a checkpoint."""
        return self.encoder.state_from(tensors)

    @property
    def dtype(self) -> torch.dtype:
        return self.encoder.dtype


@contextmanager
def seeded(generator: Generator) -> Iterator[None]:
    """Within this context the global generator, which torch.nn draws from, is seeded from `generator`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(1 << 62, (), generator=generator, device=generator.device)))
        yield


class LatentModel(ChunkModel):
    """A model with the latent variables: an encoder, its h = [h_x ; h_p ; h_r] cut into `sizes`, and their heads."""

    grows = frozenset({"latent.relations.vector_RD", "latent.new_entities.bias_E"})

    def __init__(
        self,
        config: KglmConfig,
        vocabulary_size: int,
        features: GraphFeatures,
        *,
        generator: Generator,
    ) -> None:
        super().__init__()
        if features.entities is None:
            raise ValueError(f"{type(self).__name__} needs entity vectors: the graph features have none")
        words, entity_size = config.encoder.embedding, features.entities.size
        self.config = config
        self.features = features
        self.sizes = [words, entity_size, entity_size]
        self.encoder = config.encoder.for_latent(entity_size).build(vocabulary_size, generator=generator)
        with seeded(generator):
            self.latent = Latent(config.latent, words, self.entities)

    @property
    def entities(self) -> EntityTable:
        """Vectors of the graph's entities and relations."""
        assert self.features.entities is not None
        return self.features.entities

    def on(self, features: GraphFeatures) -> Self:
        """The same weights, not copied, with the features of another graph: an edit takes nothing else."""
        other, like = copy.copy(self), self.entities.vector_XD
        other.features = features.map(lambda tensor: tensor.to(like if tensor.is_floating_point() else like.device))
        return other

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Moves of the module, and changes of its type, apply to the graph's tensors, too."""
        self.features = self.features.map(fn)
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def forward(self, chunk: Chunk, state: EncoderState | None = None, *, generator: Generator | None = None) -> Scores:
        """Score the chunk's annotation, and its words if the model generates them."""
        chunk = self.hide(chunk, generator)
        output = self.read(chunk, state, generator)
        hidden = self.hidden(output.h_BTD.flatten(0, 1))
        latent = self.latent.score(hidden, chunk, self.words, self.entities)
        word_F, unknown_F = self.score_words(hidden.x, chunk)
        return assemble(latent, word_F, unknown_F, chunk, self.encoder, output)

    def hidden(self, h: Tensor) -> Hidden:
        """[h_x ; h_p ; h_r]: pieces of the encoder's h."""
        return Hidden(*torch.split(h, self.sizes, -1))

    def text_latent(
        self,
        h_TD: Tensor,
        cues: TextCues | None,
        *,
        first: int = 0,
        temperature: float = 1.0,
        relation_RD: Tensor | None = None,
        log_z_T: Floats | None = None,
    ) -> TextLatent:
        """The latent variables along a text whose hidden states, from position `first` on, are given.

        `relation_RD` and `log_z_T` are parts of the result that callers may keep: see `TextLatent`.
        """
        if relation_RD is None:
            relation_RD = self.relation_vectors()
        return TextLatent(
            self.latent,
            self.hidden(h_TD),
            self.features,
            relation_RD,
            cues,
            first=first,
            temperature=temperature,
            log_z_T=log_z_T,
        )

    def relation_vectors(self) -> Tensor:
        """v_r of all relations."""
        return self.latent.relations.vectors(self.words, self.entities)

    def score_words(self, h_x_FH: Tensor, chunk: Chunk) -> tuple[Tensor, Tensor]:
        """log p(x_t | entity_t) at flat positions, and whether it is scored as the unknown word."""
        raise NotImplementedError


def assemble(
    latent: LatentScores, word_F: Tensor, unknown_F: Tensor, chunk: Chunk, encoder: Encoder, output: EncoderOutput
) -> Scores:
    """Put the scores of flat positions and of mention starts into the shape of the chunk."""
    real_BT = chunk.words.real_BT

    def shaped(value_F: Tensor) -> Tensor:
        return value_F.masked_fill(~real_BT.flatten(), 0).view_as(real_BT)

    def at_starts(value_M: Tensor) -> Tensor:
        return shaped(torch.zeros_like(word_F).index_copy(0, chunk.starts.position_M, value_M))

    return Scores(
        shaped(latent.type_F),
        at_starts(latent.new_M),
        at_starts(latent.parent_M),
        at_starts(latent.relation_M),
        shaped(word_F),
        shaped(unknown_F),
        (~latent.explained_M).sum(),
        at_starts(latent.asked_M),
        encoder.regularisation(output, real_BT),
        output.state,
    )
