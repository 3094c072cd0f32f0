"""Annotations of a prompt drawn from the posterior, against enumeration of all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kglm.answer.next_word import next_words
from kglm.answer.sampled import read_sampled
from kglm.linking.name_index import NameIndex
from kglm.marginal.beam import exact
from kglm.marginal.particle import ParticleConfig
from kglm.marginal.prepared_text import AllEntities, PreparedText
from kglm.text.document import START, Document
from support.toys import Toy, make_toy

MANY = ParticleConfig(1000)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return make_toy(tmp_path_factory.mktemp("toy"))


def log_p(toy: Toy, words: list[str]) -> float:
    return float(exact(PreparedText(toy, toy.model, Document("t", [START, *words]), AllEntities(len(toy.graph))))[-1])


@pytest.mark.parametrize("words", [["Mario"], ["Mario", "Land"], ["Game", "Boy", "is"]], ids=" ".join)
def test_the_next_word_after_all_annotations(toy: Toy, words: list[str]) -> None:
    names = NameIndex.for_graph(toy.graph)
    found = [next_words(read_sampled(toy, toy.model, words, names, MANY, seed)[0]) for seed in range(8)]
    for each in found:
        assert sum(each.p_N) + sum(each.rest.values()) == pytest.approx(1, abs=1e-9)
    known = [word for word in toy.vocabulary.words if not word.startswith("@@")]  # others are the unknown one as well
    assert len(known) == 3
    for word in known:
        truth = math.exp(log_p(toy, [*words, word]) - log_p(toy, words))
        estimates = np.array([each[word] for each in found])
        assert abs(estimates.mean() - truth) < 4 * estimates.std() / math.sqrt(len(found)) + 0.002
        assert estimates.std() < 0.03


def test_mentions_have_their_share_of_the_posterior(toy: Toy) -> None:
    _, linked = read_sampled(toy, toy.model, ["Mario", "Land"], NameIndex.for_graph(toy.graph), MANY)
    assert all(0 < candidate.p <= 1 + 1e-9 for each in linked for candidate in each.candidates)
    for place in (0, 1):  # spans over one word exclude each other
        over = [each for each in linked if each.start <= place < each.end]
        assert sum(candidate.p for each in over for candidate in each.candidates) <= 1 + 1e-9


def test_one_seed_one_reading_and_no_words(toy: Toy) -> None:
    names = NameIndex.for_graph(toy.graph)
    words, few = ["Mario", "Land", "is", "Boy", "Mario"], ParticleConfig(20)
    first, second, other = (read_sampled(toy, toy.model, words, names, few, seed) for seed in (1, 1, 2))
    assert first[1] == second[1] != other[1]
    reading, linked = read_sampled(toy, toy.model, [], names, few)
    assert linked == [] and len(reading.weight_S) == 1
