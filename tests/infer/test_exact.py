"""Exact enumeration against brute force, and the beam against exact enumeration."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kglm.infer.beam import beam_search, exact
from kglm.infer.scene import AllEntities, Scene
from kglm.model.latent import PAPER, LatentConfig
from kglm.text.document import START, Document
from toys import Step, Toy, enumerate_log_joint, legal_steps, make_toy

OPTIONS = {
    "best": {},
    "everything on": {"latent": LatentConfig(entity_bias=True)},
    "paper": {"latent": PAPER},
    "window": {"parent_window": 1},
    "three types": {"latent": PAPER, "mention_types": "paper"},
}
TEXTS = [["Mario", "is", "Boy"], ["Game", "Boy", "Tennis"], ["Mario", "Land", "1989"], ["is"]]


def scene(toy: Toy, words: list[str]) -> Scene:
    return Scene(toy, toy.model, Document("t", [START, *words]), AllEntities(len(toy.graph)))


def brute_force(toy: Toy, words: list[str], *, penalty: float = 0.0) -> float:
    """log Σ_z p(x, z) over every annotation, one by one."""
    histories: list[list[Step]] = [[]]
    for word in words:
        histories = [[*steps, replace(step, word=word)] for steps in histories for step in legal_steps(toy, steps)]
    total = 0.0
    for steps in histories:
        said = [replace(step, word="@@UNKNOWN@@") if unknown(toy, step) else step for step in steps]
        total += math.exp(enumerate_log_joint(toy, said) - penalty * sum(unknown(toy, step) for step in steps))
    return math.log(total)


def unknown(toy: Toy, step: Step) -> bool:
    """Whether the word is paid for as the unknown one: neither in the vocabulary nor copied."""
    if step.word in toy.vocabulary and step.word != "@@UNKNOWN@@":
        return False
    return step.node < 0 or step.word not in toy.aliases[step.node].surface


@pytest.mark.parametrize("words", TEXTS, ids=" ".join)
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("penalty", [0.0, math.log(5)])
def test_exact_enumeration_is_brute_force(tmp_path: Path, name: str, words: list[str], penalty: float) -> None:
    toy = make_toy(tmp_path, **OPTIONS[name])  # type: ignore[arg-type]
    assert exact(scene(toy, words), penalty=penalty)[-1] == pytest.approx(
        brute_force(toy, words, penalty=penalty), rel=1e-9
    )


def test_the_toy_says_words_as_the_model_does(tmp_path: Path) -> None:
    """A word that is in no vocabulary is the unknown one where it cannot be copied."""
    toy = make_toy(tmp_path)
    values = exact(scene(toy, ["Tennis"])), exact(scene(toy, ["@@UNKNOWN@@"]))
    np.testing.assert_allclose(*values)


@pytest.mark.parametrize("width", [1, 2, 5, 20])
def test_a_beam_is_a_lower_bound_that_rises_to_the_truth(tmp_path: Path, width: int) -> None:
    toy = make_toy(tmp_path)
    for words in TEXTS:
        truth, bound = exact(scene(toy, words)), beam_search(scene(toy, words), width)
        assert (bound <= truth + 1e-9).all()
        assert beam_search(scene(toy, words), 100_000)[-1] == pytest.approx(truth[-1], rel=1e-9)
