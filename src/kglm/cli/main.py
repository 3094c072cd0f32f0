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
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from kglm import __version__
from kglm.cli import (
    annotation,
    answers,
    bundled_world,
    documents,
    evaluation,
    features,
    quickstart,
    serving,
    tables,
    training,
)
from kglm.errors import KglmError

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Click's UsageError from the copy of Click that Typer uses: its own since 0.20, the separate package before."""


REPEATABLE = " Repeatable."


class Verb(TyperCommand):
    """A command with plainer help, see `_plain` and `_plain_usage`."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [_plain_usage(piece) for piece in super().collect_usage_pieces(ctx)]


class Verbs(TyperGroup):
    """A group of commands with plainer help."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))


class GraphVerbs(Verbs):
    """The verbs of `kglm kg`, imported when one of them is used: they need numpy."""

    def list_commands(self, ctx: Any) -> Any:
        return _graph_verbs().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _graph_verbs().get_command(ctx, cmd_name)


def _graph_verbs() -> Any:
    from kglm.cli import graph, graph_edit, graph_lists
    from kglm.cli.embed import embed
    from kglm.cli.graph_import import import_
    from kglm.cli.verbalise import verbalise

    verbs = typer.Typer(cls=Verbs)
    verbs.command("import")(import_)
    verbs.command("show")(graph.show)
    verbs.command("find")(graph.find)
    verbs.command("relations")(graph_lists.relations)
    verbs.command("edit")(graph_edit.edit)
    verbs.command("log")(graph_edit.log)
    verbs.command("export")(graph_lists.export)
    verbs.command("embed")(embed)
    verbs.command("verbalise")(verbalise)
    for verb in verbs.registered_commands:
        verb.cls = Verb
    return typer.main.get_command(verbs)


def _plain(params: list[Any]) -> list[Any]:
    """Show no value for options that take none, and mark those that can be given several times."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
        if getattr(param, "multiple", False) and param.help and REPEATABLE not in param.help:
            param.help += REPEATABLE
    return params


def _plain_usage(piece: str) -> str:
    """ "KG" instead of "{KG}", "SOURCE…" instead of "{SOURCE}...", "[RUN] TEXT" instead of "{[RUN] TEXT}..."."""
    if not piece.startswith("{"):
        return piece.replace("...", "…")
    name, _, dots = piece[1:].partition("}")
    return f"{name}…" if dots and " " not in name else name


USE, BUILD, MEASURE = "Use a model", "Build a model", "Measure and check"
app = typer.Typer(
    name="kglm",
    help="Language models that take their facts from a knowledge graph.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(
    typer.Typer(cls=GraphVerbs, help="The knowledge graph: import, show, find, edit, export, embed, verbalise."),
    name="kg",
    rich_help_panel=BUILD,
)
app.add_typer(tables.app, name="table", rich_help_panel=MEASURE)
app.command("complete", rich_help_panel=USE)(answers.complete)
app.command("ask", rich_help_panel=USE)(answers.ask)
app.command("generate", rich_help_panel=USE)(answers.generate)
app.command("link", rich_help_panel=USE)(answers.link)
app.command("serve", rich_help_panel=USE)(serving.serve)
app.command("world", rich_help_panel=USE)(bundled_world.world)
app.command("quickstart", rich_help_panel=BUILD)(quickstart.quickstart)
app.command("annotate", rich_help_panel=BUILD)(annotation.annotate)
app.command("features", rich_help_panel=BUILD)(features.features)
app.command("train", rich_help_panel=BUILD)(training.train)
app.command("evaluate", rich_help_panel=MEASURE)(evaluation.evaluate)
app.command("stats", rich_help_panel=MEASURE)(documents.stats)
app.command("doctor", rich_help_panel=MEASURE)(documents.doctor)

for group in (app, tables.app):
    group.info.cls = Verbs
    for verb in group.registered_commands:
        verb.cls = Verb


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"kglm {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Language models that take their facts from a knowledge graph."""
    del version, debug  # `main` reads --debug from any position


def main() -> None:
    """Entry point of the command."""
    # OpenMP threads that spin while they wait can make small operations many times slower
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
            traceback.print_exc()
        remedy = "" if isinstance(error, KglmError) else "; check the graph with: kglm doctor KG"
        _exit(f"error: {_with_path(error) if isinstance(error, KglmError) else error}{remedy}", 2)
    except UsageError as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "kglm")
        _exit(f"error: {error.format_message().rstrip('.')}; see {command} --help", 2)  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        _exit("interrupted", 130)
    except BrokenPipeError:  # the reader, such as `head`, closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if debug:
            traceback.print_exc()
        full = error.errno == errno.ENOSPC and error.filename is None
        _exit(f"error: {'the report cannot be written: the disk is full' if full else error}", 2)
    sys.exit(code if isinstance(code, int) else 0)


def _prepare_output() -> None:
    """Make output robust to characters that the terminal cannot show, and to a closed standard output."""
    if sys.stdout is None:  # type: ignore[unreachable, unused-ignore]
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _with_path(error: KglmError) -> str:
    """The message, with the path of the graph instead of "KG" in the commands that it recommends."""
    if error.place is None or error.remedy is None:
        return str(error)
    remedy = re.sub(r"(kglm kg \w+) KG\b", lambda match: f"{match[1]} {shlex.quote(error.place or '')}", error.remedy)
    return str(KglmError(error.what, place=error.place, remedy=remedy))


def _exit(message: str, code: int) -> None:
    print(message, file=sys.stderr)
    sys.exit(code)
