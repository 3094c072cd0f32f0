"""Fuzz every reader with mutations of valid inputs, and count what becomes of them.

python -m benchmarks.faults.fuzz --reader all --minutes 10 --seed 0 --to fuzz.json

Each reader runs in this process for the given time. An input is

ok          read
refused     refused by a KglmError
traceback   ended in any other exception: must not happen
hang        not read within 10 seconds of the processor, or 120 by the clock: must not happen
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.faults.readers import READERS, Reader

from kglm.errors import KglmError

SECONDS = 10
"""Processor time for one input: by the clock of a busy machine, any input may take longer."""
WAITING = 120
"""Time by the clock for one input."""
MEMORY = 4 << 30
"""Bytes of address space that may be added: a size of 10**12 ends in a MemoryError, not in a full machine."""
EXAMPLES = 20
SHOWN = 300


class Hang(BaseException):
    """An input took longer than `SECONDS`."""


def fuzz(
    names: list[str], home: Path, *, seconds: float, seed: int = 0, inputs: int | None = None, shown: bool = False
) -> dict[str, dict[str, Any]]:
    """Results by reader. With `inputs`, each reader gets at most that many."""
    results = {}
    for name in names:
        with _quiet():
            reader = READERS[name](home)
        try:
            results[name] = fuzz_reader(reader, name, seconds=seconds, seed=seed, inputs=inputs)
        finally:
            with _quiet():
                reader.close()
        if shown:
            counts = {key: value for key, value in results[name].items() if isinstance(value, int)}
            print(f"{name:32} {counts}", file=sys.stderr, flush=True)
            for example in results[name]["examples"]:
                print("   ", example["count"], example["error"], example["place"], file=sys.stderr, flush=True)
    return results


def fuzz_reader(reader: Reader, name: str, *, seconds: float, seed: int, inputs: int | None = None) -> dict[str, Any]:
    """Counts of a reader's outcomes, and one example of each kind of traceback or hang."""
    rng = random.Random(f"{name} {seed}")
    counts: Counter[str] = Counter()
    examples: dict[str, dict[str, Any]] = {}
    for sample in reader.samples:
        outcome, error = try_input(reader, sample)
        if outcome != "ok":
            raise RuntimeError(f"{name}: a valid sample is {outcome}") from error
    end = time.monotonic() + seconds
    while time.monotonic() < end and (inputs is None or counts.total() < inputs):
        data = reader.mutate(rng.choice(reader.samples), rng)
        outcome, error = try_input(reader, data)
        counts[outcome] += 1
        if error is not None and outcome in ("traceback", "hang"):
            place = _place(error)
            found = examples.setdefault(
                f"{type(error).__name__} {place}",
                {"count": 0, "place": place, "error": f"{type(error).__name__}: {error}"[:SHOWN],
                "input": repr(data[:SHOWN])},
            )  # fmt: skip
            found["count"] += 1
    return {
        "inputs": counts.total(),
        **{outcome: counts[outcome] for outcome in ("ok", "refused", "traceback", "hang")},
        "examples": list(examples.values())[:EXAMPLES],
    }


def try_input(reader: Reader, data: bytes) -> tuple[str, BaseException | None]:
    """Outcome of reading an input, and the exception that it ended in."""
    started = time.process_time()
    try:
        with _quiet(), _limited():
            reader.read(data)
        outcome: tuple[str, BaseException | None] = "ok", None
    except KglmError as error:
        outcome = "refused", error
    except Hang as error:
        return "hang", error
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # any other is what is looked for; a panic of a Rust library is no Exception
        outcome = "traceback", error
    if time.process_time() - started > SECONDS:
        return "hang", outcome[1] or Hang("it ended late")
    return outcome


@contextlib.contextmanager
def limited_memory() -> Iterator[None]:
    """Limit the memory that this process may add to what it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY if pages else soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        gc.collect()


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def late(_: int, __: FrameType | None) -> None:
        raise Hang(f"not read in {SECONDS} seconds")

    timers = ((signal.ITIMER_PROF, signal.SIGPROF, SECONDS), (signal.ITIMER_REAL, signal.SIGALRM, WAITING))
    before = [signal.signal(number, late) for _, number, _ in timers]
    for timer, _, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (timer, number, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        yield


def _place(error: BaseException) -> str:
    """The last line of kglm in a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/kglm/" in frame.filename] or list(frames)
    return f"{own[-1].filename.rpartition('/kglm/')[2]}:{own[-1].lineno} {own[-1].name}" if own else "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--reader", action="append", help=f"all, or one of: {', '.join(READERS)}")
    parser.add_argument("--minutes", type=float, default=10.0, help="time for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--to", type=Path)
    options = parser.parse_args()
    names = list(READERS) if options.reader in (None, ["all"]) else options.reader
    with tempfile.TemporaryDirectory() as home, limited_memory():
        results = fuzz(names, Path(home), seconds=60 * options.minutes, seed=options.seed, shown=True)
    text = json.dumps(results, indent=2)
    print(text)
    if options.to:
        options.to.write_text(text + "\n")
    sys.exit(1 if any(result["traceback"] or result["hang"] for result in results.values()) else 0)


if __name__ == "__main__":
    main()
