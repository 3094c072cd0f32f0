"""`kglm complete`, `kglm generate`, `kglm link`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kglm import bundled
from kglm.cli.output import Json, note, print_json, print_table, say
from kglm.errors import ConfigError, KglmError

if TYPE_CHECKING:
    from kglm.infer.live import Completion, Live

LINKS = ("average", "best", "sampled", "none")
COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")
Words = Annotated[
    list[str], typer.Argument(metavar="[RUN] TEXT", help="The run, if not that of the quickstart, and the text.")
]
Entities = Annotated[
    list[str] | None,
    typer.Option("--entity", metavar='"0:2=Q76"', help='Who is named, by places of words or by words: "Obama=Q76".'),
]
Edits = Annotated[
    list[str] | None,
    typer.Option("--edit", metavar='"HEAD RELATION TAIL"', help="As if this were the only such fact; nothing is kept."),
]
Creations = Annotated[
    list[str] | None,
    typer.Option("--new-entity", metavar='"ID=LABEL|ALIAS|…"', help="As if there were this entity, before the edits."),
]
LinkHow = Annotated[
    str, typer.Option("--links", help=f"Names of which it is not said whose they are: {', '.join(LINKS)}.")
]
Kg = Annotated[Path | None, typer.Option("--kg", metavar="KG", help="Another graph than the one trained with.")]
Why = Annotated[bool, typer.Option("--why", help="Show the reasons for each word.")]


def complete(
    words: Words,
    entity: Entities = None,
    edit: Edits = None,
    new_entity: Creations = None,
    links: LinkHow = "average",
    seed: Annotated[int, typer.Option("--seed", help="Decides what is drawn with --links sampled.")] = 0,
    top: Annotated[int, typer.Option("--top", help="How many words to show.")] = 5,
    why: Why = False,
    kg: Kg = None,
    json: Json = False,
) -> None:
    """What comes next, with the facts it comes from."""
    model, prompt = _opened(words, kg, edit, new_entity)
    if top < 0:
        raise ConfigError(f"--top {top}", remedy="give 0 or more")
    if seed < 0:
        raise ConfigError(f"--seed {seed}", remedy="give 0 or more")
    found = model.complete(prompt, entity or (), top=top, links=links, seed=seed)  # type: ignore[arg-type]
    if json:
        print_json(found.to_json())
        return
    _print_completion(found, why)


def _print_completion(found: Completion, why: bool) -> None:
    for mention in found.mentions:
        if mention.p >= 0.005:
            name = " ".join(found.prompt[mention.start : mention.end])
            say(f"{name} = {mention.label} ({mention.id}), {mention.p:.1%}")
    rows: list[tuple[str, str, str]] = []
    for word in found.words:
        reasons = [reason for reason in word.reasons if reason.p >= 0.005 * word.p][: 5 if why else 1]
        shown = [f"{reason.p:.2%} {found.why(reason)}" for reason in reasons]
        rows.append((word.word, f"{word.p:.2%}", shown[0] if shown else ""))
        rows += [("", "", each) for each in shown[1:]]
    for kind, p in found.rest.items():
        if p >= 0.00005:
            rows.append(("", f"{p:.2%}", f"whatever further {'new entities' if kind == 'new' else 'facts'} would say"))
    print_table("", ("word", "", "because"), rows, right=(1,))


def generate(
    words: Words,
    entity: Entities = None,
    edit: Edits = None,
    new_entity: Creations = None,
    links: LinkHow = "best",
    count: Annotated[int, typer.Option("--words", help="How many words to say.")] = 40,
    seed: Annotated[int, typer.Option("--seed", help="Decides the draws.")] = 0,
    temperature: Annotated[float, typer.Option("--temperature", help="Below 1 bolder words are rarer.")] = 1.0,
    top_p: Annotated[float, typer.Option("--top-p", help="Draw from the words that make up this share.")] = 1.0,
    beam: Annotated[int, typer.Option("--beam", help="Width of a beam, instead of drawing; 1 is greedy.")] = 0,
    why: Why = False,
    kg: Kg = None,
    json: Json = False,
) -> None:
    """Go on with a text; every word knows the fact it came from."""
    from kglm.infer.generate import GenerateConfig
    from kglm.infer.live import reason_json
    from kglm.text.tokenizer import detokenize

    model, prompt = _opened(words, kg, edit, new_entity)
    config = GenerateConfig(count, temperature, top_p, seed, beam)
    spoken = list(model.generate(prompt, entity or (), config=config, links=links))  # type: ignore[arg-type]
    text = [*model.words(prompt), *(each.word for each in spoken)]
    if json:
        said = [{"word": each.word, "p": each.p, "reason": reason_json(model.graph, each.reason)} for each in spoken]
        print_json({"prompt": model.words(prompt), "words": said, "text": detokenize(text)})
    elif why:
        _print_spoken(model, prompt, spoken)
    else:
        say(detokenize(text))


def _print_spoken(model: Live, prompt: str, spoken: Any) -> None:
    """The text with its mentions in colour, and the facts they came by."""
    from rich.console import Console
    from rich.text import Text

    from kglm.infer.next_word import describe
    from kglm.text.document import END

    shown = Text(" ".join(model.words(prompt)))
    colours: dict[int, str] = {}
    facts: dict[str, str] = {}
    for word, _, reason in spoken:
        if word == END:
            continue
        style = ""
        if reason.entity >= 0:
            style = colours.setdefault(reason.entity, COLOURS[len(colours) % len(COLOURS)])
            facts.setdefault(describe(model.graph, reason._replace(copied=True)).removesuffix(", copied"), style)
        shown.append(" ")
        shown.append(word, style=style)
    console = Console(highlight=False, emoji=False)
    console.print(shown)
    console.print()
    for fact, style in facts.items():
        console.print(Text(f"  {fact}", style=style))


def link(words: Words, kg: Kg = None, json: Json = False) -> None:
    """Names in a text, and whom they may be of."""
    model, text = _opened(words, kg, None, None)
    tokens, linked = model.words(text), model.link(text)
    if json:
        mentions = [
            {
                "start": start,
                "end": end,
                "text": " ".join(tokens[start:end]),
                "candidates": [
                    {"id": model.graph.id(node), "label": model.graph.label(node), "p": p} for node, p in candidates
                ],
            }
            for start, end, candidates in linked
        ]
        print_json({"words": tokens, "mentions": mentions})
        return
    rows = [
        (" ".join(tokens[start:end]) if place == 0 else "", model.graph.id(node), model.graph.label(node), f"{p:.1%}")
        for start, end, candidates in linked
        for place, (node, p) in enumerate(candidates[:5])
    ]
    if not rows:
        say("no names of the graph stand in this text")
        return
    print_table("", ("name", "id", "entity", ""), rows, right=(3,))


def _opened(
    words: list[str], kg: Path | None, edits: list[str] | None, creations: list[str] | None
) -> tuple[Live, str]:
    """The run, with the edits tried out, and the text."""
    from kglm.infer.live import Live
    from kglm.kg.edits import NewEntity

    if len(words) > 2:
        raise KglmError(
            f"{len(words)} arguments",
            remedy='give a run and a text in quotes: kglm complete RUN "Barack Obama was born on"',
        )
    if len(words) == 1 and (Path(words[0]) / "run.json").exists():
        raise KglmError(f"{words[0]} is a run, and there is no text", remedy="give a text in quotes after it")
    home = Path(words[0]) if len(words) == 2 else bundled.default_run()
    if len(words) == 1:
        note("by the model that comes with kglm" if home == bundled.RUN else f"by the model in {home}")
    model = Live.open(home, kg=kg)
    created = [NewEntity.parse(text) for text in creations or ()]
    wanted: list[Any] = [*created, *(edits or ())]
    return (model.edited(wanted) if wanted else model), words[-1]
