"""Stored states of the base: the same for a text alone, among others, and read from the disk."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from kglm.heads import features
from kglm.heads.features import Features, FeatureStore, compute, compute_many
from kglm.pretrained.base import BaseModel
from support.causal import LETTERS, save_letters

pytest.importorskip("transformers", reason="the extra hf is not installed")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> BaseModel:
    home = tmp_path_factory.mktemp("features")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(home / "cache"))
        return BaseModel.open(save_letters(home / "letters"), dtype=torch.float32)


def some_texts(count: int = 9) -> list[list[int]]:
    rng = random.Random(0)
    return [[rng.randrange(1, len(LETTERS)) for _ in range(rng.randrange(1, 12))] for _ in range(count)]


def same(found: Features, expected: Features) -> None:
    for name, one, other in zip(Features._fields, found, expected, strict=True):
        assert torch.allclose(one.float(), other.float(), atol=2e-3), name


def test_texts_read_together_have_the_features_of_each_alone(base: BaseModel) -> None:
    texts = [*some_texts(), []]
    for found, ids in zip(compute_many(base, texts), texts, strict=True):
        same(found, compute(base, ids))


def test_log_p_is_that_of_the_base(base: BaseModel) -> None:
    ids = some_texts()[3]
    assert np.allclose(compute(base, ids).log_p_T, base.log_probs(ids), atol=1e-5)


def test_stored_features_are_those_computed(base: BaseModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "SHARD", 20)
    texts = some_texts()
    expected = [compute(base, ids) for ids in texts]
    FeatureStore(tmp_path, base).of(texts)
    shards = list(tmp_path.iterdir())
    assert len(shards) > 2
    monkeypatch.setattr(features, "compute_many", lambda *_, **__: pytest.fail("computed again"))
    stored = FeatureStore(tmp_path, base).of(texts)
    for n, each in enumerate(expected):
        same(stored[n], each)


def test_an_interrupted_store_goes_on(base: BaseModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "SHARD", 20)
    texts, calls = some_texts(), iter(range(100))

    def killed(*arguments: object, **options: object) -> list[Features]:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return compute_many(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(features, "compute_many", killed)
    with pytest.raises(KeyboardInterrupt):
        FeatureStore(tmp_path, base).of(texts)
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(features, "compute_many", compute_many)
    same(FeatureStore(tmp_path, base).of(texts)[8], compute(base, texts[8]))


def test_a_damaged_shard_is_computed_again(base: BaseModel, tmp_path: Path) -> None:
    texts = some_texts()
    FeatureStore(tmp_path, base).of(texts)
    [path] = tmp_path.glob("*/middle_TD.npy")
    path.write_bytes(path.read_bytes()[:-7])
    same(FeatureStore(tmp_path, base).of(texts)[2], compute(base, texts[2]))


def test_beyond_the_limit_nothing_is_stored(base: BaseModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "SHARD", 20)
    texts = some_texts()
    stored = FeatureStore(tmp_path, base, limit=1).of(texts)
    assert len(list(tmp_path.iterdir())) == 1
    same(stored[8], compute(base, texts[8]))
