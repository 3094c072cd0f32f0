"""`kglm complete`, `kglm generate`, `kglm link`."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kglm import bundled
from kglm.cli.bundled_world import graph_option
from kglm.cli.output import Json, note, print_json, print_line, print_table
from kglm.cli.prompts import PromptFile, Prompts, each_prompt, run_and_prompts
from kglm.errors import ConfigError, DataError
from kglm.progress import progress

if TYPE_CHECKING:
    from kglm.answer.completion import Completion, Missing, Reasons
    from kglm.answer.mentions import LinkedMention
    from kglm.answer.model import FactAwareLM

LINKS = ("average", "best", "sampled", "none")
NO_NAME = "this text contains no name of the graph (names begin with a capital)"
MARKERS = {"@@END@@": "end of sentence", "@@UNKNOWN@@": "unknown word"}
"""Words of the vocabulary that stand for something else; tables show the meaning, JSON the marker."""
MIN_SHARE = 0.005
"""Share of an answer's or a word's probability below which a reason is not shown; the same for entities of a name."""
NO_ENTITY = "no entity of the graph"
MIN_NIL = 0.01
"""Probability of no entity from which it is shown beside the entities of a name."""
SHOWN_P = 0.00005
"""Probability from which a row of other words or answers is shown."""
MAX_CANDIDATES = 5
"""Entities that `kglm link` shows for a name; JSON has all."""
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RUN] TEXT",
        help="A run made by kglm train (default: the model that comes with kglm), and a text in quotes; - reads texts "
        "from standard input, one a line.",
    ),
]
Entities = Annotated[
    list[str] | None,
    typer.Option(
        "--entity",
        metavar='"0:2=Q76"',
        help='Entity of a name, by word positions or by words: "Obama=Q76".',
    ),
]
Edits = Annotated[
    list[str] | None,
    typer.Option(
        "--edit",
        metavar='"HEAD RELATION TAIL"',
        help="Replace the facts of this head and relation; the graph file stays.",
    ),
]
Creations = Annotated[
    list[str] | None,
    typer.Option(
        "--new-entity",
        metavar='"ID=LABEL|ALIAS|…"',
        help="Create this entity before the edits; the graph file stays.",
    ),
]
LinkHow = Annotated[
    str, typer.Option("--links", help=f"How to link names whose entity is not given: {', '.join(LINKS)}.")
]
Kg = Annotated[
    Path | None,
    typer.Option("--kg", metavar="KG", help="Use this graph instead of the run's own.", callback=graph_option),
]


def complete(
    words: Words = None,
    entity: Entities = None,
    edit: Edits = None,
    new_entity: Creations = None,
    links: LinkHow = "average",
    seed: Annotated[int, typer.Option("--seed", help="Random seed for --links sampled.")] = 0,
    top: Annotated[int, typer.Option("--top", help="Number of answers to show.")] = 5,
    by_word: Annotated[bool, typer.Option("--words", help="Show the next words instead of whole answers.")] = False,
    why: Annotated[bool, typer.Option("--why", help="Show all reasons of an answer, not only the main one.")] = False,
    file: PromptFile = None,
    kg: Kg = None,
    json: Json = False,
) -> None:
    """Predict how a text goes on: whole answers, with the facts behind each; --words shows the next word."""
    _check_at_least(1, "--top", top)
    _check_at_least(0, "--seed", seed)
    model, prompts = _open(words, file, kg, edit, new_entity)

    def answer(prompt: str) -> None:
        completion = model.complete(prompt, entity or (), top=top, links=links, seed=seed)  # type: ignore[arg-type]
        if json:
            print_json(completion.to_json(), line=prompts.batch)
            return
        if prompts.batch:
            print_line(prompt)
        if not completion.mentions and links != "none":
            print_line(NO_NAME)
        _print_completion(completion, by_word, why)
        if prompts.batch:
            print_line("")

    each_prompt(prompts, answer)


def _print_completion(completion: Completion, by_word: bool, why: bool) -> None:
    """The linked names, and the answers or the next words; a missing fact before them if it is more probable."""
    for _, group in groupby(completion.mentions, key=lambda mention: (mention.start, mention.end)):
        mentions = list(group)
        for mention in mentions:
            if mention.p >= MIN_SHARE:
                print_line(str(mention))
        if mentions[0].id is not None and mentions[0].p_nil >= MIN_NIL:
            print_line(f"{mentions[0].text} = {NO_ENTITY}, {mentions[0].p_nil:.1%}")
    missing = completion.notable_missing
    if missing is not None and completion.asks_for_missing:
        print_line(_missing(completion, missing))
    rows = _word_rows(completion, why) if by_word else _answer_rows(completion, why)
    shown = [(text, f"{p:.2%}" if text else "", because) for text, p, because in rows]
    print_table("", ("word" if by_word else "answer", "", "because"), shown, right=(1,))
    if missing is not None and not completion.asks_for_missing:
        print_line(_missing(completion, missing))


def _missing(completion: Completion, missing: Missing) -> str:
    """What the text asks for, and the command that adds it to the graph."""
    path = completion.graph.store.path
    if path.is_relative_to(bundled.HOME):  # part of the package
        return f'{missing} – add it for one question with: --edit "{missing.edit}"'
    return f'{missing} – add it with: kglm kg edit {shlex.quote(str(path))} --add "{missing.edit}"'


def _answer_rows(completion: Completion, why: bool) -> list[tuple[str, float, str]]:
    """Text, probability and reason of each answer, and of all others together."""
    rows: list[tuple[str, float, str]] = []
    for answer in completion.answers:
        texts = _reasons(answer.reasons, answer.p, why)
        rows.append((MARKERS.get(answer.text, answer.text), answer.p, texts[0] if why else str(answer.reasons[0])))
        rows += [("", 0.0, text) for text in texts[1:]]
    others = 1 - sum(answer.p for answer in completion.answers)
    return [*rows, ("other answers", others, "")] if others >= SHOWN_P else rows


def _word_rows(completion: Completion, why: bool) -> list[tuple[str, float, str]]:
    """Word, probability and reason of each next word, and of all others together."""
    rows: list[tuple[str, float, str]] = []
    for word in completion.words:
        texts = _reasons(word.reasons, word.p, why)
        rows.append((MARKERS.get(word.word, word.word), word.p, texts[0] if texts else ""))
        rows += [("", 0.0, text) for text in texts[1:]]
    others = 1 - sum(word.p for word in completion.words) - sum(completion.rest.values())
    rows += [
        (name, p, because)
        for name, p, because in (
            ("other words", others, ""),
            ("other names", completion.rest.get("new", 0.0), "new entities, less probable than those enumerated"),
            ("other names", completion.rest.get("related", 0.0), "facts, less probable than those enumerated"),
        )
        if p >= SHOWN_P
    ]
    return rows


def _reasons(reasons: Reasons, p: float, why: bool) -> list[str]:
    """The reasons that are shown, each with its part of the probability `p`: the main one, or all but tiny ones."""
    shown = [reason for reason in reasons if reason.p >= MIN_SHARE * p][: None if why else 1]
    return [f"{reason.p:.2%} {reason}" for reason in shown]


def generate(
    words: Words = None,
    entity: Entities = None,
    edit: Edits = None,
    new_entity: Creations = None,
    links: LinkHow = "best",
    count: Annotated[int, typer.Option("--words", help="Number of words to generate.")] = 40,
    seed: Annotated[int, typer.Option("--seed", help="Random seed.")] = 0,
    temperature: Annotated[
        float, typer.Option("--temperature", help="Below 1, improbable words become rarer; 0 is greedy.")
    ] = 0.7,
    top_p: Annotated[float, typer.Option("--top-p", help="Sample from the top words with this probability.")] = 0.9,
    beam: Annotated[int, typer.Option("--beam", help="Beam width instead of sampling; 1 is greedy.")] = 0,
    why: Annotated[bool, typer.Option("--why", help="Show the fact behind each name.")] = False,
    file: PromptFile = None,
    kg: Kg = None,
    json: Json = False,
) -> None:
    """Continue a text; --why and --json show the fact behind each name."""
    _check_at_least(1, "--words", count)
    _check_at_least(0, "--beam", beam)
    model, prompts = _open(words, file, kg, edit, new_entity)
    from kglm.answer.generate import GenerateConfig
    from kglm.cli.generated import print_stream, print_with_facts
    from kglm.text.tokenizer import detokenize

    config = GenerateConfig(count, temperature, top_p, seed, beam)
    streamed = not (json or why or beam) and sys.stdout.isatty()

    def answer(prompt: str) -> None:
        tokens = model.words(prompt)
        with progress("generating", count, "words", shown=not streamed and not prompts.batch) as advance:
            pause = partial(advance, 1 / max(beam, 1))
            generated = model.generate(prompt, entity or (), links=links, config=config, pause=pause)  # type: ignore[arg-type]
            if streamed:
                print_stream(tokens, (word.word for word in generated))
                return
            result = list(generated)
        if json:
            text = detokenize([*tokens, *(word.word for word in result)])
            record = {"prompt": tokens, "words": [word.to_json() for word in result], "text": text}
            print_json(record, line=prompts.batch)
        elif why:
            print_with_facts(tokens, result)
        else:
            print_stream(tokens, (word.word for word in result))

    each_prompt(prompts, answer)


def link(words: Words = None, file: PromptFile = None, kg: Kg = None, json: Json = False) -> None:
    """Find names in a text and list the entities they may refer to."""
    model, prompts = _open(words, file, kg, None, None)

    def answer(text: str) -> None:
        tokens = model.words(text)
        mentions = model.link(tokens)
        if json:
            record = {"prompt": tokens, "mentions": [mention.to_json() for mention in mentions]}
            print_json(record, line=prompts.batch)
            return
        if prompts.batch:
            print_line(text)
        if mentions:
            _print_links(mentions)
        else:
            print_line(NO_NAME)
        if prompts.batch:
            print_line("")

    each_prompt(prompts, answer)


def _print_links(mentions: list[LinkedMention]) -> None:
    rows = []
    for _, group in groupby(mentions, key=lambda mention: (mention.start, mention.end)):
        listed = list(islice(group, MAX_CANDIDATES))
        for place, mention in enumerate(listed):
            entity = (mention.label or NO_ENTITY, mention.description or "")
            rows.append((mention.text if place == 0 else "", mention.id or "", *entity, f"{mention.p:.1%}"))
        if listed[0].id is not None and listed[0].p_nil >= MIN_NIL:
            rows.append(("", "", NO_ENTITY, "", f"{listed[0].p_nil:.1%}"))
    print_table("", ("name", "id", "entity", "description", ""), rows, right=(4,))


def _open(
    words: list[str] | None,
    file: Path | None,
    kg: Path | None,
    edits: list[str] | None,
    creations: list[str] | None,
) -> tuple[FactAwareLM, Prompts]:
    """Load the model with its edits; return it with the prompts. Checks the arguments first: loading takes seconds."""
    from kglm.files import exists
    from kglm.kg.edits import NewEntity

    named, prompts = run_and_prompts(words or [], file)
    home = named or bundled.default_run()
    if not exists(home / "run.json"):
        raise DataError(
            "is not a run", place=home, remedy="give one made by: kglm train … --to RUN, or only a text, in quotes"
        )
    if kg is not None and not exists(kg):
        raise DataError("no such file", place=kg, remedy="give a graph made by: kglm kg import")
    steps: list[Any] = [*(NewEntity.parse(text) for text in creations or ()), *(edits or ())]
    if named is None:
        note("using the model that comes with kglm" if home == bundled.RUN else f"using the model in {home}")
    from kglm.answer.model import FactAwareLM

    model = FactAwareLM.open(home, kg=kg)
    return (model.edited(steps) if steps else model), prompts


def _check_at_least(minimum: int, option: str, value: int) -> None:
    if value < minimum:
        raise ConfigError(f"{option} {value}", remedy=f"give at least {minimum}")
