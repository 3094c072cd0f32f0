"""Work on several processes: order, death and errors."""

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
    """Dies at 7, but only the first time."""
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
def test_results_in_order(workers: int) -> None:
    assert list(ordered_map(square, range(20), workers=workers)) == [number * number for number in range(20)]
    assert list(ordered_map(square, [], workers=workers)) == []


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    assert list(ordered_map(fragile, [(tmp_path, number) for number in range(20)], workers=2)) == list(range(20))
    assert (tmp_path / "died").exists()


def test_what_always_kills_its_worker_ends_the_work() -> None:
    found = []
    with pytest.raises(KglmError, match="killed, each time at the same place"):
        for number in ordered_map(deadly, range(9), workers=2):
            found.append(number)
    assert found == [0, 1, 2], "what came before is handed over"


def test_unless_somebody_knows_what_to_make_of_it() -> None:
    assert list(ordered_map(deadly, range(9), workers=2, deadly=lambda number: -number)) == [0, 1, 2, -3, *range(4, 9)]


def test_a_worker_that_the_pool_forgot_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is started while another dies is not told to leave: the pool would wait for it for ever."""
    monkeypatch.setattr("multiprocessing.process.BaseProcess.terminate", lambda self: None)
    monkeypatch.setattr("concurrent.futures.process._ExecutorManagerThread.shutdown_workers", lambda self: None)
    assert list(ordered_map(deadly, [0, 3], workers=2, deadly=lambda number: -number)) == [0, -3]


def test_errors_come_through() -> None:
    with pytest.raises(ZeroDivisionError):
        list(ordered_map(wrong, range(9), workers=2))


def test_items_are_asked_for_as_they_are_needed() -> None:
    asked = []

    def items() -> Iterator[int]:
        for number in range(100):
            asked.append(number)
            yield number

    results = ordered_map(square, items(), workers=2)
    assert next(results) == 0
    assert len(asked) <= 5
    results.close()  # type: ignore[attr-defined]
