"""python benchmarks/ablation.py --kg KG --train DOCS[:RANGE] --valid DOCS[:RANGE] --to RESULTS.jsonl [--seeds 0 1]

Compare small models with each refinement of the latent variables on and off: validation loss, nats a word by component.

RANGE selects documents of a file: `a.jsonl:400` the first 400, `a.jsonl:-10` all except the last ten, `a.jsonl:-10:`
the last ten; --train and --valid can be repeated. Variants that differ in `marginal` are trained differently, but all
are measured alike: `nats` sums over all derivations of an entity (marginal entity); the components take the mention
types of the annotation (marginal all). Results are added to the file --to, and a repeated command skips the variants in
it. Prints the table as Markdown.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch

from kglm.config import from_dict
from kglm.files.tensors import load_tensors
from kglm.kg.graph import KnowledgeGraph
from kglm.model.base import COMPONENTS
from kglm.model.options import LatentConfig
from kglm.runs.run import Run, read_for_training
from kglm.runs.settings import PRESETS, RunConfig
from kglm.runs.tensors import load_into
from kglm.text.document import Document
from kglm.train.chunks import ChunkBuilder
from kglm.train.encoding import DocumentEncoder
from kglm.train.hidden import Hiding
from kglm.train.loop import Trainer
from kglm.train.totals import evaluate

SMALL: dict[str, Any] = {
    "encoder": {
        "embedding": 64,
        "hidden": 128,
        "layers": 2,
        "output_dropout": 0.1,
        "hidden_dropout": 0.1,
        "input_dropout": 0.1,
        "embedding_dropout": 0.0,
        "weight_drop": 0.2,
        "activation_regularisation": 0.0,
        "temporal_regularisation": 0.0,
    },
    "train": {"rows": 20, "length": 50, "learning_rate": 0.002, "clip": 1.0},
}


def variants() -> dict[str, LatentConfig]:
    """Settings by name: the preset best, best with one option changed, and the preset paper."""
    best = PRESETS["best"]
    found = {"best": best}
    for name, value in asdict(best).items():
        if isinstance(value, bool):
            found[f"{'no' if value else 'with'} {name}"] = replace(best, **{name: not value})
    found["uniform_share = 0"] = replace(best, uniform_share=0.0)
    for marginal in ("entity", "all", "annotated"):
        if marginal != best.marginal:
            found[f"marginal = {marginal}"] = replace(best, marginal=marginal)  # type: ignore[arg-type]
    return found | {"paper": PRESETS["paper"]}


def documents(files: Iterable[str]) -> list[Document]:
    """Read files, each with an optional range of documents (`FILE:START:END` or `FILE:END`)."""
    found = []
    for file in files:
        name, _, chosen = file.partition(":")
        start, end = (chosen.split(":") if ":" in chosen else ("", chosen)) if chosen else ("", "")
        found += read_for_training([Path(name)])[int(start) if start else None : int(end) if end else None]
    return found


def measure(latent: LatentConfig, seed: int, epochs: int, kg: Path, data: list[list[Document]]) -> dict[str, Any]:
    """Train a small model with these options, and measure its validation loss."""
    values = SMALL | {"latent": asdict(latent), "train": SMALL["train"] | {"seed": seed, "epochs": epochs}}
    settings = from_dict(RunConfig, values)
    home = Path(tempfile.mkdtemp())
    try:
        started = time.perf_counter()
        run = Run.create(home, settings, KnowledgeGraph.open(kg), data[0])
        encoder = DocumentEncoder.of(run)
        hiding = Hiding(settings.train.hide_facts, settings.train.seed)
        train = encoder.encode_all(data[0], "train", counted=True, hiding=hiding)
        valid = encoder.encode_all(data[1], "valid")
        Trainer(run.model, ChunkBuilder.of(run), train, valid, settings.train, home).fit()
        seconds = time.perf_counter() - started
        totals = {}
        for marginal in ("all", "entity"):
            measured = replace(settings, latent=replace(latent, marginal=marginal))  # type: ignore[arg-type]
            trained = Run(home, measured, run.vocabulary, run.graph, run.introductions)
            load_into(trained.model, load_tensors(home / "model.safetensors"), home)
            totals[marginal] = evaluate(trained.model, ChunkBuilder.of(trained), valid, rows=60, length=70)
        nats = totals["all"].nats() | {"nats": totals["entity"].nats()["nats"]}
        counts = {"starts": totals["all"].starts, "targets": totals["all"].targets}
        return {"nats": nats, **counts, "epochs": epochs, "trained_on": sum(map(len, train)), "seconds": seconds}
    finally:
        shutil.rmtree(home)


def table(results: list[dict[str, Any]]) -> str:
    """Markdown table of means over seeds; ± is one standard deviation. `facts` leaves out the words outside mentions,
    which the refinements do not change and which vary more between seeds than the refinements matter."""
    columns = ("nats", "facts", *COMPONENTS)
    lines = [f"| variant | seeds | {' | '.join(columns)} |", "|---|---:" + "|---:" * len(columns) + "|"]
    for name in dict.fromkeys(result["variant"] for result in results):
        nats = [dict(result["nats"]) for result in results if result["variant"] == name]
        for each in nats:
            each["facts"] = sum(each[component] for component in COMPONENTS if component != "word_none")
        cells = [f"{mean(each[column] for each in nats):.4f}" for column in columns]
        for place in range(2) if len(nats) > 1 else ():
            cells[place] += f" ± {stdev(each[columns[place]] for each in nats):.4f}"
        lines.append(f"| {name} | {len(nats)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path, required=True, help="graph with vectors")
    parser.add_argument("--train", action="append", required=True, help="documents to train on, FILE[:RANGE]")
    parser.add_argument("--valid", action="append", required=True, help="documents to measure on, FILE[:RANGE]")
    parser.add_argument("--to", type=Path, required=True, help="file of results, one JSON object a line")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--only", nargs="+", help=f"some of the variants: {', '.join(variants())}")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = [documents(options.train), documents(options.valid)]
    for seed in options.seeds:
        for name, latent in variants().items():
            if options.only and name not in options.only:
                continue
            done = [json.loads(line) for line in options.to.open()] if options.to.exists() else []
            if any((result["variant"], result["seed"]) == (name, seed) for result in done):
                continue
            result = measure(latent, seed, options.epochs, options.kg, data)
            with options.to.open("a") as stream:
                stream.write(json.dumps({"variant": name, "seed": seed, "latent": asdict(latent), **result}) + "\n")
            print(f"{name}, seed {seed}: {result['nats']['nats']:.4f} nats, {result['seconds']:.0f} s", flush=True)
    print(table([json.loads(line) for line in options.to.open()]))


if __name__ == "__main__":
    main()
