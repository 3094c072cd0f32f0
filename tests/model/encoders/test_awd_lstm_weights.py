"""Weights of the encoder, where they start and how they are saved, and its settings."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from kglm import config as settings
from kglm.errors import ConfigError
from kglm.model.encoders.awd_lstm import EncoderConfig
from support.encoders import SMALL, WORDS, make, seeded, words

pytestmark = pytest.mark.usefixtures("one_thread")


class TestWeights:
    def test_saved_and_loaded(self, tmp_path: Path) -> None:
        encoder = make(training=True)
        encoder(words(2, 5), None, seeded(1)).h_BTD.sum().backward()
        torch.optim.SGD(encoder.parameters(), lr=0.1).step()
        save_file(encoder.state_dict(), tmp_path / "weights.safetensors")
        loaded = SMALL.build(WORDS, generator=seeded(99)).eval()
        assert not torch.allclose(loaded(words(2, 5)).h_BTD, encoder.eval()(words(2, 5)).h_BTD)
        loaded.load_state_dict(load_file(tmp_path / "weights.safetensors"))
        assert torch.equal(loaded(words(2, 5)).h_BTD, encoder(words(2, 5)).h_BTD)
        # the raw matrices and nothing else: no copies, no masks
        expected = [f"layers.{k}.{name}" for k in range(3) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        assert list(encoder.state_dict()) == ["embedding.weight", *expected]
        assert list(dict(encoder.named_parameters())) == list(encoder.state_dict())

    def test_start_where_awd_lstm_does(self) -> None:
        encoder = EncoderConfig(embedding=50, hidden=100, output=64).build(500, generator=seeded(0))
        assert encoder.embedding.weight.abs().max().item() == pytest.approx(0.1, rel=0.01)
        for layer, size in zip(encoder.layers, (100, 100, 64), strict=True):
            for tensor in layer.parameters():
                assert tensor.abs().max().item() == pytest.approx(size**-0.5, rel=0.05)
        again = EncoderConfig(embedding=50, hidden=100, output=64).build(500, generator=seeded(0))
        assert all(torch.equal(a, b) for a, b in zip(encoder.parameters(), again.parameters(), strict=True))

    def test_tied_matrix_is_one_tensor(self) -> None:
        encoder = make()
        decoder = nn.Linear(8, WORDS)
        decoder.weight = encoder.embedding.weight
        assert len(list(nn.ModuleList([encoder, decoder]).parameters())) == len(list(encoder.parameters())) + 1

    def test_layers_of_the_paper(self) -> None:
        shapes = [tuple(layer.weight_ih.shape) for layer in make(EncoderConfig(hidden=115, output=912)).layers]
        assert shapes == [(460, 400), (460, 115), (3648, 115)]
        assert make(dataclasses.replace(SMALL, layers=1)).layers[0].weight_ih.shape == (40, 8)


class TestConfig:
    @pytest.mark.parametrize(
        ("setting", "value"),
        [
            ("hidden", -1),
            ("embedding", 0),
            ("layers", 0),
            ("output", -400),
            ("output_dropout", 1.0),
            ("hidden_dropout", -0.1),
            ("input_dropout", float("nan")),
            ("embedding_dropout", 1.5),
            ("weight_drop", 1),
            ("activation_regularisation", -2),
            ("temporal_regularisation", float("inf")),
        ],
    )
    def test_wrong_values_are_named(self, setting: str, value: float) -> None:
        with pytest.raises(ConfigError, match=f"{setting} = {value}"):
            settings.from_dict(EncoderConfig, {setting: value})

    def test_a_vocabulary_has_words(self) -> None:
        with pytest.raises(ConfigError, match="a vocabulary of 0 words"):
            SMALL.build(0, generator=seeded(0))

    def test_round_trip_and_descriptions(self) -> None:
        assert settings.from_dict(EncoderConfig, settings.to_dict(SMALL)) == SMALL
        assert set(settings.describe(EncoderConfig)) == {field.name for field in dataclasses.fields(EncoderConfig)}

    def test_without_a_size_the_output_is_that_of_the_words(self) -> None:
        assert make(dataclasses.replace(SMALL, output=0)).sizes[-1] == SMALL.embedding
