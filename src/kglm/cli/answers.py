"""`kglm complete`, `kglm ask`, `kglm generate`, `kglm link`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kglm import bundled
from kglm.cli.models import (
    Base,
    Creations,
    Edits,
    Entities,
    Kg,
    LinkHow,
    Trust,
    Words,
    check_at_least,
    open_model,
)
from kglm.cli.output import Json, print_json, print_line, print_table
from kglm.cli.prompts import PromptFile, each_prompt
from kglm.errors import ConfigError
from kglm.progress import progress

if TYPE_CHECKING:
    from kglm.answer.completion import Completion, Missing, Reasons
    from kglm.answer.mentions import LinkedMention

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
    base: Base = None,
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Predict how a text goes on: whole answers, with the facts behind each; --words shows the next word."""
    check_at_least(1, "--top", top)
    check_at_least(0, "--seed", seed)
    model, prompts = open_model(words, file, kg, edits=edit, creations=new_entity, base=base, trust=trust)

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


def ask(
    words: Words = None,
    entity: Entities = None,
    edit: Edits = None,
    new_entity: Creations = None,
    top: Annotated[int, typer.Option("--top", help="Number of answers to list.")] = 5,
    why: Annotated[bool, typer.Option("--why", help="Show the facts that lead to the answer.")] = False,
    file: PromptFile = None,
    kg: Kg = None,
    base: Base = None,
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Answer a question in a sentence, from facts of the graph; or say that the graph has none."""
    check_at_least(1, "--top", top)
    model, prompts = open_model(words, file, kg, edits=edit, creations=new_entity, base=base, trust=trust)

    def answer(question: str) -> None:
        reply = model.ask(question, entity or (), top=top)
        if json:
            print_json(reply.to_json(), line=prompts.batch)
            return
        if prompts.batch:
            print_line(question)
        if why:
            _print_mentions(reply.mentions)
        print_line(str(reply))
        if why:
            shown = [(each.text, f"{each.p:.2%}", str(each.reasons[0])) for each in reply.answers]
            print_table("", ("value", "", "because"), shown, right=(1,))
        if prompts.batch:
            print_line("")

    each_prompt(prompts, answer)


def _print_completion(completion: Completion, by_word: bool, why: bool) -> None:
    """The linked names, and the answers or the next words; a missing fact before them if it is more probable."""
    _print_mentions(completion.mentions)
    missing = completion.notable_missing
    if missing is not None and completion.asks_for_missing:
        print_line(_missing(completion, missing))
    rows = _word_rows(completion, why) if by_word else _answer_rows(completion, why)
    shown = [(text, f"{p:.2%}" if text else "", because) for text, p, because in rows]
    print_table("", ("word" if by_word else "answer", "", "because"), shown, right=(1,))
    if missing is not None and not completion.asks_for_missing:
        print_line(_missing(completion, missing))


def _print_mentions(mentions: Sequence[LinkedMention]) -> None:
    """The names of a prompt and their entities."""
    for _, group in groupby(mentions, key=lambda mention: (mention.start, mention.end)):
        candidates = list(group)
        for mention in candidates:
            if mention.p >= MIN_SHARE:
                print_line(str(mention))
        if candidates[0].id is not None and candidates[0].p_nil >= MIN_NIL:
            print_line(f"{candidates[0].text} = {NO_ENTITY}, {candidates[0].p_nil:.1%}")


def _missing(completion: Completion, missing: Missing) -> str:
    """What the text asks for, and the command that adds it to the graph."""
    from kglm.kg.store import READ_ONLY

    path = completion.graph.store.path
    if path.is_relative_to(bundled.HOME) or (path.parent / READ_ONLY).exists():  # part of the package
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
    grounded: Annotated[
        bool,
        typer.Option(
            "--grounded", help="Pretrained models: say only names, dates and numbers of the graph or the prompt."
        ),
    ] = False,
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
    base: Base = None,
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Continue a text; --why and --json show the fact behind each name."""
    check_at_least(1, "--words", count)
    check_at_least(0, "--beam", beam)
    model, prompts = open_model(words, file, kg, edits=edit, creations=new_entity, base=base, trust=trust)
    from kglm.answer.generate import GenerateConfig
    from kglm.answer.given import continued
    from kglm.cli.generated import print_stream, print_with_facts

    config = GenerateConfig(count, temperature, top_p, seed, beam)
    streamed = not (json or why or beam) and sys.stdout.isatty()
    if grounded and not model.is_pretrained:
        raise ConfigError("--grounded with a run without a pretrained language model", remedy="leave it out")
    options: dict[str, Any] = {"grounded": True} if grounded else {}

    def answer(prompt: str) -> None:
        tokens = model.words(prompt)
        with progress("generating", count, "words", shown=not streamed and not prompts.batch) as advance:
            pause = partial(advance, 1 / max(beam, 1))
            generated = model.generate(prompt, entity or (), links=links, config=config, pause=pause, **options)  # type: ignore[arg-type]
            if streamed:
                print_stream(prompt, tokens, generated)
                return
            result = list(generated)
        if json:
            text = continued(prompt, tokens, result)
            record = {"prompt": tokens, "words": [word.to_json() for word in result], "text": text}
            print_json(record, line=prompts.batch)
        elif why:
            print_with_facts(prompt, tokens, result)
        else:
            print_stream(prompt, tokens, result)

    each_prompt(prompts, answer)


def link(words: Words = None, file: PromptFile = None, kg: Kg = None, base: Base = None, json: Json = False) -> None:
    """Find names in a text and list the entities they may refer to."""
    model, prompts = open_model(words, file, kg, base=base)

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
