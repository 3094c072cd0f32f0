"""The processes that train one model together: one process, or as many as `torchrun` started.

Each process reads its share of a batch's rows, and DistributedDataParallel averages the gradients. All processes draw
the same random numbers, so their number changes the speed of training but not its result.
"""

from __future__ import annotations

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

    The communication threads of gloo must end before the interpreter does: a thread that releases a tensor while the
    interpreter shuts down aborts the process. They end when the last reference to the group is dropped, and that must
    be the one of `destroy_process_group`, which does not hold the interpreter's lock while it waits for the threads;
    anywhere else the two may wait for each other. So no other reference may be left then: a wrapped model, which is a
    reference cycle, is collected before; and `torch.distributed.nn`, whose functions keep the group as a default if the
    module is first imported while there is one (by DistributedDataParallel), is imported before.
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
        gc.collect()
        torch.distributed.destroy_process_group()
