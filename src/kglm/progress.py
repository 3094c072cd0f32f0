"""Show the progress of long work: a bar with rate and time left on a terminal, plain lines elsewhere.

The rate is that of the last `WINDOW` seconds and begins with the first unit done, so that a slow start (worker
processes, first batches) does not count. The time left is shown when enough has been seen to estimate it.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

PLAIN_EVERY = 10.0
"""Seconds between plain lines where there is no terminal."""
WINDOW = 60.0
"""Seconds that the rate looks back."""
MIN_SEEN = 3.0
"""Seconds after the first unit before the time left is estimated."""
MIN_STEPS = 3
"""Reports of progress before the time left is estimated."""


class Rate:
    """Units per second, and the seconds left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, float]] = deque()
        """Times, and units done until then; the first is the start of the window."""
        self._steps = 0
        self.count = 0.0

    def advance(self, amount: float) -> None:
        """Record that `amount` more units are done."""
        now = self._clock()
        self.count += amount
        self._steps += 1
        if self._seen and now == self._seen[-1][0]:
            self._seen.pop()
        self._seen.append((now, self.count))
        while len(self._seen) > 2 and now - self._seen[1][0] >= WINDOW:
            self._seen.popleft()

    @property
    def per_second(self) -> float | None:
        """Units per second; None before there is a second report of progress."""
        if len(self._seen) < 2:
            return None
        (start, before), now = self._seen[0], self._clock()
        return (self.count - before) / (now - start) if now > start else None

    def left(self, units: float) -> float | None:
        """Seconds that `units` more take; None if too little has been seen to tell."""
        rate = self.per_second
        if not rate or self._steps < MIN_STEPS or self._clock() - self._seen[0][0] < MIN_SEEN:
            return None
        return max(units, 0.0) / rate


class Advance(Protocol):
    """Report `amount` more units done; `total` updates the expected number of units."""

    def __call__(self, amount: float = 1, total: float | None = None) -> None: ...


@contextmanager
def progress(title: str, total: float | None, unit: str, *, done: float = 0, shown: bool = True) -> Iterator[Advance]:
    """Show the progress of `title`: `total` units of work, `done` of them before a resume.

    It is printed to standard error, because standard output is for the result. `shown=False` is for all processes of a
    group except one.
    """
    if not shown:
        yield lambda _amount=1, _total=None: None
        return
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
        )
        with Progress(*columns, console=console, transient=True) as bars:
            task = bars.add_task(title, total=total, completed=int(done), rate="")
            seen, expected = Rate(), total

            def advance(amount: float = 1, total: float | None = None) -> None:
                nonlocal expected
                expected = expected if total is None else total
                seen.advance(amount)
                bars.update(task, advance=amount, total=expected, rate=_rate_and_left(seen, unit, done, expected))

            yield advance
    else:
        yield _plain_lines(title, total, unit, done)


def _plain_lines(title: str, total: float | None, unit: str, done: float) -> Advance:
    printed = time.monotonic()
    seen, expected = Rate(), total

    def advance(amount: float = 1, total: float | None = None) -> None:
        nonlocal printed, expected
        seen.advance(amount)
        expected = expected if total is None else total
        now = time.monotonic()
        if now - printed < PLAIN_EVERY:
            return
        printed = now
        share = f" ({(done + seen.count) / expected:.0%})" if expected else ""
        rest = _rate_and_left(seen, unit, done, expected)
        print(f"{title}: {_short(done + seen.count)} {unit}{share}{rest and ', '}{rest}", file=sys.stderr, flush=True)

    return advance


def _rate_and_left(seen: Rate, unit: str, done: float, expected: float | None) -> str:
    """ "1.2 k tokens/s, 2 min left": what can be told of both."""
    rate = seen.per_second
    left = None if not expected else seen.left(expected - done - seen.count)
    parts = [] if rate is None else [f"{_short(rate)} {unit}/s"]
    return ", ".join([*parts, *([] if left is None else [f"{duration(left)} left"])])


def duration(seconds: float) -> str:
    """A time for people, in its two largest units.

    >>> [duration(each) for each in (16, 130, 3900)]
    ['16 s', '2 min 10 s', '1 h 5 min']
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f} {letter}"
    return f"{number:.3g}"
