"""A cache of scores that depend on a node and a position."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakMethod

import numpy as np

from kglm.model.arrays import Floats, Ints

WINDOW = 500
"""Positions for which the scores of a node are computed together."""


class NodeScores:
    """Scores of nodes along a text that is read forwards, computed for one window of positions at a time.

    The memory does not grow with the length of the text.
    """

    def __init__(self, length: int, compute: Callable[[Ints, slice], Floats]) -> None:
        """`compute(node_N, rows)` returns the scores of nodes at some rows of the text (N × rows).

        It is a method of the owner, and referred to weakly: in a cycle, both would wait for the garbage collector.
        """
        self._length = length
        self._compute = WeakMethod(compute)
        self._open(0)

    def _open(self, start: int) -> None:
        self._start = start
        self._row: dict[int, int] = {}
        self._score_NT = np.empty((0, min(WINDOW, self._length - start)))
        self._node_P = self._row_P = np.empty(0, np.int64)
        """The last query and its rows: the next one mostly has the same nodes, or the same and a few more."""

    def at(self, row: int, node_P: Ints) -> Floats:
        """The scores of these nodes at one row of the text."""
        if not self._start <= row < self._start + WINDOW:
            self._open(row - row % WINDOW)
        if self._node_P is not node_P:
            same = len(self._node_P)
            if not np.array_equal(self._node_P, node_P[:same]):
                same = 0
            self._row_P = np.concatenate([self._row_P[:same], self._find(node_P[same:])])
            self._node_P = node_P
        return np.asarray(self._score_NT[self._row_P, row - self._start])

    def _find(self, node_P: Ints) -> Ints:
        nodes = node_P.tolist()
        missing = [node for node in dict.fromkeys(nodes) if node not in self._row]
        if missing:
            used, width = len(self._row), self._score_NT.shape[1]
            if used + len(missing) > len(self._score_NT):
                larger_NT = np.empty((2 * (used + len(missing)), width))
                larger_NT[:used] = self._score_NT[:used]
                self._score_NT = larger_NT
            rows = slice(self._start, self._start + width)
            compute = self._compute()
            assert compute is not None
            self._score_NT[used : used + len(missing)] = compute(np.array(missing, np.int64), rows)
            self._row.update(zip(missing, range(used, used + len(missing)), strict=True))
        return np.array([self._row[node] for node in nodes], np.int64)
