"""The forward pass of a Llama model (RMS norm, rotary positions, grouped attention, gated layers), for inference.

It gives what `transformers` gives (`tests/pretrained/test_llama.py`), and decodes faster: its weights may be packed,
and a step has little overhead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec
import torch
from torch import Tensor
from torch.nn import functional

from kglm.errors import DataError
from kglm.files.records import Count
from kglm.pretrained.matrices import Matrix, matrix

POSITIONS = 1024
"""Positions whose rotations are computed at first."""
_Positive = Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]


class LlamaConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes of a model."""

    vocabulary: _Positive
    hidden: _Positive
    inner: _Positive
    layers: _Positive
    heads: _Positive
    kv_heads: _Positive
    head_size: _Positive
    context: _Positive
    theta: Annotated[float, msgspec.Meta(gt=0, le=1e12)]
    """Base of the rotary frequencies."""
    epsilon: Annotated[float, msgspec.Meta(gt=0, le=1)]
    """Added to the mean square in RMS norms."""
    tied: bool = True
    """The output matrix is that of the input embeddings."""
    start: Count = 0
    """Subword that starts a text."""

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} heads, {self.kv_heads} heads of keys and values")
        if self.head_size % 2:
            raise ValueError(f"heads of odd size {self.head_size}")

    @classmethod
    def checked(cls, **values: object) -> LlamaConfig:
        """Sizes of which each has its type and is in its range; a ValueError names the one that is not."""
        return msgspec.convert(values, cls)


class KeyValues:
    """Keys and values of the subwords read so far, for each layer (B × K × L × head size)."""

    def __init__(self, layers: int) -> None:
        self.length = 0
        self._keys: list[Tensor | None] = [None] * layers
        self._values: list[Tensor | None] = [None] * layers

    def extended(self, layer: int, key_BKTd: Tensor, value_BKTd: Tensor) -> tuple[Tensor, Tensor]:
        """Store keys and values behind those of the subwords before; return all of them."""
        return self._extend(self._keys, layer, key_BKTd), self._extend(self._values, layer, value_BKTd)

    def _extend(self, stored: list[Tensor | None], layer: int, new_BKTd: Tensor) -> Tensor:
        needed, table = self.length + new_BKTd.shape[2], stored[layer]
        if table is None or table.shape[2] < needed:
            rows, heads, _, size = new_BKTd.shape
            grown = new_BKTd.new_empty(rows, heads, max(needed, 2 * self.length, 64), size)
            if table is not None:
                grown[:, :, : self.length] = table[:, :, : self.length]
            table = stored[layer] = grown
        table[:, :, self.length : needed] = new_BKTd
        return table[:, :, :needed]

    def advance(self, count: int) -> None:
        """Count the subwords that were stored in all layers."""
        self.length += count

    def select(self, rows: Tensor) -> KeyValues:
        """A copy of these rows, which may repeat."""
        copy = KeyValues(len(self._keys))
        copy.length = self.length
        copy._keys = [None if each is None else each[rows, :, : self.length] for each in self._keys]
        copy._values = [None if each is None else each[rows, :, : self.length] for each in self._values]
        return copy

    def rewound(self, length: int) -> KeyValues:
        """Keys and values of the first subwords only; the two share memory, so only one of them may be extended."""
        if not 0 <= length <= self.length:
            raise ValueError(f"{length} of {self.length} subwords")
        other = KeyValues(len(self._keys))
        other.length, other._keys, other._values = length, list(self._keys), list(self._values)
        return other


class Hidden(NamedTuple):
    """States after a pass: normalised ones of the last layer, and those after some layers."""

    last_BTD: Tensor
    after: dict[int, Tensor]


class _Layer(NamedTuple):
    norm_D: Tensor
    qkv: Matrix
    out: Matrix
    inner_norm_D: Tensor
    gate_up: Matrix
    down: Matrix


class Llama:
    """A Llama model. Its weights never change."""

    def __init__(self, config: LlamaConfig, tensors: Mapping[str, Tensor], dtype: torch.dtype) -> None:
        """`tensors` have the names that `convert` writes."""
        self.config, self.dtype = config, dtype
        _check_shapes(config, tensors)
        self._embedding_VD = tensors["embedding.weight"].to(dtype)
        self._head_VD = None if config.tied else tensors["head.weight"].to(dtype)
        self._norm_D = tensors["norm"].float()
        self._head = matrix(tensors, "embedding" if config.tied else "head", dtype)
        self._layers = [
            _Layer(
                tensors[f"{k}.norm"].float(),
                matrix(tensors, f"{k}.qkv", dtype),
                matrix(tensors, f"{k}.out", dtype),
                tensors[f"{k}.inner_norm"].float(),
                matrix(tensors, f"{k}.gate_up", dtype),
                matrix(tensors, f"{k}.down", dtype),
            )
            for k in range(config.layers)
        ]
        self._angles_L2d = _rotations(config, 0)

    def new_cache(self) -> KeyValues:
        """An empty cache."""
        return KeyValues(self.config.layers)

    @torch.no_grad()
    def hidden(
        self,
        ids_BT: Tensor,
        cache: KeyValues | None = None,
        *,
        after: Collection[int] = (),
        before: Sequence[int] | None = None,
    ) -> Hidden:
        """States after reading subwords behind those of the cache; `after` names layers, 1 for the first.

        Rows have equal lengths. Padding belongs at the end: no state depends on later subwords. With `before`, the
        subwords form a tree: each follows an earlier one, or the cache (−1), and sees its own branch alone.
        """
        cache = self.new_cache() if cache is None else cache
        rows, count = ids_BT.shape
        if cache.length + count > self.config.context:
            raise DataError(
                f"{cache.length + count} subwords are more than the model reads",
                remedy=f"give at most {self.config.context}",
            )
        x_XD = functional.embedding(ids_BT.flatten(), self._embedding_VD).float()
        angles_T2d = self._angles(cache.length + count)[cache.length :]
        mask_TL = _mask(cache.length, count) if cache.length and count > 1 else None
        if before is not None:
            branch_TT = _branches(before)
            angles_T2d = angles_T2d[branch_TT.sum(-1) - 1]
            mask_TL = torch.cat([torch.ones(count, cache.length, dtype=torch.bool), branch_TT], -1)
        found: dict[int, Tensor] = {}
        for k, layer in enumerate(self._layers):
            x_XD = x_XD + self._attention(layer, k, x_XD, rows, cache, angles_T2d, mask_TL)
            gate_XF, up_XF = layer.gate_up(self._normalised(x_XD, layer.inner_norm_D)).chunk(2, -1)
            x_XD = x_XD + layer.down(functional.silu(gate_XF).mul_(up_XF))
            if k + 1 in after:
                found[k + 1] = x_XD.view(rows, count, -1)
        cache.advance(count)
        return Hidden(self._normalised(x_XD, self._norm_D).view(rows, count, -1), found)

    @torch.no_grad()
    def logits(self, last_BD: Tensor) -> Tensor:
        """Scores of all subwords after states of the last layer, of any leading shape; in single precision."""
        flat_BD = last_BD.reshape(-1, last_BD.shape[-1])
        return self._head(flat_BD).float().view(*last_BD.shape[:-1], -1)

    @property
    def embedding_table(self) -> Tensor:
        """The output matrix (V × D): p_B(s) ∝ exp(last state · row s)."""
        return self._embedding_VD if self._head_VD is None else self._head_VD

    def _angles(self, count: int) -> Tensor:
        """The rotations of the first positions; the table grows with the longest text."""
        if len(self._angles_L2d) < count:
            self._angles_L2d = _rotations(
                self.config, min(max(count, POSITIONS, 2 * len(self._angles_L2d)), self.config.context)
            )
        return self._angles_L2d[:count]

    def embedding(self, ids: Tensor) -> Tensor:
        """Input embeddings of subwords."""
        return self._embedding_VD[ids]

    def _normalised(self, x_XD: Tensor, weight_D: Tensor) -> Tensor:
        return functional.rms_norm(x_XD, weight_D.shape, weight_D, self.config.epsilon).to(self.dtype)

    def _attention(
        self,
        layer: _Layer,
        k: int,
        x_XD: Tensor,
        rows: int,
        cache: KeyValues,
        angles_T2d: Tensor,
        mask_TL: Tensor | None,
    ) -> Tensor:
        config, count = self.config, len(angles_T2d)
        qkv = layer.qkv(self._normalised(x_XD, layer.norm_D)).view(rows, count, -1, config.head_size).transpose(1, 2)
        rotated = _rotate(qkv[:, : config.heads + config.kv_heads], angles_T2d)
        query_BHTd = rotated[:, : config.heads]
        key_BKLd, value_BKLd = cache.extended(k, rotated[:, config.heads :], qkv[:, config.heads + config.kv_heads :])
        group = config.heads // config.kv_heads
        if count == 1:  # the queries that share keys are the rows of one product
            query = query_BHTd.reshape(rows, config.kv_heads, group, config.head_size)
            mixed = functional.scaled_dot_product_attention(query, key_BKLd, value_BKLd)
        else:
            mixed = functional.scaled_dot_product_attention(
                query_BHTd,
                key_BKLd.repeat_interleave(group, 1),
                value_BKLd.repeat_interleave(group, 1),
                attn_mask=mask_TL,
                is_causal=mask_TL is None,
            ).transpose(1, 2)
        return layer.out(mixed.reshape(rows * count, -1))


def _rotations(config: LlamaConfig, count: int) -> Tensor:
    """cos and sin of the angle of each of the first positions and each frequency (L × 2 × d)."""
    half = torch.arange(0, config.head_size, 2, dtype=torch.float64) / config.head_size
    angle_Ld = torch.arange(count, dtype=torch.float64)[:, None] * config.theta**-half
    angle_Ld = torch.cat([angle_Ld, angle_Ld], -1)
    return torch.stack([angle_Ld.cos(), angle_Ld.sin()], 1).float()


def _rotate(x_BHTd: Tensor, angles_T2d: Tensor) -> Tensor:
    """Rotate pairs (i, i + d/2) by the angles of their positions."""
    x = x_BHTd.float()
    first, second = x.chunk(2, -1)
    return (x * angles_T2d[:, 0] + torch.cat([-second, first], -1) * angles_T2d[:, 1]).to(x_BHTd.dtype)


def _mask(length: int, count: int) -> Tensor:
    """True where a new subword may attend: to all of the cache, and to new ones up to itself (T × L)."""
    return torch.ones(count, length + count, dtype=torch.bool).tril(length)


def _branches(before: Sequence[int]) -> Tensor:
    """For each subword of a tree, True for those that lead to it, itself included (T × T)."""
    branch_TT = torch.eye(len(before), dtype=torch.bool)
    for t, parent in enumerate(before):
        if parent >= 0:
            branch_TT[t] |= branch_TT[parent]
    return branch_TT


def _check_shapes(config: LlamaConfig, tensors: Mapping[str, Tensor]) -> None:
    size = config.heads * config.head_size
    expected = {"embedding.weight": (config.vocabulary, config.hidden), "norm": (config.hidden,)}
    if not config.tied:
        expected["head.weight"] = (config.vocabulary, config.hidden)
    for k in range(config.layers):
        expected |= {
            f"{k}.norm": (config.hidden,),
            f"{k}.qkv.weight": (size + 2 * config.kv_heads * config.head_size, config.hidden),
            f"{k}.out.weight": (config.hidden, size),
            f"{k}.inner_norm": (config.hidden,),
            f"{k}.gate_up.weight": (2 * config.inner, config.hidden),
            f"{k}.down.weight": (config.hidden, config.inner),
        }
    for name, shape in expected.items():
        found = tuple(tensors[name].shape) if name in tensors else None
        if found != shape:
            what = f"has no tensor {name}" if found is None else f"{name} has shape {found} instead of {shape}"
            raise DataError(what, remedy="convert the model again")
