"""python benchmarks/convergence.py --run RUN --proposal RUN --documents DOCS --to RESULTS.jsonl [--charts docs]

Compare how the estimates of p(x) converge with the number of samples: importance sampling, particle filter, beam.

Each method estimates the shortest documents with increasing numbers of samples and several seeds. Results are added to
the file --to, one JSON object a line, and a repeated command skips what is in it. Prints a table of nats a word;
--charts draws the charts of docs/perplexity.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch

from kglm.evaluate.perplexity import Perplexity
from kglm.marginal.estimate import MarginalConfig
from kglm.plots import Series, line_chart
from kglm.runs.run import Run, read_for_training
from table import print_table

SAMPLES = {"importance": (1, 3, 10, 30, 100, 300), "particle": (1, 3, 10, 30, 100, 300), "beam": (1, 3, 10, 30, 100)}


def measure(options: argparse.Namespace) -> None:
    """Add the missing estimates to the file of results."""
    torch.set_num_threads(1)
    model, proposal = Run.open(options.run), Run.open(options.proposal)
    documents = sorted(read_for_training([options.documents]), key=lambda document: len(document.tokens))
    for method, sizes in SAMPLES.items():
        for samples in sizes:
            for seed in range(1 if method == "beam" else options.seeds):
                config = MarginalConfig(samples=samples, seed=seed)
                scorer = Perplexity(model, method, config, proposal)  # type: ignore[arg-type]
                for document in documents[: options.count]:
                    key = {"document": document.title, "method": method, "samples": samples, "seed": seed}
                    if any(key.items() <= done.items() for done in results(options.to)):
                        continue
                    found = scorer.score(document).estimate
                    numbers = {"log_p": found.log_p, "ess": found.ess, "k_hat": found.k_hat, "seconds": found.seconds}
                    with options.to.open("a") as stream:
                        stream.write(json.dumps({**key, "targets": found.targets, **numbers}) + "\n")
                print(f"{method} {samples}, seed {seed}", flush=True)


def results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.open()] if path.exists() else []


def estimates(found: list[dict[str, Any]], against: str) -> list[Series]:
    """Nats a word over all documents by method: mean over seeds, ± one standard deviation."""
    lines = []
    for method, sizes in SAMPLES.items():
        x, y, spread = [], [], []
        for samples in sizes:
            rows = [row for row in found if row["method"] == method and row["samples"] == samples]
            seeds = {row["seed"] for row in rows}
            totals = [[row for row in rows if row["seed"] == seed] for seed in seeds]
            nats = [-sum(row["log_p"] for row in each) / sum(row["targets"] for row in each) for each in totals]
            if nats:
                x.append(samples if against == "samples" else sum(row["seconds"] for row in rows) / len(seeds))
                y.append(mean(nats))
                spread.append(stdev(nats) if len(nats) > 1 else 0.0)
        low = [a - b for a, b in zip(y, spread, strict=True)]
        high = [a + b for a, b in zip(y, spread, strict=True)]
        lines.append(Series(method, x, y, low, high))
    return lines


def effective(found: list[dict[str, Any]], samples: int) -> list[Series]:
    """Effective sample size of each document by its length."""
    lines = []
    for method in ("importance", "particle"):
        rows = [row for row in found if (row["method"], row["samples"], row["seed"]) == (method, samples, 0)]
        rows.sort(key=lambda row: row["targets"])
        lines.append(Series(method, [row["targets"] for row in rows], [row["ess"] for row in rows], joined=False))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="run of kglm")
    parser.add_argument("--proposal", type=Path, required=True, help="run of its proposal")
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True, help="file of results, one JSON object a line")
    parser.add_argument("--charts", type=Path, help="directory for the charts")
    parser.add_argument("--count", type=int, default=4, help="number of documents, the shortest first")
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    measure(options)
    found = results(options.to)
    rows = [
        (line.name, samples, nats, nats - low)
        for line in estimates(found, "samples")
        for samples, nats, low in zip(line.x, line.y, line.low, strict=True)
    ]
    print_table(("method", "samples", "nats a word", "± over seeds"), rows)
    if options.charts:
        nats = "nats a word (lower is closer to the truth)"
        charts = {
            "estimates-by-samples": line_chart(
                "Estimates of −log p(x), by samples", "samples", nats, estimates(found, "samples"), log_x=True
            ),
            "estimates-by-seconds": line_chart(
                "Estimates of −log p(x), by time", "seconds", nats, estimates(found, "seconds"), log_x=True
            ),
            "effective-samples": line_chart(
                "Effective samples of each document, of 100",
                "words of the document",
                "effective samples",
                effective(found, 100),
            ),
        }
        for name, chart in charts.items():
            (options.charts / f"{name}.svg").write_text(chart)


if __name__ == "__main__":
    main()
