"""Log-buckets of distances and counts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

DISTANCES = (1, 2, 4, 8, 16, 32, 64)
"""Upper ends of the buckets; beyond the last is one more."""
BUCKETS = len(DISTANCES) + 1


def bucket(distance: int) -> int:
    """Bucket of a distance of at least 1."""
    return int(np.searchsorted(DISTANCES, distance))


def frequency_buckets(count_N: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """`frequency_bucket` of many counts."""
    return np.where(count_N > 0, 1 + np.searchsorted(DISTANCES, count_N), 0)


def frequency_bucket(count: int) -> int:
    """Bucket of a count; 0 has one of its own."""
    return 1 + bucket(count) if count else 0
