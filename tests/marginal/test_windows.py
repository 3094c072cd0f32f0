"""A text that is read in windows has the estimates of one that is read at once; the work grows with its length."""

from __future__ import annotations

import gc
import random
import weakref
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from kglm.linking.name_index import NameIndex
from kglm.marginal import windows
from kglm.marginal.cache import NO_CACHE, Cache
from kglm.marginal.candidates import NameCandidates
from kglm.marginal.estimate import Estimate, MarginalConfig, log_marginal
from kglm.marginal.importance import _Uniform, draw, proposal_latent
from kglm.marginal.prepared_text import AllEntities, PreparedText, read
from kglm.marginal.tracked import track
from kglm.marginal.windows import HiddenWindows, Recent
from kglm.model.latent import TextLatent
from kglm.model.text import hidden_states
from kglm.text.document import START, Document
from support.toys import Toy, make_toy, surface_words

METHODS = ("importance", "particle", "beam")
SIZES = (1, 2, 3, 7)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return make_toy(tmp_path_factory.mktemp("toy"))


def words(toy: Toy, count: int) -> list[str]:
    """A text with many names, some of which windows cut."""
    generator, parts = random.Random(5), [["Mario", "Land"], ["Game", "Boy"], ["1989"], ["it"]]
    parts += [[word] for word in surface_words(toy)]
    found: list[str] = []
    while len(found) < count:
        found += generator.choice(parts)
    return found[:count]


def prepared(toy: Toy, text: list[str], window: int, cache: Cache = NO_CACHE, *, named: bool = True) -> PreparedText:
    every = AllEntities(len(toy.graph))
    view = PreparedText(toy, toy.model, Document("t", [START, *text]), every, cache, window=window)
    if named:
        names = NameIndex.for_graph(toy.graph, str.split)
        view.candidates = NameCandidates(view.text, toy.graph, toy.aliases, names, view.latent, view.words)
    return view


def estimate(toy: Toy, method: Any, view: PreparedText) -> Estimate:
    return log_marginal(view, MarginalConfig(method, 3, seed=1, block=2), proposal=toy.proposal)


@pytest.mark.parametrize("cache", [NO_CACHE, Cache(0.3, window=4)], ids=["plain", "cache"])
@pytest.mark.parametrize("method", METHODS)
def test_estimates_do_not_depend_on_the_windows(
    toy: Toy, method: str, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = words(toy, 40)
    whole = estimate(toy, method, prepared(toy, text, 100, cache))
    monkeypatch.setattr(windows, "KEPT_POSITIONS", 4)  # hidden states are computed again, too
    for size in SIZES:
        found = estimate(toy, method, prepared(toy, text, size, cache))
        for name in ("increments_T", "upp_increments_T", "weights"):
            np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=0, atol=1e-6, err_msg=name)
        assert found.ess == pytest.approx(whole.ess, nan_ok=True)


@pytest.mark.parametrize("peek", [True, False])
def test_samples_do_not_depend_on_the_windows(toy: Toy, peek: bool) -> None:
    text, samples = words(toy, 30), []
    for size in (*SIZES, 100):
        view = prepared(toy, text, size, named=False)
        [drawn] = draw(view, proposal_latent(view, toy.proposal, peek=peek), 5, block=5, seed=2)
        samples.append(drawn.z_TS)
    assert all(np.array_equal(samples[-1], each) for each in samples)


def test_random_numbers_in_windows_are_those_of_one_table() -> None:
    uniform, table = _Uniform(3, 7, 11), np.random.default_rng([3, 7]).random((5, 11))
    found = np.concatenate([uniform.read(count) for count in (4, 0, 6, 1)], 1)
    assert np.array_equal(found, table)


def test_hidden_states_in_windows(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "KEPT_POSITIONS", 1)
    view = prepared(toy, words(toy, 30), 100, named=False)
    for ahead in (0, 1):
        whole_TD = hidden_states(toy.model, view.text, ahead=ahead)
        cut = HiddenWindows(toy.model, view.text, ahead=ahead, length=4)
        for number in (6, 0, 3, 7, 7, 1):  # in any order
            start, stop = cut.bounds(number)
            torch.testing.assert_close(cut[number], whole_TD[start:stop])
        torch.testing.assert_close(cut.between(5, 14), whole_TD[5:14])
        assert cut.ends() == [4, 8, 12, 16, 20, 24, 28, 30]


@pytest.mark.parametrize("method", ["importance", "particle"])
def test_entity_nlm_in_windows(toy: Toy, method: Any) -> None:
    text = read(toy, Document("t", [START, *words(toy, 30)]))
    found = [
        track(text, toy.tracker, toy.tracker_proposal, 4, method=method, seed=2, window=size).totals_T
        for size in (*SIZES, 100)
    ]
    for totals_T in found:
        np.testing.assert_allclose(totals_T, found[-1], rtol=0, atol=1e-6)


def test_recent_keeps_the_latest() -> None:
    made, recent = list[int](), Recent[int](2)
    for number in (0, 1, 0, 2, 0, 1):
        recent.get(number, lambda number: made.append(number) or number)  # type: ignore[func-returns-value]
    assert made == [0, 1, 2, 1] and 2 not in recent and sorted(recent.values()) == [0, 1]


class Work:
    """Counts what is computed for a text, and what is held at once."""

    def __init__(self, toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[int] = []
        """Words of each call of the encoder."""
        self.tables = Counter[tuple[int, int]]()
        """Tables of scores by the model and by the first position."""
        for encoder in (toy.model.encoder, toy.proposal.encoder):
            self._count_words(encoder, monkeypatch)
        make = TextLatent.__init__

        def counted(latent: TextLatent, *arguments: Any, first: int = 0, **more: Any) -> None:
            self.tables[id(arguments[0]), first] += 1
            make(latent, *arguments, first=first, **more)

        monkeypatch.setattr(TextLatent, "__init__", counted)

    def _count_words(self, encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        read_text = encoder.read_text

        def counted(words_T: torch.Tensor, *more: Any) -> Any:
            self.read.append(len(words_T))
            return read_text(words_T, *more)

        monkeypatch.setattr(encoder, "read_text", counted)


@pytest.mark.parametrize("method", METHODS)
def test_work_grows_with_the_length_and_what_is_held_does_not(
    toy: Toy, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each window's tables are made once for all passes, and each word is read at most twice."""
    monkeypatch.setattr(windows, "KEPT_POSITIONS", 1)
    size, held = 10, []
    for length in (100, 200):
        with monkeypatch.context() as patch:
            work = Work(toy, patch)
            view = prepared(toy, words(toy, length), size, named=method != "importance")
            found = estimate(toy, method, view)
        models = 2 if method == "importance" else 1
        assert found.upp_log_p < found.log_p, "both the plain and the penalised estimate are made"
        assert max(work.read) <= size and sum(work.read) <= 2 * models * length
        assert set(work.tables.values()) == {1} and len(work.tables) == models * length // size
        held.append(len(view.words))
    assert held[1] <= 1.5 * held[0], "scores of words are dropped behind the estimator"


def test_tables_are_freed_without_the_garbage_collector(toy: Toy) -> None:
    gc.disable()
    try:
        view = prepared(toy, words(toy, 20), 5)
        table = weakref.ref(view.latent.at(0).relations)
        estimate(toy, "particle", view)
        assert table() is not None
        for t in range(0, 20, 5):
            view.latent.at(t).parents.log_probs(
                t, -1, np.array([0]), np.array([[True]]), np.array([[0]]), np.array([0])
            )
        del view
        assert table() is None
    finally:
        gc.enable()


def test_a_text_shorter_than_a_window_and_one_without_a_position(toy: Toy) -> None:
    for text in ([], ["Mario"]):
        for method in METHODS:
            assert estimate(toy, method, prepared(toy, text, 3)).targets == len(text)
