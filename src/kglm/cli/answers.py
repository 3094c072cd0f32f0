"""`kglm complete`, `kglm generate`, `kglm link`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kglm import bundled
from kglm.cli.output import Json, note, print_json, print_table, say
from kglm.errors import ConfigError, DataError, KglmError
from kglm.files import exists
from kglm.kg.edits import NewEntity
from kglm.text.document import END
from kglm.text.vocabulary import UNKNOWN

if TYPE_CHECKING:
    from kglm.answer.completion import Completion
    from kglm.answer.model import FactAwareLM

LINKS = ("average", "best", "sampled", "none")
NO_NAME = "no name of the graph stands in this text (names begin with a capital)"
SAID = {END: "end of sentence", UNKNOWN: "unknown word"}
"""Words of the model that are no words, for people; JSON has them as they are."""
LEAST_SHARE = 0.005
"""Of a word's probability: reasons with less are not shown."""
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


def complete(
    words: Words,
    entity: Entities = None,
    edit: Edits = None,
    new_entity: Creations = None,
    links: LinkHow = "average",
    seed: Annotated[int, typer.Option("--seed", help="Decides what is drawn with --links sampled.")] = 0,
    top: Annotated[int, typer.Option("--top", help="How many words to show.")] = 5,
    why: Annotated[bool, typer.Option("--why", help="All reasons for a word, not only the first.")] = False,
    kg: Kg = None,
    json: Json = False,
) -> None:
    """What comes next, with the facts it comes from."""
    _demand_at_least(1, "--top", top)
    _demand_at_least(0, "--seed", seed)
    model, prompt = _opened(words, kg, edit, new_entity)
    found = model.complete(prompt, entity or (), top=top, links=links, seed=seed)  # type: ignore[arg-type]
    if json:
        print_json(found.to_json())
        return
    if not found.mentions and links != "none":
        say(NO_NAME)
    _print_completion(found, why)


def _print_completion(found: Completion, why: bool) -> None:
    for mention in found.mentions:
        if mention.p >= 0.005:
            name = " ".join(found.prompt[mention.start : mention.end])
            say(f"{name} = {mention.label} ({mention.id}), {mention.p:.1%}")
    rows: list[tuple[str, float, str]] = []
    for word in found.words:
        reasons = [reason for reason in word.reasons if reason.p >= LEAST_SHARE * word.p][: None if why else 1]
        shown = [f"{reason.p:.2%} {reason}" for reason in reasons]
        rows.append((SAID.get(word.word, word.word), word.p, shown[0] if shown else ""))
        rows += [("", 0.0, each) for each in shown[1:]]
    others = 1 - sum(word.p for word in found.words) - sum(found.rest.values())
    rows += [
        (name, p, because)
        for name, p, because in (
            ("other words", others, ""),
            ("other names", found.rest.get("new", 0.0), "new entities that are less likely than those looked at"),
            ("other names", found.rest.get("related", 0.0), "facts that are less likely than those looked at"),
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
    count: Annotated[int, typer.Option("--words", help="How many words to say.")] = 40,
    seed: Annotated[int, typer.Option("--seed", help="Decides the draws.")] = 0,
    temperature: Annotated[float, typer.Option("--temperature", help="Below 1 bolder words are rarer.")] = 0.7,
    top_p: Annotated[float, typer.Option("--top-p", help="Draw from the words that make up this share.")] = 0.9,
    beam: Annotated[int, typer.Option("--beam", help="Width of a beam, instead of drawing; 1 is greedy.")] = 0,
    why: Annotated[bool, typer.Option("--why", help="Show the fact that each name came by.")] = False,
    kg: Kg = None,
    json: Json = False,
) -> None:
    """Go on with a text; every word knows the fact it came from."""
    _demand_at_least(1, "--words", count)
    _demand_at_least(0, "--beam", beam)
    model, prompt = _opened(words, kg, edit, new_entity)
    from kglm.answer.completion import Reason
    from kglm.answer.generate import GenerateConfig
    from kglm.cli.spoken import print_flowing, print_with_facts
    from kglm.text.tokenizer import detokenize

    config = GenerateConfig(count, temperature, top_p, seed, beam)
    spoken = model.generate(prompt, entity or (), config=config, links=links)  # type: ignore[arg-type]
    begun = model.words(prompt)
    if json:
        said = [(each.word, each.p, Reason.of(model.graph, each.reason).to_json()) for each in spoken]
        listed = [{"word": word, "p": p, "reason": reason} for word, p, reason in said]
        print_json({"prompt": begun, "words": listed, "text": detokenize([*begun, *(word for word, _, _ in said)])})
    elif why:
        print_with_facts(model.graph, begun, list(spoken))
    else:
        print_flowing(begun, (each.word for each in spoken))


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
        say(NO_NAME)
        return
    print_table("", ("name", "id", "entity", ""), rows, right=(3,))


def _opened(
    words: list[str], kg: Path | None, edits: list[str] | None, creations: list[str] | None
) -> tuple[FactAwareLM, str]:
    """The run, with the edits tried out, and the text. What can be refused is refused before anything is loaded."""
    if len(words) > 2:
        raise KglmError(
            f"{len(words)} arguments",
            remedy='give a run and a text in quotes: kglm complete RUN "Barack Obama was born on"',
        )
    if len(words) == 1 and exists(Path(words[0]) / "run.json"):
        raise KglmError(f"{words[0]} is a run, and there is no text", remedy="give a text in quotes after it")
    home = Path(words[0]) if len(words) == 2 else bundled.default_run()
    if not exists(home / "run.json"):
        raise DataError(
            "is not a run", place=home, remedy="give one made by kglm train … --to RUN, or only a text, in quotes"
        )
    if kg is not None and not exists(kg):
        raise DataError("no such file", place=kg, remedy="give a graph made by: kglm kg import")
    wanted: list[Any] = [*(NewEntity.parse(text) for text in creations or ()), *(edits or ())]
    if len(words) == 1:
        note("by the model that comes with kglm" if home == bundled.RUN else f"by the model in {home}")
    from kglm.answer.model import FactAwareLM

    model = FactAwareLM.open(home, kg=kg)
    return (model.edited(wanted) if wanted else model), words[-1]


def _demand_at_least(least: int, option: str, value: int) -> None:
    if value < least:
        raise ConfigError(f"{option} {value}", remedy=f"give at least {least}")
