"""Speed of annotation: tokens a second of one process, by steps; from one process to two; memory of the workers.

python benchmarks/annotate.py --kg world.kg --linked valid.jsonl.gz [--copies 4] [--json out.json]

The documents are given as texts with links, their annotation is taken away. Reading is not part of the first table.
Processor seconds, in turns: a shared machine makes the clock slower, and not the processor. `links and story` is what
the public pipeline did at about 8,000 tokens a processor second.
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

WAYS = {
    "links and story": AnnotateConfig(linker=False, coreference="none"),
    "and coreference": AnnotateConfig(linker=False),
    "and linker": AnnotateConfig(),
}


def article(document: Document) -> Article:
    links = [
        Link(each.start, each.end, each.id)
        for each in document.mentions
        if each.source == "WIKI" and END not in document.tokens[each.start : each.end]
    ]
    return Article(document.title, document.tokens, links)


def speeds(kg: Path, articles: list[Article], turns: int) -> dict[str, float]:
    """Tokens a processor second, the median of some turns; the first turn fills caches and does not count."""
    annotators = {name: Annotator.open(kg, config) for name, config in WAYS.items()}
    words = sum(len(each.tokens) for each in articles)
    found: dict[str, list[float]] = {name: [] for name in WAYS}
    for turn in range(turns + 1):
        for name, annotator in annotators.items():
            start = time.process_time()
            for each in articles:
                annotator.annotate(each)
            if turn:
                found[name].append(words / (time.process_time() - start))
    return {name: statistics.median(rates) for name, rates in found.items()}


def family(pid: int) -> list[int]:
    """A process and all that it started."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *(each for child in children for each in family(int(child)))]
    return []


def memory(pid: int) -> int:
    """Bytes of a process; what several share counts in parts (its proportional set)."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def scaling(kg: Path, articles: list[Article], copies: int) -> dict[str, Any]:
    """Seconds and memory of the command with one worker and with two."""
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
    parser.add_argument("--linked", type=Path, required=True)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--copies", type=int, default=4, help="of the documents, for the second table")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    articles = [article(document) for document in read_documents(options.linked)]
    result: dict[str, Any] = {"tokens a processor second": speeds(options.kg, articles, options.turns)}
    result["workers"] = scaling(options.kg, articles, options.copies)
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
