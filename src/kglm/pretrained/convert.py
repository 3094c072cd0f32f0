"""Convert a model of any source to a directory of its own, once: `CACHE/models/NAME-HASH/`.

    model.json           architecture and sizes
    weights.safetensors  the tensors of `llama`, packed ones included
    subwords.json        start of a text, chat format
    tokenizer.json       the tokenizer, in the format of the package tokenizers

The hash is that of the source's bytes, so a changed source is converted again. The directory is an artefact: complete
or absent, with checksums.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import torch
from torch import Tensor
from xxhash import xxh3_64

from kglm.errors import ConfigError, DamagedError, DataError
from kglm.files import reading
from kglm.files.artefact import Artefact, new_artefact
from kglm.files.records import decode_record
from kglm.files.tensors import not_finite, write_tensors
from kglm.files.user_cache import cached
from kglm.pretrained.gguf import GgufLlama
from kglm.pretrained.llama import LlamaConfig
from kglm.pretrained.subwords import SEPARATOR, ChatFormat, SubwordsRecord, tokenizing

T = TypeVar("T")
FORMAT = 1
QUESTION, ANSWER = "\ue000", "\ue001"
"""Characters that stand for the question and the answer while the chat format is read."""
TENSORS = "weights.safetensors"


class ModelRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`model.json`."""

    format: int
    name: str
    source: str
    config: LlamaConfig


def load_converted(source: Path, label: str, load: Callable[[Artefact], T]) -> T:
    """Load the converted model of a source; converts it if that has not been done, or if what is there is damaged."""
    name = f"models/{label}-{_digest(source)}"
    what = f"the language model {label}"
    return cached(name, lambda home: load(_open(home)), lambda home: _convert(source, label, home), what=what)


def _open(home: Path) -> Artefact:
    artefact = Artefact.open(home, remedy="remove it; it is converted again")
    if artefact.manifest is None:
        raise DamagedError("has no manifest of checksums", place=home)
    record = artefact.record("model.json", ModelRecord)
    if record.format != FORMAT:
        raise DataError(f"has format {record.format}; this version reads format {FORMAT}", place=home)
    return artefact


def _digest(source: Path) -> str:
    """Hash of a file, or of the files of a directory that matter."""
    hasher = xxh3_64()
    files = (
        [source] if source.is_file() else sorted(p for p in source.iterdir() if p.suffix in (".json", ".safetensors"))
    )
    for file in files:
        hasher.update(file.name.encode())
        with reading(file), file.open("rb") as stream:
            while block := stream.read(1 << 24):
                hasher.update(block)
    return hasher.hexdigest()


def _convert(source: Path, name: str, home: Path) -> None:
    print(f"note: converting the language model {name} into {home}, once", file=sys.stderr)
    config, tensors = _weights(source)
    if (tensor := not_finite(tensors)) is not None:
        raise DataError(f"{tensor} has entries that are NaN or infinite", place=source, remedy="get the model again")
    tokenizer, record = _tokenizer(source)
    with new_artefact(home) as writer:
        writer.bytes("tokenizer.json", tokenizer)
        writer.json("subwords.json", record)
        write_tensors(writer, TENSORS, tensors)
        writer.json("model.json", ModelRecord(FORMAT, name, source.name, config))


def _weights(source: Path) -> tuple[LlamaConfig, dict[str, Tensor]]:
    if source.suffix == ".gguf":
        found = GgufLlama.open(source)
        if found is None:
            raise DataError("is no GGUF file of a plain Llama model", place=source, remedy="give a model of that kind")
        return found.config, found.tensors()
    return _directory_config(source), _directory_tensors(source, _directory_config(source))


def _directory_config(source: Path) -> LlamaConfig:
    """Sizes from a `config.json` of Hugging Face."""
    path = source / "config.json"
    with reading(path):
        content = path.read_bytes()
    values: dict[str, Any] = decode_record(content, dict[str, Any], path)
    try:
        rotary = values.get("rope_parameters") or values.get("rope_scaling") or {}
        kind = rotary.get("rope_type", rotary.get("type", "default"))
        if (
            values["model_type"] != "llama"
            or kind != "default"
            or values.get("attention_bias")
            or values.get("mlp_bias")
        ):
            raise DataError(
                f"is a {values['model_type']} model, or a Llama model with further parts",
                place=path,
                remedy="give a plain Llama model",
            )
        return LlamaConfig.checked(
            vocabulary=values["vocab_size"],
            hidden=values["hidden_size"],
            inner=values["intermediate_size"],
            layers=values["num_hidden_layers"],
            heads=values["num_attention_heads"],
            kv_heads=values.get("num_key_value_heads") or values["num_attention_heads"],
            head_size=values.get("head_dim") or values["hidden_size"] // values["num_attention_heads"],
            context=values["max_position_embeddings"],
            theta=float(rotary.get("rope_theta") or values.get("rope_theta") or 10000.0),
            epsilon=float(values["rms_norm_eps"]),
            tied=bool(values.get("tie_word_embeddings", False)),
        )
    except DataError:
        raise
    except (LookupError, ArithmeticError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"is no configuration of a Llama model ({error!r})", place=path, remedy="get the model again"
        ) from error


_RENAMED = {
    "input_layernorm.weight": "norm",
    "post_attention_layernorm.weight": "inner_norm",
    "self_attn.o_proj.weight": "out.weight",
    "mlp.down_proj.weight": "down.weight",
}


def _directory_tensors(source: Path, config: LlamaConfig) -> dict[str, Tensor]:
    from safetensors import SafetensorError, safe_open

    stored: dict[str, Tensor] = {}
    files = sorted(source.glob("*.safetensors"))
    if not files:
        raise DataError(
            "has no weights in the format safetensors", place=source, remedy="save the model as safetensors"
        )
    for file in files:
        try:
            with reading(file), safe_open(file, framework="pt") as tensors:
                stored |= {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise DataError(f"is not a complete safetensors file ({error})", place=file) from error
    for name, tensor in stored.items():
        if tensor.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            raise DataError(f"{name} has the type {tensor.dtype}", place=source, remedy="save the model as bfloat16")
    try:
        found = {"embedding.weight": stored["model.embed_tokens.weight"], "norm": stored["model.norm.weight"]}
        if not config.tied:
            found["head.weight"] = stored["lm_head.weight"]
        for k in range(config.layers):
            layer = f"model.layers.{k}."
            found |= {f"{k}.{new}": stored[layer + old] for old, new in _RENAMED.items()}
            found[f"{k}.qkv.weight"] = torch.cat([stored[f"{layer}self_attn.{part}_proj.weight"] for part in "qkv"])
            found[f"{k}.gate_up.weight"] = torch.cat(
                [stored[f"{layer}mlp.{part}_proj.weight"] for part in ("gate", "up")]
            )
    except KeyError as error:
        raise DataError(f"has no tensor {error}", place=source, remedy="save the whole model") from error
    except RuntimeError as error:
        raise DataError(
            f"has tensors that do not fit each other ({error})", place=source, remedy="save the whole model"
        ) from error
    return found


def _tokenizer(source: Path) -> tuple[bytes, SubwordsRecord]:
    """`tokenizer.json`, the subword that starts a text, and the chat format."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # must be set before transformers is imported
    try:
        from transformers import AutoTokenizer, PreTrainedTokenizerFast
    except ImportError as error:
        raise ConfigError(
            f"converting a language model needs transformers: {error}", remedy="pip install 'kglm[hf]'"
        ) from error
    with tokenizing(source):
        if source.is_dir():
            found = AutoTokenizer.from_pretrained(source, local_files_only=True, trust_remote_code=False)
        else:
            found = PreTrainedTokenizerFast.from_pretrained(source.parent, gguf_file=source.name, local_files_only=True)
    if not getattr(found, "is_fast", False):
        raise DataError("has no fast tokenizer", place=source, remedy="save the model with its tokenizer.json")
    start = SEPARATOR if SEPARATOR in found.get_vocab() else found.bos_token or found.eos_token
    if start is None:
        raise DataError("has no subword that begins a text", place=source, remedy="use a tokenizer with bos or eos")
    settings = json.loads(found.backend_tokenizer.to_str())
    post = settings.get("post_processor") or {}
    for part in (post, *post.get("processors", ())):
        if "trim_offsets" in part:  # offsets are to include the blank before a word
            part["trim_offsets"] = False
    return json.dumps(settings, ensure_ascii=False).encode(), SubwordsRecord(start, _chat_format(found))


def _chat_format(tokenizer: Any) -> ChatFormat | None:
    """The texts around a question and behind an answer; None if the model has no chat format."""
    if not getattr(tokenizer, "chat_template", None):
        return None
    messages = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]
    try:
        text = str(tokenizer.apply_chat_template(messages, tokenize=False))
        before, _, rest = text.partition(QUESTION)
        after, _, end = rest.partition(ANSWER)
    except Exception:  # a template may fail in any way
        return None
    return ChatFormat(before, after, end.rstrip("\n")) if after and end else None
