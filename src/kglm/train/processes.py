"""The processes that train one model together: one process, or as many as `torchrun` started.

Each process reads its share of a batch's rows, and DistributedDataParallel averages the gradients. All processes draw
the same random numbers, so their number changes the speed of training but not its result.
"""

from __future__ import annotations

import atexit
import gc
import importlib
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
    """This process's rank among the processes that train; a single process unless made by `joined`."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def leads(self) -> bool:
        """True in the one process that writes files and prints."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """Wrap the model for training: its gradients become the mean over the processes."""
        if self.size == 1:
            return model
        # a chunk without a mention leaves the renderer unused; frozen tables are the same everywhere
        with warnings.catch_warnings():  # the option has another name in later versions
            warnings.simplefilter("ignore", FutureWarning)
            return DistributedDataParallel(model, find_unused_parameters=True, broadcast_buffers=False)

    def any(self, *flags: bool) -> list[bool]:
        """For each flag, True if it is set in any process."""
        if self.size == 1:
            return list(flags)
        set_anywhere = torch.tensor(flags, dtype=torch.float32, device=self.device)
        torch.distributed.all_reduce(set_anywhere, torch.distributed.ReduceOp.MAX)
        return [bool(flag) for flag in set_anywhere.tolist()]

    def most(self, values: Sequence[int]) -> list[int]:
        """Maximum of each value over the processes."""
        if self.size == 1:
            return list(values)
        maxima = torch.tensor(values, device=self.device)
        torch.distributed.all_reduce(maxima, torch.distributed.ReduceOp.MAX)
        return [int(value) for value in maxima.tolist()]

    def total(self, values: Sequence[float]) -> list[float]:
        """Sum of each value over the processes."""
        if self.size == 1:
            return list(values)
        totals: list[float] = self.total_of(torch.tensor(values, dtype=torch.float64, device=self.device)).tolist()
        return totals

    def total_of(self, tensor: Tensor) -> Tensor:
        """Sum a tensor over the processes, in place."""
        if self.size > 1:
            torch.distributed.all_reduce(tensor)
        return tensor

    def wait(self) -> None:
        """Block until every process has called this."""
        if self.size > 1:
            torch.distributed.barrier()


def choose_device(name: str) -> torch.device:
    """Device by name; `auto` is this process's GPU if there is one, else the CPU."""
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
    """Join the process group that `torchrun` describes in the environment; without one, yield a `World` of one process.

    The communication threads of gloo must end before the interpreter does: a thread that then releases a tensor waits
    for an interpreter that is gone, and aborts the process. They end when the last reference to the group is dropped.
    `torch.distributed.nn` would keep one for good, as the default of its functions, if it were first imported (by
    DistributedDataParallel) while the group exists. The wrapped model keeps one in a reference cycle.
    """
    place = choose_device(device)
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World(device=place)
        return
    importlib.import_module("torch.distributed.nn")
    torch.distributed.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield World(torch.distributed.get_rank(), size, place)
    finally:
        torch.distributed.destroy_process_group()
        atexit.register(gc.collect)
