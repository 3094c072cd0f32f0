"""The exact marginal against a sum over all annotations, and over all texts."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from kglm.heads.lattice import TextScore, score_text
from kglm.heads.local import Link
from kglm.heads.model import Type
from kglm.heads.scoring import PassageScores
from support.causal import LETTERS
from support.letters import LetterWorld, brute_force

pytest.importorskip("transformers", reason="the extra hf is not installed")
V = len(LETTERS)
TEXTS = [(1, 6, 5, 2), (6, 5, 1, 3), (5, 6, 4, 1), (2, 2, 6, 6), (0, 7, 8, 5), (3, 5, 3, 5)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("letters")


@pytest.fixture(scope="module", params=["missing", "no missing", "few tails", "no encoder"])
def world(request: pytest.FixtureRequest, home: Path) -> LetterWorld:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(home / "cache"))
        return LetterWorld(
            home / request.param.replace(" ", "-"),
            missing=request.param != "no missing",
            max_tails=1 if request.param == "few tails" else 1000,
            encoder=request.param != "no encoder",
        )


def some_links(world: LetterWorld) -> list[Link]:
    return world.links((0, "Q1", 1.0), (1, "Q2", 0.4), (2, "Q4", 0.7), (3, "Q1", 0.5))


def scored(world: LetterWorld, ids: tuple[int, ...], links: list[Link]) -> TextScore:
    inside = [link for link in links if link.end <= len(ids)]
    return score_text(PassageScores.of(world.heads, world.prepared(ids, inside)))


@pytest.mark.parametrize("ids", TEXTS)
def test_it_is_the_sum_over_all_annotations(world: LetterWorld, ids: tuple[int, ...]) -> None:
    expected = brute_force(world, world.prepared(ids, some_links(world)))
    assert float(scored(world, ids, some_links(world)).log_p_T.sum()) == pytest.approx(expected, abs=2e-3)


def test_texts_sum_to_one(world: LetterWorld) -> None:
    total = sum(
        math.exp(float(scored(world, ids, some_links(world)).log_p_T.sum()))
        for ids in itertools.product(range(V), repeat=2)
    )
    assert total == pytest.approx(1, abs=2e-3)


def test_the_facts_matter(world: LetterWorld) -> None:
    """Otherwise the tests above would hold for the base as well."""
    found = [scored(world, ids, some_links(world)) for ids in TEXTS]
    assert max(float(np.abs(each.log_p_T - each.base_T).max()) for each in found) > 0.05


def test_always_plain_is_the_base(world: LetterWorld) -> None:
    heads = world.heads
    bias = heads.types.bias.detach().clone()
    try:
        with torch.no_grad():
            heads.types.bias[Type.PLAIN] = 1e9
        found = scored(world, TEXTS[0], some_links(world))
        assert np.array_equal(found.log_p_T, found.base_T)
    finally:
        with torch.no_grad():
            heads.types.bias.copy_(bias)


def test_a_longer_text_does_not_change_the_words_before(world: LetterWorld) -> None:
    whole = scored(world, TEXTS[0], some_links(world)).log_p_T
    part = scored(world, TEXTS[0][:2], some_links(world)[:2]).log_p_T
    assert np.allclose(whole[:2], part, atol=1e-5)
