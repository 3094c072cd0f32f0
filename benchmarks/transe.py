"""python benchmarks/transe.py --kg KG [--turns 5] [--turn-seconds 8] [--race-seconds 60] [--json FILE]

Compare our TransE with PyKEEN's: triples per second, and quality of the vectors after the same training time.

Both train on the same triples of the graph (with reversed ones, and the same facts held out): 256 dimensions, batches
of 1024, one negative, margin 1, squared distance, unit-norm entities, Adagrad with the same learning rate, one thread.
They take turns, each from new vectors, so that noise on a shared machine affects both alike. Setting up is not timed.
The same code ranks the same held-out facts with the vectors of both.

PyKEEN is not a dependency; without it, only ours is measured. To install it in a separate environment:

    python -m venv --system-site-packages DIR && DIR/bin/pip install -c constraints.txt -e . pykeen
"""

from __future__ import annotations

import argparse
import json
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
from table import print_table

CONFIG = TransEConfig(epochs=1_000_000)


class Enough(Exception):
    """Raised to stop PyKEEN when its time is over."""


class Ours:
    """TransE of kglm."""

    name = "ours"

    def __init__(self, data: GraphTriples, seed: int) -> None:
        self.run = TransE(data, TransEConfig(epochs=CONFIG.epochs, seed=seed))

    def train(self, seconds: float) -> float:
        self.run.train(seconds=seconds)
        return self.run.triples_per_second

    def vectors(self) -> tuple[Any, Any]:
        return self.run.vectors()


class Theirs:
    """TransE of PyKEEN."""

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
        """Train for so many seconds after the first batch; triples per second."""
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
    """Train in turns; median triples per second, and the ratio ours / PyKEEN over turns."""
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
    """Train each for the same time; speed and ranking metrics of the vectors."""
    held_out = TransE(data, TransEConfig(dim=1, seed=0)).held_out
    result = {}
    for kind in kinds:
        runner = kind(data, 0)
        rate = runner.train(seconds)
        result[kind.name] = {"triples_per_second": rate} | metrics(data, held_out, *runner.vectors())
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path, required=True)
    parser.add_argument("--turns", type=int, default=5, help="turns to measure the speed")
    parser.add_argument("--turn-seconds", type=float, default=8)
    parser.add_argument("--race-seconds", type=float, default=60, help="training time to measure the quality")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    kinds: list[type[Ours] | type[Theirs]] = [Ours]
    try:
        import pykeen  # noqa: F401
    except ImportError:
        print("PyKEEN is not installed: only ours is measured (see --help)")
    else:
        kinds.append(Theirs)
    with KnowledgeGraph.open(options.kg) as graph:
        data = graph_triples(graph)
    print(f"{len(data.triples):,} triples, {data.rows:,} entities, {data.relations:,} relations, dim {CONFIG.dim}")
    report = {
        "speed": speed(kinds, data, options.turns, options.turn_seconds),
        "race": race(kinds, data, options.race_seconds),
    }
    rates = report["speed"]
    print_table(("", "triples/s"), [(kind.name, round(rates[kind.name]["triples_per_second"])) for kind in kinds])
    if ratio := rates.get("ratio"):
        print(f"ours / pykeen: {ratio['median']:.2f} ({ratio['least']:.2f} – {ratio['most']:.2f})")
    rows = [(kind.name, *report["race"][kind.name].values()) for kind in kinds]
    columns = ("", *report["race"][kinds[0].name])
    print_table(columns, rows, title=f"after {options.race_seconds:.0f} seconds of training")
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
