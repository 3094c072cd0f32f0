"""Tiny causal language models with weights drawn at random, saved as transformers saves them."""

from __future__ import annotations

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


def save_english(home: Path, *, context: int = 64) -> Path:
    """A model of all bytes, and of the words of a few sentences as whole subwords."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, initial_alphabet=alphabet, special_tokens=[SEPARATOR], show_progress=False
    )
    made.train_from_iterator(SENTENCES * 3, trainer)
    return _save(home, made, context)


def _save(home: Path, subwords: object, context: int) -> Path:
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    fast = PreTrainedTokenizerFast(tokenizer_object=subwords, eos_token=SEPARATOR)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=16,
        intermediate_size=32,
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
