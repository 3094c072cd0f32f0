"""Generated text for people: as it flows, or with the facts that its names came by."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from rich.text import Text

from kglm.answer.generate import Spoken
from kglm.answer.next_word import Derivation
from kglm.cli.output import print_table, say, styled
from kglm.kg.graph import KnowledgeGraph
from kglm.model.annotation import Type
from kglm.text.document import END
from kglm.text.tokenizer import blanks, detokenize

COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")


def print_flowing(begun: Sequence[str], words: Iterable[str]) -> None:
    """The text; on a terminal word by word, as it comes."""
    if not sys.stdout.isatty():
        say(detokenize([*begun, *words]))
        return
    for piece in flow(chain(begun, words)):
        say(piece, end="")
        sys.stdout.flush()
    say("")


def flow(words: Iterable[str]) -> Iterator[str]:
    """Pieces of text that together are the text: sentence by sentence, and each word when the next one is known, for
    only then is it known what stands between them."""
    sentence: list[str] = []
    shown, between = 0, ""
    for word in words:
        if word == END:
            yield from filter(None, [detokenize(sentence)[shown:]])
            sentence, shown, between = [], 0, " "
            continue
        if not sentence:
            yield from filter(None, [between])
        sentence.append(word)
        text = detokenize(sentence)
        ready = len(text[: len(text) - len(word)].rstrip())
        if ready > shown:
            yield text[shown:ready]
            shown = ready
    yield from filter(None, [detokenize(sentence)[shown:]])


class _Said(NamedTuple):
    """Words that name an entity, and how it came to that."""

    words: list[str]
    reason: Derivation


def print_with_facts(graph: KnowledgeGraph, begun: Sequence[str], spoken: Sequence[Spoken]) -> None:
    """The text with its names in colour, and for each name the fact it came by."""
    words = [*begun, *(each.word for each in spoken)]
    reasons = [None] * len(begun) + [each.reason for each in spoken]
    colours: dict[int, str] = {}
    text, names = Text(), list[_Said]()
    for word, blank, reason in zip(words, blanks(words), reasons, strict=True):
        if word == END:
            continue
        named = reason is not None and reason.entity >= 0
        style = colours.setdefault(reason.entity, COLOURS[len(colours) % len(COLOURS)]) if reason and named else ""
        text.append(" " if blank else "")
        text.append_text(styled(word, style))
        if reason is None or not named:
            continue
        if reason.type == Type.CONTINUE and names and names[-1].reason.entity == reason.entity:
            names[-1].words.append(word)
        else:
            names.append(_Said([word], reason))
    say(text)
    if names:
        say("")
        rows = [
            (styled(detokenize(said.words), colours[said.reason.entity]), fact_of(graph, said.reason)) for said in names
        ]
        print_table("", ("name", "because"), rows)


def fact_of(graph: KnowledgeGraph, reason: Derivation) -> str:
    """How a name came up: "Super Mario Land —platform→ Game Boy"."""
    name = graph.label(reason.entity)
    if reason.type == Type.RELATED and reason.relation > 0:
        return f"{graph.label(reason.parent)} —{graph.relation_label(reason.relation)}→ {name}"
    return {Type.RELATED: f"{name}, named again", Type.CONTINUE: f"more of {name}"}.get(reason.type, f"{name}, new")
