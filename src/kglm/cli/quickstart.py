"""`kglm quickstart`: the whole story on the bundled world, in minutes on two cores."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kglm import bundled
from kglm.cli.output import say

PROMPT = "Barack Obama was born on"
EDIT = "Barack Obama date of birth 21 March 2013"


def quickstart(
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Where everything goes.")] = bundled.QUICKSTART,
    texts: Annotated[int, typer.Option("--texts", min=1, help="How many texts about each entity to train on.")] = 14,
    entities: Annotated[
        int | None, typer.Option("--entities", min=20, help="Write about the first so many only, for a quick look.")
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="How often they are read.")] = 2,
    config: Annotated[str, typer.Option("--config", help="Sizes of the models, as of train.")] = "quickstart",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Decides all that is drawn.")] = 0,
) -> None:
    """Build a graph, write a corpus about it, train, measure, complete, edit a fact. Stopped, it goes on again."""
    from kglm.cli import answers, tables
    from kglm.evaluate.rows import perplexity_table, score_runs
    from kglm.parallel import available_cores
    from kglm.quickstart import Quickstart, QuickstartConfig

    options = QuickstartConfig(entities=entities, texts=texts, epochs=epochs, settings=config, seed=seed)
    story = Quickstart(to, options)
    story.begin()
    started = time.monotonic()
    with _step("1  A graph", f"kglm kg import facts.tsv --entities entities.jsonl --to {story.kg}"):
        if report := story.build():
            say(f"{report.facts:,} facts of {report.entities:,} entities")
    with _step("2  Texts about it, and questions about entities that they never mention"):
        story.write()
    with _step("3  A linked corpus", f"kglm annotate {story.texts} --kg {story.kg} --to {story.corpus}"):
        story.annotate()
    with _step("4  Vectors of entities", f"kglm kg embed {story.kg} --dim {story.config.dim}"):
        if vectors := story.embed():
            say(f"filtered MRR {vectors.mrr:.3f}, Hits@10 {vectors.hits10:.3f}")
    runs = {model: story.run(model) for model in ("kglm", "awd-lstm", "proposal")}
    data = f"--data {story.corpus} --valid {story.checked_corpus} --kg {story.kg}"
    with _step("5  Three models", f"kglm train kglm {data} --config {config} --to {runs['kglm']}"):
        story.train()
    kglm, plain, proposal = map(str, runs.values())
    title = "6  Perplexity of articles about entities that were held out, in wordings that were held out"
    with _step(title, f"kglm table perplexity --run {plain} --run {kglm} --data {story.held_corpus}"):
        held, workers = [story.held_corpus], available_cores()
        scored = score_runs([plain, kglm], held, (), "particle", 100, workers=workers)
        scored += score_runs([kglm], held, [Path(proposal)], "importance", 100, workers=workers)
        tables.print_perplexity(perplexity_table(scored))
        say("The proposal of importance sampling has never read these names and misses most of them; the particle")
        say("filter finds them in the graph.")
    asked = f"kglm table completion {story.questions} --run {plain} --run {kglm}"
    modes = ["plain", "oracle", "linked"]
    with _step("7  Questions about entities that were held out, in wordings that were held out", asked):
        rows = story.home / "answers.jsonl"
        tables.completion(story.questions, [plain, kglm], mode=modes, rows=rows, published=False)
        if story.strange_questions.stat().st_size:
            say("\nThe same, in wordings with a word that nothing else uses for the relation: guesses")
            rows = story.home / "strange-answers.jsonl"
            tables.completion(story.strange_questions, [plain, kglm], mode=modes, rows=rows, published=False)
    named = "" if to == bundled.QUICKSTART else f"{kglm} "
    with _step("8  A fact that is in no training text", f'kglm complete {named}"{PROMPT}" --why'):
        answers.complete([kglm, PROMPT], why=True, top=3)
    with _step("9  … and after an edit of the graph", f'kglm complete {named}"{PROMPT}" --edit "{EDIT}" --why'):
        answers.complete([kglm, PROMPT], edit=[EDIT], why=True, top=3)
    say(f"\nDone in {(time.monotonic() - started) / 60:.1f} minutes.")
    if not named:
        say(f"Here, kglm complete, generate, link and serve now take {kglm} if no run is named.")
    say(f"Look at it: kglm serve {named}--allow-edit")


@contextmanager
def _step(title: str, command: str = "") -> Iterator[None]:
    """A part of the story, with the verb that does it and the time it took."""
    say(f"\n{title}")
    if command:
        say(f"   {command}")
    started = time.monotonic()
    yield
    say(f"   ({time.monotonic() - started:.0f} s)")
