"""Test estimates of p(x) under EntityNLM against the sum over every annotation."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from kglm.marginal.prepared_text import read
from kglm.marginal.tracked import track
from kglm.model.entity_nlm import EntityNlm, EntityNlmProposal
from kglm.model.options import LatentConfig
from kglm.text.document import START, Document
from support.toys import Toy, assert_mean, make_toy
from support.tracking import all_spans, log_joint, made

TEXTS = (["Mario", "is", "Mario"], ["Boy", "Zork", "Boy"])


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return make_toy(tmp_path_factory.mktemp("toy"), latent=LatentConfig(facts="none"))


@pytest.fixture(scope="module")
def models(toy: Toy) -> tuple[EntityNlm, EntityNlmProposal]:
    return made(toy), made(toy, EntityNlmProposal)  # type: ignore[return-value]


def truth(toy: Toy, model: EntityNlm, words: list[str]) -> float:
    found = [log_joint(toy, model, words, spans) for spans in all_spans(len(words))]
    return float(np.logaddexp.reduce(found))


@pytest.mark.parametrize("words", TEXTS)
@pytest.mark.parametrize("method", ["importance", "particle"])
def test_estimates_are_unbiased(toy: Toy, models, method: str, words: list[str]) -> None:
    text = read(toy, Document("d", [START, *words]))
    samples = 50 if method == "particle" else 1
    found = [track(text, *models, samples, method=method, seed=seed).totals_T[-1] for seed in range(150)]
    assert_mean(np.array(found), truth(toy, models[0], words))


def test_probability_of_each_word_given_earlier_words(toy: Toy, models) -> None:
    words = TEXTS[0]
    text = read(toy, Document("d", [START, *words]))
    found = track(text, *models, 40_000, method="importance", seed=1)
    wanted = [truth(toy, models[0], words[: t + 1]) for t in range(len(words))]
    np.testing.assert_allclose(found.totals_T, wanted, atol=0.02)
    assert np.logaddexp.reduce(found.log_w_S) - math.log(40_000) == pytest.approx(found.totals_T[-1])


def test_word_probabilities_after_numerical_underflow(toy: Toy, models, monkeypatch) -> None:
    text = read(toy, Document("d", [START, *TEXTS[0]]))
    usual = track(text, *models, 20, method="particle", seed=0)
    monkeypatch.setattr("kglm.marginal.tracked.TINY", math.inf)
    np.testing.assert_allclose(track(text, *models, 20, method="particle", seed=0).totals_T, usual.totals_T)


def test_the_same_seed_gives_the_same_estimate(toy: Toy, models) -> None:
    text = read(toy, Document("d", [START, *TEXTS[0]]))
    one, same, other = (track(text, *models, 10, method="importance", seed=s).totals_T for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_a_text_without_words(toy: Toy, models, tmp_path: Path) -> None:
    found = track(read(toy, Document("d", [START])), *models, 3, method="particle", seed=0)
    assert len(found.totals_T) == 0 and torch.isfinite(torch.tensor(found.log_w_S)).all()
