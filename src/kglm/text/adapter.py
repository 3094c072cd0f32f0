"""Low-rank changes of a sentence encoder: each matrix W becomes W + B A, with A of few rows.

An encoder of whole sentences finds "it takes orders from" and "manager" only somewhat alike. An adapter, trained on
many ways to say relations (`kglm.train.adapter`), brings clauses near to the names of what they ask for. It is a
hundredth of the encoder's size, and costs nothing in use: the changed matrices replace the old ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from torch import Tensor

from kglm.errors import DataError

DOWN, UP = ".A", ".B"
"""Ends of the names of A (rank × inputs) and B (outputs × rank), after the name of the matrix."""


def adapted(tensors: Mapping[str, Tensor], adapter: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of an encoder with the changes of an adapter."""
    changed = dict(tensors)
    for name in adapted_names(adapter):
        down, up = adapter[name + DOWN].float(), adapter[name + UP].float()
        weight = tensors.get(name)
        if weight is None or weight.shape != (len(up), down.shape[1]) or len(down) != up.shape[1]:
            raise DataError(
                f"the adapter's {name} does not fit the encoder", remedy="use the encoder it was trained for"
            )
        changed[name] = weight + up @ down
    return changed


def adapted_names(adapter: Mapping[str, Tensor]) -> list[str]:
    """Names of the matrices that an adapter changes."""
    names = sorted({name.removesuffix(DOWN).removesuffix(UP) for name in adapter})
    if {name + end for name in names for end in (DOWN, UP)} != adapter.keys():
        raise DataError("the adapter is incomplete", remedy="restore it from a copy, or train it again")
    return names


def adapter_digest(adapter: Mapping[str, Tensor]) -> str:
    """Hash of the values of an adapter."""
    digest = hashlib.blake2b(digest_size=6)
    for name in sorted(adapter):
        digest.update(name.encode())
        digest.update(adapter[name].half().contiguous().numpy().tobytes())
    return digest.hexdigest()
