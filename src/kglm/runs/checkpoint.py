"""Checkpoints of a run: `RUN/state/00001200/` is the checkpoint after step 1200, an artefact of its own.

Resuming starts from the newest one. `RUN/model.safetensors` holds the best model so far by validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import torch
from torch import Tensor

from kglm.errors import DamagedError, DataError, VersionError
from kglm.files import remove_directory, remove_leftovers
from kglm.files.artefact import Artefact, new_artefact
from kglm.files.records import Count, FileName
from kglm.files.tensors import parse_tensors, write_tensors

FORMAT = 3
READABLE = (2, 3)
"""Formats of checkpoints that this version reads. Those of format 2 have no manifest."""
Finite = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]
Parts = dict[str, dict[str, Tensor]]


class EpochMetrics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Metrics of an epoch: one line of `metrics.jsonl`."""

    epoch: Count
    step: Count
    train: dict[str, Finite]
    """Nats a word, in all and by component."""
    valid: dict[str, Finite]
    unexplained: dict[str, Count]
    """Mentions of training and validation that no fact explains."""

    def __post_init__(self) -> None:
        if "nats" not in self.train or "nats" not in self.valid:
            raise ValueError("metrics without nats")


class TrainingState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Progress of a training run: `state.json` of a checkpoint."""

    step: Count
    epoch: Count
    """Epochs that are finished."""
    chunk: Count
    """Chunks of the present epoch that are done."""
    bad_epochs: Count
    """Epochs since validation was best."""
    best: Finite | None
    """Best validation, in nats a word; None before the first epoch is finished."""
    metrics: list[EpochMetrics]
    totals: dict[str, Finite]
    """Sums of the present epoch (see `train.totals`)."""
    rows: list[Count]
    """Rows of the last chunk, in the order of the recurrent state."""
    averaged: Count
    """Steps in the average of the weights."""
    parts: list[FileName]
    """Names of the files of tensors."""
    format: int = FORMAT

    def __post_init__(self) -> None:
        if len(set(self.rows)) != len(self.rows):
            raise ValueError("a row is listed twice")
        if self.epoch != len(self.metrics):
            raise ValueError(f"{self.epoch} epochs with metrics of {len(self.metrics)}")
        if not {"model", "random"} <= set(self.parts):
            raise ValueError("the weights or the state of the random numbers are missing")


class StateDirectory:
    """The checkpoints of a run; resuming starts from the newest one."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def save(self, parts: Mapping[str, Mapping[str, Tensor]], state: msgspec.Struct, step: int) -> None:
        """Write the checkpoint of a step, then delete all others, complete or not."""
        target, number = self.home / f"{step:08d}", 0
        while target.exists():  # a step can be saved twice: at the end of an epoch, or after a kill
            number += 1
            target = self.home / f"{step:08d}-{number}"
        with new_artefact(target) as writer:
            for name, tensors in parts.items():
                write_tensors(writer, f"{name}.safetensors", tensors)
            writer.json("state.json", state)
        for old in self._directories():
            if old != target:
                remove_directory(old)
        (self.home / "latest.json").unlink(missing_ok=True)  # written by earlier versions
        self.clean()

    def clean(self) -> None:
        """Remove what a killed process left."""
        remove_leftovers(self.home, lambda name: _is_number(name.partition("-")[0]))

    def _directories(self) -> list[Path]:
        """Directories of complete checkpoints, the newest last."""
        found = []
        for path in self.home.iterdir() if self.home.is_dir() else ():
            step, _, number = path.name.partition("-")
            if _is_number(step) and (not number or _is_number(number)):
                found.append((int(step), int(number or 0), path))
        return [path for _, _, path in sorted(found)]

    @property
    def latest(self) -> Path | None:
        """Directory of the newest checkpoint, or None."""
        return next(reversed(self._directories()), None)

    def open(self) -> Artefact | None:
        """The newest checkpoint, or None if the run has none."""
        remedy = "the model can be used, but its training cannot be resumed: start a new run with --from this one"
        return None if self.latest is None else Artefact.open(self.latest, remedy)

    def load_state(self) -> TrainingState | None:
        """Progress saved in the newest checkpoint, or None if the run has none."""
        artefact = self.open()
        return None if artefact is None else self._state(artefact)

    def load(self) -> tuple[Parts, TrainingState] | None:
        """The newest checkpoint, or None if the run has none."""
        artefact = self.open()
        if artefact is None:
            return None
        state = self._state(artefact)
        names = {name: f"{name}.safetensors" for name in state.parts}
        return {
            part: parse_tensors(artefact.read(name), artefact.home / name, artefact.remedy)
            for part, name in names.items()
        }, state

    def _state(self, artefact: Artefact) -> TrainingState:
        format = artefact.record("state.json", _Format).format
        if format not in READABLE:
            raise VersionError(
                f"has format {format}; this version reads format {FORMAT}",
                place=artefact.home,
                remedy="start a new run with --from this one: its best model is kept",
            )
        if format == FORMAT and artefact.manifest is None:
            raise DamagedError("has no manifest of checksums", place=artefact.home, remedy=artefact.remedy)
        return artefact.record("state.json", TrainingState)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


class _Format(msgspec.Struct):
    """The format of a checkpoint, whatever else it contains."""

    format: int


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """State of an optimiser as named tensors."""
    return {
        f"{number}.{name}": value if isinstance(value, Tensor) else torch.tensor(value)
        for number, state in optimiser.state_dict()["state"].items()
        for name, value in state.items()
    }


def restore_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor], place: Path) -> None:
    """Restore the state saved by `optimiser_tensors`; the optimiser keeps its settings, e.g. the learning rate."""
    whole = optimiser.state_dict()
    whole["state"] = {}
    trained = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    for key, tensor in tensors.items():
        number, _, name = key.partition(".")
        known = number.isdecimal() and int(number) < len(trained)
        if not known or tensor.shape not in (trained[int(number)].shape, torch.Size()):
            raise DataError(
                f"{key} does not belong to a parameter of this model", place=place, remedy="start a new run"
            )
        whole["state"].setdefault(int(number), {})[name] = tensor
    optimiser.load_state_dict(whole)
