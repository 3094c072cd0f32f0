"""`kglm table`: the tables of the paper, with all rows measured on the same data."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from kglm import bundled
from kglm.cli.bundled_world import graph_option
from kglm.cli.output import Json, Markdown, print_json, print_line, print_markdown, print_table, warn
from kglm.cli.overwrite import Force, check_output
from kglm.errors import ConfigError

app = typer.Typer(help="Tables of the paper: perplexity, corpus, completion, editing.", no_args_is_help=True)
Chart = Annotated[Path | None, typer.Option("--chart", metavar="FILE.svg", help="Also draw a bar chart.")]
Published = Annotated[
    bool,
    typer.Option("--published/--no-published", help="Show the paper's numbers too, which are from other data."),
]
PUBLISHED = "(published, other data)"
CORPUS_ROWS = {
    "documents": "Documents",
    "paper_tokens": "Tokens",
    "vocabulary": "Vocabulary",
    "mention_tokens": "Mention tokens",
    "mention_spans": "Mention spans",
    "unique_entities": "Unique entities",
    "unique_relations": "Unique relations",
}


@app.callback()
def tables() -> None:
    """Tables of the paper, with all rows measured on the same data."""


@app.command()
def perplexity(
    results: Annotated[
        list[Path] | None, typer.Argument(metavar="RESULT.json", help="Results written by kglm evaluate --to.")
    ] = None,
    run: Annotated[list[str] | None, typer.Option("--run", metavar="RUN", help="Score this run now.")] = None,
    data: Annotated[
        list[Path] | None, typer.Option("--data", metavar="DOCS", help="Documents to score the runs on.")
    ] = None,
    proposal: Annotated[
        list[Path] | None,
        typer.Option("--proposal", metavar="RUN", help="Proposal, for EntityNLM or importance."),
    ] = None,
    method: Annotated[str, typer.Option("--method", help="Method of kglm evaluate.")] = "particle",
    samples: Annotated[int, typer.Option("--samples", help="Number of particles or samples, or the beam width.")] = 100,
    workers: Annotated[int, typer.Option("--workers", help="Number of processes.")] = 1,
    kg: Annotated[Path | None, typer.Option("--kg", metavar="KG", help="Graph of heads on a pretrained model.")] = None,
    published: Published = True,
    chart: Chart = None,
    markdown: Markdown = False,
    json: Json = False,
) -> None:
    """Compare the perplexity of several models on the same documents, beside the published numbers."""
    from kglm.evaluate.published import perplexity_rows
    from kglm.evaluate.rows import perplexity_table, read_result, score_runs
    from kglm.plots import Series, bar_chart

    scored = [(path, read_result(path)) for path in results or ()]
    if run:
        if not data:
            raise ConfigError("--run without --data", remedy="give the documents to score: --data DOCS")
        scored += score_runs(run, data, proposal or (), method, samples, kg=kg, workers=workers)
    if not scored:
        raise ConfigError("nothing to show", remedy="give results of evaluate --to, or --run RUN --data DOCS")
    rows = perplexity_table(scored)
    if chart is not None:
        charted = [row for row in rows if row["upp"] is not None]
        series = [
            Series(name.upper(), (), [row[name] for row in charted], *_ends(charted, name)) for name in ("ppl", "upp")
        ]
        _write(chart, bar_chart("Perplexity (lower is better)", "", [row["model"] for row in charted], series))
    published_rows = perplexity_rows() if published else []
    if json:
        print_json({"rows": [*rows, *published_rows]})
        return
    print_perplexity(rows, published_rows, markdown=markdown)


def print_perplexity(
    rows: Sequence[dict[str, Any]], published: Sequence[dict[str, Any]] = (), *, markdown: bool = False
) -> None:
    """Print measured rows, then published ones."""
    shares = any(row["share"] is not None for row in rows)
    columns = (
        "",
        "PPL",
        "UPP",
        "UPP of AWD-LSTM's",
        "UPP in mentions",
        "UPP elsewhere",
        *["PPL of the base's"] * shares,
    )
    lines = [
        (
            row["model"],
            _with_interval(row, "ppl"),
            _with_interval(row, "upp"),
            "" if row["upp_ratio"] is None else f"{row['upp_ratio']:.2f}",
            _number(row["upp_mention"]),
            _number(row["upp_other"]),
            *[_with_interval(row, "share", places=3)] * shares,
        )
        for row in rows
    ]
    rest = [""] * (len(columns) - 3)
    lines += [(f"{row['model']} {PUBLISHED}", f"{row['ppl']}", f"{row['upp']}", *rest) for row in published]
    closed = next((row for row in rows if not row["note"]), rows[0])
    title = f"{closed['documents']} documents, {closed['tokens']:,} words; in brackets 95 % over documents"
    _show(title, columns, lines, markdown)
    for note, model in {row["note"]: row["model"] for row in rows if row["note"]}.items():
        print_line(f"\n{model}: {note}.")


@app.command()
def corpus(
    files: Annotated[list[Path], typer.Argument(metavar="DOCS.jsonl", help="Linked documents, one column per file.")],
    min_count: Annotated[int, typer.Option("--min-count", help="Minimum count of a word in the vocabulary.")] = 3,
    published: Published = True,
    chart: Chart = None,
    markdown: Markdown = False,
    json: Json = False,
) -> None:
    """Count documents, tokens and mentions of linked corpora, beside the published numbers of Linked WikiText-2."""
    from kglm.annotate.statistics import corpus_statistics
    from kglm.evaluate.published import CORPUS
    from kglm.plots import Series, bar_chart
    from kglm.text.document import SOURCES, read_documents
    from kglm.text.vocabulary import Vocabulary

    counts_of: dict[str, dict[str, Any]] = {}
    short = {path: f"{path.resolve().parent.name}/{path.name.partition('.')[0]}" for path in files}
    for path, name in short.items():
        words = len(Vocabulary.count(read_documents(path), min_count=min_count))
        counts = {**asdict(corpus_statistics(read_documents(path))), "vocabulary": words}
        counts_of[name if list(short.values()).count(name) == 1 else str(path)] = counts
    if chart is not None:
        series = [
            Series(name, (), [count["sources"][source] for source in SOURCES]) for name, count in counts_of.items()
        ]
        _write(chart, bar_chart("Mentions by source", "mentions", SOURCES, series))
    if json:
        print_json({"files": counts_of, **({"published": CORPUS} if published else {})})
        return
    published_columns = CORPUS if published else {}
    columns = ("", *counts_of, *(f"{name} of Linked WikiText-2 (published)" for name in published_columns))
    lines = [
        (text, *(_number(column.get(key)) for column in (*counts_of.values(), *published_columns.values())))
        for key, text in CORPUS_ROWS.items()
    ]
    _show("", columns, lines, markdown)


@app.command()
def completion(
    prompts: Annotated[Path, typer.Argument(metavar="PROMPTS.jsonl", help="Sentences without their last words.")],
    run: Annotated[
        list[str],
        typer.Option(
            "--run",
            metavar="RUN",
            help="A run, or a pretrained model: smollm2, folder, .gguf.",
        ),
    ],
    kg: Annotated[
        Path | None, typer.Option("--kg", metavar="KG", help="Graph instead of the runs' own.", callback=graph_option)
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option("--mode", help="Links of the subject: oracle, linked, shortlist, plain."),
    ] = None,
    scorer: Annotated[str, typer.Option("--scorer", help="Scorer that the table shows; JSON has all.")] = "strict",
    rows: Annotated[Path | None, typer.Option("--rows", metavar="FILE", help="Write one JSON line per prompt.")] = None,
    force: Force = False,
    published: Published = True,
    chart: Chart = None,
    markdown: Markdown = False,
    json: Json = False,
) -> None:
    """Measure fact completion: how often a right word is the first, or among the first five."""
    from kglm.evaluate.completion import complete_all, table, wanted_modes
    from kglm.evaluate.pretrained import complete_pretrained, open_pretrained
    from kglm.evaluate.prompts import SCORERS, read_prompts
    from kglm.evaluate.published import COMPLETION
    from kglm.runs.run import Run

    if scorer not in SCORERS:
        raise ConfigError(f"there is no scorer {scorer!r}", remedy=f"use one of {', '.join(SCORERS)}")
    check_output(rows, force, "--rows")
    questions = read_prompts(prompts)
    pretrained = {name: model for name in dict.fromkeys(run) if (model := open_pretrained(name)) is not None}
    paths = [Path(name) for name in dict.fromkeys(run) if name not in pretrained]
    runs = {_name(path, paths): Run.open(path, kg=kg) for path in paths}
    for name, opened in runs.items():
        wanted_modes(name, opened, mode or ())
    answers = [row for name, opened in runs.items() for row in complete_all(name, opened, questions, mode or ())]  # type: ignore[arg-type]
    if pretrained:
        graph = _graph(kg, runs)
        answers += [row for model in pretrained.values() for row in complete_pretrained(model, graph, questions)]
    if missing := {row.prompt.id for row in answers if not row.in_graph and row.mode != "plain"}:
        warn(f"{len(missing)} subjects of the prompts are not in the graph; they are read as plain words")
    if rows is not None:
        _write_rows(rows, [row.to_json() for row in answers])
    cells = table(answers)
    if chart is not None:
        _completion_chart(chart, [cell for cell in cells if cell["scorer"] == scorer])
    if json:
        print_json({"rows": cells, **({"published": COMPLETION} if published else {})})
        return
    shown = [cell for cell in cells if cell["scorer"] == scorer]
    relations = list(dict.fromkeys(cell["relation"] for cell in shown))
    lines = []
    for model, how in dict.fromkeys((cell["model"], cell["mode"]) for cell in shown):
        by_relation = {cell["relation"]: cell for cell in shown if (cell["model"], cell["mode"]) == (model, how)}
        share = by_relation["average"]["from_fact"]
        lines.append(
            (
                model,
                how,
                *(_pair(by_relation[relation]) for relation in relations),
                "" if share is None else f"{share:.0f}",
            )
        )
    for name, scores in COMPLETION.items() if published else ():
        pairs = (
            f"{scores[relation][0]} / {scores[relation][1]}" if relation in scores else "" for relation in relations
        )
        lines.append((f"{name} {PUBLISHED}", "", *pairs, ""))
    columns = ("model", "mode", *relations, "from the fact")
    _show(f"{len(questions)} prompts, {scorer}, @1 / @5 in %", columns, lines, markdown, words=2)


def _completion_chart(path: Path, cells: list[dict[str, Any]]) -> None:
    from kglm.plots import Series, bar_chart

    relations = list(dict.fromkeys(cell["relation"] for cell in cells))
    series = []
    for model, how in dict.fromkeys((cell["model"], cell["mode"]) for cell in cells):
        at1_of = {cell["relation"]: cell["at1"] for cell in cells if (cell["model"], cell["mode"]) == (model, how)}
        name = model if how == "plain" else f"{model}, {how}"
        series.append(Series(name, (), [at1_of[relation] for relation in relations]))
    _write(path, bar_chart("A right word is the most probable", "%", relations, series))


def _graph(kg: Path | None, runs: dict[str, Any]) -> Any:
    """The graph that decides which words are right: the one given, or that of a run."""
    from kglm.kg.graph import KnowledgeGraph

    if kg is not None:
        return KnowledgeGraph.open(kg, whole=True)
    if not runs:
        raise ConfigError("no graph to decide which words are right", remedy="give --kg KG, or a run with --run")
    return next(iter(runs.values())).graph


def _show(
    title: str, columns: Sequence[str], lines: Sequence[Sequence[Any]], markdown: bool, *, words: int = 1
) -> None:
    """Print a table whose first columns are words, the others numbers."""
    show = print_markdown if markdown else print_table
    show(title, columns, lines, right=range(words, len(columns)))


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _with_interval(row: dict[str, Any], name: str, *, places: int = 1) -> str:
    """A number and the bounds of its interval."""
    if row[name] is None or row[f"{name}_interval"] is None:
        return "" if row[name] is None else f"{row[name]:,.{places}f}"
    low, high = row[f"{name}_interval"]
    shown = places if places > 1 else 0
    return f"{row[name]:,.{places}f} ({low:,.{shown}f} – {high:,.{shown}f})"


def _ends(rows: Sequence[dict[str, Any]], name: str) -> tuple[list[float], list[float]]:
    """Ends of the error bars; none if there is only one document."""
    intervals = [row[f"{name}_interval"] for row in rows]
    if None in intervals:
        return [], []
    return [low for low, _ in intervals], [high for _, high in intervals]


def _write(path: Path, text: str) -> None:
    from kglm.files import atomic_file

    with atomic_file(path) as stream:
        stream.write(text.encode())


def _name(path: Path, paths: list[Path]) -> str:
    """The folder name of a run, or its path if another run has the same name."""
    name = path.resolve().name
    return name if sum(other.resolve().name == name for other in set(paths)) == 1 else str(path)


def _pair(cell: dict[str, Any]) -> str:
    return f"{cell['at1']:.1f} / {cell['at5']:.1f}"


@app.command()
def editing(
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="A run of kglm train kglm; default: as for kglm complete.",
        ),
    ] = None,
    edits: Annotated[int, typer.Option("--edits", help="Number of facts to edit, one at a time.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Random seed.")] = 0,
    rows: Annotated[Path | None, typer.Option("--rows", metavar="FILE", help="Write one JSON line per edit.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Measure edits: do predictions change to the new fact, and stay the same for other facts? Nothing is stored."""
    from kglm.answer.model import FactAwareLM
    from kglm.evaluate.editing import measure_edits, summary, to_json

    if edits < 1:
        raise ConfigError(f"--edits {edits}", remedy="give at least 1")
    check_output(rows, force, "--rows")
    run = run or bundled.default_run()
    trials = measure_edits(FactAwareLM.open(run), edits, seed=seed)
    if len(trials) < edits:
        warn(f"only {len(trials)} facts can be edited: with one tail, and names that start differently")
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
        (
            "neighbourhood, %",
            result["neighbourhood"],
            "also for another entity that is mentioned beside the edited one",
        ),
        ("locality, %", result["locality"], "unrelated probabilities are unchanged, to 1e-9"),
        ("seconds", result["seconds_per_edit"], "for an edit and the completion after it"),
    ]
    print_table(f"{result['edits']} edits of {run}", ("", "", ""), shown, right=(1,))


def _write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    from kglm.files import atomic_file

    with atomic_file(path) as stream:
        for row in rows:
            stream.write((json_module.dumps(row, ensure_ascii=False) + "\n").encode())
