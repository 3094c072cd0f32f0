"""Map a function over a Ray cluster with Ray Data (needs the extra `ray`).

    run = ray_map("10.0.0.1:6379")
    for result in run(function, items): …          # in the order of the items

kglm, and the files that the function reads, must have the same paths on all machines. Items and results pass through
the machine that starts the run.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Protocol, TypeVar

from kglm.errors import ConfigError, KglmError

IN_FLIGHT = 64
"""Items submitted to the cluster together; this bounds memory."""
Item = TypeVar("Item")
Result = TypeVar("Result")


class Map(Protocol):
    """`map` over a cluster."""

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The results in the order of the items."""


def ray_map(address: str, workers: int | None = None, *, in_flight: int = IN_FLIGHT) -> Map:
    """Map over the Ray cluster at an address; `local` starts one on this machine."""
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

    def run(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        source = iter(items)
        while batch := list(islice(source, in_flight)):
            yield from _on_cluster(function, batch, workers)

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


def _on_cluster(function: Callable[[Item], Result], batch: list[Item], workers: int | None) -> Iterator[Result]:
    import ray

    def apply(row: dict[str, Any]) -> dict[str, Any]:
        return {"result": function(row["item"])}

    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    items = ray.data.from_items([{"item": item} for item in batch], override_num_blocks=len(batch))
    for row in items.map(apply, concurrency=workers).iter_rows():
        yield row["result"]
