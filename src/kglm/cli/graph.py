"""`kglm kg`: import, show, find, edit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from kglm.cli.output import Json, print_json, print_line, print_table
from kglm.errors import KglmError
from kglm.kg.describe import Page, describe
from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REVERSE
from kglm.kg.importers.records import ImportOptions
from kglm.kg.imports import FORMATS, ImportReport, import_graph
from kglm.kg.journal import Change, last_edit
from kglm.kg.literals.literal import is_literal
from kglm.kg.resolve import parse_fact, resolve_entity, resolve_relation
from kglm.text.document import mentioned_entities

app = typer.Typer(help="The knowledge graph: import, show, find, edit, embed, verbalise.")

Graph = Annotated[Path, typer.Argument(metavar="KG", help="A graph file made by kglm kg import.")]
FACTS_SHOWN, HEADS_SHOWN = 10, 5
"""Values that `kglm kg show` lists of each relation of the entity, and of each that points at it."""
PAGE = 100
"""Values of a relation that is listed by itself, or as JSON."""
CHANGES_SHOWN = 50
"""Changes that `kglm kg edit` prints."""
SIGNS = {"add": "+", "remove": "−"}


@app.command("import")
def import_(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE",
            help="Wikidata JSON dump, N-Triples, KGTK, or kglm's TSV or JSONL; may be .gz, .bz2 or .zst.",
        ),
    ],
    to: Annotated[Path, typer.Option("--to", metavar="KG", help="The graph file to write.")],
    entities: Annotated[list[Path] | None, typer.Option(help="JSONL with id, label, aliases, title.")] = None,
    relations: Annotated[list[Path] | None, typer.Option(help="TSV with the names of relations.")] = None,
    redirects: Annotated[list[Path] | None, typer.Option(help="TSV with Wikipedia redirects: title, target.")] = None,
    near: Annotated[
        list[Path] | None,
        typer.Option(metavar="DOCS", help="Keep only entities near those that the documents mention."),
    ] = None,
    hops: Annotated[int, typer.Option(min=0, help="For --near: distance from a mentioned entity, in facts.")] = 2,
    format: Annotated[str | None, typer.Option(help=f"Format, if it is not recognised: {', '.join(FORMATS)}.")] = None,
    language: Annotated[str, typer.Option(help="Language of the names to import.")] = "en",
    mint_ids: Annotated[
        bool, typer.Option("--mint-ids", help="Make ids from names (Q_…, P_…), for a source without ids.")
    ] = False,
    iso_years: Annotated[bool, typer.Option("--iso-years", help="Read the year 0 as 1 BC, as in RDF.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Number of processes; default: all cores.")] = None,
    replace: Annotated[bool, typer.Option("--replace", "--force", help="Overwrite an existing graph.")] = False,
    json: Json = False,
) -> None:
    """Build a graph file. Run the same command again to resume an interrupted import."""
    report = import_graph(
        sources,
        to,
        entities=entities or (),
        relations=relations or (),
        redirects=redirects or (),
        near=mentioned_entities(near) if near else None,
        hops=hops,
        format=format,
        options=ImportOptions(language, mint_ids, iso_years),
        workers=workers,
        replace=replace,
    )
    if json:
        print_json(asdict(report))
        return
    rows: list[tuple[str, Any]] = [
        (name, getattr(report, name)) for name in ("facts", "entities", "aliases", "relations", "duplicates")
    ]
    rows += [(f"skipped: {reason}", count) for reason, count in report.skipped.items()]
    print_table(
        f"{to}  ({_how(report)})",
        ("", "count"),
        rows,
        right=(1,),
    )
    for problem in report.problems:
        print_line(f"warning: {problem}")


def _how(report: ImportReport) -> str:
    if report.already_done:
        edits = f", with {report.edits} edits since; --replace imports them again" if report.edits else ""
        return f"was complete already: these sources were imported before{edits}"
    return f"{report.seconds:.1f} s{', resumed' if report.resumed else ''}"


@app.command()
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
    parts = ["preferred"] if fact["rank"] == "preferred" else []
    parts += [f"{qualifier['relation_label']}: {qualifier['label']}" for qualifier in fact["qualifiers"]]
    return "; ".join(parts)


@app.command()
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


@app.command()
def edit(
    kg: Graph,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar='"HEAD RELATION TAIL"',
            help="Make this the only fact of its head and relation.",
        ),
    ] = None,
    add: Annotated[list[str] | None, typer.Option("--add", metavar='"HEAD RELATION TAIL"', help="Add a fact.")] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar='"HEAD RELATION TAIL"', help="Remove a fact.")
    ] = None,
    entity: Annotated[
        list[str] | None,
        typer.Option("--entity", metavar='"ID=LABEL|ALIAS|…"', help="Create this entity before the other edits."),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Undo the last edit.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the changes without making them.")] = False,
    json: Json = False,
) -> None:
    """Edit facts, given by ids or names, and print the changes. If one edit fails, none is made."""
    requested = [("remove", text) for text in remove or ()] + [("set", text) for text in set_ or ()]
    requested += [("add", text) for text in add or ()]
    if undo == bool(requested or entity):
        raise KglmError("nothing to edit" if not undo else "--undo goes alone", remedy="see kglm kg edit --help")
    with KnowledgeGraph.open(kg, writable=True, whole=True) as stored:
        graph = stored.fork() if dry_run else stored
        if undo:
            changes = last_edit(stored.store)[1] if dry_run else stored.undo()
        else:
            changes = _edit(graph, requested, entity or [])
        if json:
            print_json({"changes": [change._asdict() for change in changes], "generation": stored.generation})
        else:
            shown = [change for change in changes if change.action in ("create", *SIGNS)]
            for line in _lines(graph, shown[:CHANGES_SHOWN]):
                print_line(line)
            if len(shown) > CHANGES_SHOWN:
                print_line(f"and {len(shown) - CHANGES_SHOWN:,} more changes")
            if undo and not changes:
                print_line("nothing to undo: the last edit only created an entity, which stays, without facts")


def _edit(graph: KnowledgeGraph, requested: list[tuple[str, str]], entities: list[str]) -> list[Change]:
    edits: list[FactEdit | NewEntity] = [NewEntity.parse(text) for text in entities]
    draft = graph.fork()
    if edits:
        draft.edit(edits)
    edits += [FactEdit(action, *parse_fact(draft, text)) for action, text in requested]  # type: ignore[arg-type]
    return graph.edit(edits)


def _lines(graph: KnowledgeGraph, changes: list[Change]) -> Iterator[str]:
    for change in changes:
        if change.action == "create":
            yield f"+ {change.head} = {' | '.join(change.names)}"
        else:
            head, tail = (graph.label(graph.number(id)) for id in (change.head, change.tail))
            tail = tail if is_literal(change.tail) else f"{tail} ({change.tail})"
            relation = graph.relation_name(change.relation)
            yield f"{SIGNS[change.action]} {head} ({change.head}) —{relation} ({change.relation})→ {tail}"
