"""Short names for arrays of numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from torch import Tensor

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def array(tensor: Tensor) -> Floats:
    """The tensor as doubles."""
    return tensor.detach().cpu().double().numpy()
