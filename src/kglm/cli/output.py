"""How verbs report: tables for people, JSON for programs, errors on one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

console = Console(highlight=False, soft_wrap=True)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[int] = ()
) -> None:
    """A table; numbers with separators, cells shown literally whatever they contain."""
    if title:
        say(title)
    table = Table(box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(_shown(cell)) for cell in row))
    Console(highlight=False).print(table)


def say(text: str) -> None:
    """A line of text, shown literally."""
    console.print(escape(text))


def _shown(cell: Any) -> str:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return "" if cell is None else str(cell)
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.3f}"
