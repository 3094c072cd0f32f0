"""Choose the number of compute threads, such that the same training on the same machine gets the same number.

The number matters beyond speed: sums are split between threads, so another number gives other rounding and, after many
steps, other weights. A choice between timings that are close would differ from run to run.

Threads of OpenMP that spin while they wait can make small operations many times slower (`OMP_WAIT_POLICY`; the command
line sets PASSIVE). So all cores are used if threads do not spin, unless a measurement shows that they are far slower
than one; else one thread is used.
"""

from __future__ import annotations

import os
import time

import torch

from kglm.parallel import available_cores

REPEATS = 5
"""Timed steps for each number of threads, in turn; the fastest counts."""
FAR_SLOWER = 2.5
"""Ratio of times from which all cores are given up. Measured: 0.7 to 0.8 on an idle or busy machine, 10 and more if
threads hinder each other; so noise does not change the choice."""


def choose_threads(*, rows: int = 60, length: int = 16, size: int = 256, words: int = 8000) -> int:
    """Number of threads for training: all cores or 1."""
    cores = available_cores()
    if cores == 1 or os.environ.get("OMP_WAIT_POLICY", "").upper() != "PASSIVE":
        return 1
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        lstm = torch.nn.LSTM(size, size)
    table, x = torch.zeros(words, size, requires_grad=True), torch.zeros(length, rows, size)

    def seconds(threads: int) -> float:
        torch.set_num_threads(threads)
        start = time.perf_counter()
        (lstm(x)[0] @ table.T).logsumexp(-1).sum().backward()
        return time.perf_counter() - start

    try:
        times = [(seconds(1), seconds(cores)) for _ in range(1 + REPEATS)][1:]  # the first steps are slow
    finally:
        torch.set_num_threads(before)
    one, all_cores = (min(column) for column in zip(*times, strict=True))
    return 1 if all_cores > FAR_SLOWER * one else cores
