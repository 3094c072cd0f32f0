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


def print_stream(prompt: Sequence[str], words: Iterable[str]) -> None:
    """Print prompt and continuation as one text; on a terminal word by word, as they are generated."""
    if not sys.stdout.isatty():
        print_line(detokenize([*prompt, *words]))
        return
    for piece in text_pieces(chain(prompt, words)):
        print_line(piece, end="")
        sys.stdout.flush()
    print_line("")


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


def print_with_facts(prompt: Sequence[str], generated: Sequence[GeneratedWord]) -> None:
    """Print the text with its names in colour, then a table of the names and the fact behind each."""
    words = [*prompt, *(word.word for word in generated)]
    reasons = [None] * len(prompt) + [word.reason for word in generated]
    colours: dict[str, str] = {}
    text = Text()
    names: list[tuple[list[str], str, Reason]] = []
    for word, blank, reason in zip(words, blanks(words), reasons, strict=True):
        if word == END:
            continue
        text.append(" " if blank else "")
        if reason is None or reason.entity is None:
            text.append_text(styled(word, ""))
            continue
        id = reason.entity.id
        text.append_text(styled(word, colours.setdefault(id, COLOURS[len(colours) % len(COLOURS)])))
        if reason.type == "continue" and names and names[-1][1] == id:
            names[-1][0].append(word)
        else:
            names.append(([word], id, reason))
    print_line(text)
    if names:
        print_line("")
        rows = [(styled(detokenize(parts), colours[id]), reason.fact) for parts, id, reason in names]
        print_table("", ("name", "because"), rows)
