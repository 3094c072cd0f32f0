"""A plain language model that adapts to the text it reads: an honest comparison for a model that copies names.

The continuous cache is that of `infer.cache`, over the whole of h.

Dynamic evaluation (Krause et al., 2018): after each few words that were scored, the weights take a step of gradient
descent on them, and are drawn back to where training left them,

    w ← w − η ∇ loss,    then    w ← w + δ (w_trained − w)

Both begin anew with every document.
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
"""Words that are scored in one go, where nothing changes between them."""


@dataclass(frozen=True)
class Adaptation:
    """How a model adapts; by default not at all. λ, θ and η are chosen on documents that are not those of a table."""

    cache: Cache = NO_CACHE
    rate: float = 0.0
    """η: step of dynamic evaluation."""
    decay: float = 0.001
    """δ: how fast weights are drawn back."""
    every: int = 20
    """Words between steps."""

    def __post_init__(self) -> None:
        if not 0 <= self.rate < math.inf or not 0 <= self.decay <= 1 or self.every < 1:
            raise ConfigError(f"{self}", remedy="give a rate ≥ 0, a decay of 0 to 1, and steps every 1 word or more")

    def __bool__(self) -> bool:
        return bool(self.cache) or self.rate > 0

    @property
    def name(self) -> str:
        """What is added to a model's name."""
        return " + cache" * bool(self.cache) + " + dynamic evaluation" * (self.rate > 0)


NO_ADAPTATION = Adaptation()


def adaptive_log_probs(
    model: AwdLstm, words_N: np.ndarray[tuple[int], np.dtype[np.int64]], surface: list[str], how: Adaptation
) -> tuple[Floats, Floats]:
    """At each target, log p(x) of the model, and what the cache gives the word (T each).

    The first is of the unknown word where the word is not in the vocabulary.
    """
    model = copy.deepcopy(model).eval() if how.rate else model
    trained = [parameter.detach().clone() for parameter in model.parameters()] if how.rate else []
    words_T, state = torch.from_numpy(words_N), None
    log_p, hidden = [np.zeros(0)], [torch.zeros(0, model.encoder.size, dtype=model.dtype)]
    step = how.every if how.rate else CHUNK
    for start in range(0, len(words_T) - 1, step):
        end = min(start + step, len(words_T) - 1)
        with torch.set_grad_enabled(how.rate > 0):
            output = model.encoder(words_T[None, start:end], state)
            state, h_SH = output.state.detach(), output.h_BTD[0]
            target_S = words_T[start + 1 : end + 1]
            log_p_S = model.words.log_prob(h_SH, target_S)
        log_p.append(array(log_p_S))
        hidden.append(h_SH.detach())
        if how.rate:
            _learn(model, -log_p_S.mean(), trained, how)
    log_p_T = np.concatenate(log_p)
    again_T = how.cache.said_again(torch.cat(hidden), surface) if how.cache else np.zeros(len(log_p_T))
    return log_p_T, again_T


def _learn(model: AwdLstm, loss: Tensor, trained: list[Tensor], how: Adaptation) -> None:
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for parameter, gradient, old in zip(parameters, gradients, trained, strict=True):
            parameter.add_(gradient, alpha=-how.rate).lerp_(old, how.decay)
