"""A small sentence encoder with random weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from kglm.text.encoder import SentenceEncoder

HIDDEN, INNER, LAYERS, LENGTH = 16, 32, 2, 32


def tiny_encoder(home: Path, words: Sequence[str], seed: int = 0) -> SentenceEncoder:
    """An encoder that knows these words; its files are written to `home`."""
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {word: n for n, word in enumerate(("?", *dict.fromkeys(words)))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    home.mkdir(parents=True)
    tokenizer.save(str(home / "tokenizer.json"))
    sizes = {
        "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": 2,
        "vocab_size": len(vocabulary), "max_position_embeddings": LENGTH,
    }  # fmt: skip
    (home / "config.json").write_text(json.dumps(sizes))
    generator = torch.Generator().manual_seed(seed)
    shapes = {
        "embeddings.word_embeddings": (len(vocabulary), HIDDEN),
        "embeddings.position_embeddings": (LENGTH, HIDDEN),
        "embeddings.token_type_embeddings": (2, HIDDEN),
    }
    for k in range(LAYERS):
        layer = f"encoder.layer.{k}."
        for name in ("query", "key", "value"):
            shapes[f"{layer}attention.self.{name}"] = (HIDDEN, HIDDEN)
        shapes[f"{layer}attention.output.dense"] = (HIDDEN, HIDDEN)
        shapes[f"{layer}intermediate.dense"] = (INNER, HIDDEN)
        shapes[f"{layer}output.dense"] = (HIDDEN, INNER)
    tensors = {f"{name}.weight": torch.randn(shape, generator=generator) / 4 for name, shape in shapes.items()}
    tensors |= {f"{name}.bias": torch.zeros(shape[0]) for name, shape in shapes.items() if "layer" in name}
    norms = ["embeddings", *(f"encoder.layer.{k}.{part}output" for k in range(LAYERS) for part in ("attention.", ""))]
    for name in norms:
        tensors |= {f"{name}.LayerNorm.weight": torch.ones(HIDDEN), f"{name}.LayerNorm.bias": torch.zeros(HIDDEN)}
    save_file(tensors, home / "model.safetensors")
    return SentenceEncoder(home, "tiny")
