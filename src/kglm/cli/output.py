"""Output of the commands: tables for people, JSON for programs, notes on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")]

WIDE = 240
"""Characters per line if the output is not a terminal, so that programs find no wrapped cells."""


def print_json(value: object, *, line: bool = False) -> None:
    """Print a JSON document on standard output; `line` keeps it on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=None if line else 2, allow_nan=False) + "\n")


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[int] = ()
) -> None:
    """Print a table: numbers with separators, text without markup; cells of type `Text` keep their style."""
    if title:
        print_line(title)
    table = Table(box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else _literal(_text(cell)) for cell in row))
    console = Console(highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    console.print(table)


def print_markdown(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[int] = ()
) -> None:
    """Print the same table as Markdown."""
    lines = [f"**{_cell(title)}**", ""] if title else []
    lines.append(f"| {' | '.join(map(_cell, columns))} |")
    lines.append("|" + "|".join("---:" if number in right else "---" for number in range(len(columns))) + "|")
    lines += [f"| {' | '.join(_cell(_text(cell)) for cell in row)} |" for row in rows]
    sys.stdout.write("\n".join(lines) + "\n")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def print_line(text: str | Text, end: str = "\n") -> None:
    """Print a line of text, without markup."""
    shown = text if isinstance(text, Text) else _literal(text)
    Console(highlight=False, emoji=False, soft_wrap=True).print(shown, end=end)


def styled(text: str, style: str) -> Text:
    """Text in a style, without markup."""
    return Text(_visible(text), style=style)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    Console(highlight=False, emoji=False, soft_wrap=True, stderr=True).print(_literal(f"warning: {text}"))


def note(text: str) -> None:
    """Print a note on standard error."""
    Console(highlight=False, emoji=False, soft_wrap=True, stderr=True).print(_literal(text))


def _literal(text: str) -> str:
    """Escape markup and make control characters visible."""
    return escape(_visible(text))


def _visible(text: str) -> str:
    return "".join(c if c in "\n\t" or c.isprintable() or c == "\u00a0" else ascii(c)[1:-1] for c in text)


def _text(cell: Any) -> str:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return "" if cell is None else str(cell)
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.3f}"
