"""`kglm complete`, `kglm generate`, `kglm link`."""

from __future__ import annotations

from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kglm import bundled
from kglm.cli.output import Json, note, print_json, print_line, print_table
from kglm.errors import ConfigError, DataError, KglmError

if TYPE_CHECKING:
    from kglm.answer.completion import Completion
    from kglm.answer.model import FactAwareLM

LINKS = ("average", "best", "sampled", "none")
NO_NAME = "this text contains no name of the graph (names begin with a capital)"
MARKERS = {"@@END@@": "end of sentence", "@@UNKNOWN@@": "unknown word"}
"""Words of the vocabulary that stand for something else; tables show the meaning, JSON the marker."""
MIN_SHARE = 0.005
"""Share of a word's probability below which a reason is not shown."""
NO_ENTITY = "no entity of the graph"
SHOWN_P = 0.005
"""Less probable entities of a name, and NIL, are not shown."""
MAX_CANDIDATES = 5
"""Entities that `kglm link` shows for a name; JSON has all."""
Words = Annotated[
    list[str],
    typer.Argument(
        metavar="[RUN] TEXT",
        help="A run made by kglm train (default: the model that comes with kglm), and a text in quotes.",
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
Kg = Annotated[Path | None, typer.Option("--kg", metavar="KG", help="Use this graph instead of the run's own.")]


def complete(
    words: Words,
    entity: Entities = None,
    edit: Edits = None,
    new_entity: Creations = None,
    links: LinkHow = "average",
    seed: Annotated[int, typer.Option("--seed", help="Random seed for --links sampled.")] = 0,
    top: Annotated[int, typer.Option("--top", help="Number of words to show.")] = 5,
    why: Annotated[bool, typer.Option("--why", help="Show all reasons of a word, not only the main one.")] = False,
    kg: Kg = None,
    json: Json = False,
) -> None:
    """Predict the next word and show the facts behind each candidate."""
    _check_at_least(1, "--top", top)
    _check_at_least(0, "--seed", seed)
    model, prompt = _open(words, kg, edit, new_entity)
    completion = model.complete(prompt, entity or (), top=top, links=links, seed=seed)  # type: ignore[arg-type]
    if json:
        print_json(completion.to_json())
        return
    if not completion.mentions and links != "none":
        print_line(NO_NAME)
    _print_completion(completion, why)


def _print_completion(completion: Completion, why: bool) -> None:
    for _, group in groupby(completion.mentions, key=lambda mention: (mention.start, mention.end)):
        mentions = list(group)
        for mention in mentions:
            if mention.p >= SHOWN_P:
                print_line(str(mention))
        if mentions[0].id is not None and mentions[0].p_nil >= SHOWN_P:
            print_line(f"{mentions[0].text} = {NO_ENTITY}, {mentions[0].p_nil:.1%}")
    rows: list[tuple[str, float, str]] = []
    for word in completion.words:
        reasons = [reason for reason in word.reasons if reason.p >= MIN_SHARE * word.p][: None if why else 1]
        texts = [f"{reason.p:.2%} {reason}" for reason in reasons]
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
        if p >= 0.00005
    ]
    print_table(
        "", ("word", "", "because"), [(word, f"{p:.2%}" if word else "", why) for word, p, why in rows], right=(1,)
    )


def generate(
    words: Words,
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
    kg: Kg = None,
    json: Json = False,
) -> None:
    """Continue a text; --why and --json show the fact behind each name."""
    _check_at_least(1, "--words", count)
    _check_at_least(0, "--beam", beam)
    model, prompt = _open(words, kg, edit, new_entity)
    from kglm.cli.generated import print_stream, print_with_facts
    from kglm.text.tokenizer import detokenize

    generated = model.generate(
        prompt,
        entity or (),
        links=links,  # type: ignore[arg-type]
        words=count,
        temperature=temperature,
        top_p=top_p,
        seed=seed,
        beam=beam,
    )
    tokens = model.words(prompt)
    if json:
        result = list(generated)
        text = detokenize([*tokens, *(word.word for word in result)])
        print_json({"prompt": tokens, "words": [word.to_json() for word in result], "text": text})
    elif why:
        print_with_facts(tokens, list(generated))
    else:
        print_stream(tokens, (word.word for word in generated))


def link(words: Words, kg: Kg = None, json: Json = False) -> None:
    """Find names in a text and list the entities they may refer to."""
    model, text = _open(words, kg, None, None)
    tokens = model.words(text)
    mentions = model.link(tokens)
    if json:
        print_json({"prompt": tokens, "mentions": [mention.to_json() for mention in mentions]})
        return
    if not mentions:
        print_line(NO_NAME)
        return
    rows = []
    for _, group in groupby(mentions, key=lambda mention: (mention.start, mention.end)):
        listed = list(islice(group, MAX_CANDIDATES))
        for place, mention in enumerate(listed):
            entity = (mention.label or NO_ENTITY, mention.description or "")
            rows.append((mention.text if place == 0 else "", mention.id or "", *entity, f"{mention.p:.1%}"))
        if listed[0].id is not None and listed[0].p_nil >= SHOWN_P:
            rows.append(("", "", NO_ENTITY, "", f"{listed[0].p_nil:.1%}"))
    print_table("", ("name", "id", "entity", "description", ""), rows, right=(4,))


def _open(
    words: list[str], kg: Path | None, edits: list[str] | None, creations: list[str] | None
) -> tuple[FactAwareLM, str]:
    """Load the model with its edits; return it with the text. Checks the arguments first: loading takes seconds."""
    from kglm.files import exists
    from kglm.kg.edits import NewEntity

    if len(words) > 2:
        raise KglmError(
            f"{len(words)} arguments where at most 2 are expected",
            remedy='give a run and a text in quotes: kglm complete RUN "Barack Obama was born on"',
        )
    if len(words) == 1 and exists(Path(words[0]) / "run.json"):
        raise KglmError("the text is missing after the run", place=words[0], remedy="give a text in quotes")
    home = Path(words[0]) if len(words) == 2 else bundled.default_run()
    if not exists(home / "run.json"):
        raise DataError(
            "is not a run", place=home, remedy="give one made by: kglm train … --to RUN, or only a text, in quotes"
        )
    if kg is not None and not exists(kg):
        raise DataError("no such file", place=kg, remedy="give a graph made by: kglm kg import")
    steps: list[Any] = [*(NewEntity.parse(text) for text in creations or ()), *(edits or ())]
    if len(words) == 1:
        note("using the model that comes with kglm" if home == bundled.RUN else f"using the model in {home}")
    from kglm.answer.model import FactAwareLM

    model = FactAwareLM.open(home, kg=kg)
    return (model.edited(steps) if steps else model), words[-1]


def _check_at_least(minimum: int, option: str, value: int) -> None:
    if value < minimum:
        raise ConfigError(f"{option} {value}", remedy=f"give at least {minimum}")
