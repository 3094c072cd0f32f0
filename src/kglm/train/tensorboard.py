"""Write training curves for TensorBoard, if it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kglm.errors import ConfigError


class TensorBoardWriter:
    """Writes scalars to RUN/tensorboard; without `wanted` it does nothing."""

    def __init__(self, run: Path, *, wanted: bool) -> None:
        self._writer: Any = None
        if wanted:
            try:
                from torch.utils.tensorboard.writer import SummaryWriter
            except ImportError as error:
                raise ConfigError(
                    "train.tensorboard is on, but TensorBoard is not installed",
                    remedy="pip install tensorboard, or set train.tensorboard=false",
                ) from error
            self._writer = SummaryWriter(str(run / "tensorboard"))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)
            self._writer.flush()
