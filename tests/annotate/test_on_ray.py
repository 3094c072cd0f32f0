"""The pipeline on a Ray cluster of two nodes, both on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from kglm.annotate.annotator import AnnotateConfig
from kglm.annotate.pipeline import Recipe, annotate
from kglm.errors import KglmError
from support.worlds import make_store

ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")


@pytest.mark.slow
def test_two_nodes_give_the_same_bytes(tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    from kglm.annotate.on_ray import ray_runner

    kg = make_store(tmp_path / "kg")
    for number in range(70):
        (tmp_path / f"{number:02d}.txt").write_text(f"Note {number}\n\nBarack Obama is married to Michelle Obama.")
    recipe, texts = Recipe(str(kg), AnnotateConfig()), sorted(tmp_path.glob("*.txt"))
    annotate(texts, tmp_path / "here.jsonl", recipe)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        runner = ray_runner(cluster.address)
        assert len([node for node in ray.nodes() if node["Alive"]]) == 2
        annotate(texts, tmp_path / "there.jsonl", recipe, runner=runner)
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert (tmp_path / "there.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()


def test_missing_cluster_is_an_error() -> None:
    from kglm.annotate.on_ray import ray_runner

    with pytest.raises(KglmError, match="no Ray cluster answers"):
        ray_runner("127.0.0.1:1")
