"""Chooses how the plain language model adapts, on documents that no table is made of.

python benchmarks/adaptation.py --run RUN --data CHECK.jsonl.gz [--json out.json]

Prints the options of `kglm evaluate` with the least unknown-penalised perplexity: for the cache alone, for dynamic
evaluation alone, and for both, where each is taken as it was alone.
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

CACHES = [Adaptation(Cache(share, theta)) for share, theta in product((0.1, 0.2, 0.3, 0.4, 0.5), (0.3, 1.0, 2.0))]
DYNAMICS = [Adaptation(rate=rate) for rate in (0.3, 1.0, 3.0)]


def options(how: Adaptation) -> str:
    """As they are typed."""
    words = f"--cache {how.cache.share} --cache-theta {how.cache.theta}" if how.cache else ""
    words += f" --dynamic {how.rate} --dynamic-decay {how.decay}" if how.rate else ""
    return words.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=40, help="so many of them")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    documents = read_for_training([asked.data])[: asked.documents]
    found: list[dict[str, Any]] = []

    def upp(how: Adaptation) -> float:
        result = evaluate(Task(asked.run, "exact", MarginalConfig(), adaptation=how), documents).to_json()
        found.append({"options": options(how), "ppl": result["ppl"], "upp": result["upp"]})
        print(f"{options(how) or 'as it is':60} PPL {result['ppl']:8.1f}  UPP {result['upp']:8.1f}", flush=True)
        return float(result["upp"])

    upp(Adaptation())
    cache, dynamic = (min(ways, key=upp) for ways in (CACHES, DYNAMICS))
    both = Adaptation(cache.cache, rate=dynamic.rate, decay=dynamic.decay)
    upp(both)
    result = {"cache": options(cache), "dynamic": options(dynamic), "both": options(both), "tried": found}
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=1))
    print(json.dumps({name: words for name, words in result.items() if name != "tried"}))


if __name__ == "__main__":
    main()
