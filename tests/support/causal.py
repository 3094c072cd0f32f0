"""Tiny causal language models with weights drawn at random, saved as transformers saves them."""

from __future__ import annotations

import json
from pathlib import Path

import torch

SEPARATOR = "<|endoftext|>"
LETTERS = (SEPARATOR, "a", "b", "ab", "Ġ", "Ġa", "Ġab", ",", "Ċ")
"""A vocabulary that can be enumerated; Ġ is a blank, Ċ a new line."""
MERGES = (("Ġ", "a"), ("Ġa", "b"), ("a", "b"))
SENTENCES = (
    "I cannot stay.",
    "It isn't a side-scrolling game, it's the 1961 game.",
    "Zoë's dogs' bowls (two) are full.",
)


def save_letters(home: Path, *, context: int = 64) -> Path:
    """A model of the letters a and b."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    made = Tokenizer(models.BPE({token: id for id, token in enumerate(LETTERS)}, list(MERGES)))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return _save(home, made, context)


CHAT = (
    "{% for m in messages %}{% if m['role'] == 'user' %}Q: {{ m['content'] }}\nA: "
    "{% else %}{{ m['content'] }}\n{% endif %}{% endfor %}"
)


def save_english(home: Path, *, context: int = 64, hidden: int = 16, chat: bool = False) -> Path:
    """A model of all bytes, and of the words of a few sentences as whole subwords; `chat`: with a chat format."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, initial_alphabet=alphabet, special_tokens=[SEPARATOR], show_progress=False
    )
    made.train_from_iterator(SENTENCES * 3, trainer)
    return _save(home, made, context, hidden, CHAT if chat else None)


def _save(home: Path, subwords: object, context: int, hidden: int = 16, chat: str | None = None) -> Path:
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    fast = PreTrainedTokenizerFast(tokenizer_object=subwords, eos_token=SEPARATOR, chat_template=chat)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=context,
        initializer_range=0.5,
        bos_token_id=0,
        eos_token_id=0,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        LlamaForCausalLM(config).save_pretrained(home)
    fast.save_pretrained(home)
    return home


def save_gguf(home: Path, path: Path) -> Path:
    """The model of a directory as a GGUF file: matrices in 4 bits where rows allow it, embeddings in 8 bits."""
    import gguf
    import numpy as np
    from safetensors.numpy import load_file

    settings, weights = json.loads((home / "config.json").read_text()), load_file(home / "model.safetensors")
    tokens = json.loads((home / "tokenizer.json").read_text())
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(settings["num_hidden_layers"])
    writer.add_context_length(settings["max_position_embeddings"])
    writer.add_embedding_length(settings["hidden_size"])
    writer.add_feed_forward_length(settings["intermediate_size"])
    writer.add_head_count(settings["num_attention_heads"])
    writer.add_head_count_kv(settings["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(settings["rms_norm_eps"])
    writer.add_rope_freq_base(settings.get("rope_parameters", settings).get("rope_theta", 10000.0))
    vocabulary = sorted(tokens["model"]["vocab"].items(), key=lambda item: item[1])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_types([3 if token == SEPARATOR else 1 for token, _ in vocabulary])
    writer.add_token_merges([" ".join(pair) if isinstance(pair, list) else pair for pair in tokens["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)

    def add(name: str, weight: np.ndarray, kind: gguf.GGMLQuantizationType) -> None:
        if weight.shape[-1] % 32 or kind == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(name, weight.astype(np.float32))
        else:
            writer.add_tensor(name, gguf.quants.quantize(weight.astype(np.float32), kind), raw_dtype=kind)

    kinds = gguf.GGMLQuantizationType
    add("token_embd.weight", weights["model.embed_tokens.weight"], kinds.Q8_0)
    if not settings.get("tie_word_embeddings"):
        add("output.weight", weights["lm_head.weight"], kinds.Q8_0)
    add("output_norm.weight", weights["model.norm.weight"], kinds.F32)
    for k in range(settings["num_hidden_layers"]):
        heads = {"q": settings["num_attention_heads"], "k": settings["num_key_value_heads"], "v": None}
        for part, count in heads.items():
            weight = weights[f"model.layers.{k}.self_attn.{part}_proj.weight"]
            if count is not None:  # GGUF stores rotary pairs side by side
                weight = weight.reshape(count, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)
            add(f"blk.{k}.attn_{part}.weight", weight, kinds.Q4_1)
        for name, own, kind in (
            ("attn_output", "self_attn.o_proj", kinds.Q4_1),
            ("ffn_gate", "mlp.gate_proj", kinds.Q4_1),
            ("ffn_up", "mlp.up_proj", kinds.Q4_1),
            ("ffn_down", "mlp.down_proj", kinds.Q4_1),
            ("attn_norm", "input_layernorm", kinds.F32),
            ("ffn_norm", "post_attention_layernorm", kinds.F32),
        ):
            add(f"blk.{k}.{name}.weight", weights[f"model.layers.{k}.{own}.weight"], kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
