"""`kglm evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kglm.cli.bundled_world import graph_option
from kglm.cli.output import Json, print_json, print_line, print_table
from kglm.cli.overwrite import Force, check_output
from kglm.errors import ConfigError

METHODS = ("particle", "importance", "beam", "exact", "annotated")
ROWS = {
    "ppl": "perplexity",
    "base_ppl": "perplexity of the base alone",
    "share": "share of the base's perplexity",
    "upp": "unknown-penalised perplexity",
    "ppl_mention": "perplexity of words inside mentions",
    "ppl_other": "perplexity of other words",
    "share_mention": "share of the base's, words inside mentions",
    "share_other": "share of the base's, other words",
    "upp_mention": "unknown-penalised, inside mentions",
    "upp_other": "unknown-penalised, other words",
    "ppl_corpus": "perplexity by the published protocol (one weight per pass over the corpus)",
    "nats_mention": "nats of words inside mentions, per word of all text",
    "base_nats_mention": "the same of the base alone",
    "documents": "documents",
    "tokens": "words",
    "unknown_tokens": "words outside the vocabulary",
    "unexplained_mentions": "mentions that no fact explains",
    "ess_median": "effective samples, median over documents",
    "k_hat_max": "Pareto k̂, maximum",
    "tokens_per_second": "words per second",
}


def evaluate(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A run, or a pretrained model: smollm2, a Hugging Face folder, a .gguf file.",
        ),
    ],
    data: Annotated[
        list[Path],
        typer.Option(
            "--data",
            metavar="DOCS",
            help="Documents; annotations are needed for --method annotated only.",
        ),
    ],
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help=f"Estimate by: {', '.join(METHODS)}. Default: exact on a pretrained model, else particle.",
        ),
    ] = None,
    proposal: Annotated[
        Path | None,
        typer.Option("--proposal", metavar="RUN", help="Proposal that importance sampling draws from."),
    ] = None,
    samples: Annotated[int, typer.Option("--samples", help="Number of particles or samples, or the beam width.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Random seed.")] = 0,
    temperature: Annotated[float, typer.Option("--temperature", help="Temperature of the proposal.")] = 1.0,
    peek: Annotated[bool, typer.Option("--peek/--no-peek", help="Let the proposal see the word it labels.")] = True,
    block: Annotated[
        int, typer.Option("--block", help="Samples that importance sampling draws at once; fewer need less memory.")
    ] = 256,
    aggregate: Annotated[
        str, typer.Option("--aggregate", help="document, or corpus to add the published protocol.")
    ] = "document",
    cache: Annotated[
        float, typer.Option("--cache", help="Weight of a continuous cache for words outside mentions; 0 is off.")
    ] = 0.0,
    theta: Annotated[float, typer.Option("--cache-theta", help="Weight of similar states in --cache.")] = 0.3,
    window: Annotated[int, typer.Option("--cache-window", help="Number of words in --cache.")] = 4000,
    dynamic: Annotated[
        float, typer.Option("--dynamic", help="Step size of dynamic evaluation (awd-lstm only); 0 is off.")
    ] = 0.0,
    decay: Annotated[float, typer.Option("--dynamic-decay", help="Decay of --dynamic to the trained weights.")] = 0.001,
    workers: Annotated[int, typer.Option("--workers", help="Number of processes.")] = 1,
    weights: Annotated[
        Path | None, typer.Option("--weights", metavar="FILE.npy", help="Write the log weights, one row per document.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="RESULT.json", help="Write the results, for kglm table perplexity.")
    ] = None,
    force: Force = False,
    kg: Annotated[
        Path | None,
        typer.Option("--kg", metavar="KG", help="Use this graph instead of the run's own.", callback=graph_option),
    ] = None,
    links: Annotated[
        str, typer.Option("--links", help="Link entities by the text so far, or as annotated (heads only).")
    ] = "text",
    control: Annotated[
        str | None,
        typer.Option("--control", help="Another graph, to compare with: shuffled or absent (heads only)."),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option("--features", metavar="DIR", help="Store the states of the base there (heads only)."),
    ] = None,
    json: Json = False,
) -> None:
    """Measure the perplexity of documents, summed over their possible annotations, with confidence intervals."""
    import numpy as np

    from kglm.evaluate.adaptive import Adaptation
    from kglm.evaluate.heads import HeadsReport, evaluate_heads, heads_task
    from kglm.evaluate.perplexity import PerplexityReport, Task, corpus_protocol
    from kglm.evaluate.perplexity import evaluate as run_evaluation
    from kglm.evaluate.pretrained import evaluate_pretrained, open_pretrained
    from kglm.files import atomic_file, write_json
    from kglm.heads.store import is_heads
    from kglm.marginal.cache import Cache
    from kglm.marginal.estimate import MarginalConfig
    from kglm.runs.run import read_for_training

    if method is not None and method not in METHODS:
        raise ConfigError(f"there is no method {method!r}", remedy=f"use one of {', '.join(METHODS)}")
    if aggregate not in ("document", "corpus"):
        raise ConfigError(f"--aggregate {aggregate}", remedy="use document or corpus")
    if aggregate == "corpus" and method != "importance":
        raise ConfigError("--aggregate corpus needs samples to average", remedy="use it with --method importance")
    for file in (weights, to):
        if file is not None and (file.is_dir() or not file.parent.is_dir()):
            raise ConfigError("cannot be written", place=file, remedy="give a file in a directory that exists")
    check_output(weights, force, "--weights")
    check_output(to, force)
    if workers < 1:
        raise ConfigError(f"--workers {workers}", remedy="give at least 1")
    config = MarginalConfig(samples=samples, seed=seed, temperature=temperature, peek=peek, block=block)
    documents = read_for_training(data)
    if not documents:
        raise ConfigError("contains no documents", place=data[0], remedy="give a file with at least one")
    adaptation = Adaptation(Cache(cache, theta, window), rate=dynamic, decay=decay)
    report: PerplexityReport | HeadsReport
    plain = not (adaptation or proposal or weights) and aggregate == "document" and method in (None, "exact")
    if is_heads(Path(run)):
        if not plain:
            raise ConfigError(
                "heads are scored exactly, without samples, proposal or cache",
                place=run,
                remedy="give only --data, --kg, --links, --control, --features, --workers, --to and --json",
            )
        if links not in ("text", "annotated"):
            raise ConfigError(f"--links {links}", remedy="use text or annotated")
        heads = heads_task(Path(run), documents, kg=kg, annotated=links == "annotated", control=control, seed=seed)
        report = evaluate_heads(heads, documents, features=features, workers=workers)
    elif links != "text" or control is not None or features is not None:
        raise ConfigError(
            "--links, --control and --features are for heads on a pretrained model", place=run, remedy="leave them out"
        )
    elif (model := open_pretrained(run)) is not None:
        if kg or not plain:
            raise ConfigError(
                "a pretrained model has no annotations, graph or cache", remedy="give only --data, --to and --json"
            )
        report = evaluate_pretrained(model, documents)
    else:
        task = Task(Path(run), method or "particle", config, proposal, kg, adaptation)  # type: ignore[arg-type]
        report = run_evaluation(task, documents, workers=workers)
    result = report.to_json(seed=seed) | {"seed": seed}
    if aggregate == "corpus" and isinstance(report, PerplexityReport):
        result["ppl_corpus"] = corpus_protocol(report.scored)
    if weights is not None and isinstance(report, PerplexityReport):
        with atomic_file(weights) as stream:
            np.save(stream, np.stack([scored.estimate.weights for scored in report.scored]), allow_pickle=False)
    if to is not None:
        write_json(to, result)
    if json:
        print_json(result)
        return
    _print(result, run)


def _print(result: dict[str, Any], run: str) -> None:
    title = f"{run}: {result['model']} by {result['method']}"
    if result["method"] in ("particle", "importance", "beam"):
        title += f" {result['samples']}"
    rows = []
    for name, text in ROWS.items():
        if result.get(name) is not None and (name != "unexplained_mentions" or result[name]):
            bounds = result.get(f"{name}_interval")
            shown = f"{bounds[0]:.2f} – {bounds[1]:.2f}" if bounds else ""
            rows.append((text, result[name], shown))
    print_table(title, ("", "", "95 % over documents"), rows, right=(1, 2))
    if parts := result.get("components"):
        gains = [(name, -value, -(result["components_mention"] or {}).get(name, 0.0)) for name, value in parts.items()]
        total = ("sum", *(sum(column) for column in list(zip(*gains, strict=True))[1:]))
        rows = [(name, f"{all_words:+.4f}", f"{inside:+.4f}") for name, all_words, inside in [*gains, total]]
        print_table(
            "Nats per word of all text, beyond those of the base",
            ("", "all words", "inside mentions"),
            rows,
            right=(1, 2),
        )
    if note := result.get("note"):
        print_line(f"Note: {note}.")
    if result["method"] == "beam":
        print_line("The beam gives a lower bound of p(x): the perplexity is at most this.")
    elif result["method"] == "annotated" and not result["unexplained_mentions"]:
        print_line("The annotated joint likelihood is a lower bound of p(x): the perplexity is at most this.")
    elif result["method"] == "annotated":
        print_line("Not a bound: mentions that no fact explains are scored as plain words.")
