"""python benchmarks/adaptation.py --run RUN --data DOCS [--documents 40] [--json FILE]

Choose the settings of cache and dynamic evaluation for an awd-lstm run, on documents that are in no table of results.

Compares the unknown-penalised perplexity (UPP) over a grid of settings, and prints the best options of `kglm evaluate`
for the cache, for dynamic evaluation, and for both together (each with its best settings alone).
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

import torch

from kglm.evaluate.adaptive import Adaptation
from kglm.evaluate.perplexity import Task, evaluate
from kglm.marginal.cache import Cache
from kglm.marginal.estimate import MarginalConfig
from kglm.runs.run import read_for_training
from table import print_table

CACHES = [Adaptation(Cache(share, theta)) for share, theta in product((0.1, 0.2, 0.3, 0.4, 0.5), (0.3, 1.0, 2.0))]
DYNAMICS = [Adaptation(rate=rate) for rate in (0.3, 1.0, 3.0)]


def options(adaptation: Adaptation) -> str:
    """Options of `kglm evaluate` for an adaptation."""
    cache = adaptation.cache
    words = f"--cache {cache.share} --cache-theta {cache.theta}" if cache else ""
    words += f" --dynamic {adaptation.rate} --dynamic-decay {adaptation.decay}" if adaptation.rate else ""
    return words.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="run of awd-lstm")
    parser.add_argument("--data", type=Path, required=True, help="documents")
    parser.add_argument("--documents", type=int, default=40, help="number of documents to score")
    parser.add_argument("--json", type=Path, help="write the best options and all results to this file")
    given = parser.parse_args()
    torch.set_num_threads(1)
    documents = read_for_training([given.data])[: given.documents]
    found: list[dict[str, Any]] = []

    def upp(adaptation: Adaptation) -> float:
        task = Task(given.run, "exact", MarginalConfig(), adaptation=adaptation)
        result = evaluate(task, documents).to_json()
        found.append({"options": options(adaptation), "ppl": result["ppl"], "upp": result["upp"]})
        name = options(adaptation) or "no adaptation"
        print(f"{name:60} PPL {result['ppl']:8.1f}  UPP {result['upp']:8.1f}", flush=True)
        return float(result["upp"])

    upp(Adaptation())
    cache, dynamic = (min(grid, key=upp) for grid in (CACHES, DYNAMICS))
    both = Adaptation(cache.cache, rate=dynamic.rate, decay=dynamic.decay)
    upp(both)
    best = {"cache": options(cache), "dynamic": options(dynamic), "both": options(both)}
    if given.json:
        given.json.write_text(json.dumps({**best, "tried": found}, indent=1))
    print_table(("adaptation", "best options"), best.items())


if __name__ == "__main__":
    main()
