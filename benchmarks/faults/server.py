"""Attack a server that stores edits, and watch its memory and descriptors under thousands of requests.

python -m benchmarks.faults.server --how kills --attempts 100
python -m benchmarks.faults.server --how errors --attempts 100
python -m benchmarks.faults.server --how requests --attempts 5000

Each attempt starts `kglm serve --persist` on a copy of a run, and stores edits until a call that changes files is
killed or fails (see `calls`). Counted are acknowledged edits, and what must not happen: lost (an acknowledged edit is
not in the graph), unsound (doctor finds an error), left (files that only a running process may have, after the next
start), failed (the next start does not answer), traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.faults.calls import build_injector
from benchmarks.faults.verbs import KGLM, left_over, sound
from benchmarks.faults.world import PROMPTS, make_world

from kglm.kg.graph import KnowledgeGraph
from kglm.progress import progress

BAD = ("lost", "unsound", "left", "failed", "traceback")
EDITS = 6
"""Edits that one attempt tries to store."""
SETTLED = 1000
"""Requests after which memory and descriptors are counted for the first time."""


class Server:
    """A running `kglm serve`."""

    def __init__(self, home: Path, environment: dict[str, str] | None = None) -> None:
        options = ["--port", "0", "--allow-edit", "--persist", "--threads", "1"]
        self.log = (home.parent / "server.log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, *KGLM, "serve", str(home / "run"), *options],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
        )
        assert self.process.stdout is not None
        self.port = 0
        for line in self.process.stdout:
            if "http://" in line:
                self.port = int(line.rsplit(":", 1)[1].strip().strip("/").split("/")[0].split()[0])
                break

    def send(self, method: str, path: str, body: object = None, session: str | None = None) -> tuple[int, Any]:
        """Status and JSON of a response; (0, None) if there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Content-Type": "application/json"} | ({"X-Kglm-Session": session} if session else {})
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            content = response.read()
            is_json = response.getheader("Content-Type", "").startswith("application/json")
            return response.status, json.loads(content) if is_json else None
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()

    def store(self, session: str, date: str) -> bool:
        """Edit a fact and store it; True if the server acknowledged it."""
        edit = {"action": "set", "head": "Q76", "relation": "P569", "tail": date}
        if self.send("POST", "/api/edits", edit, session)[0] != 201:
            return False
        return self.send("POST", "/api/edits/persist", None, session)[0] == 200

    def text(self) -> str:
        """What the server printed."""
        self.log.flush()
        self.log.seek(0)
        return self.log.read()

    def stop(self) -> None:
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()
        self.log.close()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextlib.contextmanager
def serving(home: Path, environment: dict[str, str] | None = None) -> Iterator[Server]:
    server = Server(home, environment)
    try:
        yield server
    finally:
        server.stop()


def _fresh(world: Path, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(world, home)


def attack(how: str, attempts: int, seed: int) -> dict[str, object]:
    """Store edits on servers that are killed or whose calls fail."""
    generator, counts, examples = random.Random(seed), Counter[str](), []
    with tempfile.TemporaryDirectory() as folder, progress(f"{how} of serve", attempts, "attempts") as advance:
        scratch = Path(folder)
        world, home = scratch / "world", scratch / "attempt"
        make_world(world)
        library = build_injector(scratch)
        calls = _calls(world, home, library)
        for _ in range(attempts):
            _fresh(world, home)
            at = generator.randrange(1, calls + 1)
            fault = "kill" if how == "kills" else generator.choice([str(errno.ENOSPC), str(errno.EIO), "short"])
            bad, stored = _attempt(home, library, at, fault, generator)
            counts["acknowledged"] += stored
            for name, what in bad:
                counts[name] += 1
                examples.append(f"{name}: call {at}, {fault}: {what}")
            advance()
    return {"verb": "serve", "how": how, "attempts": attempts, "calls": calls, **counts, "examples": examples[:30]}


def _environment(home: Path, library: Path, at: int, how: str) -> dict[str, str]:
    return {"LD_PRELOAD": str(library), "INJECT_UNDER": str(home), "INJECT_AT": str(at), "INJECT_HOW": how}


def _calls(world: Path, home: Path, library: Path) -> int:
    """Calls that change files while a server stores its edits."""
    _fresh(world, home)
    log = home.parent / "calls.log"
    with serving(home, _environment(home, library, 0, "0") | {"INJECT_LOG": str(log)}) as server:
        session = server.send("POST", "/api/sessions")[1]["session"]
        for day in range(1, EDITS + 1):
            assert server.store(session, f"1990-05-{day:02d}"), server.text()
    return len(log.read_text().splitlines())


def _attempt(
    home: Path, library: Path, at: int, fault: str, generator: random.Random
) -> tuple[list[tuple[str, str]], int]:
    """What went wrong, and the number of acknowledged edits."""
    bad: list[tuple[str, str]] = []
    tried: list[str] = []
    last = -1
    with serving(home, _environment(home, library, at, fault)) as server:
        status, body = server.send("POST", "/api/sessions") if server.port else (0, None)
        for number in range(EDITS) if status == 201 else ():
            tried.append(f"19{generator.randrange(10, 99)}-0{generator.randrange(1, 9)}-1{generator.randrange(9)}")
            if server.store(body["session"], tried[-1]):
                last = number
        if "Traceback" in server.text():
            bad.append(("traceback", server.text()[-600:]))
    if (error := sound(home / "world.kg")) is not None:
        bad.append(("unsound", error))
    else:
        with KnowledgeGraph.open(home / "world.kg") as graph:
            relation = graph.find_relation("P569")
            assert relation is not None
            dates = {graph.id(int(tail)) for tail in graph.tails(graph.number("Q76"), relation)}
        if last >= 0 and not any(date in id for id in dates for date in tried[last:]):
            bad.append(("lost", f"{tried[last]} was acknowledged, the graph has {dates}"))
    with serving(home) as server:
        if not server.port or server.send("POST", "/api/complete", {"text": PROMPTS[0]})[0] != 200:
            bad.append(("failed", server.text()[-300:]))
    if left := left_over(home):
        bad.append(("left", ", ".join(left)))
    return bad, last + 1


def watch(requests: int, seed: int) -> dict[str, object]:
    """Memory and open files of a server after `SETTLED` and after all requests."""
    generator, statuses = random.Random(seed), Counter[int]()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "world"
        make_world(home)
        with serving(home) as server, progress("requests", requests, "requests") as advance:
            session = server.send("POST", "/api/sessions")[1]["session"]
            first: tuple[int, int] = (0, 0)
            for number in range(requests):
                method, path, body = _request(generator)
                statuses[server.send(method, path, body, session if generator.random() < 0.3 else None)[0]] += 1
                if number == SETTLED:
                    first = _size(server.process.pid)
                advance()
            last = _size(server.process.pid)
            traces = server.text().count("Traceback")
    return {
        "requests": requests,
        "statuses": {str(status): count for status, count in sorted(statuses.items())},
        "MiB before": first[0] >> 10,
        "MiB after": last[0] >> 10,
        "descriptors before": first[1],
        "descriptors after": last[1],
        "tracebacks": traces,
    }


def _request(generator: random.Random) -> tuple[str, str, object]:
    prompt = generator.choice(PROMPTS)
    return generator.choice(
        [
            ("POST", "/api/complete", {"text": prompt}),
            ("POST", "/api/generate", {"text": prompt, "words": 3, "seed": generator.randrange(99)}),
            ("POST", "/api/link", {"text": prompt}),
            ("POST", "/api/complete", {"text": 5}),
            ("POST", "/api/complete", {"text": "x" * generator.randrange(2000)}),
            ("POST", "/api/edits", {"action": "set", "head": "Q76", "relation": "P569", "tail": "1990-01-01"}),
            ("GET", "/api/entities/Q76", None),
            ("GET", "/api/entities?q=Par", None),
            ("GET", "/", None),
            ("GET", "/nothing", None),
        ]
    )


def _size(process: int) -> tuple[int, int]:
    """Resident memory in KiB, and number of open files."""
    status = Path(f"/proc/{process}/status").read_text()
    [memory] = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")]
    return memory, len(list(Path(f"/proc/{process}/fd").iterdir()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--how", choices=["kills", "errors", "requests"], default="kills")
    parser.add_argument("--attempts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--to", type=Path)
    options = parser.parse_args()
    work = watch if options.how == "requests" else lambda count, seed: attack(options.how, count, seed)
    result = work(options.attempts, options.seed)
    print(json.dumps(result))
    if options.to:
        options.to.write_text(json.dumps(result, indent=2) + "\n")
    sys.exit(1 if any(result.get(name) for name in (*BAD, "tracebacks")) else 0)


if __name__ == "__main__":
    main()
