"""Read a GGUF file of a Llama model: its sizes, and its tensors under the names of `llama`.

4-bit blocks keep their values: Q4_1 is w = d q + m, Q4_0 is w = d (q − 8), for 32 inputs each. Other types are read as
numbers and rounded to bfloat16.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kglm.errors import ConfigError, DataError
from kglm.pretrained.llama import LlamaConfig
from kglm.pretrained.matrices import GROUP, pack_eight_bit, pack_four_bit
from kglm.progress import progress

Bytes = npt.NDArray[np.uint8]
ARCHITECTURE = "llama"
_SIZES = {
    "hidden": "embedding_length",
    "inner": "feed_forward_length",
    "layers": "block_count",
    "heads": "attention.head_count",
    "context": "context_length",
}

_ERRORS = (ValueError, LookupError, ArithmeticError, AttributeError, TypeError, OSError, RuntimeError, AssertionError)
_TEXT, _LIST = 8, 9
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value of each type of GGUF's header."""


@contextmanager
def _reading_gguf(path: Path) -> Iterator[None]:
    """Turn the many errors of a damaged file into one."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"a GGUF file needs the package gguf: {error}", remedy="pip install 'kglm[hf]'") from error
    except _ERRORS as error:
        message = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise DataError(
            f"is not a complete GGUF file ({message})", place=path, remedy="get the file again, or give another model"
        ) from error


class GgufLlama:
    """An open GGUF file of a Llama model."""

    def __init__(self, path: Path, reader: Any) -> None:
        self.path = path
        self._reader = reader
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        with _reading_gguf(path):
            self.config = self._read_config()

    @classmethod
    def open(cls, path: Path) -> GgufLlama | None:
        """Open a file; None if its model is no plain Llama."""
        with _reading_gguf(path):
            from gguf import GGUFReader

            _check_header(path)
            reader = GGUFReader(path)
            field = reader.get_field("general.architecture")
            plain = field is not None and field.contents() == ARCHITECTURE
            scaled = any(name.startswith("llama.rope.scaling") for name in reader.fields)
        if not plain or scaled:
            return None
        return cls(path, reader)

    def _value(self, name: str, default: Any = None) -> Any:
        field = self._reader.get_field(name)
        if field is None and default is None:
            raise KeyError(f"no field {name}")
        return default if field is None else field.contents()

    def _read_config(self) -> LlamaConfig:
        sizes = {name: int(self._value(f"llama.{field}")) for name, field in _SIZES.items()}
        head_size = int(self._value("llama.attention.key_length", sizes["hidden"] // sizes["heads"]))
        return LlamaConfig.checked(
            **sizes,
            vocabulary=int(self._tensors["token_embd.weight"].shape[1]),
            kv_heads=int(self._value("llama.attention.head_count_kv", sizes["heads"])),
            head_size=head_size,
            theta=float(self._value("llama.rope.freq_base", 10000.0)),
            epsilon=float(self._value("llama.attention.layer_norm_rms_epsilon")),
            tied="output.weight" not in self._tensors,
        )

    def tensors(self) -> dict[str, Tensor]:
        """All tensors under the names of `llama`."""
        found: dict[str, Tensor] = {}
        config = self.config
        with (
            _reading_gguf(self.path),
            progress("converting the language model", config.layers + 1, "layers") as advance,
        ):
            embedding_VD = self._numbers("token_embd.weight")
            found["embedding.weight"] = embedding_VD.bfloat16()
            found["norm"] = self._numbers("output_norm.weight")
            head_VD, name = embedding_VD, "embedding"
            if not config.tied:
                head_VD, name = self._numbers("output.weight"), "head"
                found["head.weight"] = head_VD.bfloat16()
            found |= {f"{name}.{key}": value for key, value in pack_eight_bit(head_VD).items()}
            advance()
            for k in range(config.layers):
                found |= self._layer(k)
                advance()
        return found

    def _layer(self, k: int) -> dict[str, Tensor]:
        config, block = self.config, f"blk.{k}"
        attention = {f"{block}.attn_q.weight": config.heads, f"{block}.attn_k.weight": config.kv_heads}
        found = {
            f"{k}.norm": self._numbers(f"{block}.attn_norm.weight"),
            f"{k}.inner_norm": self._numbers(f"{block}.ffn_norm.weight"),
        }
        for name, parts in (
            (f"{k}.qkv", [*attention, f"{block}.attn_v.weight"]),
            (f"{k}.out", [f"{block}.attn_output.weight"]),
            (f"{k}.gate_up", [f"{block}.ffn_gate.weight", f"{block}.ffn_up.weight"]),
            (f"{k}.down", [f"{block}.ffn_down.weight"]),
        ):
            rows = [_rotary_order(self._tensors[part].shape[1], attention.get(part)) for part in parts]
            weights = [self._numbers(part)[order] for part, order in zip(parts, rows, strict=True)]
            found[f"{name}.weight"] = torch.cat(weights).bfloat16()
            if all(self._type(part) in ("Q4_0", "Q4_1") for part in parts):
                blocks = [self._four_bit(part) for part in parts]
                q, scale, minimum = (
                    torch.cat([each[n][order] for each, order in zip(blocks, rows, strict=True)]) for n in range(3)
                )
                found |= {f"{name}.{key}": value for key, value in pack_four_bit(q, scale, minimum).items()}
        return found

    def _type(self, name: str) -> str:
        return str(self._tensors[name].tensor_type.name)

    def _numbers(self, name: str) -> Tensor:
        from gguf import dequantize

        tensor = self._tensors[name]
        shape = tuple(int(size) for size in reversed(tensor.shape))
        return torch.from_numpy(np.array(dequantize(tensor.data, tensor.tensor_type), np.float32).reshape(shape))

    def _four_bit(self, name: str) -> tuple[Tensor, Tensor, Tensor]:
        """q (N × I), and scale and minimum of each group of inputs (N × groups)."""
        tensor = self._tensors[name]
        inputs, outputs = (int(size) for size in tensor.shape)
        has_minimum = self._type(name) == "Q4_1"
        block: Bytes = np.ascontiguousarray(tensor.data).view(np.uint8).reshape(outputs, inputs // GROUP, -1)
        halves = np.ascontiguousarray(block[..., : 4 if has_minimum else 2]).view(np.float16).astype(np.float32)
        packed = block[..., halves.shape[-1] * 2 :]
        q = np.concatenate([packed & 15, packed >> 4], -1).reshape(outputs, inputs)
        minimum = halves[..., 1] if has_minimum else -8 * halves[..., 0]
        return torch.from_numpy(q), torch.from_numpy(halves[..., 0].copy()), torch.from_numpy(minimum.copy())


def _check_header(path: Path) -> None:
    """Raise a ValueError if a count or a length of the header is larger than the file: GGUFReader would not end."""
    size = path.stat().st_size
    with path.open("rb") as stream:

        def number(width: int) -> int:
            content = stream.read(width)
            if len(content) < width:
                raise ValueError("it ends in its header")
            return int.from_bytes(content, "little")

        def skip(count: int) -> None:
            if count > size - stream.tell():
                raise ValueError(f"{count:,} bytes at byte {stream.tell():,} of {size:,}")
            stream.seek(count, 1)

        if stream.read(4) != b"GGUF" or number(4) not in (2, 3):
            raise ValueError("it has not the beginning of version 2 or 3")
        tensors, fields = number(8), number(8)
        for _ in range(fields):
            skip(number(8))
            kind, count = number(4), 1
            if kind == _LIST:
                kind, count = number(4), number(8)
            if kind == _TEXT:
                for _ in range(count):
                    skip(number(8))
            elif kind in _WIDTHS:
                skip(count * _WIDTHS[kind])
            else:
                raise ValueError(f"type {kind} of a value")
        for _ in range(tensors):
            skip(number(8))
            skip(8 * number(4) + 12)


def _rotary_order(rows: Any, heads: int | None) -> Tensor:
    """Order of a matrix's rows in which rotary pairs are (i, i + d/2); GGUF stores them as (2i, 2i + 1)."""
    if heads is None:
        return torch.arange(int(rows))
    return torch.arange(int(rows)).view(heads, -1, 2).transpose(1, 2).reshape(-1)
