"""Generated text: drawn as the model has it, the same for a seed, every word with the way it came by."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kglm.answer.generate import EXCLUDED, GenerateConfig, Generated, best_explanation, generate, repeated
from kglm.answer.next_word import Derivation, next_words
from kglm.answer.reading import Reading, Span, read
from kglm.errors import ConfigError
from kglm.model.types import Type
from support.toys import Toy, make_toy


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return make_toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def reading(toy: Toy) -> Reading:
    return read(toy, toy.model, ["Mario"], [(1.0, [Span(0, 1, toy.graph.number("Q1"))])])


def said(reading: Reading, **options: object) -> list[Generated]:
    """By default, drawn from the model as it is."""
    options = {"temperature": 1.0, "top_p": 1.0} | options
    return [spoken for spoken, _ in generate(reading, GenerateConfig(**options))]  # type: ignore[arg-type]


def test_a_word_and_the_way_to_it_are_drawn_as_often_as_they_are_probable(reading: Reading) -> None:
    words, count = next_words(reading), 400
    drawn = [said(reading, words=1, seed=seed)[0] for seed in range(count)]
    sayable = {word: words[word] for word in words.words if word not in EXCLUDED}
    of_words, of_ways = Counter(s.word for s in drawn), Counter((s.word, s.explanation._replace(p=0)) for s in drawn)
    assert not set(of_words) & set(EXCLUDED)
    for word, p in sayable.items():
        assert_share(of_words[word], count, p / sum(sayable.values()))
        for reason in words.derivations(word):
            assert_share(of_ways[word, reason._replace(p=0)], count, reason.p / sum(sayable.values()))


def assert_share(found: int, count: int, share: float) -> None:
    assert abs(found / count - share) < 4.5 * math.sqrt(share * (1 - share) / count) + 2 / count


def test_what_follows_depends_on_who_was_mentioned(reading: Reading) -> None:
    """Each step's reading is that of the text so far with the mentions that were drawn."""
    before = reading
    for spoken, after in generate(reading, GenerateConfig(words=12, seed=3)):
        words = next_words(before)
        assert words[spoken.word] == pytest.approx(spoken.p)
        assert any(reason == spoken.explanation for reason in words.derivations(spoken.word))
        if spoken.explanation.type in (Type.NEW, Type.RELATED):
            assert after.histories.running_S[0] == spoken.explanation.entity
        elif spoken.explanation.type == Type.NONE:
            assert after.histories.running_S[0] == -1
        before = after


def test_the_same_seed_says_the_same(reading: Reading) -> None:
    texts = [said(reading, words=10, seed=seed) for seed in (0, 0, 1, 2, 3)]
    assert texts[0] == texts[1]
    assert len({tuple(each.word for each in text) for text in texts}) > 1


def test_a_beam_of_one_is_greedy_and_wider_is_no_worse(reading: Reading) -> None:
    greedy = said(reading, words=6, temperature=0)
    assert [s.word for s in said(reading, words=6, beam=1)] == [s.word for s in greedy]
    assert [s.explanation for s in said(reading, words=6, beam=1)] == [s.explanation for s in greedy]
    score = {width: sum(math.log(s.p) for s in said(reading, words=4, beam=width)) for width in (1, 8)}
    assert score[8] >= score[1] - 1e-9


def test_top_p_leaves_out_the_improbable(reading: Reading) -> None:
    words = next_words(reading)
    best = max((word for word in words.words if word not in EXCLUDED), key=lambda word: words[word])
    assert {said(reading, words=1, top_p=1e-6, seed=seed)[0].word for seed in range(20)} == {best}


def test_cold_is_more_probable_than_hot(reading: Reading) -> None:
    def mean(temperature: float) -> float:
        return float(np.mean([said(reading, words=1, temperature=temperature, seed=seed)[0].p for seed in range(40)]))

    assert mean(0.3) > mean(1.0) > mean(5.0)


def test_a_prompt_with_two_readings_is_decided_first(toy: Toy) -> None:
    spans = [[Span(0, 1, toy.graph.number(id))] for id in ("Q1", "Q2")]
    both = read(toy, toy.model, ["Mario"], [(0.5, spans[0]), (0.5, spans[1])])
    for _, after in generate(both, GenerateConfig(words=3)):
        assert len(after.weight_S) == 1
    with pytest.raises(ValueError, match="2 histories"):
        both.step("is", 0)


def test_the_best_way_is_the_best_step() -> None:
    """Two facts that lead to one mention are one step."""
    reasons = [
        Derivation(0.4, Type.NONE),
        Derivation(0.3, Type.RELATED, 7, 1, 2),
        Derivation(0.2, Type.RELATED, 7, 1, 4),
        Derivation(0.1, Type.NEW, 8),
    ]
    assert best_explanation(reasons) == reasons[1]


@pytest.mark.parametrize(
    "bad", [{"words": -1}, {"temperature": -1}, {"top_p": 0}, {"top_p": 1.1}, {"beam": -1}, {"repeat": -1}]
)
def test_bad_options(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        replace(GenerateConfig(), **bad)


@pytest.mark.parametrize("how", [{"beam": 1}, {"beam": 3}, {"temperature": 0}])
def test_what_is_most_probable_is_not_said_again_and_again(reading: Reading, how: dict[str, float]) -> None:
    def runs(length: int, **options: float) -> Counter[tuple[str, ...]]:
        words = [spoken.word for spoken in said(reading, words=30, **options)]
        return Counter(tuple(words[start : start + length]) for start in range(len(words) - length + 1))

    assert max(runs(3, **how, repeat=0).values()) > 1  # left alone, it does
    assert max(runs(3, **how, repeat=3).values()) == 1


def test_words_that_would_repeat() -> None:
    text = ["a", "b", "c", "a", "b"]
    assert repeated(text, 3) == {"c"} and repeated(text, 4) == set() and repeated(text, 2) == {"c"}
    assert repeated(text, 1) == set("abc") and repeated(text, 0) == repeated([], 2) == set()


def test_no_words(reading: Reading) -> None:
    assert said(reading, words=0) == said(reading, words=0, beam=2) == []
