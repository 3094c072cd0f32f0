"""Products with the weights of a pretrained model, stored with 4, 8, 16 or 32 bits.

    y = x Wᵀ,    W of N outputs × I inputs

Decoding reads every weight once for each subword, so its time is that of reading the weights: fewer bytes are faster.
`FourBit` holds the values of a GGUF file's Q4_1 or Q4_0 blocks as they are,

    w = d q + m,    q in 0 … 15,  one d and m for each 32 inputs,

in the layout of a kernel that comes with torch. For many rows, unpacked weights are faster: `benchmarks/base.py` has
the measurements behind `FEW_ROWS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

GROUP = 32
"""Inputs that share a scale in 4-bit weights."""
FEW_ROWS = 12
"""Up to this many rows, packed weights are faster than unpacked ones."""


class Matrix(Protocol):
    """A matrix that multiplies rows."""

    def __call__(self, x_BI: Tensor) -> Tensor:
        """x Wᵀ for rows x."""
        ...


class Dense:
    """Weights as they are."""

    def __init__(self, weight_NI: Tensor) -> None:
        self._weight_NI = weight_NI

    def __call__(self, x_BI: Tensor) -> Tensor:
        return functional.linear(x_BI, self._weight_NI)


class FourBit:
    """Packed 4-bit weights for few rows, unpacked weights for many."""

    def __init__(self, packed: Tensor, scale_GN2: Tensor, weight_NI: Tensor) -> None:
        self._packed, self._scale_GN2, self._dense = packed, scale_GN2, Dense(weight_NI)

    def __call__(self, x_BI: Tensor) -> Tensor:
        if len(x_BI) > FEW_ROWS:
            return self._dense(x_BI)
        found: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(x_BI, self._packed, GROUP, self._scale_GN2)
        return found


class EightBit:
    """Weights of 8 bits with one scale for each output, for few rows; unpacked weights for many."""

    def __init__(self, value_NI: Tensor, scale_N: Tensor, weight_NI: Tensor) -> None:
        self._value_NI, self._scale_N, self._dense = value_NI, scale_N, Dense(weight_NI)

    def __call__(self, x_BI: Tensor) -> Tensor:
        if len(x_BI) > FEW_ROWS:
            return self._dense(x_BI)
        found: Tensor = torch.ops.aten._weight_int8pack_mm(x_BI, self._value_NI, self._scale_N)
        return found


def pack_four_bit(q_NI: Tensor, scale_NG: Tensor, minimum_NG: Tensor) -> dict[str, Tensor]:
    """The kernel's form of w = scale q + minimum. It computes (q − 8) scale + zero."""
    zero_NG = minimum_NG + 8 * scale_NG
    return {
        "packed": torch.ops.aten._convert_weight_to_int4pack_for_cpu(q_NI.int().contiguous(), 1),
        "scale": torch.stack([scale_NG, zero_NG], -1).transpose(0, 1).float().contiguous(),
    }


def pack_eight_bit(weight_NI: Tensor) -> dict[str, Tensor]:
    """Weights rounded to 8 bits."""
    scale_N = weight_NI.abs().amax(1).clamp(min=1e-12) / 127
    value_NI = (weight_NI / scale_N[:, None]).round().clamp(-127, 127).to(torch.int8)
    return {"value": value_NI, "scale": scale_N.float()}


def matrix(tensors: Mapping[str, Tensor], name: str, dtype: torch.dtype) -> Matrix:
    """The matrix that is stored under a name, for rows of a type."""
    weight_NI = tensors[f"{name}.weight"].to(dtype)
    if dtype != torch.bfloat16:
        return Dense(weight_NI)  # the kernels are slow for other types
    if f"{name}.packed" in tensors:
        return FourBit(tensors[f"{name}.packed"], tensors[f"{name}.scale"].to(dtype), weight_NI)
    if f"{name}.value" in tensors:
        return EightBit(tensors[f"{name}.value"], tensors[f"{name}.scale"].to(dtype), weight_NI)
    return Dense(weight_NI)
