"""The computing of all requests: one thread, a bounded queue in front of it, a time for everything.

One thread, because the model and the graph are shared and two threads were measured to compute no more than one. Work
that takes several steps (generating word by word) gives way after each step, so that nobody waits for a long text to
end; work that takes milliseconds (linking while someone types) goes before the rest, but takes no more of the time than
the rest as long as that is waiting. Whoever has left, or has had their time, is not computed for any longer.

    work = Work(limits)
    answer = await work.run(lambda pause: compute(…))
    async for word in work.stream(lambda pause: words(…)): …

`pause` is called by what is being computed, wherever it can: it lets light work through, and ends work that is stopped.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

from kglm.serve.problems import Problem
from kglm.serve.settings import Limits

T = TypeVar("T")
Pause = Callable[[], None]
LIGHT_IN_A_ROW = 8
"""After so many, other work has its turn."""
LIGHT_WORDS = 100
"""A text of more is not light work."""
LIGHT_AHEAD = 0.1
"""Seconds that light work may be ahead; from then on it has as much time as the other work has had."""


class _Stopped(Exception):
    """Nobody waits for this any more, or it has had its time."""


class _Job:
    """Something to compute, step by step; what comes of it goes to the event loop of whoever asked."""

    def __init__(self, make: Callable[[Pause], Iterator[Any]], light: bool, budget: float, *, single: bool) -> None:
        self.make = make
        self.light = light
        self.single = single
        self.budget = budget
        self.loop = asyncio.get_running_loop()
        self.results: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.steps: Iterator[Any] | None = None
        self.spent = 0.0
        self.began = 0.0
        self.counted = 0.0
        self.stopped = False

    def tell(self, kind: str, value: Any = None) -> None:
        """From the computing thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.results.put_nowait, (kind, value))

    def check(self) -> None:
        if self.stopped:
            raise _Stopped
        if self.spent + time.monotonic() - self.began > self.budget:
            raise _too_long(self.budget)


def _too_long(seconds: float) -> Problem:
    return Problem(503, f"it took longer than {seconds:g} seconds; ask for less", "timed_out")


class Work:
    """A thread that computes, and those who wait for it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.refused = 0
        """Requests that found the queue full."""
        self.given_up = 0
        """Requests that waited or took too long."""
        self._heavy: deque[_Job] = deque()
        self._light: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._in_a_row = 0
        self._light_may = LIGHT_AHEAD
        self._running: _Job | None = None
        self._thread = threading.Thread(target=self._compute, name="kglm-computing", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._heavy) + len(self._light)

    @property
    def computing(self) -> bool:
        return self._running is not None

    def stop(self) -> None:
        """Compute no more, and tell so to all who wait; what is under way ends at its next pause."""
        with self._changed:
            self._closed = True
            for job in (*self._heavy, *self._light, *([self._running] if self._running else [])):
                job.stopped = True
                job.tell("failed", Problem(503, "the server is going down", "unavailable"))
            self._changed.notify_all()

    def close(self, seconds: float = 5.0) -> None:
        """Stop, and wait for the end of what is under way."""
        self.stop()
        self._thread.join(seconds)

    # Those who wait, on the event loop

    async def run(self, compute: Callable[[Pause], T], *, light: bool = False) -> T:
        """The result of one computation."""

        def once(pause: Pause) -> Iterator[T]:
            yield compute(pause)

        job = self._admit(once, light, single=True)
        try:
            await self._next(job, self.limits.wait_seconds, waiting=True)
            kind, value = await self._next(job, self.limits.compute_seconds, waiting=False)
            assert kind == "item"
            return value  # type: ignore[no-any-return]
        finally:
            job.stopped = True

    async def stream(self, make: Callable[[Pause], Iterator[T]]) -> AsyncIterator[T]:
        """The results of a computation as they come; not started before the first is asked for."""
        job = self._admit(make, light=False, single=False)
        try:
            await self._next(job, self.limits.wait_seconds, waiting=True)
            while True:
                kind, value = await self._next(job, self.limits.wait_seconds, waiting=False)
                if kind == "done":
                    return
                yield value
        finally:
            job.stopped = True

    def _admit(self, make: Callable[[Pause], Iterator[Any]], light: bool, *, single: bool) -> _Job:
        with self._changed:
            if self._closed:
                raise Problem(503, "the server is going down", "unavailable")
            if self.waiting >= self.limits.queue:
                self.refused += 1
                raise Problem(429, f"{self.waiting} requests are waiting already; come again soon", Retry_After="2")
            job = _Job(make, light, self.limits.compute_seconds, single=single)
            (self._light if light else self._heavy).append(job)
            self._changed.notify()
        return job

    async def _next(self, job: _Job, seconds: float, *, waiting: bool) -> tuple[str, Any]:
        try:
            async with asyncio.timeout(seconds):
                kind, value = await job.results.get()
        except TimeoutError:
            self.given_up += 1
            if not waiting:
                raise _too_long(seconds) from None
            raise Problem(
                503, f"nobody could compute this within {seconds:g} seconds; come again later", "busy", Retry_After="10"
            ) from None
        if kind == "failed":
            self.given_up += isinstance(value, Problem) and value.code == "timed_out"
            raise value
        return kind, value

    # The thread that computes

    def _compute(self) -> None:
        while True:
            with self._changed:
                while not self._heavy and not self._light and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                job = self._choose()
            self._advance(job)

    def _choose(self) -> _Job:
        if self._light_first() or not self._heavy:
            return self._next_light()
        self._in_a_row = 0
        return self._heavy.popleft()

    def _light_first(self) -> bool:
        return bool(self._light) and self._in_a_row < LIGHT_IN_A_ROW and self._light_may > 0

    def _next_light(self) -> _Job:
        self._in_a_row += 1
        return self._light.popleft()

    def _advance(self, job: _Job) -> None:
        """One step of a job; if there are more, it stands in line again."""
        outer, self._running = self._running, job
        job.began, job.counted = time.monotonic(), 0.0
        more = False
        try:
            if job.steps is None and not job.stopped:
                job.tell("began")
                job.steps = job.make(lambda: self._pause(job))
            job.check()
            assert job.steps is not None
            job.tell("item", next(job.steps))
            more = not job.single
        except StopIteration:
            job.tell("done")
        except _Stopped:
            pass
        except BaseException as error:
            job.tell("failed", error)
        finally:
            self._running = outer
            self._count(job)
            job.spent += job.counted
        if more and not job.stopped:
            with self._changed:
                (self._light if job.light else self._heavy).append(job)
        elif job.steps is not None:
            job.steps.close()  # type: ignore[attr-defined]

    def _count(self, job: _Job) -> None:
        """Light work pays for its time if other work is waiting for it; the time of that is light work's again."""
        passed = time.monotonic() - job.began
        more, job.counted = passed - job.counted, passed
        if not job.light:
            self._light_may = min(self._light_may + more, LIGHT_AHEAD)
        elif self._heavy or self._running is not None:
            self._light_may -= more

    def _pause(self, job: _Job) -> None:
        job.check()
        if job.light:
            return
        self._count(job)
        self._in_a_row = 0
        while True:
            with self._changed:
                if not self._light_first():
                    break
                light = self._next_light()
            self._advance(light)
            job.began += light.spent  # not this one's time
        self._in_a_row = 0
        job.check()
