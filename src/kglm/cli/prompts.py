"""The prompts of a command: one given as an argument, or one a line from standard input or a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from kglm.errors import DataError, KglmError
from kglm.progress import progress

STANDARD_INPUT = "-"
PromptFile = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="Read prompts from this file, one a line; - for standard input."),
]


class Prompts(NamedTuple):
    """Prompts in order, read when they are needed."""

    texts: Iterable[str]
    batch: bool
    """True if there may be several: JSON is then one object a line."""


def run_and_prompts(words: list[str], file: Path | None) -> tuple[Path | None, Prompts]:
    """The run that the arguments name, if any, and the prompts."""
    from kglm.files import exists

    if len(words) > 2 or (file is not None and len(words) > 1):
        raise KglmError(
            f"{len(words)} arguments where at most {2 if file is None else 1} are expected",
            remedy='give a run and a text in quotes: kglm complete RUN "Barack Obama was born on"',
        )
    if file is not None:
        if str(file) != STANDARD_INPUT and not exists(file):
            raise DataError("no such file", place=file, remedy="give a file with one prompt a line")
        return Path(words[0]) if words else None, Prompts(_lines(file), batch=True)
    if not words:
        raise KglmError("a text is missing", remedy='give one in quotes, or "-" to read them from standard input')
    if len(words) == 1 and any(exists(Path(words[0]) / record) for record in ("run.json", "heads.json")):
        raise KglmError("the text is missing after the run", place=words[0], remedy="give a text in quotes")
    home = Path(words[0]) if len(words) == 2 else None
    if words[-1] == STANDARD_INPUT:
        return home, Prompts(_lines(Path(STANDARD_INPUT)), batch=True)
    return home, Prompts([words[-1]], batch=False)


def _lines(file: Path) -> Iterator[str]:
    """The lines of a file that are not blank."""
    from kglm.files import read_lines

    standard = str(file) == STANDARD_INPUT
    place = "standard input" if standard else file
    found = False
    for number, line in enumerate(sys.stdin.buffer, 1) if standard else read_lines(file):
        try:
            text = line.decode().lstrip("\ufeff").strip()
        except UnicodeDecodeError as error:
            raise DataError("is not UTF-8", place=f"{place}, line {number}") from error
        if text:
            found = True
            yield text
    if not found:
        raise DataError("has no prompt", place=place, remedy="give one prompt a line")


def each_prompt(prompts: Prompts, answer: Callable[[str], None]) -> None:
    """Answer all prompts in order. Progress is shown if the answers do not appear on the terminal."""
    shown = prompts.batch and not sys.stdout.isatty()
    with progress("answering", None, "prompts", shown=shown) as advance:
        for text in prompts.texts:
            answer(text)
            sys.stdout.flush()
            advance()
