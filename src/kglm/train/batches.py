"""Which pieces of which documents each chunk of an epoch has.

Each row reads the documents of a shuffled queue, one after the other, in contiguous chunks; every position is used once
an epoch. The plan depends on the seed and the number of the epoch only, so training can resume at any chunk.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from kglm.errors import ConfigError
from kglm.model.encoders.encoder import EncoderState
from kglm.runs.settings import Batching
from kglm.train.chunks import Piece
from kglm.train.encoding import EncodedDocument

USUAL, SPREAD, SHORTEST = 0.95, 5.0, 5
"""Lengths of steps through a stream: probability of the full length, standard deviation, minimum."""


class Line(NamedTuple):
    """One row of a chunk."""

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
    """The chunks of one epoch, shuffled by (seed, epoch)."""
    kind = StreamPlan if batching == "stream" else Plan
    return kind(documents, rows=rows, length=length, rng=np.random.default_rng([seed, epoch]))


class Plan:
    """The chunks of documents that are read one by one. Documents without a position are skipped.

    Rows get about the same number of positions (the longest documents are assigned first, each to the row with the
    least): otherwise an epoch would end with many steps on one remaining document.
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
        """Number of chunks."""
        return self._chunks

    @property
    def targets(self) -> int:
        return sum(map(len, self._documents))


class StreamPlan:
    """All documents as one text, cut into one piece for each row, as in the training of AWD-LSTM.

    The length of each step is drawn around `length`, sometimes around half of it, so that the cuts vary.
    """

    def __init__(
        self, documents: Sequence[EncodedDocument], *, rows: int, length: int, rng: np.random.Generator
    ) -> None:
        if rows < 1 or length < 1:
            raise ConfigError(f"{rows} rows of {length} targets", remedy="give at least one of each")
        words_N = np.concatenate([np.zeros(0, np.int64), *(document.words_N for document in documents)])
        size = max(len(words_N) - 1, 0) // rows  # the remainder is not read
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
        """Number of chunks."""
        return len(self._cuts) - 1

    @property
    def targets(self) -> int:
        return sum(map(len, self._rows))


@dataclass(frozen=True)
class Carried:
    """The recurrent state after a chunk, and the rows of the batch that it belongs to."""

    rows: Sequence[int] = ()
    state: EncoderState | None = None

    def state_of(self, rows: Sequence[int]) -> EncoderState | None:
        """The state of these rows; None before the first chunk."""
        if self.state is None or not self.rows or not rows:
            return None
        if list(rows) == list(self.rows):
            return self.state
        return self.state.select(torch.tensor([self.rows.index(row) for row in rows]))
