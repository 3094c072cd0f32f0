"""Averages of a model's weights over the steps of training, in place of the last ones.

`ema`: an exponential average, its early steps corrected for the start. `triggered`: the plain mean since validation
stopped getting better, as NT-ASGD has it (Merity, Keskar and Socher, 2018): with `optimiser = "sgd"` it is that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from kglm.runs.settings import Average


class Averager:
    """A running average of the trained parameters."""

    def __init__(self, model: nn.Module, kind: Average, decay: float) -> None:
        self.kind = kind
        self.decay = decay
        self.steps = 0
        self._parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self._average: dict[str, Tensor] = {}
        if kind == "ema":
            self.start()

    @property
    def runs(self) -> bool:
        return bool(self._average)

    def start(self) -> None:
        """Begin to average with the next step."""
        self.steps = 0
        self._average = {name: torch.zeros_like(p) for name, p in self._parameters.items()}

    def update(self) -> None:
        """Take in the weights after a step. Each average is Σ w_s θ_s / Σ w_s, kept normalised."""
        if not self.runs:
            return
        self.steps += 1
        share = 1 / self.steps if self.kind == "triggered" else (1 - self.decay) / (1 - self.decay**self.steps)
        with torch.no_grad():
            for name, average in self._average.items():
                average.lerp_(self._parameters[name], share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model has the averaged weights in here, and its own again afterwards."""
        if not self.steps:
            yield
            return
        own = {name: self._parameters[name].detach().clone() for name in self._average}
        try:
            self._set(self._average)
            yield
        finally:
            self._set(own)

    def _set(self, values: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, value in values.items():
                self._parameters[name].copy_(value)

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint keeps."""
        return dict(self._average)

    def restore(self, tensors: Mapping[str, Tensor], steps: int) -> None:
        if tensors:
            self.start()
            for name, average in self._average.items():
                average.copy_(tensors[name])
        self.steps = steps
