"""Training of an adapter of the sentence encoder: clauses near to the names of the relation that they ask for.

With c a clause ("it takes orders from"), n a name of its relation ("manager"), and N further names,

    loss = − log exp(s c·n) / Σ_{n' in N + n} exp(s c·n'),

s fixed. N are names of the other relations of the batch, half of the time from the same tables, where a clause must be
told apart from the other columns, and names of any relations, encoded once in a while: also of relations
without clauses, because otherwise clauses would come nearer to names that were never negatives than to the others.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from kglm.progress import progress
from kglm.text.adapter import DOWN, UP, adapted
from kglm.text.encoder import SentenceEncoder
from kglm.text.minilm import MiniLM

NAMES = 4
"""Names of a relation, label first, that are negatives of others."""


@dataclass(frozen=True)
class RelationTexts:
    """A relation: its names, label first, clauses that ask for it, if any, and the tables in which it is a column."""

    names: tuple[str, ...]
    clauses: tuple[str, ...]
    table: str | None = None


@dataclass(frozen=True)
class AdapterConfig:
    """Options of the training."""

    rank: int = 8
    steps: int = 900
    rate: float = 1e-3
    warm_up: int = 30
    batch: int = 40
    tables: int = 4
    """Tables from which the relations of a batch come, half of the time."""
    negatives: int = 400
    """Further names."""
    scale: float = 20.0
    """s"""
    refresh: int = 100
    """Steps after which the further names are encoded again."""
    seed: int = 0


def train_adapter(
    encoder: SentenceEncoder, relations: Sequence[RelationTexts], config: AdapterConfig
) -> dict[str, Tensor]:
    """An adapter of the encoder for these relations."""
    rng, generator = random.Random(config.seed), torch.Generator().manual_seed(config.seed)
    adapter = {name: nn.Parameter(value) for name, value in _start(encoder.tensors, config.rank, generator).items()}
    optimiser = torch.optim.AdamW(adapter.values(), weight_decay=0.01)
    batches = _Batches(relations, config, rng)
    bank = [(each, name) for each in relations for name in each.names[:NAMES]]
    bank_XC = torch.zeros(0)
    with progress("training the adapter", config.steps, "steps") as advance:
        for step in range(config.steps):
            model = encoder.model(adapted(encoder.tensors, adapter), torch.bfloat16)
            if step % config.refresh == 0:
                bank_XC = _encode(encoder, model, [name for _, name in bank])
            rate = config.rate * min(1.0, (step + 1) / config.warm_up) * (1 - step / config.steps)
            optimiser.param_groups[0]["lr"] = rate
            optimiser.zero_grad()
            chosen = batches.draw()
            clauses = [rng.choice(each.clauses) for each in chosen]
            names = [each.names[0] if rng.random() < 0.5 else rng.choice(each.names) for each in chosen]
            both_XC = model.vectors(encoder.ids([*clauses, *names]))
            clause_BC, name_BC = both_XC[: len(chosen)], both_XC[len(chosen) :]
            further = rng.sample(range(len(bank)), min(config.negatives, len(bank)))
            score_BX = config.scale * clause_BC @ torch.cat([name_BC, bank_XC[further]]).T
            other = [*names, *(bank[n][1] for n in further)]
            same_BX = torch.tensor(
                [[m != k and name in each.names for k, name in enumerate(other)] for m, each in enumerate(chosen)]
            )
            loss = functional.cross_entropy(score_BX.masked_fill(same_BX, -1e9), torch.arange(len(chosen)))
            torch.autograd.backward(loss)
            optimiser.step()
            advance()
    return {name: value.detach() for name, value in adapter.items()}


def _start(tensors: Mapping[str, Tensor], rank: int, generator: torch.Generator) -> dict[str, Tensor]:
    """A of random numbers and B of zeros for all matrices of the layers, which changes nothing yet."""
    found = {}
    for name, weight in sorted(tensors.items()):
        if ".layer." in name and name.endswith(".weight") and weight.dim() == 2:
            rows, columns = weight.shape
            found[name + DOWN] = torch.randn(rank, columns, generator=generator) / columns**0.5
            found[name + UP] = torch.zeros(rows, rank)
    return found


@torch.no_grad()
def _encode(encoder: SentenceEncoder, model: MiniLM, texts: Sequence[str], batch: int = 128) -> Tensor:
    ids = encoder.ids(texts)
    order = sorted(range(len(ids)), key=lambda n: len(ids[n]))
    parts = [model.vectors([ids[n] for n in order[k : k + batch]]) for k in range(0, len(order), batch)]
    return torch.cat(parts)[torch.tensor(order).argsort()]


class _Batches:
    """Draws different relations."""

    def __init__(self, relations: Sequence[RelationTexts], config: AdapterConfig, rng: random.Random) -> None:
        self.relations = [each for each in relations if each.clauses]
        self._config, self._rng = config, rng
        self._of_table: dict[str, list[RelationTexts]] = defaultdict(list)
        for each in self.relations:
            if each.table is not None:
                self._of_table[each.table].append(each)
        self._without = [each for each in self.relations if each.table is None] or self.relations

    def draw(self) -> list[RelationTexts]:
        """The relations of a step."""
        pool = self._without
        if self._of_table and self._rng.random() < 0.5:
            tables = self._rng.sample(sorted(self._of_table), min(self._config.tables, len(self._of_table)))
            pool = [each for table in tables for each in self._of_table[table]]
        return self._rng.sample(pool, min(self._config.batch, len(pool)))
