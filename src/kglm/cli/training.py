"""`kglm train`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from kglm.cli.bundled_world import graph_option
from kglm.cli.output import Json, note, print_json, print_table
from kglm.errors import ConfigError


def train(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="kglm, proposal, entity-copynet, entity-nlm, entity-nlm-proposal or awd-lstm."
        ),
    ],
    data: Annotated[list[Path], typer.Option("--data", metavar="DOCS", help="Linked documents to train on.")],
    valid: Annotated[list[Path], typer.Option("--valid", metavar="DOCS", help="Linked documents to validate on.")],
    kg: Annotated[
        Path, typer.Option("--kg", metavar="KG", help="The graph, with vectors (kglm kg embed).", callback=graph_option)
    ],
    to: Annotated[Path, typer.Option("--to", metavar="RUN", help="Folder to write the run to.")],
    config: Annotated[
        str | None,
        typer.Option(
            "--config", help="A TOML file, or a built-in configuration: paper, small (the default), quickstart, tiny."
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help="Options of the latent variables: best, paper (no refinements), nklm (facts of a given topic).",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="a.b=c", help="Override a setting, e.g. train.epochs=3."),
    ] = None,
    start: Annotated[
        Path | None, typer.Option("--from", metavar="RUN", help="Start from the vocabulary and weights of this run.")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="NAME|PATH",
            help="Train heads of KGLM on this frozen language model: smollm2, a Hugging Face directory or a GGUF file.",
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option("--features", metavar="DIR", help="Where states of the base are stored; by default in the run."),
    ] = None,
    adapter: Annotated[
        Path | None,
        typer.Option(
            "--adapter", metavar="DIR", help="Adapter of the sentence encoder, for --base (tools/train_adapter.py)."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")] = False,
    json: Json = False,
) -> None:
    """Train a model. Ctrl-C saves a checkpoint; --resume continues from it exactly."""
    if base is not None:
        if model != "kglm" or preset is not None or start is not None:
            raise ConfigError("--base is given", remedy="train kglm, without --preset and --from")
        _train_heads(data, valid, kg, to, config, set_ or (), base, features, adapter, resume, json)
        return
    for name, given in (("--features", features), ("--adapter", adapter)):
        if given is not None:
            raise ConfigError(f"{name} is given without --base", remedy="leave it out")
    from kglm.model.base import COMPONENTS
    from kglm.runs.settings import DEFAULT, load_config, shipped_configurations
    from kglm.train.start import train as run_training

    if config is None:
        others = ", ".join(name for name in shipped_configurations() if name != DEFAULT)
        note(f"--config {DEFAULT}, because none is given; others: {others}, or a TOML file")
    settings = load_config(config or DEFAULT, model, set_ or (), preset=preset)
    metrics = run_training(settings, data, valid, kg, to, start=start, resume=resume)
    if os.environ.get("RANK", "0") != "0":  # only the first process of torchrun prints
        return
    if json:
        print_json({"run": str(to), "metrics": metrics})
        return
    columns = ("nats", *COMPONENTS)
    rows = [
        (record["epoch"], record["step"], record["train"]["nats"], *(record["valid"][name] for name in columns))
        for record in metrics
    ]
    print_table(
        f"{to}: nats a word by annotated joint likelihood",
        ("epoch", "step", "train", "valid", *(name.replace("_", " | ") for name in COMPONENTS)),
        rows,
        right=range(4 + len(COMPONENTS)),
    )


def _train_heads(
    data: Sequence[Path],
    valid: Sequence[Path],
    kg: Path,
    to: Path,
    file: str | None,
    overrides: Sequence[str],
    base: str,
    features: Path | None,
    adapter: Path | None,
    resume: bool,
    json: bool,
) -> None:
    import msgspec

    from kglm import config
    from kglm.train.heads.settings import HeadsRunConfig
    from kglm.train.heads.start import train_heads

    values = {} if file is None else config.read(Path(file))
    settings = config.from_dict(HeadsRunConfig, config.with_overrides(values, overrides), place=file)
    metrics = train_heads(settings, data, valid, kg, to, base=base, resume=resume, features=features, adapter=adapter)
    if json:
        print_json({"run": str(to), "metrics": msgspec.to_builtins(metrics)})
        return
    print_table(
        f"{to}: nats a word on the validation documents",
        ("step", "loss", "words", "words, base alone", "right relation first"),
        [
            (each.step, f"{each.valid:.4f}", f"{each.nats:.4f}", f"{each.base:.4f}", f"{each.right_fact:.1%}")
            for each in metrics
        ],
        right=range(5),
    )
