"""Optimisation of the heads: AdamW, one group of passages a step, a learning rate that rises and then falls to 0.

All randomness follows from the seed, the epoch and the step; the generator of dropout is part of a checkpoint. So a run
that is killed and resumed has the weights of one that was not.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import msgspec
import torch
from torch import Tensor

from kglm.errors import KglmError
from kglm.files.records import Count
from kglm.heads.model import Heads
from kglm.heads.objective import Losses, passage_loss
from kglm.heads.tables import GraphTables
from kglm.progress import progress
from kglm.train.heads.data import Example, Passages, batches
from kglm.train.heads.settings import HeadsTrainConfig

Finite = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]


class Validation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of `metrics.jsonl`."""

    step: Count
    train: Finite
    """Loss a subword since the line before."""
    valid: Finite
    """Loss a word, facts and names included."""
    nats: Finite
    """−log p of the words, each mention by the graph or by the base, a word."""
    base: Finite
    """The same of the base alone."""
    right_fact: Finite
    """Share of the mentions whose relation is the most probable one of its parent."""


@dataclass
class Progress:
    """Where a training run is."""

    step: int = 0
    loss: float = 0.0
    subwords: int = 0
    best: float | None = None


class Trainer:
    """Trains heads on passages."""

    def __init__(
        self, heads: Heads, tables: GraphTables, data: Passages, valid: Passages, config: HeadsTrainConfig
    ) -> None:
        self.heads, self.tables, self.data, self.valid, self.config = heads, tables, data, valid, config
        scalars = heads.scalars()
        others = [each for each in heads.parameters() if not any(each is scalar for scalar in scalars)]
        self.optimiser = torch.optim.AdamW(
            [{"params": others, "weight_decay": config.decay}, {"params": scalars, "weight_decay": 0.0}]
        )
        self.progress = Progress()
        self.generator_state: Tensor = torch.Generator().manual_seed(config.seed).get_state()
        sizes = data.sizes()
        self._steps = [
            group
            for epoch in range(config.epochs)
            for group in batches(sizes, config.batch, random.Random(f"{config.seed} {epoch}"))
        ]
        self._warm = round(config.joint * len(self._steps) / config.epochs)

    def __len__(self) -> int:
        """Number of steps."""
        return len(self._steps)

    def run(
        self, *, validated: Callable[[Validation, bool], None], save: Callable[[], None], stop: Callable[[], bool]
    ) -> None:
        """Train to the end, or until `stop`. `validated` is called with metrics and whether they are the best yet."""
        config, state = self.config, self.progress
        saved = time.monotonic()
        with progress("training", len(self), "steps") as advance:
            advance(state.step)
            while state.step < len(self) and not stop():
                self._step(state.step)
                state.step += 1
                advance(1)
                if state.step % config.validate == 0 or state.step == len(self):
                    found = self.validate()
                    best = state.best is None or found.valid < state.best
                    if best:
                        state.best = found.valid
                    state.loss, state.subwords = 0.0, 0
                    validated(found, best)
                if time.monotonic() - saved > 60 * config.checkpoint:
                    save()
                    saved = time.monotonic()
        save()

    def _step(self, step: int) -> None:
        config, group = self.config, self._steps[step]
        rng = random.Random(f"{config.seed} step {step}")
        rate = config.rate * min(1.0, (step + 1) / config.warm_up) * (1 - step / len(self))
        for parameters, factor in zip(self.optimiser.param_groups, (1.0, config.scalars), strict=True):
            parameters["lr"] = factor * rate
        self.heads.train()
        self.optimiser.zero_grad()
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.generator_state)
            vector_RK = self.heads.relation_vectors(self.tables.key_RD)
            total, subwords = torch.zeros(()), 0
            for n in group:
                short = len(self.data.passages[n].ids) <= config.short
                annotated = short and random.Random(f"{config.seed} links {n}").random() < config.annotated
                example = self.data.example(n, annotated=annotated, short=config.short)
                total = total + self._loss(example, vector_RK, step < self._warm, rng).total
                subwords += len(example.prepared.passage.ids)
            self.generator_state = torch.get_rng_state()
        torch.autograd.backward(total / subwords)
        norm = torch.nn.utils.clip_grad_norm_(self.heads.parameters(), config.clip)
        if not bool(torch.isfinite(total)) or not bool(torch.isfinite(norm)):
            titles = ", ".join(self.data.passages[n].title for n in group[:5])
            raise KglmError(
                f"the loss or its gradient is not finite at step {step} (documents {titles})",
                remedy="resume with a smaller train.rate; the last checkpoint is kept",
            )
        self.optimiser.step()
        self.progress.loss += float(total.detach())
        self.progress.subwords += subwords

    def _loss(self, example: Example, vector_RK: Tensor, joint: bool, rng: random.Random) -> Losses:
        config, features = self.config, example.prepared.features
        hide = config.hide_asked if len(features.ids_T) <= config.short else config.hide_facts
        hidden_M = torch.tensor([rng.random() < hide for _ in example.spans.end_children], dtype=torch.bool)
        g_TG = self.heads.states(features.middle_TD[None], features.last_TD[None])[0][0]
        closer = example.closer(config.hide_clauses, rng)
        return passage_loss(
            self.heads, example.prepared, example.spans, g_TG, vector_RK, joint=joint, hidden_M=hidden_M, closer=closer
        )

    def validate(self) -> Validation:
        """Measure the validation passages."""
        self.heads.eval()
        config = self.config
        total = text = base = 0.0
        right = spans = 0
        with torch.no_grad():
            vector_RK = self.heads.relation_vectors(self.tables.key_RD)
            for n in range(len(self.valid)):
                example = self.valid.example(n, annotated=False, short=config.short)
                features, count = example.prepared.features, len(example.spans.end_children)
                g_TG = self.heads.states(features.middle_TD[None], features.last_TD[None])[0][0]
                hidden_M = torch.zeros(count, dtype=torch.bool)
                found = passage_loss(
                    self.heads, example.prepared, example.spans, g_TG, vector_RK,
                    joint=False, hidden_M=hidden_M, closer=example.closer(),
                )  # fmt: skip
                total, text, base = total + float(found.total), text + found.text, base + found.base
                right, spans = right + found.right, spans + found.spans
        words = max(self.valid.words, 1)
        state = self.progress
        return Validation(
            state.step, state.loss / max(state.subwords, 1), total / words, text / words, base / words,
            right / max(spans, 1),
        )  # fmt: skip
