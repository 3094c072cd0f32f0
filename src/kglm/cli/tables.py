"""`kglm table`: the tables of the paper, every row from the same data."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import typer

from kglm.cli.output import Json, print_json, print_table, warn
from kglm.errors import ConfigError

app = typer.Typer(help="The tables of the paper.", no_args_is_help=True)


@app.callback()
def tables() -> None:
    """The tables of the paper, every row from the same data."""


@app.command()
def completion(
    prompts: Annotated[Path, typer.Argument(metavar="PROMPTS.jsonl", help="Sentences that lack their last part.")],
    run: Annotated[list[Path], typer.Option("--run", metavar="RUN", help="A trained model; may be given again.")],
    kg: Annotated[Path | None, typer.Option("--kg", metavar="KG", help="Another graph.")] = None,
    mode: Annotated[list[str] | None, typer.Option("--mode", help="oracle, linked, shortlist, plain.")] = None,
    scorer: Annotated[str, typer.Option("--scorer", help="Which scorer the table shows; JSON has all.")] = "strict",
    rows: Annotated[Path | None, typer.Option("--rows", metavar="FILE", help="One JSON line a prompt.")] = None,
    json: Json = False,
) -> None:
    """Fact completion: how often the right word comes first, or among the first five."""
    from kglm.evaluate.completion import complete_all, table, wanted_modes
    from kglm.evaluate.prompts import SCORERS, read_prompts
    from kglm.train.run import Run

    if scorer not in SCORERS:
        raise ConfigError(f"there is no scorer {scorer!r}", remedy=f"use one of {', '.join(SCORERS)}")
    asked = read_prompts(prompts)
    runs = {_name(path, run): Run.open(path, kg=kg) for path in dict.fromkeys(run)}
    for name, each in runs.items():
        wanted_modes(name, each, mode or ())
    found = [row for name, each in runs.items() for row in complete_all(name, each, asked, mode or ())]  # type: ignore[arg-type]
    if strangers := {row.prompt.id for row in found if not row.known and row.mode != "plain"}:
        warn(f"{len(strangers)} subjects of the prompts are not in the graph: they are read as plain words")
    if rows is not None:
        _write_rows(rows, [row.to_json() for row in found])
    cells = table(found)
    if json:
        print_json({"rows": cells})
        return
    shown = [cell for cell in cells if cell["scorer"] == scorer]
    relations = list(dict.fromkeys(cell["relation"] for cell in shown))
    lines = []
    for model, how in dict.fromkeys((cell["model"], cell["mode"]) for cell in shown):
        ours = {cell["relation"]: cell for cell in shown if (cell["model"], cell["mode"]) == (model, how)}
        share = ours["average"]["from_fact"]
        lines.append(
            (model, how, *(_pair(ours[relation]) for relation in relations), "" if share is None else f"{share:.0f}")
        )
    columns = ("model", "mode", *relations, "from the fact")
    print_table(f"{len(asked)} prompts, {scorer}, @1 / @5 in %", columns, lines, right=range(2, len(columns)))


def _name(path: Path, paths: list[Path]) -> str:
    """The name of a run's directory, or its whole path if another has the same."""
    name = path.resolve().name
    return name if sum(other.resolve().name == name for other in set(paths)) == 1 else str(path)


def _pair(cell: dict[str, Any]) -> str:
    return f"{cell['at1']:.1f} / {cell['at5']:.1f}"


@app.command()
def editing(
    run: Annotated[Path, typer.Option("--run", metavar="RUN", help="A trained KGLM.")],
    edits: Annotated[int, typer.Option("--edits", help="How many facts to change, one at a time.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Decides which.")] = 0,
    rows: Annotated[Path | None, typer.Option("--rows", metavar="FILE", help="One JSON line an edit.")] = None,
    json: Json = False,
) -> None:
    """Edits: whether the words follow the graph, and whether anything else changes. The stored graph does not."""
    from kglm.evaluate.editing import measure_edits, summary, to_json
    from kglm.infer.live import Live

    if edits < 1:
        raise ConfigError(f"--edits {edits}", remedy="give at least 1")
    trials = measure_edits(Live.open(run), edits, seed=seed)
    if len(trials) < edits:
        warn(f"{len(trials)} facts were found that can be edited: with one tail, and names that begin differently")
    if rows is not None:
        _write_rows(rows, [to_json(trial) for trial in trials])
    result = summary(trials)
    if json:
        print_json(result)
        return
    shown = [
        ("efficacy, %", result["efficacy"], "the new tail is more probable than the old one"),
        ("first, %", result["first"], "the best word is one of the new tail"),
        ("before, %", result["before"], "the best word was one of the old tail"),
        ("paraphrase, %", result["paraphrase"], "also after another wording"),
        ("neighbourhood, %", result["neighbourhood"], "after the same wording about another, mentioned beside X, too"),
        ("locality, %", result["locality"], "what has nothing to do with the fact is as before, to 1e-9"),
        ("seconds", result["seconds_per_edit"], "for an edit and the completion after it"),
    ]
    print_table(f"{result['edits']} edits of {run}", ("", "", ""), shown, right=(1,))


def _write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    from kglm.files import atomic_file

    with atomic_file(path) as stream:
        for row in rows:
            stream.write((json_module.dumps(row, ensure_ascii=False) + "\n").encode())
