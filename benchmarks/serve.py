"""python benchmarks/serve.py RUN [--kg KG] [--clients 1 8 32 200] [--json FILE]

Measure a server under load: requests per second and latency of POST /api/complete, by the number of clients.

The server is a separate process, `kglm serve` with its default limits. Each client sends one request after the other on
one connection. All prompts differ, so that no response comes from a cache. A request is lost if its response is not
200: refused, timed out or cut off.
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

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.runs.run import Run

FORMS = ("{} was born on", "{} is", "The capital of {} is", "{} is married to", "{} was made by", "{} is in")
MIN_FACTS = 3
"""Prompts are about entities with more facts than this."""
MIN_PER_CLIENT = 2
"""Least number of requests per client."""
MIN_REQUESTS = 60
"""Least number of requests of all clients together."""


@contextmanager
def served(run: Path, kg: Path | None) -> Iterator[int]:
    """Start a server and yield its port; stop it at the end."""
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
    """Distinct prompts about random entities of the graph."""
    rng = random.Random(seed)
    with KnowledgeGraph.open(kg) as graph:
        used: set[str] = set()
        while True:
            node = rng.randrange(len(graph))
            if is_literal(graph.id(node)) or len(graph.edges(node).tail) <= MIN_FACTS:
                continue
            prompt = rng.choice(FORMS).format(graph.label(node))
            if prompt not in used:
                used.add(prompt)
                yield prompt


def measure(port: int, clients: int, prompts: Iterator[str]) -> dict[str, Any]:
    """Load the server with concurrent clients; latencies are in seconds."""
    each = max(MIN_PER_CLIENT, -(-MIN_REQUESTS // clients))
    shares = [[next(prompts) for _ in range(each)] for _ in range(clients)]
    statuses: Counter[str] = Counter()
    taken: list[float] = []
    ready = threading.Barrier(clients + 1)

    def run_client(share: list[str]) -> None:
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

    threads = [threading.Thread(target=run_client, args=(share,)) for share in shares]
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
    parser.add_argument("run", type=Path, help="run to serve")
    parser.add_argument("--kg", type=Path, help="use this graph instead of the run's own")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32, 200], help="numbers of clients to compare")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    kg = options.kg or Run.open(options.run, weights=False).graph.store.path
    prompts, rows = make_prompts(kg), []
    with served(options.run, options.kg) as port:
        measure(port, 1, prompts)  # warm-up
        print("p50, p95 and max are latencies in seconds")
        print(f"{'clients':>8} {'requests':>9} {'lost':>5} {'req/s':>7} {'p50':>7} {'p95':>7} {'max':>7}")
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
