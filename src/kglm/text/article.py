"""What every reader of articles hands over: tokens as in the linked corpus, and the links among them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kglm.errors import KglmError
from kglm.text.document import END, START, Mention
from kglm.text.marked import FORMULA, Passage
from kglm.text.tokenizer import tokenizer

FORMULA_TOKEN = "<formula>"
"""Stands for any formula, as in WikiText."""
PROBLEMS_KEPT = 100
REDIRECT, NOT_AN_ARTICLE, NO_TEXT = "redirect", "page about the wiki", "no text"
"""Why a sound record gives no article."""

_REASONS = (("not JSON", "not JSON"), ("invalid ", "wrong encoding"), ("unknown encoding", "wrong encoding"))
_MARKERS = re.compile(f"{START}|{END}")  # in a text they are nothing
_FORMULAS = re.compile(FORMULA)


@dataclass(frozen=True, slots=True)
class Link:
    """Tokens [start, end) lead to the page `target`: a title as its address has it ("Barack_Obama")."""

    start: int
    end: int
    target: str


@dataclass(slots=True)
class Article:
    """A text with its links, before anything is known of the entities behind them."""

    title: str
    tokens: list[str]
    """`@@START@@` first, `@@END@@` after every sentence."""
    links: list[Link] = field(default_factory=list)
    """In order, without overlaps. The first bold words of an encyclopedia's article link to its own title."""
    mentions: list[Mention] = field(default_factory=list)
    """Annotations that the text came with, as they were."""
    place: str = ""
    """Where it was read, for messages."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further keys of one's own record; kept and written back, not used."""

    def text(self, link: Link) -> str:
        return " ".join(self.tokens[link.start : link.end])


@dataclass(slots=True)
class ReadingReport:
    """What was read and what was not. A page that cannot be read is counted here and the reading goes on."""

    articles: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """How many records gave no article, by reason: redirects, pages about the wiki itself, broken ones."""
    problems: list[str] = field(default_factory=list)
    """The first records that should have been readable, each with its place."""
    consumed: int = 0
    """Bytes of the file at hand, as it is on disk, that have been read."""

    def skip(self, reason: str) -> None:
        """Count something that is left out on purpose."""
        self.skipped[reason] += 1

    def problem(self, what: object, reason: str) -> None:
        """Count something that should not be there, and remember what was wrong with it."""
        self.skipped[reason] += 1
        self.note(what)

    @contextmanager
    def record(self, place: str) -> Iterator[None]:
        """Work on one record: whatever is wrong with it is counted and ends nothing else."""
        try:
            yield
        except KglmError as error:
            reason = next((reason for start, reason in _REASONS if error.what.startswith(start)), "malformed record")
            self.problem(error, reason)
        except Exception as error:  # a mistake of ours must not end a reading of hours
            self.problem(f"{place}: {type(error).__name__}: {error}", "failed")

    def note(self, what: object) -> None:
        """Remember something odd about a record that could be read all the same."""
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(str(what))


def article_from(title: str, passage: Passage, place: str = "") -> Article | None:
    """Cut a passage into sentences and tokens; None if there is not a single word in it.

    The edges of links are edges of tokens, and no sentence ends within a link.
    """
    text, spans = _MARKERS.sub(lambda match: " " * len(match[0]), passage.text), passage.spans
    edges = {edge for start, end, _ in spans for edge in (start, end)}
    edges.update(edge for match in _FORMULAS.finditer(text) for edge in match.span())
    tokens, links = [START], list[Link]()
    k, first = 0, -1  # the span that comes next or that we are in; in that case, its first token
    for sentence in tokenizer().sentences(text, sorted(edges)):
        for token in sentence:
            while k < len(spans) and spans[k][1] <= token.start:
                if first >= 0:
                    links.append(Link(first, len(tokens), spans[k][2]))
                k, first = k + 1, -1
            if token is sentence[0] and len(tokens) > 1 and first < 0:
                tokens.append(END)
            if first < 0 and k < len(spans) and spans[k][0] <= token.start:
                first = len(tokens)
            tokens.append(FORMULA_TOKEN if token.text == FORMULA else token.text)
    if first >= 0:
        links.append(Link(first, len(tokens), spans[k][2]))
    if len(tokens) == 1:
        return None
    tokens.append(END)
    return Article(title, tokens, links, place=place)
