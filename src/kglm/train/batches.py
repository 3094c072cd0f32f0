"""Documents in shuffled queues: B rows, each reads its documents in contiguous chunks; every target once an epoch.

A row takes the next document of the epoch's order when its own ends. The plan of an epoch follows from the seed and the
epoch's number alone, so a run can be taken up at any chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kglm.errors import ConfigError
from kglm.model.annotation import EncodedDocument
from kglm.model.chunk import Piece


def epoch_plan(documents: Sequence[EncodedDocument], *, rows: int, length: int, seed: int, epoch: int) -> Plan:
    """The chunks of one epoch, documents in an order of its own."""
    order = np.random.default_rng([seed, epoch]).permutation(len(documents))
    return Plan([documents[k] for k in order], rows=rows, length=length)


class Plan:
    """Which pieces of which documents each chunk has. Documents without a target are passed over."""

    def __init__(self, documents: Sequence[EncodedDocument], *, rows: int, length: int) -> None:
        if rows < 1 or length < 1:
            raise ConfigError(f"{rows} rows of {length} targets", remedy="give at least one of each")
        self._rows = rows
        self._length = length
        self._documents = [document for document in documents if len(document)]

    def __iter__(self) -> Iterator[list[Piece]]:
        queue = iter(self._documents)
        row = [next(queue, None) for _ in range(self._rows)]
        start = [0] * self._rows
        while any(document is not None for document in row):
            pieces = []
            for k, document in enumerate(row):
                if document is None:
                    pieces.append(Piece(None))
                    continue
                end = min(start[k] + self._length, len(document))
                pieces.append(Piece(document, start[k], end))
                row[k], start[k] = (next(queue, None), 0) if end == len(document) else (document, end)
            yield pieces

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
