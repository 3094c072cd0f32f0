"""Components of the gain: they sum to it, and say what happened."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from kglm.evaluate.components import BEGUN, NAME, NAMES, TYPE, components
from kglm.heads.lattice import score_text
from kglm.heads.model import Type
from kglm.heads.scoring import PassageScores
from support.letters import LetterWorld

pytest.importorskip("transformers", reason="the extra hf is not installed")
TEXTS = [(1, 6, 5, 2), (6, 5, 1, 3), (5, 6, 4, 1), (2, 2, 6, 6), (0, 7, 8, 5), (3, 5, 3, 5)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LetterWorld:
    home: Path = tmp_path_factory.mktemp("letters")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(home / "cache"))
        return LetterWorld(home)


def scores(world: LetterWorld, ids: tuple[int, ...]) -> PassageScores:
    links = world.links((0, "Q1", 1.0), (1, "Q2", 0.4), (2, "Q4", 0.7), (3, "Q1", 0.5))
    return PassageScores.of(world.heads, world.prepared(ids, links))


@pytest.mark.parametrize("ids", TEXTS)
def test_they_sum_to_the_gain_of_each_subword(world: LetterWorld, ids: tuple[int, ...]) -> None:
    found = scores(world, ids)
    scored = score_text(found)
    part_TC = components(found, scored)
    assert np.allclose(part_TC.sum(1), scored.log_p_T - scored.base_T, atol=1e-6)


def test_every_component_occurs(world: LetterWorld) -> None:
    found = [scores(world, ids) for ids in TEXTS]
    total_C = sum(np.abs(components(each, score_text(each))).sum(0) for each in found)
    assert (total_C > 1e-6).all(), dict(zip(NAMES, total_C, strict=True))


def test_decisions_cost_and_types_never_gain(world: LetterWorld) -> None:
    for ids in TEXTS:
        part_TC = components(scores(world, ids), score_text(scores(world, ids)))
        assert (part_TC[:, TYPE:NAME] <= 1e-12).all()


def test_always_plain_has_no_components(world: LetterWorld) -> None:
    bias = world.heads.types.bias.detach().clone()
    try:
        with torch.no_grad():
            world.heads.types.bias[Type.PLAIN] = 1e9
        found = scores(world, TEXTS[0])
        assert np.abs(components(found, score_text(found))).max() < 1e-9
    finally:
        with torch.no_grad():
            world.heads.types.bias.copy_(bias)


def test_a_name_that_the_base_has_begun_is_not_the_name_of_a_fact(world: LetterWorld) -> None:
    found = PassageScores.of(world.heads, world.prepared(TEXTS[1], []))
    part_TC = components(found, score_text(found))
    assert np.abs(part_TC[:, BEGUN]).sum() > 0
    assert not part_TC[:, NAME].any()
