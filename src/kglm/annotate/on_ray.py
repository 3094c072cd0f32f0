"""Run the annotation pipeline on a Ray cluster with Ray Data (needs the extra `ray`).

The graph, the table of link texts and kglm must have the same paths on all machines. Sources and result stay on the
machine that starts the run.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from kglm.annotate.pipeline import Job, Runner, Shard, annotate_shard
from kglm.errors import ConfigError, KglmError

SHARDS_IN_FLIGHT = 64
"""Shards submitted to the cluster together; this bounds memory."""


def ray_runner(address: str, workers: int | None = None) -> Runner:
    """Runner for the Ray cluster at an address; `local` starts one on this machine."""
    try:
        import ray
    except ImportError as error:
        raise ConfigError("--ray: the package ray is not installed", remedy="pip install 'kglm[ray]'") from error
    _check_address(address)
    try:
        ray.init(
            address=None if address == "local" else address,
            ignore_reinit_error=True,
            log_to_driver=False,
            logging_level=logging.ERROR,
            include_dashboard=False if address == "local" else None,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise _no_cluster(address) from error

    def run(jobs: Iterable[Job]) -> Iterator[Shard]:
        source = iter(jobs)
        while batch := list(islice(source, SHARDS_IN_FLIGHT)):
            yield from _on_cluster(batch, workers)

    return run


def _check_address(address: str) -> None:
    """Fail early if no server listens: Ray would wait for minutes and then end the process."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host.removeprefix("ray://"), int(port)), timeout=10).close()
        except OSError as error:
            raise _no_cluster(address) from error


def _no_cluster(address: str) -> KglmError:
    return KglmError(f"no Ray cluster answers at {address}", remedy="run: ray start --head, or use --ray local")


def _on_cluster(jobs: list[Job], workers: int | None) -> Iterator[Shard]:
    import ray

    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    items = ray.data.from_items([{"job": job} for job in jobs], override_num_blocks=len(jobs))
    for row in items.map(_annotate_row, concurrency=workers).iter_rows():
        yield row["shard"]


def _annotate_row(row: dict[str, Any]) -> dict[str, Any]:
    return {"shard": annotate_shard(row["job"])}
