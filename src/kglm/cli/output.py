"""How verbs report: tables for people, JSON for programs, errors on one line."""

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

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown, for documents.")]

WIDE = 240
"""Columns of a table that is not shown on a terminal: nothing that reads it wants words cut in two."""


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[int] = ()
) -> None:
    """A table; numbers with separators, plain cells are shown literally, cells of type `Text` keep their style."""
    if title:
        say(title)
    table = Table(box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else _literal(_shown(cell)) for cell in row))
    console = Console(highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    console.print(table)


def print_markdown(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[int] = ()
) -> None:
    """The same table for a document."""
    lines = [f"**{_cell(title)}**", ""] if title else []
    lines.append(f"| {' | '.join(map(_cell, columns))} |")
    lines.append("|" + "|".join("---:" if number in right else "---" for number in range(len(columns))) + "|")
    lines += [f"| {' | '.join(_cell(_shown(cell)) for cell in row)} |" for row in rows]
    sys.stdout.write("\n".join(lines) + "\n")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def say(text: str | Text, end: str = "\n") -> None:
    """A line of text, shown literally."""
    shown = text if isinstance(text, Text) else _literal(text)
    Console(highlight=False, emoji=False, soft_wrap=True).print(shown, end=end)


def styled(text: str, style: str) -> Text:
    """Text in a colour, else shown literally."""
    return Text(_visible(text), style=style)


def warn(text: str) -> None:
    """A line on standard error: something that the user may not expect."""
    Console(highlight=False, emoji=False, soft_wrap=True, stderr=True).print(_literal(f"warning: {text}"))


def note(text: str) -> None:
    """A line on standard error: something that is good to know."""
    Console(highlight=False, emoji=False, soft_wrap=True, stderr=True).print(_literal(text))


def _literal(text: str) -> str:
    """As it is: no markup, no emoji codes, and control characters made visible instead of sent to the terminal."""
    return escape(_visible(text))


def _visible(text: str) -> str:
    return "".join(c if c in "\n\t" or c.isprintable() or c == "\u00a0" else ascii(c)[1:-1] for c in text)


def _shown(cell: Any) -> str:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return "" if cell is None else str(cell)
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.3f}"
