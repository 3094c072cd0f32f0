"""The compute queue: order, turns, limits, cancellation. Time is a counter that the jobs advance."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from kglm.serve.problems import Problem
from kglm.serve.settings import Limits
from kglm.serve.work import LIGHT_CREDIT, LIGHT_IN_A_ROW, ComputeQueue, YieldPoint


class FakeClock:
    """A clock that stands still until it is advanced."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@asynccontextmanager
async def compute_queue(clock: FakeClock | None = None, **limits: float) -> AsyncIterator[ComputeQueue]:
    queue = ComputeQueue(Limits(**limits), clock or FakeClock())  # type: ignore[arg-type]
    try:
        yield queue
    finally:
        queue.close()


def holding(go_on: threading.Event) -> Callable[[YieldPoint], str]:
    """A job that computes until `go_on` is set."""

    def task(_: YieldPoint) -> str:
        assert go_on.wait(20)
        return "held"

    return task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def steps(computed: list[str], name: str, count: int) -> Callable[[YieldPoint], Iterator[str]]:
    def start(_: YieldPoint) -> Iterator[str]:
        for number in range(count):
            computed.append(f"{name}{number}")
            yield f"{name}{number}"

    return start


async def all_of(stream: AsyncIterator[str]) -> list[str]:
    return [item async for item in stream]


def test_results_and_errors_come_back() -> None:
    async def main() -> None:
        async with compute_queue() as queue:
            assert await queue.run(lambda _: 7) == 7
            assert await all_of(queue.stream(steps([], "a", 3))) == ["a0", "a1", "a2"]
            with pytest.raises(ZeroDivisionError):
                await queue.run(lambda _: 1 // 0)
            assert await queue.run(lambda _: threading.current_thread().name) == "kglm-computing"

    asyncio.run(main())


def test_streams_take_turns() -> None:
    async def main() -> None:
        computed: list[str] = []
        go_on = threading.Event()
        async with compute_queue() as queue:
            first = asyncio.create_task(queue.run(holding(go_on)))
            await until(lambda: queue.computing)
            streams = [asyncio.create_task(all_of(queue.stream(steps(computed, name, 2)))) for name in "ab"]
            await until(lambda: queue.waiting == 2)
            go_on.set()
            assert await first == "held"
            assert [await stream for stream in streams] == [["a0", "a1"], ["b0", "b1"]]
        assert computed == ["a0", "b0", "a1", "b1"]

    asyncio.run(main())


def test_light_jobs_go_first_but_not_for_ever() -> None:
    async def main() -> None:
        order: list[str] = []
        go_on = threading.Event()
        async with compute_queue() as queue:
            first = asyncio.create_task(queue.run(holding(go_on)))
            await until(lambda: queue.computing)
            heavy = asyncio.create_task(queue.run(lambda _: order.append("heavy")))
            await until(lambda: queue.waiting == 1)
            light = [asyncio.create_task(queue.run(lambda _: order.append("light"), light=True)) for _ in range(20)]
            await until(lambda: queue.waiting == 21)
            go_on.set()
            await asyncio.gather(first, heavy, *light)
        assert order.index("heavy") == LIGHT_IN_A_ROW

    asyncio.run(main())


def test_a_light_job_runs_at_a_yield_point() -> None:
    async def main() -> None:
        order: list[str] = []
        begun, go_on = threading.Event(), threading.Event()

        def long(yield_point: YieldPoint) -> None:
            begun.set()
            assert go_on.wait(20)
            yield_point()
            order.append("long")

        async with compute_queue() as queue:
            first = asyncio.create_task(queue.run(long))
            await until(begun.is_set)
            second = asyncio.create_task(queue.run(lambda _: order.append("light"), light=True))
            await until(lambda: queue.waiting == 1)
            go_on.set()
            await asyncio.gather(first, second)
        assert order == ["light", "long"]

    asyncio.run(main())


def test_a_steady_flow_of_light_jobs_leaves_half_of_the_time_to_the_others() -> None:
    piece = 0.005

    async def main() -> None:
        clock, done = FakeClock(), threading.Event()
        light_jobs = 0

        def words(yield_point: YieldPoint) -> Iterator[int]:
            for number in range(20):
                for _ in range(3):
                    while queue.waiting < 8:  # the flow goes on, however slow the event loop is
                        time.sleep(0.001)
                    yield_point()
                    clock.advance(piece)
                yield number

        async def flow() -> None:
            nonlocal light_jobs
            while not done.is_set():
                await queue.run(lambda _: clock.advance(piece), light=True)
                light_jobs += 1

        async with compute_queue(clock) as queue:
            flows = [asyncio.create_task(flow()) for _ in range(16)]
            await until(lambda: light_jobs > 16)
            async with asyncio.timeout(20):
                stream = queue.stream(words)
                assert await anext(stream) == 0
                start, before = clock.now, light_jobs
                assert [number async for number in stream] == list(range(1, 20))
            took, between = clock.now - start, light_jobs - before
            done.set()
            await asyncio.gather(*flows)
        own = 19 * 3 * piece
        assert took <= 2 * own + LIGHT_CREDIT + LIGHT_IN_A_ROW * piece, "its own time, and as much for the light jobs"
        assert between > 20, "the stream does not keep the light jobs out"

    asyncio.run(main())


def test_a_full_queue() -> None:
    async def main() -> None:
        go_on = threading.Event()
        async with compute_queue(queue=2) as queue:
            tasks = [asyncio.create_task(queue.run(holding(go_on)))]
            await until(lambda: queue.computing)
            tasks += [asyncio.create_task(queue.run(lambda _: "waited")) for _ in range(2)]
            await until(lambda: queue.waiting == 2)
            with pytest.raises(Problem) as refused:
                await queue.run(lambda _: "too much", light=True)
            assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "2"})
            assert queue.refused == 1
            go_on.set()
            assert await asyncio.gather(*tasks) == ["held", "waited", "waited"]

    asyncio.run(main())


def test_waiting_for_too_long() -> None:
    async def main() -> None:
        go_on, computed = threading.Event(), []
        async with compute_queue() as queue:
            first = asyncio.create_task(queue.run(holding(go_on)))
            await until(lambda: queue.computing)
            patient, queue.limits = queue.limits, Limits(wait_seconds=0.05)
            with pytest.raises(Problem) as refused:
                await queue.run(lambda _: computed.append(1))
            assert (refused.value.status, refused.value.code) == (503, "busy")
            queue.limits = patient
            go_on.set()
            await first
            await queue.run(lambda _: None)
            assert not computed, "a request that was refused is not computed"
            assert queue.timed_out == 1

    asyncio.run(main())


def test_a_client_need_not_wait_for_a_yield_point_to_time_out() -> None:
    async def main() -> None:
        go_on, ended = threading.Event(), threading.Event()

        def long(yield_point: YieldPoint) -> None:
            try:
                assert go_on.wait(20)
                yield_point()
                raise AssertionError("it was cancelled")
            finally:
                ended.set()

        async with compute_queue() as queue:
            patient, queue.limits = queue.limits, Limits(compute_seconds=0.05)
            with pytest.raises(Problem) as refused:
                await queue.run(long)
            assert (refused.value.status, refused.value.code) == (503, "timed_out")
            assert not ended.is_set(), "the client has its response while the job still runs"
            queue.limits = patient
            go_on.set()
            assert await queue.run(lambda _: "next") == "next" and ended.is_set()

    asyncio.run(main())


def test_a_job_out_of_time_ends_at_a_yield_point() -> None:
    async def main() -> None:
        clock = FakeClock()

        def endless(yield_point: YieldPoint) -> None:
            while True:
                clock.advance(1)
                yield_point()

        async with compute_queue(clock, compute_seconds=10) as queue:
            with pytest.raises(Problem) as refused:
                await queue.run(endless)
            assert (refused.value.status, refused.value.code) == (503, "timed_out")
            assert clock.now == 11 and queue.timed_out == 1
            assert await queue.run(lambda _: "next") == "next"

    asyncio.run(main())


def test_the_time_of_a_stream_is_the_sum_of_its_steps() -> None:
    async def main() -> None:
        clock, received = FakeClock(), []

        def slow(_: YieldPoint) -> Iterator[int]:
            for number in range(100):
                clock.advance(30)
                yield number

        async with compute_queue(clock, compute_seconds=60) as queue:
            with pytest.raises(Problem, match="longer than 60 seconds"):
                async for number in queue.stream(slow):
                    received.append(number)
        assert received == [0, 1, 2], "after the third, 90 seconds are spent"

    asyncio.run(main())


def test_a_stream_ends_when_its_client_leaves() -> None:
    async def main() -> None:
        closed = threading.Event()

        def endless(_: YieldPoint) -> Iterator[int]:
            try:
                while True:
                    yield 1
            finally:
                closed.set()

        async with compute_queue() as queue:
            stream = queue.stream(endless)
            await anext(stream)
            await stream.aclose()  # type: ignore[attr-defined]
            assert await asyncio.to_thread(closed.wait, 20)
            assert queue.waiting == 0

    asyncio.run(main())


def test_closing_fails_the_jobs_that_wait() -> None:
    async def main() -> None:
        go_on = threading.Event()
        async with compute_queue() as queue:
            first = asyncio.create_task(queue.run(holding(go_on)))
            await until(lambda: queue.computing)
            second = asyncio.create_task(queue.run(lambda _: None))
            await until(lambda: queue.waiting == 1)
            closing = asyncio.create_task(asyncio.to_thread(queue.close))
            for task in (first, second):
                with pytest.raises(Problem, match="going down"):
                    await task
            go_on.set()
            await closing
            with pytest.raises(Problem, match="going down"):
                await queue.run(lambda _: None)

    asyncio.run(main())
