"""Facts as sentences."""

from __future__ import annotations

import doctest

import pytest

from kglm.answer import sentences
from kglm.answer.pretrained import support
from kglm.answer.sentences import asked_for, fact_sentence, verb_phrase


@pytest.mark.parametrize(
    ("relation", "values", "reverse", "text"),
    [
        ("date of birth", ["August 4, 1961"], False, "The date of birth of X is August 4, 1961."),
        ("reports to", ["Tom Ash"], False, "X reports to Tom Ash."),
        ("located in", ["Utrecht"], False, "X is located in Utrecht."),
        ("founded by", ["A", "B"], False, "X is founded by A and B."),
        ("member of", ["the Hanse"], False, "X is a member of the Hanse."),
        ("award received", ["A Prize"], False, "The award that X received is A Prize."),
        ("award received", ["A", "B"], False, "X received more than one award: A and B."),
        ("child", ["A", "B", "C"], False, "X has more than one child: A, B and C."),
        ("place of birth", ["Ann"], True, "The place of birth of Ann is X."),
        ("place of birth", ["Ann", "Bob"], True, "X is the place of birth of Ann and Bob."),
        ("reports to", ["Ann"], True, "Ann reports to X."),
        ("reports to", ["Ann", "Bob", "Cy"], True, "Ann reports to X, and so do Bob and Cy."),
        ("located in", ["Ann", "Bob"], True, "Ann is located in X, and so is Bob."),
        ("height", ["U.S."], False, "The height of X is U.S."),
    ],
)
def test_a_fact_is_a_sentence(relation: str, values: list[str], reverse: bool, text: str) -> None:
    assert fact_sentence("X", relation, values, reverse=reverse) == text


def test_many_values_are_counted() -> None:
    text = fact_sentence("X", "child", [f"C{n}" for n in range(20)], total=4000)
    assert text == "X has more than one child: C0, C1, C2, C3, C4, C5, C6, C7 and 3,992 more."


@pytest.mark.parametrize("relation", ["series", "news of", "species", "capital", "headquarters location", ""])
def test_a_noun_is_no_verb(relation: str) -> None:
    assert verb_phrase(relation) is None


def test_what_is_asked_for() -> None:
    assert asked_for("X", "place of birth", reverse=True) == "what has X as its place of birth"
    assert asked_for("X", "reports to", reverse=True) == "what reports to X"


@pytest.mark.parametrize("module", [sentences, support])
def test_the_examples_in_the_code(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
