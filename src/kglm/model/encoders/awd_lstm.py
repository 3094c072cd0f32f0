"""The AWD-LSTM encoder: words in, hidden states out, the recurrent state passed in and returned.

encoder = EncoderConfig().build(vocabulary_size, generator=torch.Generator().manual_seed(0))
state = None
for words_BT, reset_B in chunks:
    output = encoder(words_BT, state, generator=generator, reset_B=reset_B)
    loss = ... + encoder.regularisation(output, real_BT).mean()
    state = output.state.detach()

The model is that of Merity, Keskar and Socher (2018), "Regularizing and optimizing LSTM language models": stacked LSTMs

    i, f, g, o = W_ih x_t + b_ih + (M ⊙ W_hh) h_{t-1} + b_hh
    c_t = σ(f) ⊙ c_{t-1} + σ(i) ⊙ tanh(g),    h_t = σ(o) ⊙ tanh(c_t)

with DropConnect M on the recurrent matrices, locked dropout between layers and dropout of whole word types. It reads
words only: the hidden states of a text do not depend on its annotation.

Randomness. Each forward call draws all masks from the generator that it is given and from nothing else, in a fixed
order (word types, input, then per layer W_hh and output): a generator restored to an earlier state
gives bit-identical masks. Evaluation draws nothing. A dropout of 0 draws nothing.

Shapes: B rows of a batch, T time, V vocabulary, E embedding, I / H input and hidden size of one layer, G = 4 H its
gates, D output size. Inside, time goes first (TB…): the recurrence then reads contiguous memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from kglm.config import check_range
from kglm.errors import ConfigError
from kglm.model.encoders.encoder import EncoderOutput, EncoderState, Share
from kglm.model.word_head import WordHead

WINDOW = 500
"""Words of a text that are read in one call."""
MAX_SIZE, MAX_LAYERS = 1 << 16, 100
"""Largest size of a layer, and largest number of layers."""
EMBEDDING_RANGE = 0.1
"""Word embeddings start uniform in ± this."""


@dataclass(frozen=True)
class EncoderConfig:
    """Sizes and regularisation of the encoder; the defaults are KGLM's at the paper's size."""

    embedding: int = 400
    """Size of a word embedding; input and output share one tensor."""
    hidden: int = 1150
    """Size of the LSTM layers below the last."""
    layers: int = 3
    """Number of LSTM layers."""
    output: int = 0
    """Size of the last layer; 0 chooses it: [h_x ; h_p ; h_r] for KGLM, otherwise the size of the embedding."""
    output_dropout: float = 0.4
    """Locked dropout of the last layer's output."""
    hidden_dropout: float = 0.3
    """Locked dropout between layers."""
    input_dropout: float = 0.65
    """Locked dropout of the embedded words."""
    embedding_dropout: float = 0.1
    """Share of the word types whose embedding is dropped throughout a batch."""
    unknown_dropout: float = 0.0
    """Share of the rarer word types that a batch replaces by unknown inside names, so that the model learns to copy
    names that it has never read. See `ChunkModel.hide`."""
    weight_drop: float = 0.5
    """DropConnect: share of the entries of each hidden-to-hidden matrix that is dropped for a batch."""
    activation_regularisation: float = 2.0
    """α: weight of the mean squared output in the training loss."""
    temporal_regularisation: float = 1.0
    """β: weight of the mean squared change of the output from one word to the next in the training loss."""

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if name.endswith(("dropout", "drop")):
                if not 0 <= value < 1:
                    raise ConfigError(f"{name} = {value}", remedy="a dropout is at least 0 and below 1")
            elif name.endswith("regularisation"):
                if not 0 <= value < float("inf"):
                    raise ConfigError(f"{name} = {value}", remedy="a weight in the loss is finite and at least 0")
            elif name == "layers":
                check_range(name, value, 1, MAX_LAYERS)
            else:
                check_range(name, value, int(name != "output"), MAX_SIZE)

    def for_words(self) -> EncoderConfig:
        """The encoder whose h is as long as a word embedding, so that words are predicted from it directly."""
        if self.output not in (0, self.embedding):
            raise ConfigError(
                f"encoder.output is {self.output}, but words are predicted from h, which has {self.embedding} entries",
                remedy=f"set encoder.output = {self.embedding}, or leave it out",
            )
        return replace(self, output=self.embedding)

    def for_latent(self, entity_size: int) -> EncoderConfig:
        """The encoder whose h is [h_x ; h_p ; h_r], with entity vectors of this size."""
        wanted = self.embedding + 2 * entity_size
        if self.output not in (0, wanted):
            raise ConfigError(
                f"encoder.output is {self.output}, but h = [h_x ; h_p ; h_r] has {wanted} entries",
                remedy=f"leave it out, or set {wanted} (embedding + 2 × entity vectors of {entity_size})",
            )
        return replace(self, output=wanted)

    def build(self, vocabulary_size: int, *, generator: Generator) -> AwdLstmEncoder:
        """A new encoder on the generator's device, its weights drawn from the generator."""
        return AwdLstmEncoder(self, vocabulary_size, generator=generator)


class LayerState(NamedTuple):
    """EncoderState of one layer after the last word it has read."""

    h_BH: Tensor
    c_BH: Tensor


class LstmState(tuple[LayerState, ...]):
    """The recurrent state of all layers, first layer first. Callers carry it and do not look inside."""

    __slots__ = ()

    def select(self, row_B: Tensor) -> LstmState:
        """The state of these batch rows, in this order."""
        return LstmState(LayerState(layer.h_BH[row_B], layer.c_BH[row_B]) for layer in self)

    def detach(self) -> LstmState:
        """The same state without its history: gradients stop here."""
        return LstmState(LayerState(layer.h_BH.detach(), layer.c_BH.detach()) for layer in self)

    def tensors(self) -> dict[str, Tensor]:
        """The state as named tensors, each with one line per batch row: what a checkpoint keeps."""
        return {
            f"{number}.{name}": tensor
            for number, layer in enumerate(self)
            for name, tensor in zip(LayerState._fields, layer, strict=True)
        }


class Regularisation(NamedTuple):
    """α and β terms of the training loss as sums, with the counts that turn them into means.

    They are sums because a chunk may be a part of a batch that several processes share: the means are over the batch.
    """

    activation: Tensor
    """α Σ_t mean(h_t²) over features, over the real positions, after output dropout."""
    temporal: Tensor
    """β Σ_t mean((h_t − h_{t−1})²), over pairs of neighbours that both are real, before output dropout."""
    positions: int
    pairs: int

    def mean(self, positions: int | None = None, rows: int | None = None) -> Tensor:
        """α mean(h_t²) + β mean((h_t − h_{t−1})²); a row of n positions has n − 1 pairs."""
        pairs = self.pairs if positions is None or rows is None else positions - rows
        return self.activation / max(positions or self.positions, 1) + self.temporal / max(pairs, 1)


class AwdLstmEncoder(nn.Module):
    """E → H → … → H → D. `embedding.weight` (V × E) is also the output word matrix: tie it, do not copy it."""

    def __init__(self, config: EncoderConfig, vocabulary_size: int, *, generator: Generator) -> None:
        super().__init__()
        if vocabulary_size < 1:
            raise ConfigError(f"a vocabulary of {vocabulary_size} words", remedy="give at least one word")
        self.config = config
        weight_VE = _uniform(EMBEDDING_RANGE, (vocabulary_size, config.embedding), generator)
        # with given weights: to draw its own, torch would first load its compiler, which takes seconds
        self.embedding: nn.Embedding = nn.Embedding.from_pretrained(weight_VE, freeze=False)  # type: ignore[no-untyped-call]
        self.sizes = (*[config.hidden] * (config.layers - 1), config.output or config.embedding)
        """Hidden size of each layer."""
        self.layers = nn.ModuleList(
            LSTMLayer(below, size, generator=generator) for below, size in pairwise((config.embedding, *self.sizes))
        )

    def forward(
        self,
        words_BT: Tensor,
        state: EncoderState | None = None,
        generator: Generator | None = None,
        reset_B: Tensor | None = None,
        share: Share | None = None,
    ) -> EncoderOutput:
        """Read one chunk of words per row.

        `state` is what an earlier chunk returned, None for zeros; rows flagged in `reset_B` (bool) start from zeros
        whatever it holds. `generator` draws the dropout masks: needed in training, not touched in evaluation; with a
        `share`, those of all rows of the larger batch.
        A position depends on no later one, so padding at the end of a row does not matter for the words before it;
        that row's returned state has read the padding and should be reset.
        """
        config = self.config
        if self.training and generator is None and self._draws:
            raise ValueError("training draws dropout masks: pass a torch.Generator")
        masks = generator if self.training else None
        before = self._start(words_BT, state, reset_B)

        x_TBI = self._embed(words_BT.T, masks, share)
        after = []
        for number, (layer, start) in enumerate(zip(self.layers, before, strict=True)):
            raw_TBH, end = layer(x_TBI, start, weight_drop=config.weight_drop, generator=masks)
            dropout = config.hidden_dropout if number < len(before) - 1 else config.output_dropout
            x_TBI = locked_dropout(raw_TBH, dropout, masks, share)
            after.append(end)
        return EncoderOutput(x_TBI.transpose(0, 1), raw_TBH.transpose(0, 1), LstmState(after))

    def read_text(self, words_T: Tensor, state: EncoderState | None = None) -> tuple[Tensor, EncoderState]:
        """h after each word of one text (T × D), read in windows of `WINDOW` words, and the state after the last."""
        hidden = [self.embedding.weight.new_zeros(0, self.size)]
        state = self.zero_state(1) if state is None else state
        for start in range(0, len(words_T), WINDOW):
            output = self(words_T[None, start : start + WINDOW].to(self.device), state)
            state = output.state
            hidden.append(output.h_BTD[0])
        return torch.cat(hidden), state

    def word_head(self, bias_V: Tensor | None = None) -> WordHead:
        """The output layer: its matrix is the word embedding, its bias belongs to the model."""
        return WordHead(self.embedding.weight, bias_V)

    def state_from(self, tensors: Mapping[str, Tensor]) -> LstmState:
        """The state that `LstmState.tensors` was called on."""
        fields = LayerState._fields
        layers = range(len(tensors) // len(fields))
        return LstmState(LayerState(*(tensors[f"{number}.{name}"] for name in fields)) for number in layers)

    @property
    def unknown_dropout(self) -> float:
        """Share of word types that training hides in names."""
        return self.config.unknown_dropout

    @property
    def size(self) -> int:
        """Size of h."""
        return self.sizes[-1]

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.weight.dtype

    def regularisation(self, output: EncoderOutput, real_BT: Tensor | None = None) -> Regularisation:
        """AR and TAR of a chunk, over the positions flagged in `real_BT`; None flags all.

        They belong to the training loss and to nothing else: in evaluation mode they are 0, so that no perplexity can
        contain them.
        """
        config, h_BTD, raw_BTD = self.config, output.h_BTD, output.raw_h_BTD
        zero = h_BTD.new_zeros(())
        if not self.training:
            return Regularisation(zero, zero, 0, 0)
        real_BT = torch.ones(h_BTD.shape[:2], dtype=torch.bool, device=h_BTD.device) if real_BT is None else real_BT
        pair_BT = real_BT[:, 1:] & real_BT[:, :-1]
        activation = temporal = zero
        if config.activation_regularisation:
            activation = config.activation_regularisation * _sum_mean_square(h_BTD, real_BT)
        if config.temporal_regularisation:
            temporal = config.temporal_regularisation * _sum_mean_square(raw_BTD[:, 1:] - raw_BTD[:, :-1], pair_BT)
        return Regularisation(activation, temporal, int(real_BT.sum()), int(pair_BT.sum()))

    def zero_state(self, rows: int) -> LstmState:
        """The state before a document's first word."""
        weight = self.embedding.weight
        return LstmState(LayerState(weight.new_zeros(rows, size), weight.new_zeros(rows, size)) for size in self.sizes)

    @property
    def _draws(self) -> bool:
        config = self.config
        locked = config.input_dropout + config.hidden_dropout + config.output_dropout
        return locked + config.embedding_dropout + config.weight_drop > 0

    def _embed(self, words_TB: Tensor, masks: Generator | None, share: Share | None) -> Tensor:
        """Embedded words; a dropped type is dropped wherever it stands in the batch, the others are scaled up."""
        weight_VE = self.embedding.weight
        x_TBE = functional.embedding(words_TB, weight_VE)
        if masks is not None and self.config.embedding_dropout:
            mask_V1 = _mask((len(weight_VE), 1), self.config.embedding_dropout, weight_VE, masks)
            x_TBE = x_TBE * functional.embedding(words_TB, mask_V1)
        return locked_dropout(x_TBE, self.config.input_dropout, masks, share)

    def _start(self, words_BT: Tensor, state: EncoderState | None, reset_B: Tensor | None) -> LstmState:
        """The state before the chunk: checked (the fused kernels do not), and zeros where flagged."""
        if words_BT.dim() != 2 or 0 in words_BT.shape:
            raise ValueError(f"words of shape {tuple(words_BT.shape)}; expected (rows, words), neither of them 0")
        rows = len(words_BT)
        if reset_B is not None and (reset_B.shape != (rows,) or reset_B.dtype != torch.bool):
            raise ValueError(f"reset is {reset_B.dtype} of shape {tuple(reset_B.shape)}; expected bool of ({rows},)")
        if state is None:
            return self.zero_state(rows)
        if not isinstance(state, LstmState):
            raise TypeError(f"a state of {type(state).__name__}; expected one of this encoder")
        found = [tuple(tensor.shape) for layer in state for tensor in layer]
        expected = [(rows, size) for size in self.sizes for _ in LayerState._fields]
        if found != expected:
            raise ValueError(f"a state of shapes {found}; expected {expected}")
        if reset_B is None:
            return state
        reset_B1 = reset_B[:, None]
        return LstmState(LayerState(h.masked_fill(reset_B1, 0), c.masked_fill(reset_B1, 0)) for h, c in state)


class LSTMLayer(nn.Module):
    """One LSTM layer: its raw weights, and one fused call for the whole chunk.

    The weights go into `torch.lstm` as arguments of that call, so a dropped W_hh is certainly the one used and its
    gradient flows to the raw one. (A tensor put in the place of a module's parameter is not reliable: which versions
    of `nn.LSTM` look there differs.) What is stored and optimised is always the raw matrix.
    """

    def __init__(self, input_size: int, hidden_size: int, *, generator: Generator) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        bound, gates = hidden_size**-0.5, 4 * hidden_size
        self.weight_ih = nn.Parameter(_uniform(bound, (gates, input_size), generator))
        self.weight_hh = nn.Parameter(_uniform(bound, (gates, hidden_size), generator))
        self.bias_ih = nn.Parameter(_uniform(bound, (gates,), generator))
        self.bias_hh = nn.Parameter(_uniform(bound, (gates,), generator))

    def extra_repr(self) -> str:
        return f"{self.weight_ih.shape[1]}, {self.hidden_size}"

    def forward(
        self, x_TBI: Tensor, state: LayerState, *, weight_drop: float, generator: Generator | None
    ) -> tuple[Tensor, LayerState]:
        """h_TBH and the state after; with a generator, W_hh loses entries with probability `weight_drop`."""
        weight_GH = _dropped(self.weight_hh, self.weight_hh.shape, weight_drop, generator)
        h_TBH, h_1BH, c_1BH = torch.lstm(
            x_TBI,
            (state.h_BH[None], state.c_BH[None]),
            (self.weight_ih, weight_GH, self.bias_ih, self.bias_hh),
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=torch.is_grad_enabled(),
            bidirectional=False,
            batch_first=False,
        )
        return h_TBH, LayerState(h_1BH[0], c_1BH[0])


def locked_dropout(x_TBI: Tensor, p: float, generator: Generator | None, share: Share | None = None) -> Tensor:
    """Drop features with probability p and scale the rest by 1 / (1 − p): one mask per row, the same at every t.

    Without a generator, x itself.
    """
    if share is None or generator is None or p == 0:
        return _dropped(x_TBI, (1, *x_TBI.shape[1:]), p, generator)
    return x_TBI * _mask((1, share.total, x_TBI.shape[2]), p, x_TBI, generator)[:, share.rows]


def _dropped(x: Tensor, shape: Sequence[int], p: float, generator: Generator | None) -> Tensor:
    return x if generator is None or p == 0 else x * _mask(shape, p, x, generator)


def _mask(shape: Sequence[int], p: float, like: Tensor, generator: Generator) -> Tensor:
    """0 with probability p, else 1 / (1 − p). The draw does not depend on the number type or device of `like`."""
    kept = torch.rand(tuple(shape), generator=generator, device=generator.device).ge_(p)  # 4 × faster than bernoulli_
    return kept.to(like).mul_(1 / (1 - p))


def _uniform(bound: float, shape: Sequence[int], generator: Generator) -> Tensor:
    return torch.empty(tuple(shape), device=generator.device).uniform_(-bound, bound, generator=generator)


def _sum_mean_square(x_BTD: Tensor, real_BT: Tensor) -> Tensor:
    """Mean of x² over features, summed over real positions."""
    return torch.where(real_BT, x_BTD.square().mean(-1), 0).sum()
