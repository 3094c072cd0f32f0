"""python benchmarks/transe.py [--kg KG] [--turns 5] [--turn-seconds 8] [--race-seconds 60] [--json FILE]

TransE: triples per second of ours and of PyKEEN's, and how good the vectors of each are after the same time.

Both train on the same triples (the shared graph's, reverses included, the same facts held out) with 256 dimensions,
batches of 1024, one negative, margin 1, squared distance, unit-norm entities, Adagrad with the same learning rate, on
one thread. They take turns in this one run, each turn from new vectors: machines are shared and noisy. Setting up is
not counted for either. The vectors of both are measured by the same code, on the same held-out facts.

PyKEEN is not a dependency. Without it only ours is measured; to have it, without touching this environment:

    python -m venv --system-site-packages /somewhere && /somewhere/bin/pip install -c constraints.txt -e . pykeen
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from kglm.kg.embedding.ranking import metrics
from kglm.kg.embedding.transe import TransE, TransEConfig
from kglm.kg.embedding.triples import GraphTriples, graph_triples
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import import_graph

ROOT = Path(__file__).resolve().parent.parent
CONFIG = TransEConfig(epochs=1_000_000)


class Enough(Exception):
    """PyKEEN has had its time."""


class Ours:
    name = "ours"

    def __init__(self, data: GraphTriples, seed: int) -> None:
        self.run = TransE(data, TransEConfig(epochs=CONFIG.epochs, seed=seed))

    def train(self, seconds: float) -> float:
        self.run.train(seconds=seconds)
        return self.run.triples_per_second

    def vectors(self) -> tuple[Any, Any]:
        return self.run.vectors()


class Theirs:
    name = "pykeen"

    def __init__(self, data: GraphTriples, seed: int) -> None:
        from pykeen.losses import MarginRankingLoss
        from pykeen.models import TransE as Model
        from pykeen.training import SLCWATrainingLoop
        from pykeen.triples import CoreTriplesFactory

        training = TransE(data, TransEConfig(dim=1, seed=0)).training
        mapped = torch.from_numpy(np.stack(training, axis=1).astype(np.int64))
        self.triples = CoreTriplesFactory(mapped, num_entities=data.rows, num_relations=data.relations)
        self.model = Model(
            triples_factory=self.triples,
            embedding_dim=CONFIG.dim,
            scoring_fct_norm=2,
            power_norm=True,
            loss=MarginRankingLoss(margin=CONFIG.margin),
            random_seed=seed,
        )
        optimiser = torch.optim.Adagrad(self.model.get_grad_params(), lr=CONFIG.learning_rate)
        self.loop = SLCWATrainingLoop(
            model=self.model,
            triples_factory=self.triples,
            optimizer=optimiser,
            negative_sampler_kwargs={"num_negs_per_pos": CONFIG.negatives},
        )

    def train(self, seconds: float) -> float:
        """Time runs from the end of the first batch."""
        from pykeen.training.callbacks import TrainingCallback

        class Clock(TrainingCallback):
            batches, start, now = -1, 0.0, 0.0

            def post_batch(self, *_: Any, **__: Any) -> None:
                self.now = time.perf_counter()
                self.batches += 1
                if self.batches == 0:
                    self.start = self.now
                elif self.now - self.start >= seconds:
                    raise Enough

        clock = Clock()
        with suppress(Enough):
            self.loop.train(
                self.triples,
                num_epochs=CONFIG.epochs,
                batch_size=CONFIG.batch,
                use_tqdm=False,
                num_workers=0,
                callbacks=[clock],
                pin_memory=False,
            )
        return clock.batches * CONFIG.batch / (clock.now - clock.start)

    def vectors(self) -> tuple[Any, Any]:
        representations = self.model.entity_representations[0], self.model.relation_representations[0]
        entity, relation = (table().detach().numpy() for table in representations)
        return entity, relation


def speed(kinds: list[type[Ours] | type[Theirs]], data: GraphTriples, turns: int, seconds: float) -> dict[str, Any]:
    rates: dict[str, list[float]] = {kind.name: [] for kind in kinds}
    for turn in range(turns):
        for kind in kinds:
            rate = kind(data, turn).train(seconds)
            rates[kind.name].append(rate)
            print(f"turn {turn + 1}: {kind.name:8} {rate:12,.0f} triples/s", flush=True)
    result: dict[str, Any] = {name: {"triples_per_second": median(values)} for name, values in rates.items()}
    if len(kinds) == 2:
        ratios = [ours / theirs for ours, theirs in zip(*rates.values(), strict=True)]
        result["ratio"] = {"median": median(ratios), "least": min(ratios), "most": max(ratios)}
    return result


def race(kinds: list[type[Ours] | type[Theirs]], data: GraphTriples, seconds: float) -> dict[str, Any]:
    held_out = TransE(data, TransEConfig(dim=1, seed=0)).held_out
    result = {}
    for kind in kinds:
        runner = kind(data, 0)
        rate = runner.train(seconds)
        result[kind.name] = {"triples_per_second": rate} | metrics(data, held_out, *runner.vectors())
        shown = " ".join(
            f"{name} {value:.4f}" for name, value in result[kind.name].items() if name != "triples_per_second"
        )
        print(f"after {seconds:.0f} s: {kind.name:8} {rate:12,.0f} triples/s  {shown}", flush=True)
    return result


def shared_graph(folder: Path) -> Path:
    kg = ROOT.parent / "shared" / "data" / "kg"
    if not kg.is_dir():
        raise SystemExit("the shared graph is not here: name a graph with --kg")
    path = folder / "shared.kg"
    import_graph([kg / "facts.tsv.gz"], path, entities=[kg / "entities.jsonl.gz"], relations=[kg / "relations.tsv"])
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--turn-seconds", type=float, default=8)
    parser.add_argument("--race-seconds", type=float, default=60)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    kinds: list[type[Ours] | type[Theirs]] = [Ours]
    try:
        import pykeen  # noqa: F401
    except ImportError:
        print("PyKEEN is not installed; only ours is measured (the docstring says how to have both)")
    else:
        kinds.append(Theirs)
    with tempfile.TemporaryDirectory() as folder:
        with KnowledgeGraph.open(options.kg or shared_graph(Path(folder))) as graph:
            data = graph_triples(graph)
        print(f"{len(data.triples):,} triples, {data.rows:,} entities, {data.relations:,} relations, dim {CONFIG.dim}")
        report = {
            "speed": speed(kinds, data, options.turns, options.turn_seconds),
            "race": race(kinds, data, options.race_seconds),
        }
    print(json.dumps(report, indent=2))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
