"""`kglm quickstart`: graph, corpus, training and evaluation on the bundled data, in minutes on two cores."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kglm import bundled
from kglm.cli.output import print_line

PROMPT = "Barack Obama was born on"
EDIT = "Barack Obama date of birth 21 March 2013"
QUESTIONS = (
    "Who is Kanye West married to?",
    "What is the capital of Australia?",
    "When did Marie Curie die?",
    "Who is Angela Merkel married to?",
)
"""Questions about the real world; the graph lacks the last answer."""
WORLD_EDIT = ("Who wrote Ulysses?", "Ulysses author Jane Austen")
TEXT = "The Eiffel Tower is"


def quickstart(
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FOLDER",
            help=f"Folder to write to: {bundled.QUICKSTART}, or {bundled.TRIAL} for a trial that is smaller than by "
            "default.",
        ),
    ] = None,
    texts: Annotated[int, typer.Option("--texts", min=1, help="Training texts per entity.")] = 14,
    entities: Annotated[
        int | None,
        typer.Option("--entities", min=20, help="Write about this many entities only, for a short trial."),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Passes over the training texts.")] = 2,
    config: Annotated[str, typer.Option("--config", help="Sizes of the models, as for kglm train.")] = "quickstart",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
) -> None:
    """Build a graph and a corpus, train, evaluate, complete, edit a fact. Run it again to resume."""
    from kglm.cli import answers, tables
    from kglm.evaluate.rows import perplexity_table, score_runs
    from kglm.parallel import available_cores
    from kglm.quickstart import Quickstart, QuickstartConfig

    options = QuickstartConfig(entities=entities, texts=texts, epochs=epochs, settings=config, seed=seed)
    to = to or options.home
    demo = Quickstart(to, options)
    demo.begin()
    started = time.monotonic()
    with _step("1  A graph", f"kglm kg import facts.tsv --entities entities.jsonl --to {demo.kg}"):
        if report := demo.build():
            print_line(f"{report.facts:,} facts of {report.entities:,} entities")
    with _step("2  Texts about its entities, and questions about entities that no text mentions"):
        demo.write()
    with _step("3  A linked corpus", f"kglm annotate {demo.texts} --kg {demo.kg} --to {demo.corpus}"):
        demo.annotate()
    with _step("4  Vectors of entities", f"kglm kg embed {demo.kg} --dim {demo.config.dim}"):
        if vectors := demo.embed():
            print_line(f"filtered MRR {vectors.mrr:.3f}, Hits@10 {vectors.hits10:.3f}")
    runs = {model: demo.run(model) for model in ("kglm", "awd-lstm", "proposal")}
    data = f"--data {demo.corpus} --valid {demo.checked_corpus} --kg {demo.kg}"
    with _step("5  Three models", f"kglm train kglm {data} --config {config} --to {runs['kglm']}"):
        demo.train()
    kglm, plain, proposal = map(str, runs.values())
    title = "6  Perplexity of articles with held-out entities and held-out wordings"
    with _step(title, f"kglm table perplexity --run {plain} --run {kglm} --data {demo.held_corpus}"):
        held, workers = [demo.held_corpus], available_cores()
        scored = score_runs([plain, kglm], held, (), "particle", 100, workers=workers)
        scored += score_runs([kglm], held, [Path(proposal)], "importance", 100, workers=workers)
        tables.print_perplexity(perplexity_table(scored))
        print_line("The proposal of importance sampling was not trained on these names and misses most of them;")
        print_line("the particle filter finds them in the graph.")
    command = f"kglm table completion {demo.questions} --run {plain} --run {kglm}"
    modes = ["plain", "oracle", "linked"]
    with _step("7  Questions about held-out entities in held-out wordings", command):
        rows = demo.home / "answers.jsonl"
        tables.completion(demo.questions, [plain, kglm], mode=modes, rows=rows, force=True, published=False)
        if demo.strange_questions.stat().st_size:
            print_line("\nThe same in wordings with a word that no other text uses for the relation: guesses")
            rows = demo.home / "strange-answers.jsonl"
            tables.completion(demo.strange_questions, [plain, kglm], mode=modes, rows=rows, force=True, published=False)
    named = "" if to == bundled.QUICKSTART else f"{kglm} "
    with _step("8  A fact that no training text states", f'kglm complete {named}"{PROMPT}" --why'):
        answers.complete([kglm, PROMPT], why=True, top=3)
    with _step("9  The same after an edit of the graph", f'kglm complete {named}"{PROMPT}" --edit "{EDIT}" --why'):
        answers.complete([kglm, PROMPT], edit=[EDIT], why=True, top=3)
    _ask_the_world()
    print_line(f"\nDone in {(time.monotonic() - started) / 60:.1f} minutes.")
    if not named:
        print_line(f"In this folder, kglm complete, generate, link and serve now use {kglm} by default.")
    elif options.is_trial:
        print_line(
            f"This is a small trial; kglm complete without a run does not use it: kglm complete {named}TEXT does."
        )
    print_line(f"Try it in a browser: kglm serve {named}--allow-edit")


def _ask_the_world() -> None:
    """Answers, an edit and a text of the pretrained model on the bundled world, if the model is installed."""
    from kglm.answer.model import default_run, load
    from kglm.answer.pretrained.model import PretrainedLM
    from kglm.cli.generated import print_stream
    from kglm.heads.store import is_heads
    from kglm.pretrained.sources import INSTALL

    title = "10  The real world: a pretrained language model, with facts from a part of Wikidata"
    home = default_run()
    if not is_heads(home):
        print_line(f"\n{title}\n   left out: it needs the language model; {INSTALL}")
        return
    with _step(title):
        model = load(home)
        assert isinstance(model, PretrainedLM)
        for question in QUESTIONS:
            print_line(f'   kglm ask "{question}"\n{model.ask(question)}')
        question, edit = WORLD_EDIT
        print_line(f'   kglm ask "{question}" --edit "{edit}"\n{model.ask(question, edits=edit)}')
        print_line(f'   kglm generate "{TEXT}"')
        print_stream(TEXT, model.words(TEXT), model.generate(TEXT))


@contextmanager
def _step(title: str, command: str = "") -> Iterator[None]:
    """Print the title of a step, the command that does it, and the seconds it took."""
    print_line(f"\n{title}")
    if command:
        print_line(f"   {command}")
    started = time.monotonic()
    yield
    print_line(f"   ({time.monotonic() - started:.0f} s)")
