"""Run the annotation pipeline on a Ray cluster.

The graph, the table of link texts and kglm must have the same paths on all machines. Sources and result stay on the
machine that starts the run.
"""

from __future__ import annotations

from functools import partial

from kglm.annotate.pipeline import Runner, annotate_shard
from kglm.on_ray import ray_map


def ray_runner(address: str, workers: int | None = None) -> Runner:
    """Runner for the Ray cluster at an address; `local` starts one on this machine."""
    return partial(ray_map(address, workers), annotate_shard)
