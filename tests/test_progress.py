"""Rates and times left: by a clock that the test sets, and as lines on standard error."""

from __future__ import annotations

import pytest

from kglm import progress as module
from kglm.progress import Rate, duration, progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_slow_start_does_not_count() -> None:
    """8 s until the first of 400 shards, then 50 a second: 8 s are left, not 4044."""
    clock = Clock()
    rate = Rate(clock)
    clock.now += 8
    rate.advance(1)
    assert rate.per_second is None and rate.left(399) is None
    for _ in range(4):
        clock.now += 1
        rate.advance(50)
    assert rate.per_second == pytest.approx(50)
    assert rate.left(400) == pytest.approx(8)


def test_nothing_is_told_before_enough_is_seen() -> None:
    clock = Clock()
    rate = Rate(clock)
    for seconds, known in ((0.0, False), (1.0, False), (1.9, False), (1.0, True)):
        clock.now += seconds
        rate.advance(10)
        assert (rate.left(100) is not None) == known
    few = Rate(clock)
    few.advance(1)
    clock.now += 60
    few.advance(1)
    assert few.per_second is not None and few.left(100) is None


def test_the_rate_is_that_of_the_last_minute() -> None:
    clock = Clock()
    rate = Rate(clock)
    for speed in [1] * 300 + [10] * 70:
        clock.now += 1
        rate.advance(speed)
    assert rate.per_second == pytest.approx(10)
    clock.now += 60  # it stands still
    assert rate.per_second == pytest.approx(5, abs=0.1)


def test_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "PLAIN_EVERY", 0.0)
    with progress("reading", 10, "files", done=5) as advance:
        advance(1)
        advance(1, total=20)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "reading: 6 files (60%)"
    assert second.startswith("reading: 7 files (35%), ") and second.endswith("files/s") and "left" not in second


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59.7, "1 min 0 s"), (7322, "2 h 2 min")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
