"""Documents in shuffled queues: B rows, each reads its documents in contiguous chunks; every target once an epoch.

A row takes the next document of the epoch's order when its own ends, and falls away when there is none. The plan of an
epoch follows from the seed and the epoch's number alone, so a run can be taken up at any chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch

from kglm.errors import ConfigError
from kglm.model.annotation import EncodedDocument
from kglm.model.chunk import Piece
from kglm.model.encoder import LayerState, State


class Line(NamedTuple):
    """One row's part in a chunk."""

    row: int
    piece: Piece


def epoch_plan(documents: Sequence[EncodedDocument], *, rows: int, length: int, seed: int, epoch: int) -> Plan:
    """The chunks of one epoch, documents in an order of its own."""
    order = np.random.default_rng([seed, epoch]).permutation(len(documents))
    return Plan([documents[k] for k in order], rows=rows, length=length)


class Plan:
    """Which pieces of which documents each chunk has, in order of rows. Documents without a target are passed over."""

    def __init__(self, documents: Sequence[EncodedDocument], *, rows: int, length: int) -> None:
        if rows < 1 or length < 1:
            raise ConfigError(f"{rows} rows of {length} targets", remedy="give at least one of each")
        self._rows = rows
        self._length = length
        self._documents = [document for document in documents if len(document)]

    def __iter__(self) -> Iterator[list[Line]]:
        queue = iter(self._documents)
        at = {row: (document, 0) for row, document in zip(range(self._rows), queue, strict=False)}
        while at:
            lines = []
            for row, (document, start) in list(at.items()):
                end = min(start + self._length, len(document))
                lines.append(Line(row, Piece(document, start, end)))
                if end < len(document):
                    at[row] = (document, end)
                elif (following := next(queue, None)) is not None:
                    at[row] = (following, 0)
                else:
                    del at[row]
            yield lines

    def __len__(self) -> int:
        """How many chunks there are."""
        free = [0] * self._rows
        for document in self._documents:
            k = free.index(min(free))
            free[k] += -(-len(document) // self._length)
        return max(free, default=0)

    @property
    def targets(self) -> int:
        return sum(map(len, self._documents))


@dataclass(frozen=True)
class Carried:
    """The recurrent state after a chunk, and the rows it is of."""

    rows: Sequence[int] = ()
    state: State = field(default=())

    def state_of(self, rows: Sequence[int]) -> State | None:
        """The state of these rows; None if nothing was read before."""
        if not self.rows or not rows:
            return None
        if list(rows) == list(self.rows):
            return self.state
        index = torch.tensor([self.rows.index(row) for row in rows], device=self.state[0].h_BH.device)
        return tuple(LayerState(layer.h_BH[index], layer.c_BH[index]) for layer in self.state)
