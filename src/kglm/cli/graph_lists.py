"""`kglm kg relations` and `export`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from kglm.cli.graph import Graph
from kglm.cli.output import Json, print_json, print_line, print_table
from kglm.errors import KglmError
from kglm.kg.export import WRITERS, export_graph
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.relations import list_relations


def relations(
    kg: Graph,
    qualifiers: Annotated[bool, typer.Option("--qualifiers", help="List relations of qualifiers (P…:P…) too.")] = False,
    json: Json = False,
) -> None:
    """List the relations: id, label, type of the values, number of facts, and an example."""
    with KnowledgeGraph.open(kg, whole=True) as graph:
        found = list_relations(graph, qualifiers=qualifiers)
    if json:
        print_json([asdict(each) for each in found])
    else:
        rows = [(each.label, each.id, each.type, each.facts, f"{each.head} → {each.tail}") for each in found]
        print_table("", ("relation", "id", "type", "facts", "for example"), rows, right=(3,))


def export(
    kg: Graph,
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help=f"File to write, ending in {', '.join(WRITERS)}.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    json: Json = False,
) -> None:
    """Write all facts, names and types to a file that kglm kg import reads again."""
    if to.exists() and not force:
        raise KglmError("exists already", place=to, remedy="choose another name, or use --force")
    counts = export_graph(kg, to)
    if json:
        print_json(counts)
    else:
        print_line(f"{to}: {counts['facts']:,} facts, {counts['entities']:,} entities")
