"""Test exact enumeration against brute force, and the beam against exact enumeration."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kglm.errors import ConfigError
from kglm.marginal.beam import beam_search, exact
from kglm.marginal.cache import Cache
from kglm.marginal.prepared_text import AllEntities, PreparedText
from kglm.marginal.windows import WINDOW
from kglm.model.options import LatentConfig
from kglm.text.document import START, Document
from support.brute_force import enumerate_log_joint
from support.toys import ALL_OPTIONS, YEAR, Some, Step, Toy, legal_steps, make_toy

TEXTS = [["Mario", "is", "Boy"], ["Game", "Boy", "Tennis"], ["Mario", "Land", "1989"], ["is"]]
PENALTIES = (0.0, math.log(5))


def prepared(toy: Toy, words: list[str], window: int = WINDOW) -> PreparedText:
    document = Document("t", [START, *words])
    return PreparedText(toy, toy.model, document, AllEntities(len(toy.graph)), window=window)


def brute_force(toy: Toy, words: list[str]) -> dict[float, float]:
    """log Σ_z p(x, z) over every annotation, one by one, for each penalty of an unknown word."""
    histories: list[list[Step]] = [[]]
    for word in words:
        histories = [[*steps, replace(step, word=word)] for steps in histories for step in legal_steps(toy, steps)]
    totals = dict.fromkeys(PENALTIES, 0.0)
    known: dict[tuple[Step, ...], float] = {}
    for steps in histories:
        said = [replace(step, word="@@UNKNOWN@@") if unknown(toy, step) else step for step in steps]
        log_joint = enumerate_log_joint(toy, said, written=words, known=known)
        for penalty in PENALTIES:
            totals[penalty] += math.exp(log_joint - penalty * sum(unknown(toy, step) for step in steps))
    return {penalty: math.log(total) for penalty, total in totals.items()}


def unknown(toy: Toy, step: Step) -> bool:
    """True if the word is scored as unknown: neither in the vocabulary nor copied."""
    if step.word in toy.vocabulary and step.word != "@@UNKNOWN@@":
        return False
    return step.node < 0 or step.word not in toy.aliases[step.node].surface


@pytest.mark.parametrize("words", TEXTS, ids=" ".join)
@pytest.mark.parametrize("name", ALL_OPTIONS)
def test_exact_enumeration_equals_brute_force(tmp_path: Path, name: str, words: list[str]) -> None:
    toy = make_toy(tmp_path, **ALL_OPTIONS[name])  # type: ignore[arg-type]
    for penalty, truth in brute_force(toy, words).items():
        for window in (1, 2, WINDOW):
            assert exact(prepared(toy, words, window), penalty=penalty)[-1] == pytest.approx(truth, rel=1e-9)


def test_the_toy_scores_words_like_the_model(tmp_path: Path) -> None:
    """A word outside the vocabulary that cannot be copied is scored as the unknown word."""
    toy = make_toy(tmp_path)
    values = exact(prepared(toy, ["Tennis"])), exact(prepared(toy, ["@@UNKNOWN@@"]))
    np.testing.assert_allclose(*values)


@pytest.mark.parametrize("width", [1, 2, 5, 20])
def test_a_wider_beam_is_a_better_lower_bound(tmp_path: Path, width: int) -> None:
    toy = make_toy(tmp_path)
    for words in TEXTS:
        truth, bound = exact(prepared(toy, words)), beam_search(prepared(toy, words), width)
        assert (bound <= truth + 1e-9).all()
        assert beam_search(prepared(toy, words), 100_000)[-1] == pytest.approx(truth[-1], rel=1e-9)


def test_exact_enumeration_does_not_change_the_prepared_text(tmp_path: Path) -> None:
    toy = make_toy(tmp_path)
    narrow = PreparedText(toy, toy.model, Document("t", [START, *TEXTS[0]]), Some(0))
    before = beam_search(narrow, 3)
    exact(narrow)
    np.testing.assert_array_equal(beam_search(narrow, 3), before)


def test_too_large_enumeration_is_an_early_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kglm.marginal.beam.EXACT_LIMIT", 20)
    view = prepared(make_toy(tmp_path), TEXTS[0])
    asked: list[int] = []
    monkeypatch.setattr(view, "joint", lambda t, *rest: asked.append(t) or PreparedText.joint(view, t, *rest))
    with pytest.raises(ConfigError, match="too many for exact enumeration"):
        exact(view)
    assert asked == [0]


def test_tails_are_uniform_above_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With three tails and a limit of two, the scoring of tails is off."""
    monkeypatch.setattr("kglm.model.tails.MAX_TAILS", 1)
    toy = make_toy(tmp_path / "on")
    off = make_toy(tmp_path / "off", latent=LatentConfig(tail_scores=False))
    off.model.load_state_dict(toy.model.state_dict())
    for words in TEXTS:
        np.testing.assert_allclose(exact(prepared(toy, words)), exact(prepared(off, words)), rtol=1e-12)


ENTITIES = ("Q1", "Q2", "Q3", "Q4")
WORDS = ("Mario", "Land", "is", "Boy", "1989", "Tennis")
FACT = st.tuples(st.sampled_from(ENTITIES), st.sampled_from(["P1", "P2"]), st.sampled_from([*ENTITIES, YEAR]))
NAME = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


@settings(max_examples=25, deadline=None)
@given(
    facts=st.lists(FACT, min_size=1, max_size=6, unique=True),
    names=st.dictionaries(st.sampled_from(ENTITIES), st.lists(NAME, min_size=1, max_size=2).map(tuple), min_size=1),
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    option=st.sampled_from(sorted(ALL_OPTIONS)),
    seed=st.integers(0, 1000),
    width=st.integers(1, 30),
    candidates=st.lists(st.integers(0, 3), max_size=3, unique=True),
)
def test_the_beam_is_at_most_exact_on_random_graphs(
    facts: list[tuple[str, str, str]],
    names: dict[str, tuple[str, ...]],
    words: list[str],
    option: str,
    seed: int,
    width: int,
    candidates: list[int],
) -> None:
    with tempfile.TemporaryDirectory() as home:
        toy = make_toy(Path(home), **ALL_OPTIONS[option] | {"facts": tuple(facts), "names": names, "seed": seed})  # type: ignore[arg-type]
        truth = exact(prepared(toy, words))
        assert (beam_search(prepared(toy, words), width) <= truth + 1e-9).all()
        few = Some(*(node for node in candidates if node < len(toy.graph)))
        narrow = PreparedText(toy, toy.model, Document("t", [START, *words]), few)
        assert (beam_search(narrow, width) <= truth + 1e-9).all()
        np.testing.assert_allclose(beam_search(prepared(toy, words), 10**6), truth, rtol=1e-9)
        if len(words) <= 2:
            assert truth[-1] == pytest.approx(brute_force(toy, words)[0.0], rel=1e-9)


def test_plain_words_with_a_cache(tmp_path: Path) -> None:
    """Compare with the sum over every annotation, plain and unknown words mixed with the cache by hand."""
    toy, words, cache = make_toy(tmp_path), ["is", "Zork", "is", "Zork"], Cache(0.4, 0.5)
    cached = PreparedText(toy, toy.model, Document("t", [START, *words]), AllEntities(len(toy.graph)), cache)
    plain = prepared(toy, words)
    with torch.no_grad():
        h_TH = toy.model.encoder(torch.tensor([toy.vocabulary.encode([START, *words[:-1]])])).h_BTD[0]
        h_TH = h_TH[:, : toy.model.sizes[0]]
    for penalty in PENALTIES:
        for t, word in enumerate(words):
            weight = {i: math.exp(0.5 * float(h_TH[t] @ h_TH[i])) for i in range(t)}
            again = sum(w for i, w in weight.items() if words[i] == word) / (sum(weight.values()) or 1)
            share = 0.4 if t else 0.0
            wanted = (1 - share) * math.exp(plain.words.plain(penalty)[t]) + share * again
            assert cached.words.plain(penalty)[t] == pytest.approx(math.log(wanted), rel=1e-9)
        assert exact(cached, penalty=penalty)[-1] > exact(plain, penalty=penalty)[-1]
        assert beam_search(cached, 10_000, penalty=penalty)[-1] == pytest.approx(exact(cached, penalty=penalty)[-1])
