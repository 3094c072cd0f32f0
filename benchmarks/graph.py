"""python benchmarks/graph.py [--entities 200000] [--json FILE]

The knowledge graph: how fast a Wikidata dump is read, how fast the graph answers, how much memory it takes.

Everything that is compared runs side by side, in turns, in this one run: machines are shared and noisy. A dump of
real form is generated (most of it is not wanted, as in the real one); a plain loop of `json.loads` over the same
lines is the yardstick. Memory is the peak of the importing process and its workers, read from the system; it is
measured for two sizes, to see whether it grows with the dump.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from dumps import generated  # noqa: E402

from kglm.kg.graph import KnowledgeGraph  # noqa: E402
from kglm.kg.importers.records import ImportOptions, Source  # noqa: E402
from kglm.kg.importers.wikidata import parse_dump  # noqa: E402
from kglm.parallel import available_cores  # noqa: E402

IMPORT = """
import resource, sys, json
from kglm.kg.imports import import_graph
if __name__ == "__main__":
    report = import_graph([sys.argv[1]], sys.argv[2], workers=int(sys.argv[3]))
    who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    peak, worker = (resource.getrusage(process).ru_maxrss / 1024 for process in who)
    print(json.dumps({"seconds": report.seconds, "facts": report.facts, "peak_mib": peak, "worker_mib": worker}))
"""


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def write_dump(path: Path, entities: int) -> None:
    with path.open("wb") as stream:
        stream.writelines(generated(entities))


def imported(dump: Path, to: Path, workers: int) -> dict[str, float]:
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(IMPORT)
        script.flush()
        command = [sys.executable, script.name, str(dump), str(to), str(workers)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, float] = json.loads(output)
    return result


def parsing(dump: Path, rounds: int = 5) -> dict[str, float]:
    """One core: our parser against `json.loads`, in turns over the same 16 MB."""
    with dump.open("rb") as stream:
        data = stream.read(16 << 20)
    lines = data[: data.rindex(b"\n")].split(b"\n")[1:]
    source = Source(str(dump), "wikidata", ImportOptions())
    plain, ours = [], []
    for _ in range(rounds):
        plain.append(timed(lambda: [json.loads(line.rstrip(b",")) for line in lines]))
        ours.append(timed(lambda: parse_dump(data, 1, source)))
    size = len(data) / 1e6
    return {
        "json_loads_mb_per_s": size / median(plain),
        "ours_mb_per_s": size / median(ours),
        "ours_entities_per_s": len(lines) / median(ours),
        "ratio": median(plain) / median(ours),
    }


def importing(folder: Path, entities: int) -> dict[str, float]:
    small, large = folder / "small.json", folder / "large.json"
    write_dump(small, entities // 4)
    write_dump(large, entities)
    cores = available_cores()
    quarter = imported(small, folder / "small.kg", cores)
    whole = imported(large, folder / "large.kg", cores)
    one = imported(large, folder / "one.kg", 1)
    size = large.stat().st_size / 1e6
    return {
        "entities": entities,
        "dump_mb": size,
        "cores": cores,
        "entities_per_s": entities / whole["seconds"],
        "mb_per_s": size / whole["seconds"],
        "mb_per_s_per_core": size / whole["seconds"] / cores,
        "speed_up_over_one_process": one["seconds"] / whole["seconds"],
        "facts": whole["facts"],
        "peak_mib_quarter": quarter["peak_mib"],
        "peak_mib": whole["peak_mib"],
        "worker_mib_quarter": quarter["worker_mib"],
        "worker_mib": whole["worker_mib"],
    }


def answering(path: Path) -> dict[str, float]:
    opened = median(timed(lambda: KnowledgeGraph.open(path).close()) for _ in range(5))
    with KnowledgeGraph.open(path) as graph:
        numbers = np.random.default_rng(0).integers(0, len(graph), 10_000)
        ids = [graph.id(int(number)) for number in numbers]
        return {
            "open_s": opened,
            "edges_of_10000_s": median(timed(lambda: [graph.edges(int(n)) for n in numbers]) for _ in range(5)),
            "edges_of_10000_by_id_s": median(
                timed(lambda: [graph.edges(graph.number(i)) for i in ids]) for _ in range(5)
            ),
            "edges_of_10000_at_once_s": median(timed(lambda: graph.edges_of(numbers)) for _ in range(5)),
        }


def shared_graph(folder: Path) -> dict[str, float]:
    kg = ROOT.parent / "shared" / "data" / "kg"
    if not kg.is_dir():
        return {}
    command = ["kg", "import", kg / "facts.tsv.gz", "--entities", kg / "entities.jsonl.gz"]
    command += ["--relations", kg / "relations.tsv", "--to", folder / "shared.kg", "--json"]
    run = f"import resource, sys; from kglm.cli import main\nsys.argv = {['kglm', *map(str, command)]!r}\n"
    run += "try: main()\nfinally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)"
    process = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    report = json.loads(process.stdout)
    return {
        "facts": report["facts"],
        "seconds": report["seconds"],
        "peak_mib": float(process.stderr.split()[-1]),
        **answering(folder / "shared.kg"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=200_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = {"import": importing(folder, arguments.entities)}
        results["parse, one core"] = parsing(folder / "large.json")
        results["generated graph"] = answering(folder / "large.kg")
        results["shared graph"] = shared_graph(folder)
    for title, values in results.items():
        print(title)
        for key, value in values.items():
            print(f"  {key:28} {value:14,.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results | {"cores": os.cpu_count()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
