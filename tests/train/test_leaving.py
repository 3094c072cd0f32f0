"""Test interruption by signals, the choice of threads, and TensorBoard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from kglm.errors import ConfigError
from kglm.parallel import available_cores
from kglm.train.interrupts import interrupts
from kglm.train.tensorboard import TensorBoardWriter
from kglm.train.threads import choose_threads
from support.trainers import CONFIG, TESTS, run_files, same, trainer

SCRIPT = """
import sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, {tests!r})
from support.trainers import CONFIG, trainer
made = trainer(Path(sys.argv[1]), replace(CONFIG, epochs=400, patience=400))
learn = made._learn
def slow(*arguments):
    print("step", flush=True)
    return learn(*arguments)
made._learn = slow
try:
    made.fit()
except KeyboardInterrupt:
    print("left", made.step, flush=True)
"""


def test_sigterm_saves_after_the_step_and_resuming_gives_the_same_run(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT.format(tests=str(TESTS)), str(tmp_path / "parts")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(6):
        assert process.stdout.readline() == "step\n"
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and "SIGTERM: finishing this step, then saving" in errors
    left = int(out.split()[-1])
    assert 6 <= left < 400
    config = replace(CONFIG, epochs=400, patience=400)
    rest = trainer(tmp_path / "parts", config)
    assert rest.resume() and rest.step == left
    rest.fit(stop_after=left + 10)
    trainer(tmp_path / "whole", config).fit(stop_after=left + 10)
    (whole, log), (parts, parts_log) = run_files(tmp_path / "whole"), run_files(tmp_path / "parts")
    assert same(whole, parts) and log == parts_log


def test_ctrl_c_saves_after_the_step_and_resuming_gives_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made = trainer(tmp_path / "parts")
    learn = made._learn

    def interrupted(*arguments: Any) -> Any:
        if made.step == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return learn(*arguments)

    monkeypatch.setattr(made, "_learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.fit()
    assert made.step == 5 and "SIGINT: finishing this step, then saving" in capfd.readouterr().err
    rest = trainer(tmp_path / "parts")
    assert rest.resume() and rest.step == 5
    rest.fit()
    trainer(tmp_path / "whole").fit()
    (whole, log), (parts, parts_log) = run_files(tmp_path / "whole"), run_files(tmp_path / "parts")
    assert same(whole, parts) and log == parts_log


class TestInterrupts:
    def test_a_second_signal_stops_at_once(self) -> None:
        with pytest.raises(KeyboardInterrupt), interrupts() as interrupt:
            os.kill(os.getpid(), signal.SIGINT)
            assert interrupt.requested
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()

    def test_signal_handlers_are_restored(self) -> None:
        before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        with interrupts():
            assert signal.getsignal(signal.SIGINT) is not before[0]
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before

    def test_no_effect_in_other_threads(self) -> None:
        seen = []

        def run() -> None:
            with interrupts() as interrupt:
                seen.append(interrupt.requested)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert seen == [False]


def test_choosing_threads_changes_no_state() -> None:
    before, random = torch.get_num_threads(), torch.get_rng_state()
    assert choose_threads(rows=4, length=4, size=8, words=50) in {1, available_cores()}
    assert torch.get_num_threads() == before and torch.equal(torch.get_rng_state(), random)


class TestTensorBoard:
    def test_curves(self, tmp_path: Path) -> None:
        accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
        metrics = trainer(tmp_path, replace(CONFIG, tensorboard=True)).fit()
        curves = accumulator.EventAccumulator(str(tmp_path / "run" / "tensorboard"))
        curves.Reload()
        assert {"train/loss", "train/nats", "valid/nats", "valid/word_none"} <= set(curves.Tags()["scalars"])
        points = [(point.step, point.value) for point in curves.Scalars("valid/nats")]
        assert points == [(record["step"], pytest.approx(record["valid"]["nats"])) for record in metrics]

    def test_missing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "torch.utils.tensorboard.writer", None)
        with pytest.raises(ConfigError, match="pip install tensorboard"):
            TensorBoardWriter(tmp_path, wanted=True)
        TensorBoardWriter(tmp_path, wanted=False).write(1, {"x": 1.0})
        assert not list(tmp_path.iterdir())
