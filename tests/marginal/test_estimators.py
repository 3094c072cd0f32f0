"""Test the estimators of p(x) against exact enumeration, and the samplers against their densities."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kglm.errors import ConfigError, DataError, KglmError
from kglm.marginal.beam import exact
from kglm.marginal.estimate import MarginalConfig, effective_size, log_marginal, pareto_k
from kglm.marginal.importance import draw, proposal_latent
from kglm.marginal.particle import ParticleConfig, particle_filter
from kglm.marginal.prepared_text import AllEntities, Candidates, PreparedText
from kglm.text.document import START, Document
from support.toys import Some, Toy, assert_mean, make_toy

TEXTS = [["Mario", "is", "Boy"], ["Mario", "Land", "1989"], ["Game", "Boy", "Tennis"]]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return make_toy(tmp_path_factory.mktemp("toy"), seed=3)  # weights even enough for the means of few runs


def prepared(toy: Toy, words: list[str], candidates: Candidates | None = None) -> PreparedText:
    return PreparedText(toy, toy.model, Document("t", [START, *words]), candidates or AllEntities(len(toy.graph)))


class TestImportance:
    @pytest.mark.parametrize("words", TEXTS, ids=" ".join)
    @pytest.mark.parametrize("temperature", [1.0, 1.7])
    def test_the_mean_weight_is_unbiased(self, toy: Toy, words: list[str], temperature: float) -> None:
        view = prepared(toy, words)
        tables = proposal_latent(view, toy.proposal, temperature=temperature)
        blocks = draw(view, tables, 4000, block=2000, seed=1)
        weights = np.concatenate([(d.log_p_TS - d.log_q_TS).sum(0) for d in blocks])
        assert_mean(weights, exact(prepared(toy, words))[-1])

    @pytest.mark.parametrize("peek", [True, False])
    def test_sample_frequencies_match_the_density(self, toy: Toy, peek: bool) -> None:
        view = prepared(toy, ["Mario", "Boy"])
        [drawn] = draw(view, proposal_latent(view, toy.proposal, peek=peek), 20_000, block=20_000, seed=3)
        counts = Counter(map(tuple, drawn.z_TS.T.tolist()))
        density = {tuple(z): q for z, q in zip(drawn.z_TS.T.tolist(), np.exp(drawn.log_q_TS.sum(0)), strict=True)}
        assert sum(density.values()) == pytest.approx(1, abs=0.01), "nearly all annotations have been seen"
        for z, q in density.items():
            error = math.sqrt(q * (1 - q) / 20_000)
            assert abs(counts[z] / 20_000 - q) < 5 * error, z

    def test_the_expected_weight_is_exact(self, toy: Toy) -> None:
        """E_q[w] = Σ_z q(z) p(x, z) / q(z), over all annotations drawn: exact, without sampling error."""
        for words in (["Mario", "Boy"], ["1989", "Land"]):
            view = prepared(toy, words)
            tables = proposal_latent(view, toy.proposal, temperature=3.0)
            [drawn] = draw(view, tables, 20_000, block=20_000, seed=3)
            distinct = {tuple(z): p for z, p in zip(drawn.z_TS.T.tolist(), np.exp(drawn.log_p_TS.sum(0)), strict=True)}
            assert sum(distinct.values()) == pytest.approx(math.exp(exact(prepared(toy, words))[-1]), rel=1e-3)

    def test_blocks_do_not_change_the_samples(self, toy: Toy) -> None:
        results = []
        for block in (1, 7, 64):
            estimate = log_marginal(
                prepared(toy, TEXTS[1]), MarginalConfig("importance", 64, block=block), proposal=toy.proposal
            )
            results.append(estimate.weights)
        np.testing.assert_allclose(results[0], results[1], rtol=1e-9)
        np.testing.assert_allclose(results[0], results[2], rtol=1e-9)

    def test_more_samples_are_better_on_average(self, toy: Toy) -> None:
        view, truth = prepared(toy, TEXTS[1]), exact(prepared(toy, TEXTS[1]))[-1]
        means = []
        for samples in (1, 4, 32):
            config = MarginalConfig("importance", samples)
            runs = [log_marginal(view, replace(config, seed=seed), proposal=toy.proposal).log_p for seed in range(40)]
            means.append(np.mean(runs))
        assert means[0] < means[1] < means[2] < truth + 0.02


class TestParticle:
    @pytest.mark.parametrize("words", TEXTS, ids=" ".join)
    @pytest.mark.parametrize("penalty", [0.0, math.log(5)])
    @pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.slow)])
    def test_the_mean_of_many_filters_is_unbiased(self, toy: Toy, words: list[str], penalty: float, count: int) -> None:
        """Unbiased even with few particles, frequent resampling and few candidates."""
        view = prepared(toy, words, Some(toy.graph.number("Q2")))
        truth = exact(prepared(toy, words), penalty=penalty)[-1]
        config = ParticleConfig(5, resample=0.9)
        runs = [particle_filter(view, config, seed, penalty=penalty).totals_T[-1] for seed in range(count)]
        assert_mean(np.array(runs), truth)

    def test_with_all_candidates_it_is_nearly_exact(self, toy: Toy) -> None:
        for words in TEXTS:
            truth = exact(prepared(toy, words))[-1]
            assert particle_filter(prepared(toy, words), ParticleConfig(500), 0).totals_T[-1] == pytest.approx(
                truth, abs=0.1
            )

    def test_the_seed_decides(self, toy: Toy) -> None:
        view = prepared(toy, TEXTS[0], Some(0, 1))
        one, two, other = (particle_filter(view, ParticleConfig(8), seed) for seed in (1, 1, 2))
        assert np.array_equal(one.totals_T, two.totals_T) and not np.array_equal(one.totals_T, other.totals_T)


class TestEstimate:
    @pytest.mark.parametrize("method", ["importance", "particle", "beam", "exact"])
    def test_fields_of_the_estimate(self, toy: Toy, method: str) -> None:
        config = MarginalConfig(method, 200)  # type: ignore[arg-type]
        estimate = log_marginal(prepared(toy, TEXTS[2]), config, proposal=toy.proposal)
        truth = exact(prepared(toy, TEXTS[2]))
        assert estimate.log_p == pytest.approx(truth[-1], abs=0.4)
        assert estimate.increments_T.sum() == pytest.approx(estimate.log_p)
        assert estimate.upp_increments_T.sum() == pytest.approx(estimate.upp_log_p)
        assert estimate.upp_log_p < estimate.log_p and (estimate.targets, estimate.unknown) == (3, 2)
        assert estimate.seconds > 0

    @pytest.mark.parametrize("method", ["importance", "particle", "beam", "exact"])
    def test_a_document_of_one_token(self, toy: Toy, method: str) -> None:
        estimate = log_marginal(prepared(toy, []), MarginalConfig(method, 3), proposal=toy.proposal)  # type: ignore[arg-type]
        assert estimate.log_p == 0 and estimate.upp_log_p == 0 and estimate.targets == 0

    def test_errors(self, toy: Toy) -> None:
        with pytest.raises(KglmError, match="has no words"):
            PreparedText(toy, toy.model, Document("t", []), AllEntities(1))
        with pytest.raises(ConfigError, match="0 samples"):
            MarginalConfig(samples=0)
        with pytest.raises(ConfigError, match="needs a proposal: none is given"):
            log_marginal(prepared(toy, ["is"]), MarginalConfig("importance"))


@pytest.mark.parametrize("words", [["Tennis"], ["Tennis", "Tennis", "Mario"]], ids=" ".join)
@pytest.mark.parametrize("method", ["importance", "particle", "beam", "exact"])
def test_a_word_outside_vocabulary_and_names_has_finite_probability(toy: Toy, method: Any, words: list[str]) -> None:
    """The word is in neither the vocabulary nor a name, so every annotation scores it as the unknown word."""
    truth = exact(prepared(toy, words))[-1]
    found = log_marginal(prepared(toy, words), MarginalConfig(method, samples=500), proposal=toy.proposal)
    assert found.log_p == pytest.approx(truth, rel=1e-9 if method == "exact" else 0.1)
    assert -np.inf < found.upp_log_p < found.log_p
    assert found.unknown == words.count("Tennis")


class TestWeights:
    def test_effective_size(self) -> None:
        assert effective_size(np.zeros(10)) == pytest.approx(10)
        assert effective_size(np.array([0.0, -1e9, -1e9])) == pytest.approx(1)

    @pytest.mark.parametrize("k", [0.2, 0.5, 0.9, 1.5])
    def test_the_shape_of_a_pareto_tail(self, k: float) -> None:
        u = np.random.default_rng(0).random(20_000)
        assert pareto_k(np.log((u**-k - 1) / k + 1)) == pytest.approx(k, abs=0.12)

    def test_undefined_shape(self) -> None:
        assert math.isnan(pareto_k(np.zeros(100))) and math.isnan(pareto_k(np.arange(5.0)))

    @pytest.mark.parametrize("high", [[800.0], [20.0], [5.0, 6.0]])
    def test_few_dominant_weights_give_an_infinite_shape(self, high: list[float]) -> None:
        """The worst case must not be reported as undefined."""
        assert pareto_k(np.array([*high, *np.zeros(100 - len(high))])) == math.inf

    def test_ties(self) -> None:
        with np.errstate(all="raise"):
            assert not math.isnan(pareto_k(np.array([*np.linspace(0.1, 1, 15), *np.zeros(85)])))


def test_a_proposal_for_another_vocabulary_or_graph_is_an_error(toy: Toy, tmp_path: Path) -> None:
    view = prepared(toy, TEXTS[0])
    for other, what in (
        (make_toy(tmp_path / "a", words=("Mario", "is", "Boy", "more")), "vocabulary"),
        (make_toy(tmp_path / "b", facts=(("Q1", "P1", "Q2"),)), "graph"),
    ):
        with pytest.raises(DataError, match=f"the proposal has another {what}"):
            proposal_latent(view, other.proposal)
