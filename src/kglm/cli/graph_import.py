"""`kglm kg import`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from kglm.cli.graph_edit import named_type
from kglm.cli.output import Json, print_json, print_line, print_table
from kglm.errors import ConfigError
from kglm.kg.importers.formats import FORMATS
from kglm.kg.importers.own import BadLinesError
from kglm.kg.importers.records import ImportOptions, OwnOptions
from kglm.kg.imports import ImportReport, import_graph
from kglm.kg.literals.column_types import SPELLINGS
from kglm.text.document import mentioned_entities

MOST_LINES = 1000
"""Lines that cannot be read which are printed."""
TAB = {"tab": "\t", "\\t": "\t"}


def import_(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE",
            help="Tables of your own (CSV, TSV, JSON, RDF, Neo4j's CSV), a Wikidata JSON dump, N-Triples, KGTK, or"
            " kglm's TSV or JSONL; may be .gz, .bz2 or .zst.",
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
        bool,
        typer.Option("--mint-ids", help="Make ids from names (Q_…, P_…) in N-Triples, --entities and --relations too."),
    ] = False,
    iso_years: Annotated[bool, typer.Option("--iso-years", help="Read the year 0 as 1 BC, as in RDF.")] = False,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="RELATION=TYPE", help=f"What the values of a relation are: {SPELLINGS}."),
    ] = None,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first row of a table names its columns.")
    ] = None,
    delimiter: Annotated[str | None, typer.Option(help="Character between the columns of a table.")] = None,
    decimal: Annotated[
        str | None, typer.Option(metavar="point|comma", help="Decimal mark of numbers like 1,234 in tables.")
    ] = None,
    split: Annotated[
        str, typer.Option(help="What divides several values in a cell, except in texts; empty if nothing does.")
    ] = ";",
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", metavar="FILE=KIND", help='What the entities of a table are instances of; or "file-name".'
        ),
    ] = None,
    skip_bad_lines: Annotated[
        bool,
        typer.Option("--skip-bad-lines", help="Import a table without the lines that cannot be read, not nothing."),
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Number of processes; default: all cores.")] = None,
    replace: Annotated[bool, typer.Option("--replace", "--force", help="Overwrite an existing graph.")] = False,
    json: Json = False,
) -> None:
    """Build a graph file. Run the same command again to resume an interrupted import."""
    if decimal not in (None, "point", "comma"):
        raise ConfigError(f"{decimal!r} is no decimal mark", remedy="give point or comma")
    own = OwnOptions(
        tuple(named_type(text) for text in types or ()), header, TAB.get(delimiter or "", delimiter), decimal,  # type: ignore[arg-type]
        split, tuple(kinds or ()), skip_bad_lines,
    )  # fmt: skip
    try:
        report = import_graph(
            sources,
            to,
            entities=entities or (),
            relations=relations or (),
            redirects=redirects or (),
            near=mentioned_entities(near) if near else None,
            hops=hops,
            format=format,
            options=ImportOptions(language, mint_ids, iso_years, own),
            workers=workers,
            replace=replace,
        )
    except BadLinesError as error:
        if json:
            print_json({"problems": error.problems})
        for problem in error.problems[:MOST_LINES]:
            print(problem, file=sys.stderr)
        if len(error.problems) > MOST_LINES:
            print(f"and {len(error.problems) - MOST_LINES:,} more; all of them with --json", file=sys.stderr)
        raise
    if json:
        print_json(asdict(report))
        return
    for note in report.notes:
        print_line(note)
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
    if report.types:
        print_table(
            "",
            ("relation", "id", "type", "decided by", "facts", "for example"),
            [(each.label, each.id, each.type, each.reason, each.values, each.example) for each in report.types],
            right=(4,),
        )
        print_line('If a type is wrong, say which: --type "RELATION=TYPE" and --replace')
    for problem in report.problems:
        print_line(f"warning: {problem}")


def _how(report: ImportReport) -> str:
    if report.already_done:
        edits = f", with {report.edits} edits since; --replace imports them again" if report.edits else ""
        return f"was complete already: these sources were imported before{edits}"
    return f"{report.seconds:.1f} s{', resumed' if report.resumed else ''}"
