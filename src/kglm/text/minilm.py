"""The forward pass of a BERT encoder such as MiniLM (post norm, learned positions): texts to unit vectors.

    model = MiniLM(config, tensors, torch.float32)     # tensors by their names in BERT's safetensors
    model.encode([[101, 2016, 2001, 2141, 102]])       # N texts as ids -> N × D

It gives what `transformers` gives (`tests/text/test_minilm.py`) without its overhead, which is most of
the time of one short text. Weights may be any tensors with these names, so an adapted encoder is this model with other
weights.

Legend: N texts, T subwords of the longest, X subwords of all texts without padding, D dimensions, H heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import torch
from torch import Tensor
from torch.nn import functional

from kglm.errors import DataError

NORM = "LayerNorm"


class MiniLMConfig(msgspec.Struct, frozen=True):
    """Sizes, under their names in `config.json`; other entries of it are ignored."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    vocab_size: int
    max_position_embeddings: int
    layer_norm_eps: float = 1e-12


class _Layer(NamedTuple):
    """Weights and biases of a layer."""

    qkv: tuple[Tensor, Tensor]
    out: tuple[Tensor, Tensor]
    out_norm: tuple[Tensor, Tensor]
    up: tuple[Tensor, Tensor]
    down: tuple[Tensor, Tensor]
    down_norm: tuple[Tensor, Tensor]


class MiniLM:
    """A BERT encoder whose vectors are means over the last states of a text's subwords, divided by their length."""

    def __init__(self, config: MiniLMConfig, tensors: Mapping[str, Tensor], dtype: torch.dtype = torch.float32) -> None:
        """`dtype`: type in which states are multiplied with weights; norms are in single precision."""
        self.config, self.dtype = config, dtype
        prefix = "bert." if "bert.embeddings.word_embeddings.weight" in tensors else ""

        def read(name: str, *shape: int) -> Tensor:
            found = tensors.get(prefix + name)
            if found is None or found.shape != shape:
                raise DataError(f"the encoder has no tensor {name} of shape {shape}", remedy="install it again")
            return found.float()

        size = config.hidden_size
        inner = len(tensors.get(f"{prefix}encoder.layer.0.intermediate.dense.bias", ()))

        def linear(names: Sequence[str], rows: int, columns: int) -> tuple[Tensor, Tensor]:
            weights = torch.cat([read(f"{name}.weight", rows, columns) for name in names])
            return weights.to(dtype).contiguous(), torch.cat([read(f"{name}.bias", rows) for name in names]).to(dtype)

        def norm(name: str) -> tuple[Tensor, Tensor]:
            return read(f"{name}.{NORM}.weight", size), read(f"{name}.{NORM}.bias", size)

        self._word_VD = read("embeddings.word_embeddings.weight", config.vocab_size, size)
        position_LD = read("embeddings.position_embeddings.weight", config.max_position_embeddings, size)
        kinds = tensors.get(f"{prefix}embeddings.token_type_embeddings.weight", torch.zeros(0, size))
        self._position_LD = position_LD + read("embeddings.token_type_embeddings.weight", len(kinds), size)[0]
        self._norm = norm("embeddings")
        self._layers = []
        for k in range(config.num_hidden_layers):
            name = f"encoder.layer.{k}"
            self._layers.append(
                _Layer(
                    linear([f"{name}.attention.self.{part}" for part in ("query", "key", "value")], size, size),
                    linear([f"{name}.attention.output.dense"], size, size),
                    norm(f"{name}.attention.output"),
                    linear([f"{name}.intermediate.dense"], inner, size),
                    linear([f"{name}.output.dense"], size, inner),
                    norm(f"{name}.output"),
                )
            )

    @torch.inference_mode()
    def encode(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """Unit vectors of texts given as ids of subwords, marks included (N × D)."""
        return self.vectors(texts)

    def vectors(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """As `encode`, with gradients of the weights."""
        length_N = torch.tensor([len(text) for text in texts])
        row_X = torch.repeat_interleave(torch.arange(len(texts)), length_N)
        first_N = length_N.cumsum(0) - length_N
        place_X = torch.arange(len(row_X)) - first_N[row_X]
        id_X = torch.tensor([id for text in texts for id in text])
        x_XD = self._normalised(self._word_VD[id_X] + self._position_LD[place_X], self._norm)
        mask_NT = torch.arange(int(length_N.max())) < length_N[:, None]
        for layer in self._layers:
            x_XD = self._layer(layer, x_XD, row_X, place_X, mask_NT)
        sum_ND = torch.zeros(len(texts), x_XD.shape[1]).index_add_(0, row_X, x_XD)
        return functional.normalize(sum_ND / length_N[:, None], dim=-1)

    def _layer(self, layer: _Layer, x_XD: Tensor, row_X: Tensor, place_X: Tensor, mask_NT: Tensor) -> Tensor:
        heads, low_XD = self.config.num_attention_heads, x_XD.to(self.dtype)
        qkv_XC = functional.linear(low_XD, *layer.qkv)
        one = len(mask_NT) == 1
        if one:
            qkv_NTC = qkv_XC[None]
        else:
            qkv_NTC = qkv_XC.new_zeros(*mask_NT.shape, qkv_XC.shape[1])
            qkv_NTC[row_X, place_X] = qkv_XC
        query, key, value = qkv_NTC.view(*mask_NT.shape, 3, heads, -1).permute(2, 0, 3, 1, 4)
        mixed_NHTd = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=None if one else mask_NT[:, None, None]
        )
        mixed_NTD = mixed_NHTd.transpose(1, 2).flatten(2)
        mixed_XD = mixed_NTD[0] if one else mixed_NTD[row_X, place_X]
        x_XD = self._normalised(x_XD + functional.linear(mixed_XD, *layer.out), layer.out_norm)
        inner_XF = functional.gelu(functional.linear(x_XD.to(self.dtype), *layer.up))
        return self._normalised(x_XD + functional.linear(inner_XF, *layer.down), layer.down_norm)

    def _normalised(self, x_XD: Tensor, norm: tuple[Tensor, Tensor]) -> Tensor:
        return functional.layer_norm(x_XD, (self.config.hidden_size,), *norm, self.config.layer_norm_eps)
