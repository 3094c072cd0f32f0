"""Test the candidate entities at each position."""

from __future__ import annotations

import numpy as np
import pytest

from kglm.linking.name_index import NameIndex
from kglm.marginal.beam import beam_search, exact
from kglm.marginal.candidates import NameCandidates
from kglm.marginal.estimate import MarginalConfig, log_marginal
from kglm.marginal.prepared_text import AllEntities, PreparedText
from kglm.text.document import START, Document
from support.toys import YEAR, Toy, assert_mean, make_toy

TEXT = "is Mario Land on Game Boy in 1989 and Boy"


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return make_toy(tmp_path_factory.mktemp("toy"))


def prepared(toy: Toy, text: str = TEXT) -> PreparedText:
    view = PreparedText(toy, toy.model, Document("t", [START, *text.split()]), AllEntities(len(toy.graph)))
    names = NameIndex.for_graph(toy.graph, str.split)
    view.candidates = NameCandidates(view.text, toy.graph, toy.aliases, names, view.latent, view.words)
    return view


def found(toy: Toy, view: PreparedText) -> dict[int, set[str]]:
    at = {t: {toy.graph.id(node) for node in view.candidates.at(t)} for t in range(len(view))}
    return {t: ids for t, ids in at.items() if ids}


def test_names_parts_of_names_and_dates_of_named_entities(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kglm.marginal.candidates.SURPRISE", 0.0)
    assert found(toy, prepared(toy)) == {1: {"Q1"}, 2: {"Q1"}, 4: {"Q2"}, 5: {"Q2"}, 7: {YEAR}, 9: {"Q2"}}


def test_a_predictable_word_is_not_read_as_part_of_a_name(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kglm.marginal.candidates.SURPRISE", -1e9)
    assert found(toy, prepared(toy)) == {1: {"Q1"}, 4: {"Q2"}, 7: {YEAR}}


def test_candidates_of_a_pronoun(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    """None before the first name; no dates; of the named entities, the most recent and the first."""
    text = "it is Mario Land in 1989 and It is Game Boy it"
    assert found(toy, prepared(toy, text)) == {2: {"Q1"}, 5: {YEAR}, 7: {"Q1"}, 9: {"Q2"}, 11: {"Q1", "Q2"}}
    monkeypatch.setattr("kglm.marginal.candidates.MAX_ANTECEDENTS", 1)
    assert found(toy, prepared(toy, text + " Mario Land it"))[14] == {"Q1"}


def test_lookahead_lengths(toy: Toy) -> None:
    candidates = prepared(toy).candidates
    q1, q2, year = (toy.graph.number(id) for id in ("Q1", "Q2", YEAR))
    assert [candidates.length(t, node) for t, node in ((1, q1), (2, q1), (4, q2), (7, year), (0, q1))] == [
        2,
        1,
        2,
        1,
        1,
    ]


def test_words_are_scored_in_one_batch(toy: Toy) -> None:
    view = prepared(toy)
    view.prepare(0)
    known = len(view.words)
    beam_search(view, 3)
    assert known and len(view.words) - known <= 12, "only continuations beyond the end of a name are added later"


@pytest.mark.parametrize("text", [TEXT, "Mario Land is", "zork is here", "Game Boy Game Boy"])
def test_with_candidates_the_beam_is_a_lower_bound_and_the_filter_unbiased(toy: Toy, text: str) -> None:
    truth = exact(prepared(toy, " ".join(text.split()[:4])))[-1]
    short = prepared(toy, " ".join(text.split()[:4]))
    assert beam_search(short, 200)[-1] <= truth + 1e-9
    found = [log_marginal(short, MarginalConfig("particle", 200, seed=seed)).log_p for seed in range(30)]
    assert_mean(np.array(found), truth)
