"""Average a model's weights over training steps, to validate and save the average instead of the latest weights.

`ema`: exponential moving average with bias correction. `triggered`: the mean since validation stopped improving; with
`optimiser = "sgd"` this is NT-ASGD (Merity, Keskar and Socher, 2018).
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
        """True once averaging has started."""
        return bool(self._average)

    def start(self) -> None:
        """Start a new average with the next step."""
        self.steps = 0
        self._average = {name: torch.zeros_like(p) for name, p in self._parameters.items()}

    def update(self) -> None:
        """Add the weights after a step to the average Σ w_s θ_s / Σ w_s."""
        if not self.runs:
            return
        self.steps += 1
        share = 1 / self.steps if self.kind == "triggered" else (1 - self.decay) / (1 - self.decay**self.steps)
        with torch.no_grad():
            for name, average in self._average.items():
                average.lerp_(self._parameters[name], share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Give the model the averaged weights inside the context; restore its own at the end."""
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
        """The average by parameter name, for a checkpoint."""
        return dict(self._average)

    def restore(self, tensors: Mapping[str, Tensor], steps: int) -> None:
        """Continue an average from a checkpoint."""
        if tensors:
            self.start()
            for name, average in self._average.items():
                average.copy_(tensors[name])
        self.steps = steps
