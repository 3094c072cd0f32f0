"""One training loop for every model that scores chunks.

Loss = − Σ_t log p(x_t, z_t) / #targets (+ AR and TAR). Validation is the annotated joint likelihood. A step is one
chunk. Randomness comes from the seed: the order of documents from (seed, epoch), dropout masks from a generator whose
state is part of every checkpoint, so a run that was killed and resumed is the run that never was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Generator, Tensor

from kglm.errors import ConfigError, KglmError
from kglm.files import atomic_file
from kglm.model.annotation import EncodedDocument
from kglm.model.chunk import ChunkBuilder, Piece
from kglm.model.encoder import LayerState, State, detach_state
from kglm.model.parts import ChunkModel, Scores
from kglm.progress import progress
from kglm.train.batches import Plan, epoch_plan
from kglm.train.checkpoint import (
    StateDirectory,
    load_into,
    optimiser_tensors,
    restore_optimiser,
    save_tensors,
)


@dataclass(frozen=True)
class TrainConfig:
    """How to train."""

    rows: int = 60
    """Documents read side by side."""
    length: int = 70
    """Targets of a row in one step; gradients do not reach further back."""
    epochs: int = 40
    """At most so many passes over the training documents."""
    learning_rate: float = 1e-3
    """Of Adam."""
    clip: float = 0.25
    """Norm that gradients are clipped to."""
    patience: int = 5
    """Stop after so many epochs without a better validation."""
    seed: int = 0
    """Decides weights, order of documents and dropout."""
    checkpoint_minutes: float = 5.0
    """A run that is killed loses at most this much."""

    def __post_init__(self) -> None:
        for name in ("rows", "length", "epochs", "learning_rate", "clip", "patience", "checkpoint_minutes"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"train.{name} = {getattr(self, name)}", remedy="give a number above 0")


@dataclass
class Totals:
    """Sums of log-probabilities over targets, by component."""

    targets: int = 0
    type: float = 0.0
    entity: float = 0.0
    word: float = 0.0
    unexplained: int = 0

    def add(self, scores: Scores, targets: int) -> None:
        self.targets += targets
        self.type += float(scores.type_BT.detach().double().sum())
        self.entity += float(scores.entity_BT.detach().double().sum())
        self.word += float(scores.word_BT.detach().double().sum())
        self.unexplained += int(scores.unexplained)

    def nats(self) -> dict[str, float]:
        """Nats per target, in all and by component; lower is better."""
        count = max(self.targets, 1)
        parts = {name: 0.0 - getattr(self, name) / count for name in ("type", "entity", "word")}
        return {"nats": sum(parts.values()), **parts}


class Trainer:
    """A model, its data and the directory of its run."""

    def __init__(
        self,
        model: ChunkModel,
        builder: ChunkBuilder,
        train: Sequence[EncodedDocument],
        valid: Sequence[EncodedDocument],
        config: TrainConfig,
        run: Path,
    ) -> None:
        if not any(map(len, train)):
            raise KglmError("no training document has a word", remedy="give documents with text")
        self.model = model
        self.builder = builder
        self.train_documents = train
        self.valid_documents = valid
        self.config = config
        self.run = run
        self.optimiser = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), config.learning_rate)
        self.generator = Generator().manual_seed(config.seed)
        self.state = StateDirectory(run / "state")
        self.metrics: list[dict[str, Any]] = []
        self.step = self.epoch = self.chunk = self.bad_epochs = 0
        self.best = math.inf
        self._recurrent: State | None = None
        self._totals = Totals()
        self._saved = time.monotonic()

    def fit(self, *, stop_after: int | None = None) -> list[dict[str, Any]]:
        """Train until nothing gets better; `stop_after` ends after so many steps, as an interruption would."""
        self.run.mkdir(parents=True, exist_ok=True)
        try:
            while self.epoch < self.config.epochs and self.bad_epochs < self.config.patience:
                if not self._run_epoch(stop_after):
                    break
        except KeyboardInterrupt:
            self.save()
            raise
        self.save()
        return self.metrics

    def _run_epoch(self, stop_after: int | None) -> bool:
        plan = epoch_plan(
            self.train_documents,
            rows=self.config.rows,
            length=self.config.length,
            seed=self.config.seed,
            epoch=self.epoch,
        )
        done = sum(piece.end - piece.start for pieces in islice(plan, self.chunk) for piece in pieces)
        with progress(f"epoch {self.epoch + 1}", plan.targets, "tokens", done=done) as advance:
            for pieces in islice(plan, self.chunk, None):
                if stop_after is not None and self.step >= stop_after:
                    return False
                advance(self._learn(pieces))
                if time.monotonic() - self._saved > 60 * self.config.checkpoint_minutes:
                    self.save()
        self._end_epoch()
        return True

    def _learn(self, pieces: list[Piece]) -> int:
        chunk = self.builder.build(pieces, ahead=self.model.ahead)
        self.model.train()
        scores = self.model.score(chunk, self._recurrent, generator=self.generator)
        targets = chunk.targets
        loss = scores.regularisation - scores.total_BT.sum() / targets
        if not torch.isfinite(loss):
            titles = ", ".join(repr(piece.document.title) for piece in pieces if piece.document is not None)
            raise KglmError(
                f"the loss is {loss.item()} at step {self.step + 1} (epoch {self.epoch + 1}, documents {titles[:300]})",
                place=self.run,
                remedy="the last checkpoint is kept; resume with a smaller train.learning_rate or train.clip",
            )
        self.optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimiser.step()
        self._recurrent = detach_state(scores.state)
        self._totals.add(scores, targets)
        self.step += 1
        self.chunk += 1
        return targets

    def _end_epoch(self) -> None:
        valid = evaluate(
            self.model, self.builder, self.valid_documents, rows=self.config.rows, length=self.config.length
        )
        record = {"epoch": self.epoch + 1, "step": self.step, "train": self._totals.nats(), "valid": valid.nats()}
        record["unexplained"] = {"train": self._totals.unexplained, "valid": valid.unexplained}
        self.metrics.append(record)
        if valid.nats()["nats"] < self.best:
            self.best, self.bad_epochs = valid.nats()["nats"], 0
            save_tensors(self.run / "model.safetensors", self.model.state_dict())
        else:
            self.bad_epochs += 1
        self.epoch, self.chunk, self._recurrent, self._totals = self.epoch + 1, 0, None, Totals()
        self.save()

    # Resuming

    def save(self) -> None:
        """Write all that a run consists of."""
        recurrent = {
            f"{number}.{name}": tensor
            for number, layer in enumerate(self._recurrent or ())
            for name, tensor in layer._asdict().items()
        }
        parts: dict[str, dict[str, Tensor]] = {
            "model": dict(self.model.state_dict()),
            "optimiser": optimiser_tensors(self.optimiser),
            "recurrent": recurrent,
            "random": {"generator": self.generator.get_state()},
        }
        values = {name: getattr(self, name) for name in ("epoch", "chunk", "bad_epochs", "best", "metrics")} | {
            "totals": msgspec.to_builtins(self._totals)
        }
        values["best"] = None if math.isinf(self.best) else self.best
        self.state.save(self.step, parts, values)
        with atomic_file(self.run / "metrics.jsonl") as stream:
            for record in self.metrics:
                stream.write(msgspec.json.encode(record) + b"\n")
        self._saved = time.monotonic()

    def resume(self) -> bool:
        """Go back to the latest checkpoint; False if there is none."""
        loaded = self.state.load()
        if loaded is None:
            return False
        parts, values = loaded
        load_into(self.model, parts["model"], self.state.home)
        restore_optimiser(self.optimiser, parts["optimiser"])
        self.generator.set_state(parts["random"]["generator"])
        layers = len({name.partition(".")[0] for name in parts.get("recurrent", {})})
        recurrent = parts.get("recurrent", {})
        self._recurrent = (
            tuple(LayerState(recurrent[f"{k}.h_BH"], recurrent[f"{k}.c_BH"]) for k in range(layers)) or None
        )
        for name in ("epoch", "chunk", "bad_epochs", "metrics", "step"):
            setattr(self, name, values[name])
        self.best = math.inf if values["best"] is None else values["best"]
        self._totals = Totals(**values["totals"])
        return True


def evaluate(
    model: ChunkModel, builder: ChunkBuilder, documents: Sequence[EncodedDocument], *, rows: int, length: int
) -> Totals:
    """The annotated joint likelihood of documents. No dropout, no regularisation."""
    totals = Totals()
    state: State | None = None
    model.eval()
    with torch.no_grad():
        for pieces in Plan(documents, rows=rows, length=length):
            chunk = builder.build(pieces, ahead=model.ahead)
            scores = model.score(chunk, state)
            state = scores.state
            totals.add(scores, chunk.targets)
    return totals
