"""Parallel map over processes: results in input order, bounded memory, no orphaned workers."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from typing import TypeVar

from kglm.errors import KglmError

MAX_DEATHS = 2
"""Worker deaths without a new result after which each unfinished item runs in its own process."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_cores() -> int:
    """Cores this process may use, which in a container is often fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ordered_map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    workers: int,
    preload: Sequence[str] = (),
    on_death: Callable[[Item], Result] | None = None,
) -> Iterator[Result]:
    """`map(function, items)` over `workers` processes; with one worker, in this process.

    At most two items per worker are unfinished, so memory is bounded even if the consumer is slow. `function` must be
    importable by name, because workers do not share the memory of this process. If a worker is killed, all workers are
    restarted and repeat the unfinished items. An item that kills its worker even when it runs alone raises an error;
    with `on_death`, that function is called with the item in this process and gives the result instead. `preload` lists
    modules that the workers need: they are imported once and shared.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    unfinished: deque[Item] = deque()  # items given to workers, in input order
    source = iter(items)
    deaths = 0
    while True:
        try:
            for result in _pooled(function, source, unfinished, workers, preload):
                deaths = 0
                yield result
            return
        except BrokenProcessPool:
            deaths += 1
            if deaths >= MAX_DEATHS:  # find out which of the unfinished items kills its worker
                while unfinished:
                    result = _alone(function, unfinished[0], preload, on_death)
                    unfinished.popleft()
                    yield result
                deaths = 0


def _alone(
    function: Callable[[Item], Result],
    item: Item,
    preload: Sequence[str],
    on_death: Callable[[Item], Result] | None,
) -> Result:
    """Result of one item, computed in a separate process."""
    try:
        (result,) = _pooled(function, iter(()), deque([item]), 1, preload)
    except BrokenProcessPool as error:
        if on_death is None:
            raise KglmError(
                "a worker process was killed repeatedly by the same item (out of memory?)",
                remedy="run the command again with fewer --workers",
            ) from error
        return on_death(item)
    return result


def _pooled(
    function: Callable[[Item], Result],
    source: Iterator[Item],
    unfinished: deque[Item],
    workers: int,
    preload: Sequence[str],
) -> Iterator[Result]:
    """Yield results from one pool, first those of `unfinished`; an item leaves it when its result is yielded."""
    with ProcessPoolExecutor(
        workers, mp_context=_context([function.__module__, *preload]), initializer=_leave_with_parent
    ) as pool:
        pending: deque[Future[Result]] = deque()
        try:
            pending.extend(pool.submit(function, item) for item in unfinished)
            while True:
                while len(pending) < 2 * workers:
                    try:
                        item = next(source)
                    except StopIteration:
                        break
                    unfinished.append(item)
                    pending.append(pool.submit(function, item))
                if not pending:
                    return
                result = pending.popleft().result()
                unfinished.popleft()
                yield result
        except BrokenProcessPool:
            _end(pool)
            raise
        finally:
            for future in pending:
                future.cancel()


def _end(pool: ProcessPoolExecutor) -> None:
    """Kill all workers of a pool that has lost one.

    The pool does this itself, except for a worker that is just being started: it would wait for that one for ever.
    """
    for process in list((pool._processes or {}).values()):
        process.kill()


def _context(preload: list[str]) -> BaseContext:
    """Start method: fork workers from a server process that has only imported the modules, so they start fast and share
    that memory.

    The first map of this process starts the server and decides which modules it preloads.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(preload)
    return context


def _leave_with_parent() -> None:
    """Initialise a worker: end it when its parent is killed, because it would otherwise wait for work for ever.

    Inherited objects are frozen: garbage collection would copy their memory pages.
    """
    gc.freeze()
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
