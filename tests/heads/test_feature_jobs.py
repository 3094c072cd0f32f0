"""Features computed by jobs: the shards that training reads, resumable and bounded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from conftest import Command
from kglm.errors import ConfigError
from kglm.heads import features as features_module
from kglm.heads.feature_jobs import Job, Shard, store_features
from kglm.heads.features import FeatureStore, compute
from kglm.heads.passage import passage
from kglm.pretrained.base import BaseModel
from kglm.text.document import END, START, Document, write_documents
from support.causal import save_english

pytest.importorskip("transformers", reason="the extra hf is not installed")
DOCUMENTS = [Document(str(n), [START, *f"It is game number {n} .".split(), END]) for n in range(6)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("base")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(home / "cache"))
        patch.setattr(features_module, "SHARD", 40)
        yield str(save_english(home / "english", context=512))


def subwords(base: str) -> list[list[int]]:
    return [passage(document, BaseModel.open(base).subwords).ids for document in DOCUMENTS]


def in_turn(calls: list[Job]) -> Callable[[Callable[[Job], Shard], Iterable[Job]], Iterator[Shard]]:
    """A runner that notes its jobs."""

    def run(function: Callable[[Job], Shard], jobs: Iterable[Job]) -> Iterator[Shard]:
        for job in jobs:
            calls.append(job)
            yield function(job)

    return run


def test_they_are_the_shards_of_training(base: str, tmp_path: Path) -> None:
    report = store_features([DOCUMENTS], base, tmp_path)
    assert report.texts == len(DOCUMENTS) and report.computed == report.shards > 1 and report.left_out == 0
    model, texts = BaseModel.open(base), subwords(base)
    before = sorted(tmp_path.iterdir())
    stored = FeatureStore(tmp_path, model).of(texts)
    assert sorted(tmp_path.iterdir()) == before
    for n, ids in enumerate(texts):
        for found, expected in zip(stored[n], compute(model, ids), strict=True):
            assert np.allclose(found.float().numpy(), expected.float().numpy(), atol=2e-2)


def test_an_interrupted_run_goes_on(base: str, tmp_path: Path) -> None:
    whole: list[Job] = []
    store_features([DOCUMENTS], base, tmp_path / "whole", runner=in_turn(whole))

    def killed(function: Callable[[Job], Shard], jobs: Iterable[Job]) -> Iterator[Shard]:
        yield function(next(iter(jobs)))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store_features([DOCUMENTS], base, tmp_path / "parts", runner=killed)
    rest: list[Job] = []
    report = store_features([DOCUMENTS], base, tmp_path / "parts", runner=in_turn(rest))
    assert rest == whole[1:] and report.computed == len(rest)
    parts, shards = (sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("parts", "whole"))
    assert parts == shards


def test_the_folder_is_bounded(base: str, tmp_path: Path) -> None:
    report = store_features([DOCUMENTS], base, tmp_path, limit=1)
    assert (report.computed, report.left_out) == (1, report.shards - 1)


def test_workers_with_another_base_are_refused(base: str, tmp_path: Path) -> None:
    def other(function: Callable[[Job], Shard], jobs: Iterable[Job]) -> Iterator[Shard]:
        for job in jobs:
            yield function(job)._replace(dtype="torch.float64")

    with pytest.raises(ConfigError, match="a worker has the base"):
        store_features([DOCUMENTS], base, tmp_path, runner=other)
    assert not list(tmp_path.iterdir())


def test_command(base: str, tmp_path: Path, command: Command) -> None:
    write_documents(tmp_path / "docs.jsonl", DOCUMENTS)
    words = ("features", str(tmp_path / "docs.jsonl"), "--base", base, "--to", str(tmp_path / "stored"), "--json")
    first, second = (json.loads(command(*words).stdout) for _ in range(2))
    assert first["computed"] == first["shards"] and second["computed"] == 0
    assert command(*words, "--limit", "0").returncode == 2


@pytest.mark.slow
def test_on_ray_it_is_the_same(base: str, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")
    from kglm.on_ray import ray_map

    store_features([DOCUMENTS], base, tmp_path / "here")
    try:
        store_features([DOCUMENTS], base, tmp_path / "there", runner=ray_map("local", 1, in_flight=2))
    finally:
        ray.shutdown()
    for path in sorted((tmp_path / "here").rglob("*.npy")):
        there = tmp_path / "there" / path.relative_to(tmp_path / "here")
        assert np.allclose(np.load(path), np.load(there), atol=1e-3)
