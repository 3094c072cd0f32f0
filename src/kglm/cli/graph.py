"""`kglm kg show` and `find`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kglm.cli.bundled_world import graph_option
from kglm.cli.output import Json, print_json, print_line, print_table
from kglm.errors import KglmError
from kglm.kg.describe import Page, describe
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REVERSE
from kglm.kg.resolve import resolve_entity, resolve_relation
from kglm.kg.statements import TIMES

Graph = Annotated[
    Path,
    typer.Argument(metavar="KG", help="A graph file made by kglm kg import, or world.", callback=graph_option),
]
FACTS_SHOWN, HEADS_SHOWN = 10, 5
"""Values that `kglm kg show` lists of each relation of the entity, and of each that points at it."""
PAGE = 100
"""Values of a relation that is listed by itself, or as JSON."""


def show(
    kg: Graph,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="An id or a name.")],
    relation: Annotated[
        str | None,
        typer.Option(metavar="RELATION", help="List only this relation, by id or name; R:P31 is the reverse of P31."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            help=f"Values to list of each relation; default {FACTS_SHOWN}, {HEADS_SHOWN} of those that point at the"
            f" entity, and {PAGE} with --relation or --json.",
        ),
    ] = None,
    offset: Annotated[int, typer.Option(min=0, help="Values to skip of each relation.")] = 0,
    everything: Annotated[bool, typer.Option("--all", help="List all values of all relations.")] = False,
    json: Json = False,
) -> None:
    """Show an entity: its names, its facts, and the facts that point at it. Of relations with many values, a page."""
    if everything and limit is not None:
        raise KglmError("--all and --limit", remedy="give one of the two")
    with KnowledgeGraph.open(kg, whole=True) as graph:
        number = graph.number(entity) if entity in graph else graph.number(resolve_entity(graph, entity))
        chosen = None if relation is None else resolve_relation(graph, relation)
        long = json or chosen is not None
        facts, heads = (
            Page(None if everything else shown if limit is None else limit, offset)
            for shown in ((PAGE, PAGE) if long else (FACTS_SHOWN, HEADS_SHOWN))
        )
        description = describe(graph, number, relation=chosen, facts=facts, reverse=heads)
        if json:
            print_json(description)
        else:
            _print_description(graph, description, offset, in_rows=chosen is not None)


def _print_description(graph: KnowledgeGraph, shown: dict[str, Any], offset: int, *, in_rows: bool) -> None:
    """Print an entity; `in_rows`: the facts that point at it are rows of the table too."""
    about = f" — {shown['description']}" if shown["description"] else ""
    print_line(f"{shown['label']} ({shown['id']}){about}")
    if shown["aliases"]:
        print_line(f"also: {', '.join(shown['aliases'])}")
    counts, rows, incomplete = shown["counts"], [], []
    by_relation: dict[str, list[dict[str, Any]]] = {relation: [] for relation in counts["facts"]}
    for fact in shown["facts"]:
        by_relation[fact["relation"]].append(fact)
    for relation, facts in by_relation.items():
        rows += [(fact["relation_label"], fact["label"], fact["tail"], _extras(fact)) for fact in facts]
        if (more := _more(counts["facts"][relation], offset, len(facts))) > 0:
            rows.append((graph.relation_name(relation), f"and {more:,} more", "", ""))
            incomplete.append((relation, len(facts)))
    for relation, heads in shown["reverse"].items() if in_rows else ():
        rows += [(f"← {head['relation_label']}", head["label"], head["id"], "") for head in heads]
        if (more := _more(counts["reverse"][relation], offset, len(heads))) > 0:
            rows.append((f"← {graph.relation_name(relation.removeprefix(REVERSE))}", f"and {more:,} more", "", ""))
            incomplete.append((relation, len(heads)))
    if rows:
        print_table("", ("relation", "value", "id", ""), rows)
    for relation, heads in shown["reverse"].items() if not in_rows else ():
        names = [f"{head['label']} ({head['id']})" for head in heads]
        if (more := _more(counts["reverse"][relation], offset, len(heads))) > 0:
            names.append(f"and {more:,} more")
            incomplete.append((relation, len(heads)))
        label = graph.relation_name(relation.removeprefix(REVERSE))
        print_line(f"← {label} ({relation}): {', '.join(names).replace(', and ', ' and ')}")
    if incomplete:
        relation, count = incomplete[0]
        print_line(f"list more with: --relation {relation} --offset {offset + count}, or all with --all")


def _more(total: int, offset: int, listed: int) -> int:
    """Values after those listed."""
    return total - offset - listed


def _extras(fact: dict[str, Any]) -> str:
    """Rank, period and sources of a fact, and its qualifiers other than times."""
    parts = ["preferred"] if fact["rank"] == "preferred" else []
    parts += [fact["period"]] if fact["period"] else []
    others = [each for each in fact["qualifiers"] if each["relation"].partition(":")[2] not in TIMES]
    parts += [f"{qualifier['relation_label']}: {qualifier['label']}" for qualifier in others]
    parts += [f"source: {source}" for source in fact["sources"]]
    return "; ".join(parts)


def find(
    kg: Graph,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A name or the start of one.")],
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entities.")] = 20,
    json: Json = False,
) -> None:
    """Find entities by name: exact matches first, then those with more facts."""
    with KnowledgeGraph.open(kg, whole=True) as graph:
        hits = graph.search(text, limit)
    if json:
        print_json([hit._asdict() for hit in hits])
    elif hits:
        rows = [
            (hit.id, hit.label, hit.match if hit.match != hit.label else "", hit.facts, hit.description) for hit in hits
        ]
        print_table("", ("id", "label", "found as", "facts", ""), rows, right=(3,))
    else:
        print_line(f"no entity has the name {text!r} or a name that starts with it")
