"""A trainer of the toy model, for tests of the loop, of resuming and of several processes."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

from kglm.model.options import LatentConfig
from kglm.runs.settings import TrainConfig
from kglm.train.loop import Trainer
from kglm.train.processes import World
from support.toys import make_toy, random_documents

CONFIG = TrainConfig(rows=3, length=4, epochs=3, learning_rate=0.01, seed=7)
TESTS = Path(__file__).parent.parent


def trainer(
    home: Path,
    config: TrainConfig = CONFIG,
    *,
    model: str = "model",
    world: World | None = None,
    store: Path | None = None,
) -> Trainer:
    """Nine documents to train on, three to validate; the run is in `home`/run, the graph in `store`."""
    toy = make_toy(store or home / "toy", latent=LatentConfig(facts="none" if model.startswith("tracker") else "all"))
    texts = [toy.encoder.encode(document) for document in random_documents(toy, 12, seed=3)]
    for text in texts[:9]:
        text.counted = True
    return Trainer(getattr(toy, model), toy.builder, texts[:9], texts[9:], config, home / "run", world=world)


def run_files(home: Path) -> tuple[dict[str, torch.Tensor], str]:
    """The best weights and the metrics."""
    return load_file(home / "run" / "model.safetensors"), (home / "run" / "metrics.jsonl").read_text()


def same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    """Bit for bit."""
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
