"""The forward pass of BERT encoders, compared with transformers on a small model with random weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from kglm.errors import DataError
from kglm.text.minilm import MiniLM, MiniLMConfig

CONFIG = MiniLMConfig(
    hidden_size=32, num_hidden_layers=3, num_attention_heads=4, vocab_size=50, max_position_embeddings=16
)
TEXTS = ([1, 5, 7, 2], [1, 2], [1, 9, 8, 30, 49, 3, 2], [1, 5, 7, 2])


@pytest.fixture(scope="module")
def bert() -> torch.nn.Module:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {name: getattr(CONFIG, name) for name in CONFIG.__struct_fields__}
    model = transformers.BertModel(transformers.BertConfig(**sizes, intermediate_size=64), add_pooling_layer=False)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def expected(bert: torch.nn.Module, text: list[int]) -> Tensor:
    with torch.no_grad():
        states_TD = bert(input_ids=torch.tensor([text])).last_hidden_state[0]
    return functional.normalize(states_TD.mean(0), dim=0)


def test_vectors_are_those_of_transformers(bert: torch.nn.Module) -> None:
    model = MiniLM(CONFIG, bert.state_dict())
    found_ND = model.encode(TEXTS)
    for text, vector_D in zip(TEXTS, found_ND, strict=True):
        assert torch.allclose(vector_D, expected(bert, text), atol=2e-6)
        assert torch.allclose(model.encode([text])[0], vector_D, atol=2e-6)  # the others make no difference


def test_half_the_bits_hardly_turn_a_vector(bert: torch.nn.Module) -> None:
    exact_ND = MiniLM(CONFIG, bert.state_dict()).encode(TEXTS)
    rounded_ND = MiniLM(CONFIG, bert.state_dict(), torch.bfloat16).encode(TEXTS)
    assert bool(((exact_ND * rounded_ND).sum(1) > 0.999).all())


def test_names_may_have_a_prefix_and_all_must_be_there(bert: torch.nn.Module) -> None:
    tensors = bert.state_dict()
    prefixed = MiniLM(CONFIG, {f"bert.{name}": tensor for name, tensor in tensors.items()})
    assert torch.equal(prefixed.encode(TEXTS), MiniLM(CONFIG, tensors).encode(TEXTS))
    del tensors["encoder.layer.1.output.dense.bias"]
    with pytest.raises(DataError, match=r"encoder\.layer\.1\.output\.dense\.bias"):
        MiniLM(CONFIG, tensors)
