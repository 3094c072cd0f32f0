"""Test averages of weights by hand and in training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from kglm.errors import ConfigError
from kglm.runs.settings import Average, TrainConfig
from kglm.train.averaging import Averager
from support.trainers import CONFIG, run_files, same, trainer

NT_ASGD = replace(CONFIG, optimiser="sgd", learning_rate=1.0, average="triggered", nonmonotone=1, epochs=6, patience=3)


def run_through(kind: Average, values: list[float], decay: float = 0.5) -> tuple[Averager, nn.Linear]:
    model = nn.Linear(1, 1, bias=False)
    averager = Averager(model, kind, decay)
    for value in values:
        nn.init.constant_(model.weight, value)
        averager.update()
    return averager, model


def test_an_exponential_average_by_hand() -> None:
    averager, model = run_through("ema", [1.0, 2.0, 4.0])
    with averager.in_place():
        # the steps have weights 1/8, 1/4, 1/2, normalised
        assert model.weight.item() == pytest.approx((1 / 8 + 2 / 4 + 4 / 2) / (7 / 8))
    assert model.weight.item() == 4


def test_a_triggered_average_is_the_mean_since_its_start() -> None:
    averager, model = run_through("triggered", [100.0])
    assert not averager.runs
    averager.start()
    for value in (1.0, 2.0, 6.0):
        nn.init.constant_(model.weight, value)
        averager.update()
    with averager.in_place():
        assert model.weight.item() == pytest.approx(3)


def test_without_an_average_the_model_does_not_change() -> None:
    averager, model = run_through("none", [1.0, 2.0])
    with averager.in_place():
        assert model.weight.item() == 2
    assert not averager.tensors()


def test_the_weights_are_restored_after_an_error() -> None:
    averager, model = run_through("ema", [1.0, 2.0])
    with pytest.raises(RuntimeError), averager.in_place():
        raise RuntimeError
    assert model.weight.item() == 2


@pytest.mark.parametrize("config", [NT_ASGD, replace(CONFIG, average="ema")], ids=["nt-asgd", "ema"])
def test_training_with_averages_can_be_resumed_anywhere(tmp_path: Path, config: TrainConfig) -> None:
    trainer(tmp_path / "whole", config).fit()
    for steps in (4, 11, 17, 23, None):
        part = trainer(tmp_path / "parts", config)
        part.resume()
        part.fit(stop_after=steps)
    (whole, log), (parts, parts_log) = run_files(tmp_path / "whole"), run_files(tmp_path / "parts")
    assert same(whole, parts) and log == parts_log


def test_the_average_is_saved_and_training_continues_with_the_latest_weights(tmp_path: Path) -> None:
    made = trainer(tmp_path, replace(CONFIG, average="ema", epochs=1))
    made.fit()
    saved, _ = run_files(tmp_path)
    own = made.model.state_dict()
    assert not same(saved, own)
    with made.averager.in_place():
        assert same(saved, made.model.state_dict())


def test_the_trigger(tmp_path: Path) -> None:
    """Averaging starts when validation stops improving."""
    made = trainer(tmp_path, replace(NT_ASGD, learning_rate=50.0))
    metrics = made.fit()
    assert made.averager.runs and made.averager.steps < made.step
    valid = [record["valid"]["nats"] for record in metrics]
    first_bad = next(k for k in range(1, len(valid)) if valid[k] >= min(valid[:k]))
    assert made.averager.steps == made.step - metrics[first_bad]["step"]


def test_invalid_settings() -> None:
    for name, value in (("average_decay", 1.0), ("threads", -1), ("nonmonotone", 0)):
        with pytest.raises(ConfigError, match=rf"train\.{name}"):
            replace(CONFIG, **{name: value})


def test_frozen_parameters_are_not_averaged() -> None:
    model = nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    averager = Averager(model, "ema", 0.9)
    averager.update()
    assert averager.tensors().keys() == {"weight"}
    assert torch.equal(averager.tensors()["weight"], model.weight)
