"""Treat Ctrl-C and SIGTERM as a request: training finishes the current step, saves the run, and stops."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """A request to stop."""

    def __init__(self) -> None:
        self.requested = False
        """True once a signal has arrived."""

    def _ask(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.requested:  # a second signal stops at once
            raise KeyboardInterrupt
        self.requested = True
        os.write(2, f"{signal.Signals(number).name}: finishing this step, then saving\n".encode())


@contextmanager
def interrupts() -> Iterator[Interrupt]:
    """Record SIGINT and SIGTERM instead of raising; no effect outside the main thread, the only one to get signals."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, interrupt._ask) for number in numbers]
    try:
        yield interrupt
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
