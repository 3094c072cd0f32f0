"""python benchmarks/graph.py [--entities 200000] [--data DIR] [--json FILE]

Measure the knowledge graph: speed and memory of the import of a Wikidata dump, and speed of queries.

The dump is generated in the official format; as in the real one, most of it is not imported. The parser is compared, in
turns over the same lines, with a loop of `json.loads`. Memory is the peak of the importing process and of its largest
worker; it is measured for the dump and for a quarter of it, to see whether it grows with the dump. With --data, a
folder that has `kg/facts.tsv.gz`, `kg/entities.jsonl.gz` and `kg/relations.tsv`, that graph is measured too.
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

from kglm.kg.graph import KnowledgeGraph  # noqa: E402
from kglm.kg.importers.records import ImportOptions, Source  # noqa: E402
from kglm.kg.importers.wikidata import parse_dump  # noqa: E402
from kglm.parallel import available_cores  # noqa: E402
from support.dumps import generated  # noqa: E402
from table import print_table  # noqa: E402

IMPORT = """
import resource, sys, json
from kglm.kg.imports import import_graph
if __name__ == "__main__":
    report = import_graph([sys.argv[1]], sys.argv[2], workers=int(sys.argv[3]))
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    peak, worker = (resource.getrusage(kind).ru_maxrss / 1024 for kind in kinds)
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
    """Compare our parser on one core with `json.loads`, in turns over the same 16 MB."""
    with dump.open("rb") as stream:
        data = stream.read(16 << 20)
    lines = [line for line in data[: data.rindex(b"\n")].split(b"\n") if line.startswith(b"{")]
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
    """Import generated dumps of two sizes with all cores, and the larger with one process."""
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


def querying(path: Path) -> dict[str, float]:
    """Seconds to open a graph, and to read the edges of 10,000 random entities in three ways."""
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


def shared_graph(kg: Path, folder: Path) -> dict[str, float]:
    """Import a graph from tables and measure it."""
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
        **querying(folder / "shared.kg"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=200_000, help="entities of the generated dump")
    parser.add_argument("--data", type=Path, help="folder with a graph as tables in kg/")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = {"import": importing(folder, arguments.entities)}
        results["parse, one core"] = parsing(folder / "large.json")
        results["generated graph"] = querying(folder / "large.kg")
        if arguments.data:
            results["shared graph"] = shared_graph(arguments.data / "kg", folder)
    for title, values in results.items():
        print_table(("measure", "value"), values.items(), title=title)
    if arguments.json:
        arguments.json.write_text(json.dumps(results | {"cores": os.cpu_count()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
