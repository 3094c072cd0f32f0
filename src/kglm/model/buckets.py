"""Log-buckets of distances and counts."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import numpy.typing as npt

DISTANCES = (1, 2, 4, 8, 16, 32, 64)
"""Upper ends of the buckets; beyond the last is one more."""
BUCKETS = len(DISTANCES) + 1


def bucket(distance: int) -> int:
    """Bucket of a distance of at least 1."""
    return bisect_left(DISTANCES, distance)


def frequency_buckets(count_N: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Buckets of counts; 0 has one of its own."""
    return np.where(count_N > 0, 1 + np.searchsorted(DISTANCES, count_N), 0)
