"""Test cache and dynamic evaluation against their formulas."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from kglm.errors import ConfigError
from kglm.evaluate.adaptive import Adaptation, adaptive_log_probs
from kglm.marginal.cache import Cache
from kglm.model.awd_lstm import AwdLstm
from kglm.model.encoders.awd_lstm import EncoderConfig

VOCABULARY = 9
SURFACE = ["@@START@@", "a", "b", "a", "zork", "b", "zork", "a", "blip"]
WORDS = np.array([2, 4, 5, 4, 1, 5, 1, 4, 1])


@pytest.fixture(scope="module")
def model() -> AwdLstm:
    made = AwdLstm(
        EncoderConfig(embedding=6, hidden=7, layers=2), VOCABULARY, generator=torch.Generator().manual_seed(0)
    )
    for parameter in made.parameters():
        parameter.data += 0.4 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel()))
    return made.double().eval()


def states(model: AwdLstm) -> torch.Tensor:
    with torch.no_grad():
        return model.encoder(torch.from_numpy(WORDS)[None, :-1]).h_BTD[0]


def plain(model: AwdLstm) -> np.ndarray:
    with torch.no_grad():
        logits = states(model) @ model.encoder.embedding.weight.T + model.word_bias_V
        return logits.log_softmax(-1)[torch.arange(8), torch.from_numpy(WORDS[1:])].numpy()


def test_no_adaptation(model: AwdLstm) -> None:
    log_p, cache = adaptive_log_probs(model, WORDS, SURFACE, Adaptation())
    np.testing.assert_allclose(log_p, plain(model), rtol=1e-9)
    assert not cache.any() and not Adaptation()


@pytest.mark.parametrize("window", [2, 100])
def test_cache_by_hand(model: AwdLstm, window: int) -> None:
    adaptation = Adaptation(Cache(0.2, 0.7, window))
    log_p, cache = adaptive_log_probs(model, WORDS, SURFACE, adaptation)
    np.testing.assert_allclose(log_p, plain(model), rtol=1e-9)
    h = states(model)
    for t, word in enumerate(SURFACE[1:]):
        before = range(max(0, t - window), t)
        weight = {i: float(torch.exp(0.7 * h[t] @ h[i])) for i in before}
        expected = sum(weight[i] for i in before if SURFACE[1 + i] == word) / (sum(weight.values()) or 1)
        assert cache[t] == pytest.approx(expected, rel=1e-6)
    assert cache[0] == 0 and cache[-1] == 0 and (cache[5] > 0) == (window >= 2), "zork and blip differ"


def test_cache_probabilities_sum_to_one(model: AwdLstm) -> None:
    """After the first word, the cache probabilities of all words sum to 1."""
    total = np.zeros(8)
    for word in dict.fromkeys(SURFACE[1:]):
        for t in range(8):
            surface = [*SURFACE[: t + 1], word]
            total[t] += adaptive_log_probs(model, WORDS[: t + 2], surface, Adaptation(Cache(0.5)))[1][-1]
    np.testing.assert_allclose(total, [0, *[1] * 7], atol=1e-9)


def test_dynamic_evaluation_by_hand(model: AwdLstm) -> None:
    adaptation = Adaptation(rate=0.3, decay=0.1, every=3)
    found, _ = adaptive_log_probs(model, WORDS, SURFACE, adaptation)
    learner, state, expected = copy.deepcopy(model), None, []
    for start in (0, 3, 6):
        words, targets = (torch.from_numpy(WORDS[start + k : min(start + 3, 8) + k]) for k in (0, 1))
        output = learner.encoder(words[None], state)
        logits = output.h_BTD[0] @ learner.encoder.embedding.weight.T + learner.word_bias_V
        log_p = logits.log_softmax(-1)[torch.arange(len(targets)), targets]
        expected += log_p.tolist()
        learner.zero_grad()
        (-log_p.mean()).backward()
        state = output.state.detach()
        with torch.no_grad():
            for parameter, old in zip(learner.parameters(), model.parameters(), strict=True):
                parameter -= 0.3 * parameter.grad
                parameter += 0.1 * (old - parameter)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_weights_adapt_within_a_document_and_are_reset(model: AwdLstm) -> None:
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    words, surface = np.tile([4, 5, 6], 40), ["a", "b", "c"] * 40
    fixed, _ = adaptive_log_probs(model, words, surface, Adaptation())
    learning, _ = adaptive_log_probs(model, words, surface, Adaptation(rate=0.5, every=5))
    assert learning[-30:].mean() > fixed[-30:].mean() + 0.1 and learning[:5] == pytest.approx(fixed[:5])
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("setting", [{"rate": -1.0}, {"rate": math.nan}, {"decay": 2.0}, {"every": 0}])
def test_invalid_adaptation(setting: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        Adaptation(**setting)  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", [{"share": 1.0}, {"share": -0.1}, {"window": 0}, {"theta": math.nan}])
def test_invalid_cache(setting: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        Cache(**setting)  # type: ignore[arg-type]


def test_the_mixture_sums_to_one(model: AwdLstm) -> None:
    """Sum over the vocabulary and the words in the cache."""
    cache = Cache(0.3)
    for t in range(4):
        total = 0.0
        words = {word: number for word, number in zip(SURFACE, WORDS.tolist(), strict=True) if number != 1}
        for number in range(VOCABULARY):
            word = next((word for word, n in words.items() if n == number), f"word {number}")
            log_p, cache_p = adaptive_log_probs(
                model, np.array([*WORDS[: t + 1], number]), [*SURFACE[: t + 1], word], Adaptation(cache)
            )
            total += float(np.exp(cache.mixed(log_p, cache_p, np.zeros(t + 1, np.bool_), 0.0)[-1]))
        assert total == pytest.approx(1), "the cache has no unknown word within the first four"
