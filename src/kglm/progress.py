"""Show the progress of long work: a bar with rate and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

PLAIN_EVERY = 10.0
"""Seconds between plain lines where there is no terminal."""


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
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True) as bars:
            task = bars.add_task(title, total=total, completed=int(done), rate="")
            started, count = time.monotonic(), 0.0

            def advance(amount: float = 1, total: float | None = None) -> None:
                nonlocal count
                count += amount
                rate = count / max(time.monotonic() - started, 1e-9)
                bars.update(task, advance=amount, rate=f"{_short(rate)} {unit}/s")
                if total is not None:
                    bars.update(task, total=total)

            yield advance
    else:
        yield _plain_lines(title, total, unit, done)


def _plain_lines(title: str, total: float | None, unit: str, done: float) -> Advance:
    started = printed = time.monotonic()
    count, expected = 0.0, total

    def advance(amount: float = 1, total: float | None = None) -> None:
        nonlocal count, printed, expected
        count += amount
        expected = expected if total is None else total
        now = time.monotonic()
        if now - printed < PLAIN_EVERY:
            return
        printed = now
        rate = count / (now - started)
        left = "" if not expected else f", {(expected - done - count) / rate:.0f} s left)"
        share = "" if not expected else f" ({(done + count) / expected:.0%}{left}"
        print(
            f"{title}: {_short(done + count)} {unit}{share}, {_short(rate)} {unit}/s",
            file=sys.stderr,
            flush=True,
        )

    return advance


def _short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f} {letter}"
    return f"{number:.0f} "
