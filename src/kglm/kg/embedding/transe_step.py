"""One TransE step: the margin loss, its gradient and the update of the affected rows, without autograd.

A pair is a true triple and its corruption, in which head or tail is replaced. x is the entity that is not replaced,
y the true entity that is replaced and n its replacement; s = +1 if the tail is replaced and s = −1 if the head is:

    t = v_x + s v_r,   delta(true) = ||t − v_y||²,   delta(noise) = ||t − v_n||²,   d = v_n − v_y

Entities have unit norm, so delta(true) − delta(noise) = 2 t·d, and where margin + 2 t·d > 0 the gradient is

    v_x: 2 d      v_r: 2 s d      v_y: 2 (v_y − t)      v_n: 2 (t − v_n)

A row that occurs several times in a batch gets the sum of its gradients. t and d are weighted sums of two rows of the
table, and the gradient of a row is a weighted sum of rows of t and d and of the row itself: an `embedding_bag` does
this without intermediate copies.

Shapes: R rows of the table (relations first, then entities), D dimensions, B pairs, K pairs within the margin,
U rows to update.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import embedding_bag

from kglm.kg.arrays import LongArray

FloatArray = npt.NDArray[np.float32]
EPSILON = 1e-10
"""Initial value of Adagrad's sums of squares, and least norm to divide by."""


class Pairs(NamedTuple):
    """True triples and their corruptions, as rows of the table."""

    kept_B: LongArray
    """x, the entity that is not replaced."""
    relation_B: LongArray
    sign_B: FloatArray
    """s: +1 if the tail is replaced, −1 if the head is."""
    true_B: LongArray
    """y, the entity that is replaced."""
    noise_B: LongArray
    """n, its replacement."""

    def part(self, start: int, end: int) -> Pairs:
        cut = slice(start, end)
        return Pairs(self.kept_B[cut], self.relation_B[cut], self.sign_B[cut], self.true_B[cut], self.noise_B[cut])


class Table:
    """Vectors of all relations and entities in one array, and Adagrad's sum of squared gradients of each parameter.

    Without `squares_RD`, steps are plain gradient descent.
    """

    def __init__(self, vector_RD: FloatArray, squares_RD: FloatArray | None, relations: int) -> None:
        self.vector_RD = vector_RD
        self.squares_RD = squares_RD
        self.relations = relations
        """Number of relations, the first rows; only entities are normalised to unit length."""

    @torch.no_grad()
    def step(self, pairs: Pairs, margin: float, learning_rate: float) -> int:
        """Take one gradient step on the summed loss of the pairs; return the number of pairs within the margin."""
        B = len(pairs.kept_B)
        td_2BD = self._sides(pairs)
        product_B = torch.linalg.vecdot(td_2BD[:B], td_2BD[B:]).numpy()
        active_K = np.flatnonzero(product_B > -margin / 2)
        K = len(active_K)
        if K == 0:
            return 0
        columns = pairs.kept_B, pairs.relation_B, pairs.true_B, pairs.noise_B
        row = np.concatenate([column[active_K] for column in columns])
        source = np.concatenate([active_K + B, active_K + B, active_K, active_K])
        two = np.full(K, 2, np.float32)
        weight = np.concatenate([two, 2 * pairs.sign_B[active_K], -two, two])
        own = np.concatenate([np.zeros(2 * K, np.float32), two, -two])
        # sort integers that pack row and place: twice as fast as argsort, and stable
        bits = (4 * K).bit_length()
        order = np.sort((row << bits) | np.arange(4 * K))
        place, row = order & ((1 << bits) - 1), order >> bits
        starts_U = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
        row_U = row[starts_U]
        gradient_UD = _sums(td_2BD, source[place], starts_U, weight[place])
        own_U = np.add.reduceat(own[place], starts_U)
        self._update(row_U, gradient_UD, torch.from_numpy(own_U), learning_rate)
        return K

    def _sides(self, pairs: Pairs) -> torch.Tensor:
        """t in the first B rows, d in the last B."""
        B = len(pairs.kept_B)
        row = np.empty((2, B, 2), np.int64)
        row[0, :, 0], row[0, :, 1], row[1, :, 0], row[1, :, 1] = (
            pairs.kept_B,
            pairs.relation_B,
            pairs.noise_B,
            pairs.true_B,
        )
        weight = np.ones((2, B, 2), np.float32)
        weight[0, :, 1], weight[1, :, 1] = pairs.sign_B, -1
        return _sums(torch.from_numpy(self.vector_RD), row.ravel(), np.arange(0, 4 * B, 2), weight.ravel())

    def _update(self, row_U: LongArray, gradient_UD: torch.Tensor, own_U: torch.Tensor, learning_rate: float) -> None:
        """Update distinct rows; the full gradient is `gradient_UD` plus `own_U` times the row itself."""
        rows = torch.from_numpy(row_U)
        vector_UD = torch.from_numpy(self.vector_RD).index_select(0, rows)
        gradient_UD.addcmul_(vector_UD, own_U[:, None])
        if self.squares_RD is None:
            vector_UD.add_(gradient_UD, alpha=-learning_rate)
        else:
            squares_UD = torch.from_numpy(self.squares_RD).index_select(0, rows)
            squares_UD.addcmul_(gradient_UD, gradient_UD)
            self.squares_RD[row_U] = squares_UD.numpy()
            vector_UD.addcmul_(gradient_UD, squares_UD.rsqrt_(), value=-learning_rate)
        entity_UD = vector_UD[int(np.searchsorted(row_U, self.relations)) :]
        entity_UD.div_(torch.linalg.vector_norm(entity_UD, dim=1, keepdim=True).clamp_min_(EPSILON))
        self.vector_RD[row_U] = vector_UD.numpy()


def _sums(source_RD: torch.Tensor, row: LongArray, starts: LongArray, weight: FloatArray) -> torch.Tensor:
    """Weighted sums of rows of `source_RD`: the i-th sum is over row[starts[i] : starts[i + 1]]."""
    return embedding_bag(
        torch.from_numpy(row),
        source_RD,
        torch.from_numpy(starts),
        mode="sum",
        per_sample_weights=torch.from_numpy(weight),
    )
