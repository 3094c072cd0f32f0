"""The next word's distribution against brute force: probabilities, reasons, rest; and reading word by word."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from kglm.answer.completion import Reason
from kglm.answer.next_word import Derivation, NextWordConfig, NextWords, next_words
from kglm.answer.reading import Reading, Span, read
from kglm.errors import DataError
from kglm.model.histories import CONTINUE, FIRST, NONE
from kglm.model.types import Type
from kglm.text.document import START
from support.brute_force import enumerate_log_joint, missing_steps
from support.toys import OPTIONS, Step, Toy, given, leads, legal_steps, make_toy, random_texts, sayable


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return make_toy(tmp_path_factory.mktemp("toy"))


def spans(steps: list[Step]) -> list[Span]:
    """Where the mentions are, counted from `@@START@@`."""
    found: list[Span] = []
    for t, step in enumerate(steps):
        if step.type == Type.CONTINUE:
            found[-1] = found[-1]._replace(end=t + 2)
        elif step.node >= 0:
            found.append(Span(t + 1, t + 2, step.node))
    return found


def after(toy: Toy, steps: list[Step]) -> Reading:
    return read(toy, toy.model, [START, *(step.word for step in steps)], [(1.0, spans(steps))])


def brute_force(toy: Toy, steps: list[Step]) -> tuple[dict[str, float], dict[tuple[str, Type, int, int, int], float]]:
    """p of each next word, and of each way to it."""
    words: dict[str, float] = defaultdict(float)
    ways: dict[tuple[str, Type, int, int, int], float] = defaultdict(float)
    known: dict[tuple[Step, ...], float] = {}
    before = enumerate_log_joint(toy, steps) if steps else 0.0
    last = given(toy) | {step.node: t for t, step in enumerate(steps) if step.node >= 0 and leads(toy, step.node)}
    for step in [*legal_steps(toy, steps), *missing_steps(toy, last, len(steps))]:
        for said in sayable(toy, step):
            p = math.exp(enumerate_log_joint(toy, [*steps, said], known=known) - before)
            ways[said.word, step.type, step.node, step.parent, step.relation] += p
            if step.type == Type.NONE and step.parent >= 0:  # part of the step without a mention
                ways[said.word, Type.NONE, -1, -1, -1] -= p
            else:
                words[said.word] += p
    return words, ways


def test_nothing_but_plain_words_may_be_enumerated(toy: Toy) -> None:
    found = next_words(after(toy, []), NextWordConfig(max_new=0, max_related=0))
    assert found.p_N.sum() + sum(found.rest.values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", OPTIONS)
def test_it_is_brute_force(tmp_path: Path, name: str) -> None:
    toy = make_toy(tmp_path, **OPTIONS[name])  # type: ignore[arg-type]
    for steps in [[], *random_texts(toy, 3, 3)]:
        found = next_words(after(toy, steps))
        words, ways = brute_force(toy, steps)
        assert {word: found[word] for word in words} == pytest.approx(words, rel=1e-9, abs=1e-12)
        assert found.p_N.sum() == pytest.approx(1, abs=1e-9)
        assert found.rest == {"new": pytest.approx(0, abs=1e-9), "related": 0.0}
        for word in words:
            reasons = found.derivations(word)
            assert sum(reason.p for reason in reasons) == pytest.approx(found[word], rel=1e-9)
            assert reasons == sorted(reasons, key=lambda reason: -reason.p)
            merged: dict[tuple[str, Type, int, int, int], float] = defaultdict(float)
            for reason in reasons:
                merged[word, reason.type, *_way(reason, steps)] += reason.p
            wanted = {way: p for way, p in ways.items() if way[0] == word}
            assert merged == pytest.approx({way: p for way, p in wanted.items() if p}, rel=1e-9, abs=1e-12)
        for fact in found.missing:
            ways_to_it = [p for way, p in ways.items() if way[1:] == (Type.NONE, -1, fact.parent, fact.relation)]
            assert fact.p == pytest.approx(sum(ways_to_it), rel=1e-9)
        assert [fact.p for fact in found.missing] == sorted((fact.p for fact in found.missing), reverse=True)


def _way(reason: Derivation, steps: list[Step]) -> tuple[int, int, int]:
    """How the toys name it: a continued mention keeps the fact it began with."""
    if reason.type == Type.CONTINUE:
        return steps[-1].node, steps[-1].parent, steps[-1].relation
    return reason.entity, reason.parent, reason.relation


def test_copied_and_generated_are_told_apart(toy: Toy) -> None:
    found = next_words(after(toy, []))
    assert {reason.copied for reason in found.derivations("Mario")} == {True, False}  # in the vocabulary and in a name
    assert {reason.copied for reason in found.derivations("Game")} == {True}  # in a name only
    assert {reason.copied for reason in found.derivations("is")} == {False}
    assert found["nobody says this"] == 0
    assert found.derivations("nobody says this") == []


@pytest.mark.parametrize(("max_new", "max_related"), [(0, 0), (1, 100), (100, 1), (1, 1)])
def test_what_is_cut_off_is_named(toy: Toy, max_new: int, max_related: int) -> None:
    [steps] = random_texts(toy, 4, 1, seed=3)
    steps = [Step("Mario", Type.NEW, toy.graph.number("Q1")), *steps[1:2]]
    whole, cut = next_words(after(toy, steps)), next_words(after(toy, steps), NextWordConfig(max_new, max_related))
    assert cut.p_N.sum() + sum(cut.rest.values()) == pytest.approx(1, abs=1e-9)
    assert sum(cut.rest.values()) > 1e-3
    assert all(cut[word] <= whole[word] + 1e-12 for word in whole.words)


def test_histories_are_averaged_by_weight(toy: Toy) -> None:
    words = ["Mario", "is"]
    one = [Span(0, 1, toy.graph.number("Q1"))]
    two = [Span(0, 1, toy.graph.number("Q2")), Span(1, 2, toy.graph.number("Q1"))]
    both = next_words(read(toy, toy.model, words, [(3.0, one), (1.0, two)]))
    apart = [next_words(read(toy, toy.model, words, [(1.0, each)])) for each in (one, two)]
    for word in both.words:
        assert both[word] == pytest.approx(0.75 * apart[0][word] + 0.25 * apart[1][word], rel=1e-9)
        assert sum(reason.p for reason in both.derivations(word)) == pytest.approx(both[word], rel=1e-9)


def test_reading_word_by_word_is_reading_at_once(toy: Toy) -> None:
    steps = [
        Step("Mario", Type.NEW, toy.graph.number("Q1")),
        Step("Land", Type.CONTINUE, toy.graph.number("Q1")),
        Step("is", Type.NONE),
        Step("Game", Type.RELATED, toy.graph.number("Q2")),
    ]
    reading = after(toy, [])
    for step in steps:
        column = {Type.NONE: NONE, Type.CONTINUE: CONTINUE}.get(step.type, FIRST)
        before = next_words(reading).p_N.copy()
        earlier, reading = reading, reading.step(step.word, column, step.node)
        np.testing.assert_array_equal(next_words(earlier).p_N, before, err_msg="a step changed the reading before it")
    for slow, fast in ((after(toy, steps), reading), (after(toy, steps[:3]), earlier)):
        np.testing.assert_allclose(next_words(slow).p_N, next_words(fast).p_N, rtol=1e-9)


def test_start_may_be_there_or_not(toy: Toy) -> None:
    node = toy.graph.number("Q1")
    without = next_words(read(toy, toy.model, ["is", "Mario"], [(1.0, [Span(1, 2, node)])]))
    with_start = next_words(read(toy, toy.model, [START, "is", "Mario"], [(1.0, [Span(2, 3, node)])]))
    np.testing.assert_array_equal(without.p_N, with_start.p_N)


@pytest.mark.parametrize("bad", [[(0, 0)], [(0, 3)], [(-1, 1)], [(0, 2), (1, 2)], [(2, 1)]])
def test_mentions_that_do_not_fit_are_refused(toy: Toy, bad: list[tuple[int, int]]) -> None:
    with pytest.raises(DataError, match=r"mention -?\d+:\d+ (overlaps another one|in a text of 2 words)"):
        read(toy, toy.model, ["Mario", "is"], [(1.0, [Span(start, end, 0) for start, end in bad])])


def test_top_is_in_order(toy: Toy) -> None:
    found: NextWords = next_words(after(toy, []))
    top = found.top(3)
    assert [p for _, p in top] == sorted((found[word] for word in found.words), reverse=True)[:3]
    assert len(found.top(10**6)) == len(found.words)
    assert found.top(0) == []


def test_reasons_in_words(toy: Toy) -> None:
    graph = toy.graph
    related = Derivation(
        0.1, Type.RELATED, graph.number("Q2"), graph.number("Q1"), graph.find_relation("P1") or -1, True
    )
    assert str(Reason.of(graph, related)) == "related Mario Land —P1→ Game Boy, copied"
    assert str(Reason.of(graph, replace_type(related, Type.NEW))) == "new Game Boy, copied"
    assert str(Reason.of(graph, Derivation(0.1, Type.NONE))) == "no entity"
    missing = Reason.of(graph, Derivation(0.1, Type.NONE, -1, graph.number("Q1"), graph.find_relation("P3") or -1))
    assert (missing.type, str(missing), missing.is_fact) == ("missing", "missing: P3 of Mario Land", False)


def replace_type(reason: Derivation, kind: Type) -> Derivation:
    return reason._replace(type=kind)
