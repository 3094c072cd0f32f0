"""How many threads to compute with: measured, because more can be slower.

On some machines the threads of one process spin against each other, and small work takes many times longer with two
than with one. So each number is tried on a step like those to come, and the fastest is taken.
"""

from __future__ import annotations

import time

import torch

from kglm.parallel import available_cores

REPEATS = 3


def choose_threads(*, rows: int = 60, length: int = 16, size: int = 256, words: int = 8000) -> int:
    """The number of threads that trains a small recurrent model fastest here: 1, or all cores."""
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
        seconds(1)  # the first run of anything is slow
        return min((cores, 1), key=seconds)
    finally:
        torch.set_num_threads(before)
