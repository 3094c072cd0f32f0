"""`kglm train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kglm.cli.output import Json, print_json, print_table


def train(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="kglm or proposal.")],
    data: Annotated[list[Path], typer.Option("--data", metavar="DOCS", help="Linked documents to train on.")],
    valid: Annotated[list[Path], typer.Option("--valid", metavar="DOCS", help="Linked documents to validate on.")],
    kg: Annotated[Path, typer.Option("--kg", metavar="KG", help="The graph, with vectors (kglm kg embed).")],
    to: Annotated[Path, typer.Option("--to", metavar="RUN", help="Directory of the run.")],
    config: Annotated[
        str | None, typer.Option("--config", help="A TOML file, or the name of one that is shipped: paper, tiny.")
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="a.b=c", help="Override a setting.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped or killed.")] = False,
    json: Json = False,
) -> None:
    """Train a model. Ctrl-C saves; --resume goes on exactly where it was."""
    from kglm.train.run import load_config
    from kglm.train.run import train as run_training

    metrics = run_training(load_config(config, model, set_ or ()), data, valid, kg, to, resume=resume)
    if json:
        print_json({"run": str(to), "metrics": metrics})
        return
    columns = ("nats", "type", "entity", "word")
    rows = [
        (record["epoch"], record["step"], record["train"]["nats"], *(record["valid"][name] for name in columns))
        for record in metrics
    ]
    print_table(
        f"{to}: nats a word by annotated joint likelihood",
        ("epoch", "step", "train", "valid", "type", "entity", "word"),
        rows,
        right=range(7),
    )
