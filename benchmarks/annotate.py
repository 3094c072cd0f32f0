"""python benchmarks/annotate.py --kg KG --linked DOCS [--turns 3] [--copies 4] [--json FILE]

Measure the speed of annotation: by pipeline steps in one process, and with two worker processes compared to one.

The input is the words and article links of the documents, without their annotation. The first table counts tokens per
processor second, without reading files, for three pipelines in turns: links and local graph only (the public pipeline
of the paper does this at about 8,000), with coreference, and with the linker. The second table runs the command
`kglm annotate` with one worker and with two: seconds by the clock, memory of all processes, and whether the output is
the same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from kglm.annotate.annotator import AnnotateConfig, Annotator
from kglm.text.article import Article, Link
from kglm.text.document import END, Document, read_documents
from table import print_table

PIPELINES = {
    "links and story": AnnotateConfig(linker=False, coreference="none"),
    "and coreference": AnnotateConfig(linker=False),
    "and linker": AnnotateConfig(),
}


def article(document: Document) -> Article:
    """Words of a document with its article links only."""
    links = [
        Link(each.start, each.end, each.id)
        for each in document.mentions
        if each.source == "WIKI" and END not in document.tokens[each.start : each.end]
    ]
    return Article(document.title, document.tokens, links)


def speeds(kg: Path, articles: list[Article], turns: int) -> dict[str, float]:
    """Tokens per processor second of each pipeline, median over turns; a first turn warms the caches."""
    annotators = {name: Annotator.open(kg, config) for name, config in PIPELINES.items()}
    words = sum(len(each.tokens) for each in articles)
    found: dict[str, list[float]] = {name: [] for name in PIPELINES}
    for turn in range(turns + 1):
        for name, annotator in annotators.items():
            start = time.process_time()
            for each in articles:
                annotator.annotate(each)
            if turn:
                found[name].append(words / (time.process_time() - start))
    return {name: statistics.median(rates) for name, rates in found.items()}


def family(pid: int) -> list[int]:
    """A process and its descendants."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *(each for child in children for each in family(int(child)))]
    return []


def memory(pid: int) -> int:
    """Memory of a process in bytes, shared pages counted in proportion (PSS)."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def scaling(kg: Path, articles: list[Article], copies: int) -> dict[str, Any]:
    """Seconds, tokens per second and memory of the command with one worker and with two."""
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as home:
        source = Path(home) / "texts.jsonl"
        with source.open("w") as stream:
            for number in range(copies):
                for each in articles:
                    links = [{"start": link.start, "end": link.end, "target": link.target} for link in each.links]
                    record = {"title": f"{each.title} {number}", "tokens": each.tokens, "links": links}
                    stream.write(json.dumps(record) + "\n")
        for workers in ("1", "2"):
            words = [
                "-m",
                "kglm",
                "annotate",
                str(source),
                "--kg",
                str(kg),
                "--to",
                f"{home}/{workers}.jsonl",
                "--json",
            ]
            start, peak = time.monotonic(), 0
            with subprocess.Popen(
                [sys.executable, *words, "--workers", workers], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            ) as process:
                while process.poll() is None:
                    peak = max(peak, sum(map(memory, family(process.pid))))
                    time.sleep(0.5)
                seconds = time.monotonic() - start
                assert process.stdout is not None
                tokens = json.load(process.stdout)["tokens"]
            result[workers] = {"seconds": seconds, "tokens_per_second": tokens / seconds, "memory": peak}
        same = (Path(home) / "1.jsonl").read_bytes() == (Path(home) / "2.jsonl").read_bytes()
    result["same bytes"] = same
    result["times faster"] = result["1"]["seconds"] / result["2"]["seconds"]
    result["times the memory"] = result["2"]["memory"] / result["1"]["memory"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path, required=True)
    parser.add_argument("--linked", type=Path, required=True, help="linked documents")
    parser.add_argument("--turns", type=int, default=3, help="timed turns of the first table")
    parser.add_argument("--copies", type=int, default=4, help="copies of the documents for the second table")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    articles = [article(document) for document in read_documents(options.linked)]
    rates = speeds(options.kg, articles, options.turns)
    print_table(("pipeline", "tokens per processor second"), [(name, round(rate)) for name, rate in rates.items()])
    workers = scaling(options.kg, articles, options.copies)
    rows = [
        (count, workers[count]["seconds"], round(workers[count]["tokens_per_second"]), workers[count]["memory"] >> 20)
        for count in ("1", "2")
    ]
    print_table(("workers", "seconds", "tokens per second", "memory, MiB"), rows)
    print(
        f"two workers: {workers['times faster']:.2f} × as fast, {workers['times the memory']:.2f} × the memory,"
        f" {'the same' if workers['same bytes'] else 'ANOTHER'} output"
    )
    result: dict[str, Any] = {"tokens a processor second": rates, "workers": workers}
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
