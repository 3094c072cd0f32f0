"""Annotated joint likelihood, summed by component: reported in training, and the criterion of validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

import torch

from kglm.model.base import COMPONENTS, ChunkModel, Scores
from kglm.model.chunk import Chunk
from kglm.train.batches import Carried, Plan
from kglm.train.chunks import ChunkBuilder
from kglm.train.encoding import EncodedDocument
from kglm.train.processes import World


@dataclass
class Totals:
    """Sums of log-probabilities over targets by component, and counts."""

    type: float = 0.0
    new: float = 0.0
    parent: float = 0.0
    relation: float = 0.0
    word_entity: float = 0.0
    word_none: float = 0.0
    targets: int = 0
    mention_words: int = 0
    starts: int = 0
    unexplained: int = 0

    def add(self, scores: Scores, chunk: Chunk) -> None:
        """Add the scores of a chunk."""
        inside = chunk.mention_BT
        for name in ("type", "new", "parent", "relation"):
            value = getattr(scores, f"{name}_BT").detach().double().sum()
            setattr(self, name, getattr(self, name) + float(value))
        word_BT = scores.word_BT.detach().double()
        self.word_entity += float(word_BT[inside].sum())
        self.word_none += float(word_BT[~inside].sum())
        self.targets += chunk.targets
        self.mention_words += int(inside.sum())
        self.starts += len(chunk.starts.position_M)
        self.unexplained += int(scores.unexplained)

    def over(self, world: World) -> Totals:
        """Sum over all processes."""
        sums = world.total(astuple(self))
        values = {field.name: value for field, value in zip(fields(self), sums, strict=True)}
        counts = ("targets", "mention_words", "starts", "unexplained")
        return Totals(**{name: int(value) if name in counts else value for name, value in values.items()})  # type: ignore[arg-type]

    def nats(self) -> dict[str, float]:
        """Nats per target, total and by component; lower is better."""
        count = max(self.targets, 1)
        components = {name: 0.0 - getattr(self, name) / count for name in COMPONENTS}
        return {"nats": sum(components.values()), **components}


def evaluate(
    model: ChunkModel,
    builder: ChunkBuilder,
    documents: Sequence[EncodedDocument],
    *,
    rows: int,
    length: int,
    world: World | None = None,
) -> Totals:
    """Annotated joint likelihood of documents, without dropout and regularisation."""
    world = world or World()
    totals, carried = Totals(), Carried()
    model.eval()
    with torch.no_grad():
        for lines in Plan(documents[world.rank :: world.size], rows=rows, length=length):
            chunk = builder.build([line.piece for line in lines], ahead=model.ahead).to(world.device)
            numbers = [line.row for line in lines]
            scores = model.score(chunk, carried.state_of(numbers))
            carried = Carried(numbers, scores.state)
            totals.add(scores, chunk)
    return totals.over(world)
