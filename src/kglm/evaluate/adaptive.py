"""Score words with a plain language model that adapts to the text: a fair baseline for a model that copies names.

Continuous cache: see `marginal.cache`; here it compares whole hidden states h.

Dynamic evaluation (Krause et al., 2018): after every few scored words, the weights take one step of gradient descent
on them and decay towards the trained weights,

    w ← w − η ∇ loss,    then    w ← w + δ (w_trained − w)

Cache and weights are reset at the start of every document.

Legend: N words of the text, T targets, S targets of one step, H size of h.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kglm.errors import ConfigError
from kglm.marginal.cache import NO_CACHE, Cache
from kglm.model.arrays import Floats, array
from kglm.model.awd_lstm import AwdLstm

CHUNK = 500
"""Words scored in one step if the weights do not change."""


@dataclass(frozen=True)
class Adaptation:
    """Settings of cache and dynamic evaluation; the defaults turn both off. Choose λ, θ and η on held-out documents."""

    cache: Cache = NO_CACHE
    rate: float = 0.0
    """η: step size of dynamic evaluation."""
    decay: float = 0.001
    """δ: decay towards the trained weights."""
    every: int = 20
    """Words between two steps."""

    def __post_init__(self) -> None:
        if not 0 <= self.rate < math.inf or not 0 <= self.decay <= 1 or self.every < 1:
            raise ConfigError(f"{self}", remedy="give a rate ≥ 0, a decay of 0 to 1, and steps every 1 word or more")

    def __bool__(self) -> bool:
        return bool(self.cache) or self.rate > 0

    @property
    def name(self) -> str:
        """Suffix of the model's name in tables."""
        return " + cache" * bool(self.cache) + " + dynamic evaluation" * (self.rate > 0)


NO_ADAPTATION = Adaptation()


def adaptive_log_probs(
    model: AwdLstm, words_N: np.ndarray[tuple[int], np.dtype[np.int64]], surface: list[str], adaptation: Adaptation
) -> tuple[Floats, Floats]:
    """For each target, the model's log p(x_t) and the cache's p(x_t) (T each).

    The model gives a word outside the vocabulary the probability of the unknown word.
    """
    dynamic = adaptation.rate > 0
    model = copy.deepcopy(model).eval() if dynamic else model
    trained = [parameter.detach().clone() for parameter in model.parameters()] if dynamic else []
    words_T, state = torch.from_numpy(words_N), None
    log_p, hidden = [np.zeros(0)], [torch.zeros(0, model.encoder.size, dtype=model.dtype)]
    step = adaptation.every if dynamic else CHUNK
    for start in range(0, len(words_T) - 1, step):
        end = min(start + step, len(words_T) - 1)
        with torch.set_grad_enabled(dynamic):
            output = model.encoder(words_T[None, start:end], state)
            state, h_SH = output.state.detach(), output.h_BTD[0]
            target_S = words_T[start + 1 : end + 1]
            log_p_S = model.words.log_prob(h_SH, target_S)
        log_p.append(array(log_p_S))
        if adaptation.cache:
            hidden.append(h_SH.detach())
        if dynamic:
            _update_weights(model, -log_p_S.mean(), trained, adaptation)
    log_p_T, cache = np.concatenate(log_p), adaptation.cache
    cache_p_T = cache.probabilities(torch.cat(hidden), surface) if cache else np.zeros(len(log_p_T))
    return log_p_T, cache_p_T


def _update_weights(model: AwdLstm, loss: Tensor, trained: list[Tensor], adaptation: Adaptation) -> None:
    """Take one step of dynamic evaluation, in place."""
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for parameter, gradient, old in zip(parameters, gradients, trained, strict=True):
            parameter.add_(gradient, alpha=-adaptation.rate).lerp_(old, adaptation.decay)
