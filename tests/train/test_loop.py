from __future__ import annotations

import json
import signal
from dataclasses import replace
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from kglm.errors import ConfigError, DataError, KglmError, VersionError
from kglm.files.artefact import new_artefact
from kglm.files.tensors import load_tensors, write_tensors
from kglm.model.base import COMPONENTS
from kglm.runs.checkpoint import StateDirectory
from kglm.runs.settings import TrainConfig
from kglm.runs.tensors import load_into
from kglm.train.loop import Trainer
from kglm.train.totals import evaluate
from support.artefacts import accept
from support.toys import make_toy, random_documents
from support.trainers import CONFIG, run_files, same, trainer


@pytest.mark.parametrize("model", ["model", "proposal", "plain", "tracker", "tracker_proposal"])
def test_it_learns(tmp_path: Path, model: str) -> None:
    metrics = trainer(tmp_path, TrainConfig(rows=3, length=4, epochs=12, learning_rate=0.02), model=model).fit()
    assert metrics[-1]["train"]["nats"] < 0.98 * metrics[0]["train"]["nats"]
    assert metrics[0]["train"].keys() == {"nats", *COMPONENTS}


def test_the_same_seed_gives_the_same_run_and_another_does_not(tmp_path: Path) -> None:
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        trainer(tmp_path / name, TrainConfig(rows=3, length=4, epochs=2, seed=seed)).fit()
    (a, a_log), (b, b_log), (c, c_log) = (run_files(tmp_path / name) for name in "abc")
    assert same(a, b) and a_log == b_log
    assert not same(a, c) and a_log != c_log


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("whole")
    trainer(home).fit()
    return home


@pytest.mark.parametrize("steps", [1, 5, 9, 13])
def test_a_resumed_run_equals_an_uninterrupted_one(uninterrupted: Path, tmp_path: Path, steps: int) -> None:
    trainer(tmp_path).fit(stop_after=steps)
    rest = trainer(tmp_path)
    assert rest.resume() and rest.step == steps
    rest.fit()
    (whole, log), (parts, parts_log) = run_files(uninterrupted), run_files(tmp_path)
    assert same(whole, parts) and log == parts_log


@pytest.mark.parametrize("step", [2, 7])
@pytest.mark.parametrize("model", ["proposal", "plain", "tracker", "tracker_proposal"])
def test_resuming_other_models(tmp_path: Path, model: str, step: int) -> None:
    """Stop in the middle of documents, with the state that each model carries, and between epochs, without one."""
    trainer(tmp_path / "whole", model=model).fit()
    trainer(tmp_path / "parts", model=model).fit(stop_after=step)
    rest = trainer(tmp_path / "parts", model=model)
    assert rest.resume() and rest.step == step and (rest.chunk == 0) == (step == 7)
    rest.fit()
    (whole, log), (parts, parts_log) = run_files(tmp_path / "whole"), run_files(tmp_path / "parts")
    assert same(whole, parts) and log == parts_log


def test_the_learning_rate_falls_to_zero_also_after_resuming(tmp_path: Path) -> None:
    config = replace(CONFIG, schedule="linear", average="ema")
    whole = trainer(tmp_path / "whole", config)
    rates = []
    step = whole.optimiser.step
    whole.optimiser.step = lambda *a: (rates.append(whole.optimiser.param_groups[0]["lr"]), step(*a))[1]  # type: ignore[method-assign]
    whole.fit()
    assert rates[0] == CONFIG.learning_rate and 0 < rates[-1] < 0.15 * CONFIG.learning_rate
    assert all(later < earlier for earlier, later in pairwise(rates))
    trainer(tmp_path / "parts", config).fit(stop_after=5)
    rest = trainer(tmp_path / "parts", config)
    assert rest.resume()
    rest.fit()
    (weights, log), (parts, parts_log) = run_files(tmp_path / "whole"), run_files(tmp_path / "parts")
    assert same(weights, parts) and log == parts_log


def test_resuming_a_stream(tmp_path: Path) -> None:
    config = replace(CONFIG, batching="stream", rows=2)
    trainer(tmp_path / "whole", config, model="plain").fit()
    trainer(tmp_path / "parts", config, model="plain").fit(stop_after=3)
    rest = trainer(tmp_path / "parts", config, model="plain")
    assert rest.resume() and rest.step == 3
    rest.fit()
    (whole, log), (parts, parts_log) = run_files(tmp_path / "whole"), run_files(tmp_path / "parts")
    assert same(whole, parts) and log == parts_log


def train_until_told(home: Path, reports: Connection) -> None:
    """Train with a checkpoint after every step; report each step, and wait for a message before it."""
    made = trainer(home, replace(CONFIG, checkpoint_minutes=1e-9))
    made.resume()
    learn = made._learn

    def learn_after_message(*arguments: Any) -> tuple[bool, bool]:
        reports.send(made.step)
        reports.recv()
        return learn(*arguments)

    made._learn = learn_after_message  # type: ignore[method-assign]
    made.fit()


def test_a_killed_and_resumed_run_equals_an_uninterrupted_one(uninterrupted: Path, tmp_path: Path, forks: Any) -> None:
    """Killed twice during step 5 after the start or the last checkpoint; messages, not the clock, decide when."""
    reached = []
    for _ in range(2):
        here, there = forks.Pipe()
        process = forks.Process(target=train_until_told, args=(tmp_path, there))
        process.start()
        there.close()
        for _ in range(5):
            step = here.recv()
            here.send(None)
        process.kill()
        process.join()
        here.close()
        assert process.exitcode == -signal.SIGKILL
        reached.append(step)
    assert reached[0] == 4 and reached[1] in {8, 9}, "the last step may have been saved before the kill"
    rest = trainer(tmp_path)
    assert rest.resume() and rest.step >= reached[1]
    rest.fit()
    (whole, log), (parts, parts_log) = run_files(uninterrupted), run_files(tmp_path)
    assert same(whole, parts) and log == parts_log


def test_validation_does_not_depend_on_the_batch(tmp_path: Path) -> None:
    made = trainer(tmp_path)
    values = [
        evaluate(made.model, made.builder, made.train_documents, rows=rows, length=length).nats()["nats"]
        for rows, length in ((1, 100), (60, 7), (4, 3))
    ]
    assert values == pytest.approx([values[0]] * 3, rel=1e-9)


def test_a_nan_loss_stops_training_and_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    made = trainer(tmp_path)
    made.fit(stop_after=2)
    broken = trainer(tmp_path)
    broken.resume()
    with torch.no_grad():
        broken.model.encoder.embedding.weight[4] = float("nan")  # type: ignore[union-attr, index, operator]
    with pytest.raises(KglmError, match=r"the loss is nan at step 3 \(epoch 1, documents 'toy"):
        broken.fit()
    again = trainer(tmp_path)
    assert again.resume() and again.step == 2
    assert all(torch.isfinite(p).all() for p in again.model.parameters())


def test_a_nan_gradient_changes_nothing(tmp_path: Path) -> None:
    made = trainer(tmp_path, replace(CONFIG, checkpoint_minutes=1e-9))
    made.fit(stop_after=2)
    before = {name: tensor.clone() for name, tensor in made.model.state_dict().items()}
    parameter = next(p for p in made.model.parameters() if p.requires_grad)
    parameter.register_hook(lambda gradient: gradient * float("nan"))
    with pytest.raises(KglmError, match="the gradient is nan at step 3"):
        made.fit()
    assert same(before, made.model.state_dict())
    again = trainer(tmp_path, CONFIG)
    assert again.resume() and again.step == 2 and same(before, again.model.state_dict())


class TestDamagedCheckpoints:
    @pytest.fixture
    def state(self, tmp_path: Path) -> Path:
        trainer(tmp_path).fit(stop_after=2)
        return StateDirectory(tmp_path / "run" / "state").latest

    @pytest.mark.parametrize("part", ["model", "optimiser", "random", "recurrent"])
    def test_a_missing_part(self, tmp_path: Path, state: Path, part: str) -> None:
        (state / f"{part}.safetensors").unlink()
        with pytest.raises(DataError, match=rf"{part}\.safetensors: is missing"):
            trainer(tmp_path).resume()

    def test_an_optimiser_of_another_model(self, tmp_path: Path, state: Path) -> None:
        tensors = load_tensors(state / "optimiser.safetensors")
        tensors["0.exp_avg"] = torch.zeros(1, 2, 3)
        save_file(tensors, state / "optimiser.safetensors")
        accept(state)
        with pytest.raises(DataError, match=r"optimiser\.safetensors: 0\.exp_avg does not belong to a parameter"):
            trainer(tmp_path).resume()

    def test_incomplete_checkpoints_are_deleted_and_never_loaded(self, tmp_path: Path, state: Path) -> None:
        (state.parent / ".00000003.x.tmp").mkdir()
        made = trainer(tmp_path)
        made.resume()
        made.fit(stop_after=3)
        again = trainer(tmp_path)
        assert again.resume() and again.step == 3
        assert [path.name for path in state.parent.iterdir() if path.is_dir()] == ["00000003"]


class TestNumbers:
    """Weights that are NaN or infinite never replace good ones."""

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_weights_that_stop_being_finite(self, tmp_path: Path, value: float) -> None:
        made = trainer(tmp_path)
        made.fit(stop_after=2)
        before = StateDirectory(tmp_path / "run" / "state").latest
        with torch.no_grad():
            made.model.word_bias_V[0] = value
        with pytest.raises(KglmError, match=r"the weights word_bias_V are not finite at step 2 \(epoch 1, documents '"):
            made.save()
        assert StateDirectory(tmp_path / "run" / "state").latest == before
        again = trainer(tmp_path)
        assert again.resume() and again.step == 2

    def test_a_checkpoint_with_such_weights_is_refused(self, tmp_path: Path) -> None:
        trainer(tmp_path).fit(stop_after=2)
        state = StateDirectory(tmp_path / "run" / "state").latest
        assert state is not None
        tensors = load_tensors(state / "model.safetensors")
        tensors["word_bias_V"][0] = float("nan")
        save_file(tensors, state / "model.safetensors")
        accept(state)
        with pytest.raises(DataError, match="word_bias_V has entries that are NaN or infinite"):
            trainer(tmp_path).resume()


def test_documents_without_words(tmp_path: Path) -> None:
    toy = make_toy(tmp_path)
    with pytest.raises(KglmError, match="no training document has a word"):
        Trainer(toy.model, toy.builder, [], [], CONFIG, tmp_path)
    texts = [toy.encoder.encode(document) for document in random_documents(toy, 3)]
    with pytest.raises(KglmError, match="no validation document has a word"):
        Trainer(toy.model, toy.builder, texts, [], CONFIG, tmp_path)
    with pytest.raises(ConfigError, match=r"train\.rows = 0"):
        TrainConfig(rows=0)


class TestCheckpoints:
    def test_wrong_tensors_are_named(self, tmp_path: Path) -> None:
        toy = make_toy(tmp_path)
        whole = toy.model.state_dict()
        cases = {
            "has no tensor word_bias_V": {name: t for name, t in whole.items() if name != "word_bias_V"},
            r"word_bias_V has shape \(3,\); the model has shape \(7,\)": whole | {"word_bias_V": torch.zeros(3)},
            "has a tensor more that the model does not have": whole | {"more": torch.zeros(1)},
        }
        for message, tensors in cases.items():
            with pytest.raises(DataError, match=message):
                load_into(toy.model, tensors, tmp_path)

    def test_a_parameter_added_after_version_0_1_may_be_missing(self, tmp_path: Path) -> None:
        toy = make_toy(tmp_path)
        whole = {name: tensor.clone() for name, tensor in toy.model.state_dict().items()}
        torch.nn.init.zeros_(toy.model.latent.types.cue_3C)
        load_into(toy.model, {name: t for name, t in whole.items() if "types.cue_3C" not in name}, tmp_path)
        assert not toy.model.latent.types.cue_3C.any()

    def test_frozen_tables_and_dropped_weights_are_not_saved(self, tmp_path: Path) -> None:
        names = set(make_toy(tmp_path).model.state_dict())
        assert not any("vector_XD" in name or "raw" in name for name in names)

    def test_saved_files_are_readable_by_others(self, tmp_path: Path) -> None:
        with new_artefact(tmp_path / "made") as writer:
            write_tensors(writer, "x.safetensors", {"a": torch.arange(3)})
        (tmp_path / "y").touch()
        assert (tmp_path / "made" / "x.safetensors").stat().st_mode == (tmp_path / "y").stat().st_mode

    def test_a_damaged_file(self, tmp_path: Path) -> None:
        save_file({"a": torch.arange(100)}, tmp_path / "x.safetensors")
        (tmp_path / "x.safetensors").write_bytes((tmp_path / "x.safetensors").read_bytes()[:100])
        with pytest.raises(DataError, match="is not a complete safetensors file"):
            load_tensors(tmp_path / "x.safetensors")

    def test_another_version(self, tmp_path: Path) -> None:
        trainer(tmp_path).fit(stop_after=1)
        [state] = (tmp_path / "run" / "state").glob("*/state.json")
        state.write_text(json.dumps(json.loads(state.read_text()) | {"format": 99}))
        accept(state.parent)
        with pytest.raises(VersionError, match="format 99"):
            trainer(tmp_path).resume()
