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
"""Worker deaths without a new result after which each item in flight is run in a separate process."""

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
    loads: Sequence[str] = (),
    deadly: Callable[[Item], Result] | None = None,
) -> Iterator[Result]:
    """`map(function, items)` over `workers` processes; with one, in this process.

    At most two items a worker are in flight, so a slow consumer bounds the memory. `function` must be
    importable by name: workers share nothing of this process. If one is killed, all are started again and what was
    not finished is done again. An item that kills a worker of its own ends the work, unless `deadly` knows, in this
    process, what to make of it. `loads` are modules that workers will need: loaded once, they are shared.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    waiting: deque[Item] = deque()  # handed over and not finished, in order
    source = iter(items)
    deaths = 0
    while True:
        try:
            for result in _pooled(function, source, waiting, workers, loads):
                deaths = 0
                yield result
            return
        except BrokenProcessPool:
            deaths += 1
            if deaths >= MAX_DEATHS:  # by one of those in flight
                while waiting:
                    result = _alone(function, waiting[0], loads, deadly)
                    waiting.popleft()
                    yield result
                deaths = 0


def _alone(
    function: Callable[[Item], Result],
    item: Item,
    loads: Sequence[str],
    deadly: Callable[[Item], Result] | None,
) -> Result:
    """Result of one item, computed in a separate process."""
    try:
        (result,) = _pooled(function, iter(()), deque([item]), 1, loads)
    except BrokenProcessPool as error:
        if deadly is None:
            raise KglmError(
                "a worker process was killed, each time at the same place (out of memory?)",
                remedy="run the command again, with fewer --workers",
            ) from error
        return deadly(item)
    return result


def _pooled(
    function: Callable[[Item], Result],
    source: Iterator[Item],
    waiting: deque[Item],
    workers: int,
    loads: Sequence[str],
) -> Iterator[Result]:
    """Yield results from one pool, first those of `waiting`; an item leaves `waiting` when its result is yielded."""
    with ProcessPoolExecutor(
        workers, mp_context=_context([function.__module__, *loads]), initializer=_leave_with_parent
    ) as pool:
        pending: deque[Future[Result]] = deque()
        try:
            pending.extend(pool.submit(function, item) for item in waiting)
            while True:
                while len(pending) < 2 * workers:
                    try:
                        item = next(source)
                    except StopIteration:
                        break
                    waiting.append(item)
                    pending.append(pool.submit(function, item))
                if not pending:
                    return
                result = pending.popleft().result()
                waiting.popleft()
                yield result
        except BrokenProcessPool:
            _end(pool)
            raise
        finally:
            for future in pending:
                future.cancel()


def _end(pool: ProcessPoolExecutor) -> None:
    """End all workers of a pool that has lost one.

    The pool does so itself, but not with one that is being started just then, for which it waits for ever.
    """
    for process in list((pool._processes or {}).values()):
        process.kill()


def _context(loads: list[str]) -> BaseContext:
    """Fork workers from a server process that has only loaded the modules: they start fast and share that memory.

    The server starts with the first map of this process and preloads its modules.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(loads)
    return context


def _leave_with_parent() -> None:
    """End a worker when its parent is killed: otherwise it would wait for work for ever.

    Inherited objects are frozen, because garbage collection would copy their memory pages.
    """
    gc.freeze()
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
