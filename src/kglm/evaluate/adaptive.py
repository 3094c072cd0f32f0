"""A plain language model that adapts to the text it reads: an honest comparison for a model that copies names.

Continuous cache (Grave, Joulin and Usunier, 2017): words of the document so far are said again where the hidden state
is like the one that they came after,

    p(x_t) = (1 − λ) p_lm(x_t) + λ Σ_{i < t, x_i = x_t} α_i,    α_i ∝ exp(θ h_t · h_i) over the last `window` words

with λ = 0 at the first word, before which there is none.

Words are told apart as they are written, so that an unknown word that was read before can be said; what the model
itself gives it is still the probability of all unknown words.

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
from kglm.infer.tables import Floats, array
from kglm.model.awd_lstm import AwdLstm
from kglm.model.encoder import detach_state
from kglm.model.softmax import linear_log_prob

CHUNK = 500
"""Words that are scored in one go, where nothing changes between them."""


@dataclass(frozen=True)
class Adaptation:
    """How a model adapts; by default not at all. λ, θ and η are chosen on documents that are not those of a table."""

    cache: float = 0.0
    """λ: share of the words that come from the cache."""
    theta: float = 0.3
    """θ: how much more a like state counts."""
    window: int = 4000
    """Words that the cache holds."""
    rate: float = 0.0
    """η: step of dynamic evaluation."""
    decay: float = 0.001
    """δ: how fast weights are drawn back."""
    every: int = 20
    """Words between steps."""

    def __post_init__(self) -> None:
        if not 0 <= self.cache < 1:
            raise ConfigError(f"a share of {self.cache} from the cache", remedy="give at least 0 and below 1")
        if not (
            0 <= self.rate < math.inf
            and 0 <= self.theta < math.inf
            and 0 <= self.decay <= 1
            and self.window >= 1
            and self.every >= 1
        ):
            raise ConfigError(f"{self}", remedy="give rate and theta ≥ 0, decay of 0 to 1, window and every ≥ 1")

    def __bool__(self) -> bool:
        return self.cache > 0 or self.rate > 0

    @property
    def name(self) -> str:
        """What is added to a model's name."""
        return " + cache" * (self.cache > 0) + " + dynamic evaluation" * (self.rate > 0)


NO_ADAPTATION = Adaptation()


def adaptive_log_probs(
    model: AwdLstm, words_N: np.ndarray[tuple[int], np.dtype[np.int64]], surface: list[str], how: Adaptation
) -> tuple[Floats, Floats]:
    """At each target, log p(x) of the model, and p of the cache, which has `how.cache` of the whole (T each).

    The first is of the unknown word where the word is not in the vocabulary.
    """
    model = copy.deepcopy(model).eval() if how.rate else model
    trained = [parameter.detach().clone() for parameter in model.parameters()] if how.rate else []
    words_T, number = torch.from_numpy(words_N), dict[str, int]()
    written_T = torch.tensor([number.setdefault(word, len(number)) for word in surface[1:]])
    state, h_TH = None, torch.zeros(0, model.encoder.sizes[-1])
    log_p, from_cache = [np.zeros(0)], [np.zeros(0)]
    step = how.every if how.rate else CHUNK
    for start in range(0, len(written_T), step):
        end = min(start + step, len(written_T))
        with torch.set_grad_enabled(how.rate > 0):
            output = model.encoder(words_T[None, start:end], state)
            state, h_SH = detach_state(output.state), output.h_BTD[0]
            target_S = words_T[start + 1 : end + 1]
            log_p_S = linear_log_prob(h_SH, model.encoder.embedding.weight, model.word_bias_V, target_S)
        log_p.append(array(log_p_S))
        if how.cache:
            h_TH = torch.cat([h_TH, h_SH.detach().to(h_TH)])
            from_cache.append(_from_cache(h_TH, written_T[:end], start, how))
        if how.rate:
            _learn(model, -log_p_S.mean(), trained, how)
    if not how.cache:
        from_cache = [np.zeros(len(written_T))]
    return np.concatenate(log_p), np.concatenate(from_cache)


def _from_cache(h_TH: Tensor, written_T: Tensor, start: int, how: Adaptation) -> Floats:
    """Σ α_i over the places where the same word was read, for targets from `start` on."""
    at_S = torch.arange(start, len(h_TH))
    first = max(start - how.window, 0)
    place_T = torch.arange(first, len(h_TH))
    before_ST = (place_T < at_S[:, None]) & (place_T >= at_S[:, None] - how.window)
    score_ST = (how.theta * h_TH[start:] @ h_TH[first:].T).masked_fill(~before_ST, -torch.inf)
    share_ST = torch.nan_to_num(score_ST.softmax(-1))  # the first word has nothing before it
    same_ST = written_T[start:, None] == written_T[first:]
    return array((share_ST * same_ST).sum(-1))


def _learn(model: AwdLstm, loss: Tensor, trained: list[Tensor], how: Adaptation) -> None:
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for parameter, gradient, old in zip(parameters, gradients, trained, strict=True):
            parameter.add_(gradient, alpha=-how.rate).lerp_(old, how.decay)
