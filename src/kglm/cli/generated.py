"""Print generated text: as a stream of words, or with the fact behind each name."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from rich.text import Text

from kglm.cli.output import print_line, print_table, styled
from kglm.text.document import END
from kglm.text.tokenizer import blanks, detokenize

if TYPE_CHECKING:
    from kglm.answer.completion import GeneratedWord, Reason

COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")


UNSUPPORTED = "[?]"
"""Follows a name, date or number that neither the graph nor the prompt supports."""


def print_stream(prompt: str, tokens: Sequence[str], words: Iterable[GeneratedWord]) -> None:
    """Print prompt and continuation as one text; on a terminal word by word, as they are generated."""
    generated = iter(words)
    first = next(generated, None)
    generated = generated if first is None else chain([first], generated)
    pieces: Iterator[str]
    if first is not None and first.text is not None:
        pieces = chain([prompt], map(_marked, generated))
    elif sys.stdout.isatty():
        pieces = text_pieces(chain(tokens, (word.word for word in generated)))
    else:
        pieces = iter([detokenize([*tokens, *(word.word for word in generated)])])
    if not sys.stdout.isatty():
        print_line("".join(pieces))
        return
    for piece in pieces:
        print_line(piece, end="")
        sys.stdout.flush()
    print_line("")


def _marked(word: GeneratedWord) -> str:
    """A word with the blank before it, and a mark if it is not supported."""
    return f"{word.text or ''}{UNSUPPORTED if word.supported is False else ''}"


def text_pieces(words: Iterable[str]) -> Iterator[str]:
    """Yield the detokenised text piece by piece, each word after the next one is known.

    The next word decides whether there is a blank between them.
    """
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


def print_with_facts(prompt: str, tokens: Sequence[str], generated: Sequence[GeneratedWord]) -> None:
    """Print the text with its names in colour, then a table of the names and the fact behind each."""
    colours: dict[str, str] = {}
    own = bool(generated) and generated[0].text is not None
    spaced = blanks([*tokens, *(word.word for word in generated)])[len(tokens) :]
    text = Text(prompt if own else detokenize(tokens))
    names: list[tuple[list[str], str, Reason]] = []
    for word, blank in zip(generated, spaced, strict=True):
        if word.word == END:
            continue
        blanks_before = (word.text or "")[: -len(word.word)] if own else " " if blank else ""
        text.append(blanks_before)
        reason = word.reason
        if reason.entity is None:
            text.append_text(styled(_marked(word).lstrip() if own else word.word, ""))
            continue
        id = reason.entity.id
        text.append_text(styled(word.word, colours.setdefault(id, COLOURS[len(colours) % len(COLOURS)])))
        if reason.type == "continue" and names and names[-1][1] == id:
            names[-1][0].append(word.word)
        else:
            names.append(([word.word], id, reason))
    print_line(text)
    if names:
        print_line("")
        rows = [(styled(detokenize(parts), colours[id]), reason.fact) for parts, id, reason in names]
        print_table("", ("name", "because"), rows)
