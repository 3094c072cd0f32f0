"""Parallel map over processes: order of results, killed workers, errors."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kglm.errors import KglmError
from kglm.parallel import ordered_map


def square(number: int) -> int:
    return number * number


def fragile(job: tuple[Path, int]) -> int:
    """Kill this process at item 7, only the first time."""
    home, number = job
    if number == 7 and not (home / "died").exists():
        (home / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def deadly(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def wrong(number: int) -> float:
    return 1 / (number - 5)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_are_in_input_order(workers: int) -> None:
    assert list(ordered_map(square, range(20), workers=workers)) == [number * number for number in range(20)]
    assert list(ordered_map(square, [], workers=workers)) == []


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    assert list(ordered_map(fragile, [(tmp_path, number) for number in range(20)], workers=2)) == list(range(20))
    assert (tmp_path / "died").exists()


def test_item_that_always_kills_its_worker_raises_an_error() -> None:
    found = []
    with pytest.raises(KglmError, match="killed repeatedly by the same item"):
        for number in ordered_map(deadly, range(9), workers=2):
            found.append(number)
    assert found == [0, 1, 2], "results of earlier items are yielded"


def test_on_death_gives_the_result_of_an_item_that_kills_its_worker() -> None:
    results = ordered_map(deadly, range(9), workers=2, on_death=lambda number: -number)
    assert list(results) == [
        0,
        1,
        2,
        -3,
        *range(4, 9),
    ]


def test_worker_that_starts_while_another_dies_is_killed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool does not end a worker that is just being started, and would wait for it for ever."""
    monkeypatch.setattr("multiprocessing.process.BaseProcess.terminate", lambda self: None)
    monkeypatch.setattr("concurrent.futures.process._ExecutorManagerThread.shutdown_workers", lambda self: None)
    assert list(ordered_map(deadly, [0, 3], workers=2, on_death=lambda number: -number)) == [0, -3]


def test_exception_of_a_worker_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        list(ordered_map(wrong, range(9), workers=2))


def test_items_are_taken_only_as_needed() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    results = ordered_map(square, items(), workers=2)
    assert next(results) == 0
    assert len(taken) <= 5
    results.close()  # type: ignore[attr-defined]
