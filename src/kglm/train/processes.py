"""The processes that train one model together: one, or as many as `torchrun` has started.

Each process reads its share of a batch's rows; gradients are averaged by DistributedDataParallel. Everything that is
random is drawn alike in all processes, so the number of them does not change what is trained, only how fast.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import torch.distributed
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from kglm.errors import ConfigError


@dataclass(frozen=True)
class World:
    """Who we are among the processes; the only one, unless `joined`."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes files and talks."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model as it is to be called in training: gradients are the mean over the processes."""
        if self.size == 1:
            return model
        # a chunk without a mention leaves the renderer unused; frozen tables are the same everywhere
        with warnings.catch_warnings():  # the option has another name in later versions
            warnings.simplefilter("ignore", FutureWarning)
            return DistributedDataParallel(model, find_unused_parameters=True, broadcast_buffers=False)

    def any(self, *flags: bool) -> list[bool]:
        """For each flag, whether some process has it up."""
        if self.size == 1:
            return list(flags)
        up = torch.tensor(flags, dtype=torch.float32, device=self.device)
        torch.distributed.all_reduce(up, torch.distributed.ReduceOp.MAX)
        return [bool(flag) for flag in up.tolist()]

    def most(self, values: Sequence[int]) -> list[int]:
        """The greatest of each value over the processes."""
        if self.size == 1:
            return list(values)
        found = torch.tensor(values, device=self.device)
        torch.distributed.all_reduce(found, torch.distributed.ReduceOp.MAX)
        return [int(value) for value in found.tolist()]

    def total(self, values: Sequence[float]) -> list[float]:
        """Sums over the processes."""
        if self.size == 1:
            return list(values)
        totals: list[float] = self.total_of(torch.tensor(values, dtype=torch.float64, device=self.device)).tolist()
        return totals

    def total_of(self, tensor: Tensor) -> Tensor:
        """The sum of a tensor over the processes, in place."""
        if self.size > 1:
            torch.distributed.all_reduce(tensor)
        return tensor

    def wait(self) -> None:
        """Until all processes are here."""
        if self.size > 1:
            torch.distributed.barrier()


def choose_device(name: str) -> torch.device:
    """`auto` takes the process's GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        if not torch.cuda.is_available():
            raise ConfigError("train.device = 'cuda', but PyTorch sees no GPU", remedy="use train.device=cpu or auto")
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
        return device
    if name != "cpu":
        raise ConfigError(f"train.device = {name!r}", remedy="use cpu, cuda or auto")
    return torch.device(name)


@contextmanager
def joined(device: str = "cpu") -> Iterator[World]:
    """The world that `torchrun` describes in the environment, or a world of one."""
    place = choose_device(device)
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World(device=place)
        return
    torch.distributed.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield World(torch.distributed.get_rank(), size, place)
    finally:
        torch.distributed.destroy_process_group()
