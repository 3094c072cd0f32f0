"""`kglm kg`: import, show, find, edit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from kglm.cli.output import Json, print_json, print_line, print_table
from kglm.errors import KglmError
from kglm.kg.arrays import canonical_id
from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.importers.records import ImportOptions
from kglm.kg.imports import FORMATS, ImportReport, import_graph
from kglm.kg.journal import Change, HeadFacts, last_edit
from kglm.kg.literals.literal import is_literal
from kglm.kg.resolve import parse_fact, resolve_entity
from kglm.kg.schema import RANKS
from kglm.text.document import mentioned_entities

app = typer.Typer(help="The knowledge graph: import, show, find, edit, embed, verbalise.")

Graph = Annotated[Path, typer.Argument(metavar="KG", help="A graph file made by kglm kg import.")]
MAX_HEADS = 5
"""Entities that `kglm kg show` lists for each relation that points at the entity."""


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
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing graph.")] = False,
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
        return "was complete already: these sources were imported before"
    return f"{report.seconds:.1f} s{', resumed' if report.resumed else ''}"


@app.command()
def show(
    kg: Graph,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="An id or a name.")],
    everything: Annotated[
        bool, typer.Option("--all", help="List all facts that point at the entity, not only some.")
    ] = False,
    json: Json = False,
) -> None:
    """Show an entity: its names, its facts, and the facts that point at it."""
    with KnowledgeGraph.open(kg, whole=True) as graph:
        number = graph.number(entity) if entity in graph else graph.number(resolve_entity(graph, entity))
        description = _describe(graph, number)
        if json:
            print_json(description)
            return
        about = f" — {description['description']}" if description["description"] else ""
        print_line(f"{description['label']} ({description['id']}){about}")
        if description["aliases"]:
            print_line(f"also: {', '.join(description['aliases'])}")
        rows = [(fact["relation_label"], fact["label"], fact["tail"], _extras(fact)) for fact in description["facts"]]
        if rows:
            print_table("", ("relation", "value", "id", ""), rows)
        for relation, heads in description["reverse"].items():
            names = [f"{head['label']} ({head['id']})" for head in (heads if everything else heads[:MAX_HEADS])]
            more = len(heads) - len(names)
            label = heads[0]["relation_label"]
            print_line(f"← {label} ({relation}): {', '.join(names)}{f' and {more:,} more' if more > 0 else ''}")


def _extras(fact: dict[str, Any]) -> str:
    parts = ["preferred"] if fact["rank"] == "preferred" else []
    parts += [f"{qualifier['relation_label']}: {qualifier['label']}" for qualifier in fact["qualifiers"]]
    return "; ".join(parts)


def _describe(graph: KnowledgeGraph, number: int) -> dict[str, Any]:
    id = graph.id(number)
    description, title = graph.store.description(id)
    names = list(graph.aliases(number))
    # a qualifier is shown with its statement, not as a fact of its own
    stored = HeadFacts(graph.store, id)
    statements = [fact for fact in stored.facts if not stored.statements_of(fact)]
    # two spellings of the same date are shown once
    statements = list({(fact.relation, canonical_id(fact.tail)): fact for fact in reversed(statements)}.values())[::-1]
    reverse: dict[str, list[dict[str, str]]] = {}
    relation, tail = graph.edges(number)
    for r, head in zip(relation[relation % 2 == 1], tail[relation % 2 == 1], strict=True):
        entry = {
            "id": graph.id(int(head)),
            "label": graph.label(int(head)),
            "relation_label": graph.relation_label(int(r) ^ 1),
        }
        reverse.setdefault(graph.relation_id(int(r)), []).append(entry)
    return {
        "id": id,
        "label": graph.label(number),
        "description": description,
        "title": title,
        "aliases": names[1:],
        "facts": [
            _fact_json(graph, fact)
            | {
                "rank": RANKS[fact.rank],
                "qualifiers": [_fact_json(graph, q) for q in stored.qualifiers_of(fact)],
            }
            for fact in statements
        ],
        "reverse": reverse,
    }


def _fact_json(graph: KnowledgeGraph, fact: Any) -> dict[str, Any]:
    return {
        "relation": fact.relation,
        "relation_label": graph.relation_name(fact.relation),
        "tail": fact.tail,
        "label": graph.label(graph.number(fact.tail)),
    }


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
            for line in _lines(graph, changes):
                print_line(line)
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
    signs = {"add": "+", "remove": "−"}
    for change in changes:
        if change.action == "create":
            yield f"+ {change.head} = {' | '.join(change.names)}"
        elif change.action in signs:
            head, tail = (graph.label(graph.number(id)) for id in (change.head, change.tail))
            tail = tail if is_literal(change.tail) else f"{tail} ({change.tail})"
            relation = graph.relation_name(change.relation)
            yield f"{signs[change.action]} {head} ({change.head}) —{relation} ({change.relation})→ {tail}"
