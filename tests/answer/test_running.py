"""Prompts that end within a name: against enumeration of all annotations, and as people type them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import kglm
from kglm.answer.generate import GenerateConfig
from kglm.answer.model import FactAwareLM
from kglm.answer.next_word import next_words
from kglm.answer.reading import Span, read
from kglm.answer.running import extend_annotations, unfinished_name_length, unfinished_name_start, with_running
from kglm.marginal.beam import exact
from kglm.marginal.prepared_text import AllEntities, PreparedText
from kglm.text.document import START, Document
from support.toys import DAY, FACTS, NAMES, OPTIONS, Toy, make_toy


def log_p(toy: Toy, words: list[str]) -> float:
    return float(exact(PreparedText(toy, toy.model, Document("t", [START, *words]), AllEntities(len(toy.graph))))[-1])


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("words", [["Mario"], ["Mario", "Land"], ["Game", "Boy", "is"]], ids=" ".join)
def test_all_annotations_are_weighed_as_the_model_does(tmp_path: Path, name: str, words: list[str]) -> None:
    toy = make_toy(tmp_path, **OPTIONS[name])  # type: ignore[arg-type]
    annotations = extend_annotations(toy, toy.model, words, 0, [(1.0, ())], most=10_000)
    assert sum(p for p, _ in annotations) == pytest.approx(1)
    found = next_words(read(toy, toy.model, words, annotations))
    for word in (word for word in toy.vocabulary.words if not word.startswith("@@")):
        assert found[word] == pytest.approx(math.exp(log_p(toy, [*words, word]) - log_p(toy, words)), rel=1e-6)


def test_what_begins_a_name(tmp_path: Path) -> None:
    toy = make_toy(tmp_path)
    mario = toy.graph.number("Q1")
    names = {name for tail in toy.graph.edges(mario).tail.tolist() for name in toy.aliases[tail].names}
    long = next(name for name in sorted(names) if len(name) > 1)
    assert unfinished_name_length(toy, ["is", *long[:-1]], {mario}) == len(long) - 1
    assert unfinished_name_length(toy, ["is", *long], {mario}) == 0, "nothing of it is to come"
    assert unfinished_name_length(toy, [*long[:-1], "is"], {mario}) == 0, "it is over"
    assert unfinished_name_length(toy, ["is", *long[:-1]], set()) == 0, "nobody leads there"
    known = [(1.0, [Span(0, 1, mario)])]
    assert with_running(toy, toy.model, ["Mario", "is"], known) == known


def test_a_date_is_begun_by_words_that_are_linked(tmp_path: Path) -> None:
    """The April of a date that a fact leads to, although April is linked, and although a word comes after it."""
    names = NAMES | {"Q3": ("April",)}
    toy = make_toy(tmp_path, names=names, facts=(*FACTS, ("Q2", "P3", DAY)), seed=1)
    game, april, day = (toy.graph.number(id) for id in ("Q2", "Q3", DAY))
    spans = [Span(0, 2, game), Span(3, 4, april)]
    words = ["Game", "Boy", "is", "April"]
    assert unfinished_name_start(toy, words, spans) == unfinished_name_start(toy, [*words, "21,"], spans) == 3
    found = with_running(toy, toy.model, words, [(1.0, spans)])
    assert [Span(0, 2, game), Span(3, 4, day)] in [list(annotation) for _, annotation in found]
    assert sum(p for p, _ in found) == pytest.approx(1, abs=1e-2), "the model decides"
    assert unfinished_name_start(toy, ["Game", "Boy", "is", "April", "is"], spans) == 5
    assert unfinished_name_start(toy, ["is", "April"], [Span(1, 2, april)]) == 2, "no fact leads to a date"


@pytest.fixture(scope="module")
def bundled() -> FactAwareLM:
    return kglm.load()


@pytest.mark.parametrize(
    ("prompt", "word", "name"),
    [
        ("Barack Obama was born on August", "4", "August"),
        ("Barack Obama was born on August 4,", "1961", "August 4 ,"),
        ("Barack Obama is married to Michelle", "Obama", "Michelle"),
        ("Super Mario Land is a video", "game", "video"),
    ],
)
def test_a_name_that_was_begun_is_gone_on_with(bundled: FactAwareLM, prompt: str, word: str, name: str) -> None:
    found = bundled.complete(prompt)
    assert found.words[0].word == word and found.words[0].p > 0.5
    assert found.words[0].reasons[0].type == "continue"
    last = max(found.mentions[1:], key=lambda mention: mention.p)
    assert " ".join(found.prompt[last.start : last.end]) == name and 0.5 < last.p <= 1


def test_word_by_word_is_what_the_page_does(bundled: FactAwareLM) -> None:
    """Whoever takes the best word, again and again, comes to the end of the name."""
    text = "Barack Obama was born on"
    for _ in range(4):
        text += " " + bundled.complete(text, top=1).words[0].word
    assert text.endswith("August 4 , 1961")


def test_generation_goes_on_too(bundled: FactAwareLM) -> None:
    [first, *_] = bundled.generate("Barack Obama is married to Michelle", config=GenerateConfig(words=1, beam=1))
    assert first.word == "Obama"
