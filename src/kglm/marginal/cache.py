"""The continuous cache (Grave, Joulin and Usunier, 2017): repeat earlier words that followed similar hidden states.

    p(x_t) = (1 − λ) p_model(x_t) + λ Σ_{i < t, x_i = x_t} α_i,    α_i ∝ exp(θ h_t · h_i) over the last `window` words

and λ = 0 for the first word. The cache compares words by their spelling, so it can repeat an unknown word; the model
gives each unknown word the probability of all unknown words together.
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

BLOCK = 500
"""Targets compared with the cache at a time: bounds the memory."""


@dataclass(frozen=True)
class Cache:
    """Settings of the cache: λ (`share`; 0 turns it off), θ, and the window in words."""

    share: float = 0.0
    theta: float = 0.3
    window: int = 4000

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ConfigError(f"cache share {self.share}", remedy="give at least 0 and below 1")
        if not 0 <= self.theta < math.inf or self.window < 1:
            raise ConfigError(
                f"cache with theta {self.theta} and a window of {self.window} words",
                remedy="give theta ≥ 0 and a window of at least 1",
            )

    def __bool__(self) -> bool:
        return self.share > 0

    def probabilities(self, h_TH: Tensor, surface: Sequence[str]) -> Floats:
        """Cache probability of each target, Σ α_i; the first word of `surface` is given, not a target."""
        return self.last_probabilities(h_TH, surface, len(h_TH))

    def last_probabilities(self, h_TH: Tensor, surface: Sequence[str], count: int) -> Floats:
        """The same of the last `count` targets alone; `h_TH` need not reach further back than the cache does."""
        number: dict[str, int] = {}
        word_T = torch.tensor([number.setdefault(word, len(number)) for word in surface[1 : len(h_TH) + 1]])
        blocks = [np.zeros(0)]
        for start in range(len(h_TH) - count, len(h_TH), BLOCK):
            blocks.append(self._block(h_TH, word_T, start, min(start + BLOCK, len(h_TH))))
        return np.concatenate(blocks)

    def _block(self, h_TH: Tensor, word_T: Tensor, start: int, end: int) -> Floats:
        """Cache probabilities of the targets from `start` to `end`."""
        target_S, first = torch.arange(start, end), max(start - self.window, 0)
        place_T = torch.arange(first, end)
        before_ST = (place_T < target_S[:, None]) & (place_T >= target_S[:, None] - self.window)
        score_ST = (self.theta * h_TH[start:end] @ h_TH[first:end].T).masked_fill(~before_ST, -torch.inf)
        alpha_ST = torch.nan_to_num(score_ST.softmax(-1))  # the first word has no earlier words
        return array((alpha_ST * (word_T[start:end, None] == word_T[first:end])).sum(-1))

    def mixed(self, log_p_T: Floats, cache_T: Floats, unknown_T: Bools, penalty: float, first: int = 0) -> Floats:
        """log p of the mixture of model and cache; unknown words from the model cost `penalty` more.

        `first` is the position of the first target.
        """
        share_T = np.full(len(log_p_T), self.share)
        share_T[: max(1 - first, 0)] = 0.0
        with np.errstate(divide="ignore"):
            log_cache_T = np.log(cache_T * share_T)
        return np.asarray(np.logaddexp(log_p_T + np.log1p(-share_T) - penalty * unknown_T, log_cache_T))


NO_CACHE = Cache()
