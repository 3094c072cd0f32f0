"""Entry point of the command: the list of verbs, and exit codes.

0 done; 2 an error in the input, reported on one line; 130 interrupted; 1 a bug in kglm, with a traceback.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shlex
import sqlite3
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from kglm import __version__
from kglm.cli import annotation, answers, documents, evaluation, quickstart, serving, tables, training
from kglm.errors import KglmError

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Click's, of the copy of Click that Typer uses: its own since 0.20, the separate package before."""


class Verb(TyperCommand):
    """A command whose help shows no value for options that take none."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


class Verbs(TyperGroup):
    """A group of commands whose help shows no value for options that take none."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


class GraphVerbs(Verbs):
    """The verbs of `kglm kg`, imported when one of them is used: they need numpy."""

    def list_commands(self, ctx: Any) -> Any:
        return _graph_verbs().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _graph_verbs().get_command(ctx, cmd_name)


def _graph_verbs() -> Any:
    from kglm.cli import graph
    from kglm.cli.embed import embed
    from kglm.cli.verbalise import verbalise

    verbs = typer.Typer(cls=Verbs)
    verbs.registered_commands = list(graph.app.registered_commands)
    verbs.command("embed")(embed)
    verbs.command("verbalise")(verbalise)
    for verb in verbs.registered_commands:
        verb.cls = Verb
    return typer.main.get_command(verbs)


def _without_values(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


app = typer.Typer(
    name="kglm",
    help="Language models that take their facts from a knowledge graph.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(
    typer.Typer(cls=GraphVerbs, help="The knowledge graph: import, show, find, edit, embed, verbalise."), name="kg"
)
app.add_typer(tables.app, name="table")
app.command("annotate")(annotation.annotate)
app.command("train")(training.train)
app.command("evaluate")(evaluation.evaluate)
app.command("complete")(answers.complete)
app.command("generate")(answers.generate)
app.command("link")(answers.link)
app.command("serve")(serving.serve)
app.command("quickstart")(quickstart.quickstart)
app.command("stats")(documents.stats)
app.command("doctor")(documents.doctor)

for group in (app, tables.app):
    group.info.cls = Verbs
    for verb in group.registered_commands:
        verb.cls = Verb


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kglm {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and leave.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Language models that take their facts from a knowledge graph."""
    del version, debug  # --debug is taken from the arguments in `main`, wherever it stands


def main() -> None:
    """Entry point of the command."""
    # threads of one process that wait for each other by spinning can make small work many times slower
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    given = sys.argv[1:] or ["--help"]
    arguments = [argument for argument in given if argument != "--debug"]
    debug = len(arguments) < len(given) or bool(os.environ.get("KGLM_DEBUG"))
    _prepare_output()
    try:
        code = app(arguments, prog_name="kglm", standalone_mode=False)
        sys.stdout.flush()
    except (KglmError, sqlite3.DatabaseError) as error:
        if debug:
            raise
        remedy = "" if isinstance(error, KglmError) else "; look at the graph with: kglm doctor KG"
        _leave(f"error: {_with_path(error) if isinstance(error, KglmError) else error}{remedy}", 2)
    except UsageError as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "kglm")
        _leave(f"error: {error.format_message().rstrip('.')}; see {command} --help", 2)  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        _leave("interrupted", 130)
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if error.errno != errno.ENOSPC or debug:
            raise
        _leave("error: the report could not be written to standard output: the disk is full", 2)
    sys.exit(code if isinstance(code, int) else 0)


def _prepare_output() -> None:
    """Characters that the terminal cannot show are no reason to fail, nor is a closed standard output."""
    if sys.stdout is None:  # type: ignore[unreachable, unused-ignore]
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _with_path(error: KglmError) -> str:
    """The message, with the file it is about in the commands that it advises: "KG" cannot be typed."""
    if error.place is None or error.remedy is None:
        return str(error)
    advice = re.sub(r"(kglm kg \w+) KG\b", lambda match: f"{match[1]} {shlex.quote(error.place or '')}", error.remedy)
    return str(KglmError(error.what, place=error.place, remedy=advice))


def _leave(message: str, code: int) -> None:
    print(message, file=sys.stderr)
    sys.exit(code)
