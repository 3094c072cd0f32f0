"""Documents in shuffled queues: B rows, each reads its documents in contiguous chunks; every target once an epoch.

A row takes the next document of its queue when its own ends, and falls away when there is none. The plan of an epoch
follows from the seed and the epoch's number alone, so a run can be taken up at any chunk.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from kglm.errors import ConfigError
from kglm.model.encoders.awd_lstm import State
from kglm.runs.settings import Batching
from kglm.train.chunks import Piece
from kglm.train.encoding import EncodedDocument

USUAL, SPREAD, SHORTEST = 0.95, 5.0, 5
"""How the lengths of steps through a stream are drawn: chance of the whole length, deviation, least length."""


class Line(NamedTuple):
    """One row's part in a chunk."""

    row: int
    piece: Piece


def epoch_plan(
    documents: Sequence[EncodedDocument],
    *,
    rows: int,
    length: int,
    seed: int,
    epoch: int,
    batching: Batching = "documents",
) -> Plan | StreamPlan:
    """The chunks of one epoch, by chance of its own."""
    kind = StreamPlan if batching == "stream" else Plan
    return kind(documents, rows=rows, length=length, rng=np.random.default_rng([seed, epoch]))


class Plan:
    """Which pieces of which documents each chunk has, in order of rows. Documents without a target are passed over.

    Rows get about the same amount of work (the longest documents are dealt first, always to the row that has least):
    else an epoch would end with many steps on the one document that is left, and the model with it.
    """

    def __init__(
        self,
        documents: Sequence[EncodedDocument],
        *,
        rows: int,
        length: int,
        rng: np.random.Generator | None = None,
    ) -> None:
        if rows < 1 or length < 1:
            raise ConfigError(f"{rows} rows of {length} targets", remedy="give at least one of each")
        self._length = length
        self._documents = [document for document in documents if len(document)]
        order = np.arange(len(self._documents)) if rng is None else rng.permutation(len(self._documents))
        chunks = [-(-len(document) // length) for document in self._documents]
        loads = [(0, row) for row in range(rows)]
        self._queues: list[list[EncodedDocument]] = [[] for _ in range(rows)]
        for place in sorted(order.tolist(), key=lambda place: -chunks[place]):
            load, row = heapq.heappop(loads)
            self._queues[row].append(self._documents[place])
            heapq.heappush(loads, (load + chunks[place], row))
        self._chunks = max(load for load, _ in loads)
        if rng is not None:
            for queue in self._queues:
                rng.shuffle(queue)

    def __iter__(self) -> Iterator[list[Line]]:
        queues = [iter(queue) for queue in self._queues]
        first = [next(queue, None) for queue in queues]
        at = {row: (document, 0) for row, document in enumerate(first) if document is not None}
        while at:
            lines = []
            for row, (document, start) in list(at.items()):
                end = min(start + self._length, len(document))
                lines.append(Line(row, Piece(document, start, end)))
                if end < len(document):
                    at[row] = (document, end)
                elif (following := next(queues[row], None)) is not None:
                    at[row] = (following, 0)
                else:
                    del at[row]
            yield lines

    def __len__(self) -> int:
        """How many chunks there are."""
        return self._chunks

    @property
    def targets(self) -> int:
        return sum(map(len, self._documents))


class StreamPlan:
    """All documents as one text, cut into one piece a row, as AWD-LSTM was trained: a row is read from its beginning to
    its end, whatever document ends on the way.

    The length of a step is drawn anew for each, around `length`, and now and then around half of it, so that the cuts
    are never at the same words.
    """

    def __init__(
        self, documents: Sequence[EncodedDocument], *, rows: int, length: int, rng: np.random.Generator
    ) -> None:
        if rows < 1 or length < 1:
            raise ConfigError(f"{rows} rows of {length} targets", remedy="give at least one of each")
        words_N = np.concatenate([np.zeros(0, np.int64), *(document.words_N for document in documents)])
        size = max(len(words_N) - 1, 0) // rows  # what is left over is not read
        if not size:
            raise ConfigError(f"a stream of {len(words_N)} words in {rows} rows", remedy="set fewer train.rows")
        self._rows = [
            EncodedDocument.plain(f"row {row}", words_N[row * size : (row + 1) * size + 1], []) for row in range(rows)
        ]
        self._cuts = [0]
        while self._cuts[-1] < size:
            middle = length if rng.random() < USUAL else length / 2
            self._cuts.append(min(self._cuts[-1] + max(SHORTEST, int(rng.normal(middle, SPREAD))), size))

    def __iter__(self) -> Iterator[list[Line]]:
        for start, end in pairwise(self._cuts):
            yield [Line(row, Piece(document, start, end)) for row, document in enumerate(self._rows)]

    def __len__(self) -> int:
        """How many chunks there are."""
        return len(self._cuts) - 1

    @property
    def targets(self) -> int:
        return sum(map(len, self._rows))


@dataclass(frozen=True)
class Carried:
    """The recurrent state after a chunk, and the rows it is of."""

    rows: Sequence[int] = ()
    state: State = field(default_factory=State)

    def state_of(self, rows: Sequence[int]) -> State | None:
        """The state of these rows; None if nothing was read before."""
        if not self.rows or not rows:
            return None
        if list(rows) == list(self.rows):
            return self.state
        return self.state.select(torch.tensor([self.rows.index(row) for row in rows]))
