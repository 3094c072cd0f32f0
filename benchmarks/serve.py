"""python benchmarks/serve.py RUN [--kg KG] [--clients 1 8 32 200] [--json FILE]

A real server under load: requests a second, and how long one waits, for `complete` with ten words and five reasons
each.

The server is a process of its own, started as `kglm serve` with its default limits. Each client sends one request after
the other on one connection; every prompt is another one, so that nothing is answered from memory. A request is lost if
it is not answered with status 200: refused, timed out, cut off.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kglm.files import read_json
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal

FORMS = ("{} was born on", "{} is", "The capital of {} is", "{} is married to", "{} was made by", "{} is in")
FEWEST_FACTS = 3
EACH = 2
"""Requests of each client, at least; and at least `FEWEST` of all."""
FEWEST = 60


@contextmanager
def served(run: Path, kg: Path | None) -> Iterator[int]:
    """The port of a server."""
    command = [sys.executable, "-m", "kglm", "serve", str(run), "--port", "0"]
    command += [] if kg is None else ["--kg", str(kg)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield int(line.rsplit(":", 1)[1].strip().strip("/"))
        finally:
            process.terminate()


def make_prompts(kg: Path, seed: int = 0) -> Iterator[str]:
    """Beginnings of sentences about entities that have facts, no two alike."""
    rng = random.Random(seed)
    with KnowledgeGraph.open(kg) as graph:
        said: set[str] = set()
        while True:
            node = rng.randrange(len(graph))
            if is_literal(graph.id(node)) or len(graph.edges(node).tail) <= FEWEST_FACTS:
                continue
            prompt = rng.choice(FORMS).format(graph.label(node))
            if prompt not in said:
                said.add(prompt)
                yield prompt


def measure(port: int, clients: int, prompts: Iterator[str]) -> dict[str, Any]:
    """So many clients at once."""
    each = max(EACH, -(-FEWEST // clients))
    shares = [[next(prompts) for _ in range(each)] for _ in range(clients)]
    statuses: Counter[str] = Counter()
    taken: list[float] = []
    ready = threading.Barrier(clients + 1)

    def ask(share: list[str]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        ready.wait()
        for prompt in share:
            start = time.perf_counter()
            try:
                body = json.dumps({"text": prompt})
                connection.request("POST", "/api/complete", body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                whole = answer.read()
                statuses[str(answer.status)] += 1
                if answer.status == 200 and json.loads(whole)["words"]:
                    taken.append(time.perf_counter() - start)
            except (OSError, http.client.HTTPException) as error:
                statuses[type(error).__name__] += 1
                connection.close()
        connection.close()

    threads = [threading.Thread(target=ask, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    p50, p95 = (float(np.quantile(taken, q)) for q in (0.5, 0.95)) if taken else (float("nan"),) * 2
    return {
        "clients": clients,
        "requests": clients * each,
        "lost": clients * each - len(taken),
        "per_second": len(taken) / seconds,
        "p50_s": p50,
        "p95_s": p95,
        "max_s": max(taken, default=float("nan")),
        "statuses": dict(statuses),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--kg", type=Path, help="another graph than the one trained with")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32, 200])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    kg = options.kg or Path(read_json(options.run / "kg.json")["path"])
    prompts, rows = make_prompts(kg), []
    with served(options.run, options.kg) as port:
        measure(port, 1, prompts)  # the first of everything is slow
        print(f"{'clients':>8} {'requests':>9} {'lost':>5} {'req/s':>7} {'p50 s':>7} {'p95 s':>7} {'max s':>7}")
        for clients in options.clients:
            row = measure(port, clients, prompts)
            rows.append(row)
            numbers = " ".join(f"{row[name]:7.3f}" for name in ("per_second", "p50_s", "p95_s", "max_s"))
            print(f"{clients:8} {row['requests']:9} {row['lost']:5} {numbers}", flush=True)
    if options.json:
        result = {"run": options.run.name, "cores": os.cpu_count(), "load": rows}
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
