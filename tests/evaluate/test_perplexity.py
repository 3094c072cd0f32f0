"""Perplexity of real runs on the bundled world: every model and method through the same code."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import Command, CommandResult
from kglm.errors import ConfigError, DataError
from kglm.evaluate.adaptive import Adaptation
from kglm.evaluate.perplexity import (
    PerplexityReport,
    Scored,
    Task,
    corpus_protocol,
    evaluate,
    interval,
    load_scorer,
    perplexity,
)
from kglm.kg.embedding.transe import TransEConfig, embed_graph
from kglm.kg.imports import import_graph
from kglm.marginal.cache import Cache
from kglm.marginal.estimate import Estimate, MarginalConfig
from kglm.model.table import MODELS
from kglm.runs.run import read_for_training
from kglm.runs.settings import load_config
from kglm.text.document import START, Document
from kglm.train.start import train
from support.tiny import DOCUMENTS, ENTITIES, FACTS, RELATIONS

CONFIG = MarginalConfig(samples=20)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("runs")
    import_graph([FACTS], home / "world.kg", entities=[ENTITIES], relations=[RELATIONS])
    embed_graph(home / "world.kg", TransEConfig(dim=16, epochs=3, held_out=0))
    for model in MODELS:
        settings = load_config("tiny", model, ["train.epochs=2", "data.min_count=2"])
        train(settings, [DOCUMENTS], [DOCUMENTS], home / "world.kg", home / model)
    return home


def documents() -> list[Document]:
    """The bundled documents, and one with unknown words."""
    odd = Document("odd", [START, "Zork", "is", "Zork"], annotated=False)
    return [*read_for_training([DOCUMENTS]), odd]


def task(runs: Path, method: str, model: str = "kglm", samples: int = 20) -> Task:
    proposal = runs / ("entity-nlm-proposal" if model == "entity-nlm" else "proposal")
    if method != "importance" and model != "entity-nlm":
        proposal = None  # type: ignore[assignment]
    return Task(runs / model, method, MarginalConfig(samples=samples), proposal)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["particle", "importance", "beam", "annotated"])
def test_every_method(runs: Path, method: str) -> None:
    found = documents()
    found[-1].annotated = method == "annotated"  # the other methods do not need it
    result = evaluate(task(runs, method), found).to_json()
    assert 1 < result["ppl"] < 1000 and result["upp"] > result["ppl"], "unknown words are penalised"
    assert result["ppl_interval"][0] <= result["ppl"] <= result["ppl_interval"][1]
    assert (result["model"], result["method"], result["documents"]) == ("kglm", method, 3)
    assert result["ppl_mention"] > 1 and result["ppl_other"] > 1 and result["unknown_tokens"] >= 2
    assert (result["ess_median"] is not None) == (method in ("particle", "importance"))


def test_a_plain_language_model_through_the_same_code(runs: Path) -> None:
    result = evaluate(task(runs, "particle", "awd-lstm"), documents()).to_json()
    assert result["method"] == "exact" and result["samples"] == 1 and result["upp"] > result["ppl"] > 1
    scored = evaluate(task(runs, "particle", "awd-lstm"), documents()).scored
    assert corpus_protocol(scored) == pytest.approx(result["ppl"]), "the only weight is p(x)"


@pytest.mark.parametrize("method", ["particle", "importance", "annotated"])
def test_entity_nlm(runs: Path, method: str) -> None:
    found = documents()
    found[-1].annotated = method == "annotated"
    result = evaluate(task(runs, method, "entity-nlm"), found).to_json()
    assert 1 < result["ppl"] < 1000 and result["upp"] > result["ppl"]
    assert (result["model"], result["method"]) == ("entity-nlm", method)
    again = evaluate(task(runs, method, "entity-nlm"), found[::-1]).to_json()
    assert again["ppl"] == pytest.approx(result["ppl"], rel=1e-9)


@pytest.mark.parametrize("method", ["particle", "beam", "annotated"])
def test_entity_copynet(runs: Path, method: str) -> None:
    result = evaluate(task(runs, method, "entity-copynet"), documents()[:2]).to_json()
    assert 1 < result["ppl"] < 1000 and (result["model"], result["method"]) == ("entity-copynet", method)


def test_the_table_command_scores_runs(runs: Path, command: Command) -> None:
    words = ["table", "perplexity", "--data", str(DOCUMENTS), "--samples", "5", "--no-published", "--json"]
    words += [w for name in ("awd-lstm", "entity-nlm", "kglm") for w in ("--run", str(runs / name))]
    words += [w for name in ("proposal", "entity-nlm-proposal") for w in ("--proposal", str(runs / name))]
    rows = json.loads(command(*words).stdout)["rows"]
    assert [row["model"] for row in rows] == ["AWD-LSTM", "EntityNLM, particle 5", "KGLM, particle 5"]
    assert all(row["upp_ratio"] > 0 for row in rows)
    assert "give the documents" in command("table", "perplexity", "--run", str(runs / "kglm")).stderr
    assert "nothing to show" in command("table", "perplexity").stderr


def test_adaptation_changes_a_plain_model(runs: Path) -> None:
    still, cached, dynamic = (
        evaluate(replace(task(runs, "exact", "awd-lstm"), adaptation=adaptation), documents()).to_json()
        for adaptation in (Adaptation(), Adaptation(Cache(0.1)), Adaptation(rate=0.1))
    )
    assert (cached["model"], dynamic["model"]) == ("awd-lstm + cache", "awd-lstm + dynamic evaluation")
    assert len({still["ppl"], cached["ppl"], dynamic["ppl"]}) == 3
    assert cached["upp"] / cached["ppl"] < still["upp"] / still["ppl"], "the cache predicts the second Zork"
    with pytest.raises(ConfigError, match="dynamic evaluation works with awd-lstm only"):
        load_scorer(replace(task(runs, "particle"), adaptation=Adaptation(rate=0.1)))
    with pytest.raises(ConfigError, match="has no cache with method"):
        load_scorer(replace(task(runs, "particle", "entity-nlm"), adaptation=Adaptation(Cache(0.1))))


@pytest.mark.parametrize("method", ["particle", "importance", "beam"])
def test_a_cache_for_kglm(runs: Path, method: str) -> None:
    still = evaluate(task(runs, method), documents()).to_json()
    cached = evaluate(replace(task(runs, method), adaptation=Adaptation(Cache(0.1))), documents()).to_json()
    assert cached["model"] == "kglm + cache" and cached["upp"] / cached["ppl"] < still["upp"] / still["ppl"]


def test_mentions_that_no_fact_explains_are_counted(runs: Path) -> None:
    [document, *_] = read_for_training([DOCUMENTS])
    assert evaluate(task(runs, "annotated"), [document]).to_json()["unexplained_mentions"] == 0
    related = next(mention for mention in document.mentions if not mention.is_new)
    alone = Document("alone", document.tokens, [related])
    assert evaluate(task(runs, "annotated"), [alone]).to_json()["unexplained_mentions"] == 1


def test_estimates_do_not_use_annotations(runs: Path) -> None:
    with_them = documents()
    without = [Document(document.title, document.tokens, annotated=False) for document in with_them]
    for method in ("particle", "importance", "beam"):
        one, two = (evaluate(task(runs, method), found).to_json() for found in (with_them, without))
        assert one["ppl"] == two["ppl"] and one["upp"] == two["upp"]
        unknown = two["ppl_mention"], two["ppl_other"]
        assert unknown == (None, None), "without annotation, mention words cannot be told apart"
    with pytest.raises(DataError, match="is not annotated"):
        evaluate(task(runs, "annotated"), without)


def test_order_and_workers_do_not_change_results(runs: Path) -> None:
    found = documents()
    shuffled = random.Random(1).sample(found, len(found))
    for method, workers in (("particle", 1), ("importance", 2)):
        first = evaluate(task(runs, method), found)
        other = evaluate(task(runs, method), shuffled, workers=workers)
        values = [{s.estimate.title: s.estimate.log_p for s in report.scored} for report in (first, other)]
        assert values[0] == pytest.approx(values[1], rel=1e-6)
        intervals = [report.to_json()["ppl_interval"] for report in (first, other)]
        assert intervals[0] == pytest.approx(intervals[1], rel=1e-6)


def test_annotated_likelihood_and_beam_are_lower_bounds(runs: Path) -> None:
    """The particle filter sums over all annotations, so its perplexity is lower than that of one annotation."""
    found = read_for_training([DOCUMENTS])
    annotated, beam, filtered = (
        evaluate(task(runs, each, samples=200), found).to_json()["ppl"] for each in ("annotated", "beam", "particle")
    )
    assert filtered < annotated and filtered < 1.1 * beam


class TestErrors:
    def test_missing_or_wrong_proposal(self, runs: Path) -> None:
        with pytest.raises(ConfigError, match="needs a proposal: none is given"):
            load_scorer(Task(runs / "kglm", "importance", CONFIG))
        with pytest.raises(ConfigError, match="not a proposal for KGLM"):
            load_scorer(Task(runs / "kglm", "importance", CONFIG, runs / "kglm"))
        with pytest.raises(ConfigError, match="is a proposal, which gives words no probability"):
            load_scorer(Task(runs / "proposal", "particle", CONFIG))

    def test_a_proposal_with_another_vocabulary(self, runs: Path, tmp_path: Path) -> None:
        settings = load_config("tiny", "proposal", ["train.epochs=1", "data.min_count=1"])
        train(settings, [DOCUMENTS], [DOCUMENTS], runs / "world.kg", tmp_path / "q")
        with pytest.raises(DataError, match="has another vocabulary than"):
            load_scorer(Task(runs / "kglm", "importance", CONFIG, tmp_path / "q"))

    def test_the_command(self, runs: Path, command: Command) -> None:
        def run(*options: str) -> CommandResult:
            return command("evaluate", "kglm", "--data", str(DOCUMENTS), *options, cwd=runs)

        for options, message in (
            (["--method", "guess"], "there is no method 'guess'; use one of particle"),
            (["--samples", "0"], "0 samples; give at least 1"),
            (["--aggregate", "corpus"], "use it with --method importance"),
            (["--seed", "-1"], "the seed -1; give 0 or more"),
            (["--weights", "nowhere/w.npy"], "nowhere/w.npy: cannot be written"),
            (["--block", "0"], "blocks of 0 samples"),
            (["--workers", "0"], "--workers 0"),
        ):
            failed = run(*options)
            assert failed.returncode == 2 and message in failed.stderr, failed.stderr
        options = ["--method", "importance", "--proposal", "proposal", "--samples", "30", "--aggregate", "corpus"]
        done = run(*options, "--weights", "weights.npy", "--json")
        result = json.loads(done.stdout)
        assert {"ppl", "upp", "ppl_interval", "ppl_corpus", "k_hat_max", "tokens_per_second"} <= result.keys()
        assert np.load(runs / "weights.npy").shape == (2, 30)
        assert "95 % over documents" in run("--samples", "3").stdout
        (runs / "one.jsonl").write_text(DOCUMENTS.read_text().splitlines()[0] + "\n")
        alone = run("--data", "one.jsonl", "--method", "beam", "--json")
        assert json.loads(alone.stdout, parse_constant=pytest.fail)["documents"] == 3


def scored(log_p: float, targets: int, weights: list[float]) -> Scored:
    increments = np.full(targets, log_p / targets)
    estimate = Estimate(
        "t", "importance", 2, log_p, log_p, targets, 0, np.array(weights), 1.0, 0.1, 0.5, increments, increments
    )
    return Scored(estimate, np.zeros(targets, np.bool_))


class TestNumbers:
    def test_perplexity_by_hand(self) -> None:
        assert perplexity(np.array([-2.0, -4.0]), np.array([2, 1])) == pytest.approx(math.exp(2))
        report = PerplexityReport("kglm", "importance", 2, [scored(-2.0, 2, [0, 0]), scored(-4.0, 1, [0, 0])])
        assert report.to_json()["ppl"] == pytest.approx(math.exp(2))
        assert report.to_json()["tokens_per_second"] == pytest.approx(3)

    def test_the_interval_covers_and_shrinks(self) -> None:
        rng = np.random.default_rng(0)
        widths = []
        for count in (10, 1000):
            log_p = rng.normal(-30, 5, count)
            low, high = interval(log_p, np.full(count, 10), seed=1) or (0, 0)
            assert low < math.exp(3) * 1.2 and high > math.exp(3) / 1.2
            widths.append(high - low)
        assert widths[1] < widths[0] / 5
        assert interval(np.array([-1.0]), np.array([1]), seed=0) is None

    def test_the_published_protocol_multiplies_over_documents_before_it_averages(self) -> None:
        both = [scored(-1.0, 1, [math.log(0.1), math.log(0.3)]), scored(-1.0, 1, [math.log(0.5), math.log(0.1)])]
        assert corpus_protocol(both) == pytest.approx((0.5 * (0.1 * 0.5 + 0.3 * 0.1)) ** -0.5)
