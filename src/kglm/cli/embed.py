"""`kglm kg embed`: vectors for the entities and relations of a graph."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

import typer

from kglm.cli.graph import Graph
from kglm.cli.output import Json, print_json, print_table
from kglm.config import describe
from kglm.kg.embedding.transe import TransEConfig, embed_graph

_DEFAULT = TransEConfig()
_HELP = describe(TransEConfig)


def embed(
    kg: Graph,
    dim: Annotated[int, typer.Option(min=1, help=_HELP["dim"])] = _DEFAULT.dim,
    epochs: Annotated[int, typer.Option(min=1, help=_HELP["epochs"])] = _DEFAULT.epochs,
    learning_rate: Annotated[float, typer.Option(help=_HELP["learning_rate"])] = _DEFAULT.learning_rate,
    optimiser: Annotated[Literal["adagrad", "sgd"], typer.Option(help=_HELP["optimiser"])] = _DEFAULT.optimiser,
    batch: Annotated[int, typer.Option(min=1, help=_HELP["batch"])] = _DEFAULT.batch,
    negatives: Annotated[int, typer.Option(min=1, help=_HELP["negatives"])] = _DEFAULT.negatives,
    margin: Annotated[float, typer.Option(help=_HELP["margin"])] = _DEFAULT.margin,
    held_out: Annotated[int, typer.Option(min=0, help=_HELP["held_out"])] = _DEFAULT.held_out,
    seed: Annotated[int, typer.Option(min=0, help=_HELP["seed"])] = _DEFAULT.seed,
    threads: Annotated[int, typer.Option(min=1, help=_HELP["threads"])] = _DEFAULT.threads,
    force: Annotated[
        bool, typer.Option("--force", help="Replace vectors, although runs trained with them can no longer be used.")
    ] = False,
    json: Json = False,
) -> None:
    """Train TransE vectors of entities and relations. Run the same command again to resume."""
    config = TransEConfig(
        dim=dim,
        epochs=epochs,
        learning_rate=learning_rate,
        optimiser=optimiser,
        batch=batch,
        negatives=negatives,
        margin=margin,
        held_out=held_out,
        seed=seed,
        threads=threads,
    )
    if not force:
        from kglm.runs.using import check_vectors

        check_vectors(kg)
    report = embed_graph(kg, config)
    if json:
        print_json(asdict(report))
        return
    measures = [(name, getattr(report, name)) for name in ("mrr", "hits1", "hits3", "hits10")]
    counts = [(name, getattr(report, name)) for name in ("held_out", "triples", "entities", "relations")]
    print_table(
        f"{report.vectors}  ({report.seconds:.1f} s{', resumed' if report.resumed else ''})",
        ("", "value"),
        [*measures, *counts, ("triples_per_second", round(report.triples_per_second))],
        right=(1,),
    )
