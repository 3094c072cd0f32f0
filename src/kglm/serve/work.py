"""The compute queue: one thread computes all requests, behind a bounded queue and with timeouts.

One thread, because the model and the graph are shared and two threads were measured to compute no more than one.

* Jobs of several steps (generation, word by word) go back to the end of the queue after each step.
* Light jobs (milliseconds: linking while a user types) go first, but use at most half of the time if heavy jobs wait.
* A job ends early if its client disconnects or its time limit is reached.

    queue = ComputeQueue(limits)
    result = await queue.run(lambda yield_point: compute(…))
    async for word in queue.stream(lambda yield_point: words(…)): …

A job calls `yield_point()` between pieces of its work: this runs waiting light jobs, and raises if the job must end.
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
YieldPoint = Callable[[], None]
Start = Callable[[YieldPoint], Iterator[Any]]
Clock = Callable[[], float]
LIGHT_IN_A_ROW = 8
"""Light jobs that may run in a row while a heavy job waits."""
LIGHT_WORDS = 100
"""Longest text, in words, that counts as a light job."""
LIGHT_CREDIT = 0.1
"""Seconds that light jobs may use before waiting heavy jobs get as much time as they do."""


class _Cancelled(Exception):
    """The client of this job has left, or the queue is closed."""


class _Job:
    """A computation in steps; its results go to the event loop of the request."""

    def __init__(self, start: Start, light: bool, limit: float, *, single: bool) -> None:
        self.start = start
        self.light = light
        self.single = single
        """True if the job has one result."""
        self.limit = limit
        """Seconds of computation that the job may use."""
        self.loop = asyncio.get_running_loop()
        self.results: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.steps: Iterator[Any] | None = None
        self.spent = 0.0
        """Seconds used by earlier steps."""
        self.step_start = 0.0
        self.accounted = 0.0
        """Seconds of this step that the light credit already reflects."""
        self.cancelled = False

    def post(self, kind: str, value: Any = None) -> None:
        """Hand a result to the event loop; called by the compute thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.results.put_nowait, (kind, value))

    def check(self, now: float) -> None:
        """Raise if the job is cancelled or out of time."""
        if self.cancelled:
            raise _Cancelled
        if self.spent + now - self.step_start > self.limit:
            raise _timed_out(self.limit)


def _timed_out(seconds: float) -> Problem:
    return Problem(503, f"the computation took longer than {seconds:g} seconds; request less", "timed_out")


class ComputeQueue:
    """The compute thread and the jobs that wait for it. Tests replace `clock`."""

    def __init__(self, limits: Limits, clock: Clock = time.monotonic) -> None:
        self.limits = limits
        self.refused = 0
        """Requests refused because the queue was full."""
        self.timed_out = 0
        """Requests that waited or computed for too long."""
        self._clock = clock
        self._heavy: deque[_Job] = deque()
        self._light: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._light_in_a_row = 0
        self._light_credit = LIGHT_CREDIT
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
        """Accept no more jobs and fail all present ones; the running job ends at its next yield point."""
        with self._changed:
            self._closed = True
            for job in (*self._heavy, *self._light, *([self._running] if self._running else [])):
                job.cancelled = True
                job.post("failed", Problem(503, "the server is going down", "unavailable"))
            self._changed.notify_all()

    def close(self, seconds: float = 5.0) -> None:
        """Stop, and wait up to `seconds` for the running job to end."""
        self.stop()
        self._thread.join(seconds)

    # On the event loop

    async def run(self, compute: Callable[[YieldPoint], T], *, light: bool = False) -> T:
        """Queue one computation and return its result."""

        def once(yield_point: YieldPoint) -> Iterator[T]:
            yield compute(yield_point)

        job = self._admit(once, light, single=True)
        try:
            await self._next(job, self.limits.wait_seconds, started=False)
            kind, value = await self._next(job, self.limits.compute_seconds, started=True)
            assert kind == "item"
            return value  # type: ignore[no-any-return]
        finally:
            job.cancelled = True

    async def stream(self, start: Callable[[YieldPoint], Iterator[T]]) -> AsyncIterator[T]:
        """Queue a computation of several results and yield each when it is ready. Starts with the first `anext`."""
        job = self._admit(start, light=False, single=False)
        try:
            await self._next(job, self.limits.wait_seconds, started=False)
            while True:
                kind, value = await self._next(job, self.limits.wait_seconds, started=True)
                if kind == "done":
                    return
                yield value
        finally:
            job.cancelled = True

    def _admit(self, start: Start, light: bool, *, single: bool) -> _Job:
        with self._changed:
            if self._closed:
                raise Problem(503, "the server is going down", "unavailable")
            if self.waiting >= self.limits.queue:
                self.refused += 1
                raise Problem(429, f"{self.waiting} requests are waiting already; try again soon", Retry_After="2")
            job = _Job(start, light, self.limits.compute_seconds, single=single)
            (self._light if light else self._heavy).append(job)
            self._changed.notify()
        return job

    async def _next(self, job: _Job, seconds: float, *, started: bool) -> tuple[str, Any]:
        try:
            async with asyncio.timeout(seconds):
                kind, value = await job.results.get()
        except TimeoutError:
            self.timed_out += 1
            if started:
                raise _timed_out(seconds) from None
            raise Problem(
                503, f"the request waited longer than {seconds:g} seconds; try again later", "busy", Retry_After="10"
            ) from None
        if kind == "failed":
            self.timed_out += isinstance(value, Problem) and value.code == "timed_out"
            raise value
        return kind, value

    # In the compute thread

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
        self._light_in_a_row = 0
        return self._heavy.popleft()

    def _light_first(self) -> bool:
        return bool(self._light) and self._light_in_a_row < LIGHT_IN_A_ROW and self._light_credit > 0

    def _next_light(self) -> _Job:
        self._light_in_a_row += 1
        return self._light.popleft()

    def _advance(self, job: _Job) -> None:
        """Compute one step of a job; a job with more steps goes back to the end of its queue."""
        outer, self._running = self._running, job
        job.step_start, job.accounted = self._clock(), 0.0
        more = False
        try:
            if job.steps is None and not job.cancelled:
                job.post("started")
                job.steps = job.start(lambda: self._yield_point(job))
            job.check(self._clock())
            assert job.steps is not None
            job.post("item", next(job.steps))
            more = not job.single
        except StopIteration:
            job.post("done")
        except _Cancelled:
            pass
        except BaseException as error:
            job.post("failed", error)
        finally:
            self._running = outer
            self._account(job)
            job.spent += job.accounted
        if more and not job.cancelled:
            with self._changed:
                (self._light if job.light else self._heavy).append(job)
        elif job.steps is not None:
            job.steps.close()  # type: ignore[attr-defined]

    def _account(self, job: _Job) -> None:
        """Update the light credit: add the time of heavy jobs; subtract that of light jobs while heavy ones wait."""
        passed = self._clock() - job.step_start
        more, job.accounted = passed - job.accounted, passed
        if not job.light:
            self._light_credit = min(self._light_credit + more, LIGHT_CREDIT)
        elif self._heavy or self._running is not None:
            self._light_credit -= more

    def _yield_point(self, job: _Job) -> None:
        """Run waiting light jobs inside a heavy job; their time is not counted as the heavy job's."""
        job.check(self._clock())
        if job.light:
            return
        self._account(job)
        self._light_in_a_row = 0
        while True:
            with self._changed:
                if not self._light_first():
                    break
                light = self._next_light()
            self._advance(light)
            job.step_start += light.spent
        self._light_in_a_row = 0
        job.check(self._clock())
