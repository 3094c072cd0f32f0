"""`kglm features`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from kglm.cli.output import Json, print_json, print_table, warn
from kglm.errors import ConfigError

GIGABYTE = 1 << 30


def features(
    data: Annotated[list[Path], typer.Argument(metavar="DOCS", help="Linked documents.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Folder to store them in.")],
    base: Annotated[
        str, typer.Option("--base", metavar="NAME|PATH", help="smollm2, a Hugging Face directory or a GGUF file.")
    ] = "smollm2",
    workers: Annotated[int, typer.Option("--workers", help="Number of processes; 0 takes all cores.")] = 1,
    ray: Annotated[
        str | None, typer.Option("--ray", metavar="ADDRESS", help="Use a Ray cluster; `local` starts one here.")
    ] = None,
    limit: Annotated[float, typer.Option("--limit", help="Most gigabytes in the folder.")] = 40.0,
    json: Json = False,
) -> None:
    """Read documents with a pretrained language model and store its states, for kglm train kglm --base and evaluate."""
    from kglm.heads.feature_jobs import IN_FLIGHT, store_features
    from kglm.on_ray import ray_map
    from kglm.parallel import available_cores
    from kglm.runs.run import read_for_training

    if workers < 0 or limit <= 0:
        raise ConfigError(f"--workers {workers}, --limit {limit}", remedy="give 0 or more workers, a limit above 0")
    report = store_features(
        [read_for_training([path]) for path in data],
        base,
        to,
        workers=workers or available_cores(),
        runner=None if ray is None else ray_map(ray, workers or None, in_flight=IN_FLIGHT),
        limit=int(limit * GIGABYTE),
    )
    if report.left_out:
        warn(f"{report.left_out} of {report.shards} shards are over the limit of {limit:g} GB; raise it with --limit")
    if json:
        print_json(asdict(report))
        return
    rows = [(name.replace("_", " "), count) for name, count in asdict(report).items()]
    print_table(str(to), ("", "count"), rows, right=(1,))
