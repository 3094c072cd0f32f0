"""The one thread that computes: in order, in turns, within limits, and for nobody who has left."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from kglm.serve.problems import Problem
from kglm.serve.settings import Limits
from kglm.serve.work import Pause, Work


@asynccontextmanager
async def working(**limits: float) -> AsyncIterator[Work]:
    work = Work(Limits(**limits))  # type: ignore[arg-type]
    try:
        yield work
    finally:
        work.close()


def holding(go_on: threading.Event) -> Callable[[Pause], str]:
    """Work that waits until it may end."""

    def task(_: Pause) -> str:
        assert go_on.wait(20)
        return "held"

    return task


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.005)


def steps(said: list[str], name: str, count: int) -> Callable[[Pause], Iterator[str]]:
    def make(_: Pause) -> Iterator[str]:
        for number in range(count):
            said.append(f"{name}{number}")
            yield f"{name}{number}"

    return make


async def all_of(stream: AsyncIterator[str]) -> list[str]:
    return [each async for each in stream]


def test_results_and_errors_come_back() -> None:
    async def main() -> None:
        async with working() as work:
            assert await work.run(lambda _: 7) == 7
            assert await all_of(work.stream(steps([], "a", 3))) == ["a0", "a1", "a2"]
            with pytest.raises(ZeroDivisionError):
                await work.run(lambda _: 1 // 0)
            assert await work.run(lambda _: threading.current_thread().name) == "kglm-computing"

    asyncio.run(main())


def test_texts_take_turns() -> None:
    async def main() -> None:
        said: list[str] = []
        go_on = threading.Event()
        async with working() as work:
            first = asyncio.create_task(work.run(holding(go_on)))
            await until(lambda: work.computing)
            streams = [asyncio.create_task(all_of(work.stream(steps(said, name, 2)))) for name in "ab"]
            await until(lambda: work.waiting == 2)
            go_on.set()
            assert await first == "held"
            assert [await stream for stream in streams] == [["a0", "a1"], ["b0", "b1"]]
        assert said == ["a0", "b0", "a1", "b1"]

    asyncio.run(main())


def test_light_work_goes_first_but_not_for_ever() -> None:
    async def main() -> None:
        order: list[str] = []
        go_on = threading.Event()
        async with working() as work:
            first = asyncio.create_task(work.run(holding(go_on)))
            await until(lambda: work.computing)
            heavy = asyncio.create_task(work.run(lambda _: order.append("heavy")))
            await until(lambda: work.waiting == 1)
            light = [asyncio.create_task(work.run(lambda _: order.append("light"), light=True)) for _ in range(20)]
            await until(lambda: work.waiting == 21)
            go_on.set()
            await asyncio.gather(first, heavy, *light)
        assert order[0] == "light" and 5 < order.index("heavy") < 20

    asyncio.run(main())


def test_light_work_is_let_through_at_a_pause() -> None:
    async def main() -> None:
        order: list[str] = []
        begun, go_on = threading.Event(), threading.Event()

        def long(pause: Pause) -> None:
            begun.set()
            assert go_on.wait(20)
            pause()
            order.append("long")

        async with working() as work:
            first = asyncio.create_task(work.run(long))
            await until(begun.is_set)
            second = asyncio.create_task(work.run(lambda _: order.append("light"), light=True))
            await until(lambda: work.waiting == 1)
            go_on.set()
            await asyncio.gather(first, second)
        assert order == ["light", "long"]

    asyncio.run(main())


def test_a_steady_flow_of_light_work_leaves_half_of_the_time_to_the_rest() -> None:
    async def main() -> None:
        done, let_through = threading.Event(), 0

        def words(pause: Pause) -> Iterator[int]:
            for number in range(20):
                for _ in range(3):
                    pause()
                    time.sleep(0.005)
                yield number

        async def flow(work: Work) -> None:
            nonlocal let_through
            while not done.is_set():
                await work.run(lambda _: time.sleep(0.005), light=True)
                let_through += 1

        async with working() as work:
            flows = [asyncio.create_task(flow(work)) for _ in range(16)]
            await until(lambda: let_through > 16)
            start, before = time.monotonic(), let_through
            async with asyncio.timeout(20):
                assert [number async for number in work.stream(words)] == list(range(20))
            took, between = time.monotonic() - start, let_through - before
            done.set()
            await asyncio.gather(*flows)
        assert took < 2.5, "0.3 seconds of its own, as much again for others, and a machine that is busy"
        assert between > 20, "nor does the text keep the others out"

    asyncio.run(main())


def test_a_full_queue() -> None:
    async def main() -> None:
        go_on = threading.Event()
        async with working(queue=2) as work:
            tasks = [asyncio.create_task(work.run(holding(go_on)))]
            await until(lambda: work.computing)
            tasks += [asyncio.create_task(work.run(lambda _: "waited")) for _ in range(2)]
            await until(lambda: work.waiting == 2)
            with pytest.raises(Problem) as refused:
                await work.run(lambda _: "too much", light=True)
            assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "2"})
            assert work.refused == 1
            go_on.set()
            assert await asyncio.gather(*tasks) == ["held", "waited", "waited"]

    asyncio.run(main())


def test_waiting_for_too_long() -> None:
    async def main() -> None:
        go_on, done = threading.Event(), []
        async with working(wait_seconds=0.05) as work:
            first = asyncio.create_task(work.run(holding(go_on)))
            await until(lambda: work.computing)
            with pytest.raises(Problem) as given_up:
                await work.run(lambda _: done.append(1))
            assert (given_up.value.status, given_up.value.code) == (503, "busy")
            go_on.set()
            await first
            await work.run(lambda _: None)
            assert not done, "what nobody waits for is not computed"
            assert work.given_up == 1

    asyncio.run(main())


def test_computing_for_too_long_is_told_at_once_and_ends_at_a_pause() -> None:
    async def main() -> None:
        ended = threading.Event()

        def endless(pause: Pause) -> None:
            try:
                while True:
                    time.sleep(0.01)
                    pause()
            finally:
                ended.set()

        async with working(compute_seconds=0.1) as work:
            with pytest.raises(Problem) as given_up:
                await work.run(endless)
            assert (given_up.value.status, given_up.value.code) == (503, "timed_out")
            assert await asyncio.to_thread(ended.wait, 5)
            assert await work.run(lambda _: "next") == "next"

    asyncio.run(main())


def test_the_time_of_a_text_is_the_sum_of_its_steps() -> None:
    def slow(_: Pause) -> Iterator[int]:
        for number in range(100):
            time.sleep(0.03)
            yield number

    async def main() -> None:
        said: list[int] = []
        async with working(compute_seconds=0.1) as work:
            with pytest.raises(Problem, match=r"longer than 0\.1 seconds"):
                async for number in work.stream(slow):
                    said.append(number)
        assert 1 <= len(said) < 10

    asyncio.run(main())


def test_whoever_leaves_is_not_computed_for() -> None:
    async def main() -> None:
        said: list[int] = []
        closed = threading.Event()

        def endless(_: Pause) -> Iterator[int]:
            try:
                while True:
                    said.append(1)
                    yield 1
            finally:
                closed.set()

        async with working() as work:
            stream = work.stream(endless)
            await anext(stream)
            await stream.aclose()  # type: ignore[attr-defined]
            assert await asyncio.to_thread(closed.wait, 5)
            count = len(said)
            await asyncio.sleep(0.05)
            assert len(said) == count and work.waiting == 0

    asyncio.run(main())


def test_closing_tells_those_who_wait() -> None:
    async def main() -> None:
        go_on = threading.Event()
        async with working() as work:
            first = asyncio.create_task(work.run(holding(go_on)))
            await until(lambda: work.computing)
            second = asyncio.create_task(work.run(lambda _: None))
            await until(lambda: work.waiting == 1)
            closing = asyncio.create_task(asyncio.to_thread(work.close))
            for task in (first, second):
                with pytest.raises(Problem, match="going down"):
                    await task
            go_on.set()
            await closing
            with pytest.raises(Problem, match="going down"):
                await work.run(lambda _: None)

    asyncio.run(main())
