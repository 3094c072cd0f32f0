"""The continuous cache (Grave, Joulin and Usunier, 2017): words of a text so far are said again where the hidden state
is like the one that they came after.

    p(x_t) = (1 − λ) p_model(x_t) + λ Σ_{i < t, x_i = x_t} α_i,    α_i ∝ exp(θ h_t · h_i) over the last `window` words

with λ = 0 at the first word, before which there is none. Words are told apart as they are written, so that an unknown
word that was read before can be said; what the model itself gives it is still the probability of all unknown words.

Legend: T targets, S those of them that are asked for, H size of h.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kglm.errors import ConfigError
from kglm.model.arrays import Bools, Floats, array

AT_ONCE = 500
"""Targets that are looked up in one go."""


@dataclass(frozen=True)
class Cache:
    """λ, θ and the window; a share of 0 is no cache."""

    share: float = 0.0
    theta: float = 0.3
    window: int = 4000

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ConfigError(f"a share of {self.share} from the cache", remedy="give at least 0 and below 1")
        if not 0 <= self.theta < math.inf or self.window < 1:
            raise ConfigError(
                f"a cache with theta {self.theta} of {self.window} words", remedy="give θ ≥ 0, 1 word or more"
            )

    def __bool__(self) -> bool:
        return self.share > 0

    def said_again(self, h_TH: Tensor, surface: Sequence[str]) -> Floats:
        """Σ α_i of each target; the text begins with a word that is given."""
        number: dict[str, int] = {}
        written_T = torch.tensor([number.setdefault(word, len(number)) for word in surface[1 : len(h_TH) + 1]])
        parts = [np.zeros(0)]
        for first in range(0, len(h_TH), AT_ONCE):
            parts.append(self._part(h_TH, written_T, first, min(first + AT_ONCE, len(h_TH))))
        return np.concatenate(parts)

    def _part(self, h_TH: Tensor, written_T: Tensor, start: int, end: int) -> Floats:
        at_S, first = torch.arange(start, end), max(start - self.window, 0)
        place_T = torch.arange(first, end)
        before_ST = (place_T < at_S[:, None]) & (place_T >= at_S[:, None] - self.window)
        score_ST = (self.theta * h_TH[start:end] @ h_TH[first:end].T).masked_fill(~before_ST, -torch.inf)
        alpha_ST = torch.nan_to_num(score_ST.softmax(-1))  # the first word has nothing before it
        return array((alpha_ST * (written_T[start:end, None] == written_T[first:end])).sum(-1))

    def mixed(self, log_p_T: Floats, again_T: Floats, unknown_T: Bools, penalty: float) -> Floats:
        """log p of the mixture; an unknown word that the model says costs `penalty` more."""
        share_T = np.full(len(log_p_T), self.share)
        share_T[:1] = 0.0
        with np.errstate(divide="ignore"):
            log_again_T = np.log(again_T * share_T)
        return np.asarray(np.logaddexp(log_p_T + np.log1p(-share_T) - penalty * unknown_T, log_again_T))


NO_CACHE = Cache()
