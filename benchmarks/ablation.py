"""Each refinement of the latent variables on and off, at a small size: nats a word by component.

python benchmarks/ablation.py --kg world.kg --to ablation.jsonl --train a.jsonl.gz --train b.jsonl.gz:400 \
    --valid c.jsonl.gz:100 --seeds 0 1

A file may be followed by a range of its documents (`:400` the first 400, `:-10` all but the last ten, `-10:` these).
Every variant is trained with the marginal it names and measured by the same two: `nats` sums over every way to an
entity (`entity`), the components are those of `all`, where a mention is new or related as it is annotated. What is in
the file already is kept, so the run can be interrupted. Prints the table as Markdown.
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
from kglm.kg.graph import KnowledgeGraph
from kglm.model.base import COMPONENTS
from kglm.model.options import LatentConfig
from kglm.runs.checkpoint import load_into, load_tensors
from kglm.runs.run import Run, read_for_training
from kglm.runs.settings import PRESETS, RunConfig
from kglm.text.document import Document
from kglm.train.chunks import ChunkBuilder
from kglm.train.encoding import DocumentEncoder, EncodedDocument
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
    """The preset, and the preset with one thing different."""
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


def documents(places: Iterable[str]) -> list[Document]:
    found = []
    for place in places:
        name, _, cut = place.partition(":")
        start, end = (cut.split(":") if ":" in cut else ("", cut)) if cut else ("", "")
        every = read_for_training([Path(name)])
        found += every[int(start) if start else None : int(end) if end else None]
    return found


def measure(latent: LatentConfig, seed: int, epochs: int, kg: Path, data: list[list[Document]]) -> dict[str, Any]:
    values = SMALL | {"latent": asdict(latent), "train": SMALL["train"] | {"seed": seed, "epochs": epochs}}
    settings = from_dict(RunConfig, values)
    home = Path(tempfile.mkdtemp())
    try:
        started = time.perf_counter()
        run = Run.create(home, settings, KnowledgeGraph.open(kg), data[0])
        encoder = DocumentEncoder.of(run)
        train, valid = encoder.encode_all(data[0], "train", counted=True), encoder.encode_all(data[1], "valid")
        Trainer(run.model, ChunkBuilder.of(run), train, valid, settings.train, home).fit()
        seconds = time.perf_counter() - started
        judged = {}
        for marginal in ("all", "entity"):
            kind = replace(settings, latent=replace(latent, marginal=marginal))  # type: ignore[arg-type]
            judge = Run(home, kind, run.vocabulary, run.graph, run.introductions)
            load_into(judge.model, load_tensors(home / "model.safetensors"), home)
            judged[marginal] = evaluate(judge.model, ChunkBuilder.of(judge), valid, rows=60, length=70)
        nats = judged["all"].nats() | {"nats": judged["entity"].nats()["nats"]}
        counts = {"starts": judged["all"].starts, "targets": judged["all"].targets}
        return {"nats": nats, **counts, "epochs": epochs, "trained_on": run_size(train), "seconds": seconds}
    finally:
        shutil.rmtree(home)


def run_size(documents: list[EncodedDocument]) -> int:
    return sum(map(len, documents))


def table(results: list[dict[str, Any]]) -> str:
    """Means over seeds; ± is a standard deviation. `facts` is all but the words outside mentions, which no refinement
    touches and which differ from run to run by more than the refinements do."""
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
    parser.add_argument("--kg", type=Path, required=True)
    parser.add_argument("--train", action="append", required=True)
    parser.add_argument("--valid", action="append", required=True)
    parser.add_argument("--to", type=Path, required=True, help="file of results, one JSON object a line")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--only", nargs="+", help="names of variants")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = [documents(options.train), documents(options.valid)]
    for seed in options.seeds:
        for name, latent in variants().items():
            if options.only and name not in options.only:
                continue
            known = [json.loads(line) for line in options.to.open()] if options.to.exists() else []
            if any((result["variant"], result["seed"]) == (name, seed) for result in known):
                continue
            result = measure(latent, seed, options.epochs, options.kg, data)
            with options.to.open("a") as stream:
                stream.write(json.dumps({"variant": name, "seed": seed, "latent": asdict(latent), **result}) + "\n")
            print(f"{name}, seed {seed}: {result['nats']['nats']:.4f} nats, {result['seconds']:.0f} s", flush=True)
    print(table([json.loads(line) for line in options.to.open()]))


if __name__ == "__main__":
    main()
