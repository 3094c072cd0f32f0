"""Fail or kill commands at the calls with which they change files, run them again, and compare the results.

python -m benchmarks.faults.calls --verb import --how errors --attempts 100
python -m benchmarks.faults.calls --verb train --how kills --attempts 100

`errors`: one call (open, write, sync, truncate, rename, close, mkdir) returns ENOSPC or EIO, or writes half of the
data, once or from then on. `kills`: SIGKILL at such a call, or after a random time. The calls are intercepted in the C
library (`inject.c`), so SQLite's are among them. After each attempt the command runs again without a fault. Counted are

finished    the command ended without an error, and its result is right; a short write is no error, and others are noted
unmentioned of these, the ones without a message about the failed call
missed      no call failed, because this time there were fewer; tried again with another one
refused     it ended with an error message
killed      it was killed
and, which must not happen:
wrong       it said that it is done, and the result is wrong; or the result is wrong after the second run
unsound     doctor finds an error after the second run
failed      the second run did not finish
left        files remain after the second run that only a running process may have
traceback   an error of the program
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.faults.verbs import VERBS, Verb, left_over, make_input, run, sound

from kglm.progress import progress

SOURCE = Path(__file__).with_name("inject.c")
BAD = ("wrong", "unsound", "failed", "left", "traceback")


def compiler() -> str | None:
    """Path of a C compiler."""
    return shutil.which("cc") or shutil.which("gcc")


def build_injector(folder: Path) -> Path:
    """Compile the library that injects faults."""
    found = compiler()
    if found is None:
        raise SystemExit("a C compiler is needed: install gcc")
    library = folder / "inject.so"
    subprocess.run([found, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library


class Attack:
    """Attempts on one verb."""

    def __init__(self, verb: Verb, world: Path, scratch: Path, library: Path, seed: int) -> None:
        self.verb, self.world, self.scratch, self.library = verb, world, scratch, library
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.examples: list[str] = []
        self.unmentioned: Counter[str] = Counter()
        self._measure()

    def _fresh(self) -> Path:
        home = self.scratch / "attempt"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        self.verb.prepare(self.world, home)
        return home

    def _measure(self) -> None:
        """The right result, the number of calls and the duration, from a run without faults."""
        home = self._fresh()
        log = self.scratch / "calls.log"
        log.unlink(missing_ok=True)
        started = time.monotonic()
        done = run(self.verb.command(home), home, self._environment(home, 0, "0", log=log))
        self.seconds = time.monotonic() - started
        assert done.returncode == 0, done.stderr
        self.calls = [line.split(" ", 2)[1] for line in log.read_text().splitlines()]
        self.reference = self.verb.result(home)
        assert not left_over(home), left_over(home)

    def _environment(
        self, home: Path, at: int, how: str, rest: bool = False, log: Path | None = None
    ) -> dict[str, str]:
        values = {"LD_PRELOAD": str(self.library), "INJECT_UNDER": str(home), "INJECT_AT": str(at), "INJECT_HOW": how}
        values["INJECT_HIT"] = str(self.scratch / "hit.log")
        return values | ({"INJECT_REST": "1"} if rest else {}) | ({"INJECT_LOG": str(log)} if log else {})

    def _call(self) -> int:
        """Number of a call: each kind of call is chosen as often as the others, however rare it is."""
        kind = self.random.choice(sorted(set(self.calls)))
        return self.random.choice([k for k, name in enumerate(self.calls, 1) if name == kind])

    def error(self) -> None:
        """One attempt with a failing call."""
        home, at, hit = self._fresh(), self._call(), self.scratch / "hit.log"
        hit.unlink(missing_ok=True)
        how = self.random.choice([str(errno.ENOSPC), str(errno.EIO), "short"])
        rest = how == str(errno.ENOSPC) and self.random.random() < 0.5
        what = f"call {at} ({self.calls[at - 1]}), {how}{' and the rest' if rest else ''}"
        done = run(self.verb.command(home), home, self._environment(home, at, how, rest))
        if not hit.exists():  # a training saves by time, so the number of calls differs
            self.counts["missed"] += 1
            self.error()
            return
        if "Traceback" in done.stderr:
            self._count("traceback", f"{what}: {done.stderr[-600:]}")
        elif done.returncode == 0:
            right = self.verb.result(home) == self.reference
            self._count("finished" if right else "wrong", what)
            if how != "short" and not any(word in done.stderr for word in ("note:", "warning:")):
                self.counts["unmentioned"] += 1
                _, name, path = hit.read_text().splitlines()[0].split(" ", 2)
                self.unmentioned[f"{name} {path.removeprefix(str(home))}"] += 1
        else:
            self._count("refused", what)
        self._again(home, what)

    def kill(self) -> None:
        """One attempt with a SIGKILL: at a call, or after a random time."""
        home = self._fresh()
        if self.random.random() < 0.6:
            at = self._call()
            what = f"killed at call {at} ({self.calls[at - 1]})"
            done = run(self.verb.command(home), home, self._environment(home, at, "kill"))
            killed = done.returncode == -signal.SIGKILL
        else:
            delay = self.random.uniform(0.2, 1.0) * self.seconds
            what = f"killed after {delay:.2f} s"
            command = [sys.executable, *self.verb.command(home)]
            quiet = subprocess.DEVNULL
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
            process = subprocess.Popen(command, cwd=home, stdout=quiet, stderr=quiet, env=environment)
            time.sleep(delay)
            process.kill()
            killed = process.wait() == -signal.SIGKILL
        self._count("killed" if killed else "finished", what)
        self._again(home, what)

    def _again(self, home: Path, what: str) -> None:
        """Run the command again without a fault; it must finish the work and leave nothing behind."""
        done = run(self.verb.command(home), home)
        finished = done.returncode == 0 or "already" in done.stderr  # an edit that was made before
        if "Traceback" in done.stderr:
            self._count("traceback", f"{what}, then: {done.stderr[-600:]}")
        elif not finished:
            self._count("failed", f"{what}, then: {done.stderr[-300:]}")
        elif self.verb.result(home) != self.reference:
            self._count("wrong", f"{what}, then")
        elif (error := sound(self.verb.target(home))) is not None:
            self._count("unsound", f"{what}, then: {error}")
        if left := left_over(home):
            self._count("left", f"{what}, then: {', '.join(left)}")

    def _count(self, outcome: str, what: str) -> None:
        self.counts[outcome] += 1
        if outcome in BAD:
            self.examples.append(f"{outcome}: {what}")

    def result(self) -> dict[str, object]:
        counts = {"verb": self.verb.name, "calls": len(self.calls), **self.counts}
        return counts | {"examples": self.examples[:30], "unmentioned at": dict(self.unmentioned)}


def attack(verb: str, how: str, attempts: int, seed: int, *, world: Path | None = None) -> dict[str, object]:
    """Attack one verb and count the outcomes."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        library = build_injector(scratch)
        if world is None:
            world = scratch / "world"
            make_input(world)
        made = Attack(VERBS[verb], world, scratch, library, seed)
        with progress(f"{how} of {verb}", attempts, "attempts") as advance:
            for _ in range(attempts):
                (made.error if how == "errors" else made.kill)()
                advance()
        return {"how": how, "attempts": attempts, "seed": seed, **made.result()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--verb", choices=[*VERBS, "all"], default="all")
    parser.add_argument("--how", choices=["errors", "kills", "both"], default="both")
    parser.add_argument("--attempts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--to", type=Path)
    options = parser.parse_args()
    results = []
    for how in ("errors", "kills") if options.how == "both" else (options.how,):
        for verb in VERBS if options.verb == "all" else (options.verb,):
            results.append(attack(verb, how, options.attempts, options.seed))
            print(json.dumps(results[-1]), flush=True)
            if options.to:
                options.to.write_text(json.dumps(results, indent=2) + "\n")
    sys.exit(1 if any(result.get(bad) for result in results for bad in BAD) else 0)


if __name__ == "__main__":
    main()
