"""Choose the number of compute threads by measurement, because more threads can be slower.

On some machines the threads of a process spin while they wait for each other, and small tensors take many times longer
with two threads than with one.
"""

from __future__ import annotations

import time

import torch

from kglm.parallel import available_cores

REPEATS = 3
"""Timed steps for each number of threads; the fastest counts."""


def choose_threads(*, rows: int = 60, length: int = 16, size: int = 256, words: int = 8000) -> int:
    """Number of threads, 1 or all cores, that runs a training step of a small LSTM faster."""
    cores = available_cores()
    if cores == 1:
        return 1
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        lstm = torch.nn.LSTM(size, size)
    table, x = torch.zeros(words, size, requires_grad=True), torch.zeros(length, rows, size)

    def seconds(threads: int) -> float:
        torch.set_num_threads(threads)
        taken = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            (lstm(x)[0] @ table.T).logsumexp(-1).sum().backward()
            taken.append(time.perf_counter() - start)
        return min(taken)

    try:
        seconds(1)  # warm-up: the first run is slow
        return min((cores, 1), key=seconds)
    finally:
        torch.set_num_threads(before)
