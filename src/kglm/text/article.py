"""Articles: tokenized texts with links, the common result of all readers."""

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
"""Token that replaces every formula, as in WikiText."""
PROBLEMS_KEPT = 100
"""Maximum number of problem messages in a report."""
REDIRECT, NOT_AN_ARTICLE, NO_TEXT = "redirect", "page about the wiki", "no text"
"""Reasons to skip a valid record."""

# Start of an error message and the reason under which it is counted.
_REASONS = (("not JSON", "not JSON"), ("invalid ", "wrong encoding"), ("unknown encoding", "wrong encoding"))
_MARKERS = re.compile(f"{START}|{END}")  # blanked out where a raw text contains them
_FORMULAS = re.compile(FORMULA)


@dataclass(frozen=True, slots=True)
class Link:
    """Tokens [start, end) link to the page `target`, a title as in URLs ("Barack_Obama")."""

    start: int
    end: int
    target: str


@dataclass(slots=True)
class Article:
    """A text with links that are not yet resolved to entities."""

    title: str
    tokens: list[str]
    """`@@START@@` first, `@@END@@` after every sentence."""
    links: list[Link] = field(default_factory=list)
    """In order, without overlaps. The first bold words of a wiki page link to its own title."""
    mentions: list[Mention] = field(default_factory=list)
    """Existing annotations of the text, unchanged."""
    place: str = ""
    """File and record of the article, for error messages."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Other keys of a user's record; written back unchanged."""

    def text(self, link: Link) -> str:
        """Words of a link, joined with blanks."""
        return " ".join(self.tokens[link.start : link.end])


@dataclass(slots=True)
class ReadingReport:
    """Counts of articles, skipped records and problems. An unreadable record does not stop the reader."""

    articles: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """Number of records without an article, by reason: redirects, pages about the wiki itself, broken records."""
    problems: list[str] = field(default_factory=list)
    """Messages about the first unreadable records, each with its place."""
    consumed: int = 0
    """Bytes read of the current file, as it is on disk (compressed)."""

    def skip(self, reason: str) -> None:
        """Count a record that is left out on purpose."""
        self.skipped[reason] += 1

    def problem(self, what: object, reason: str) -> None:
        """Count an unreadable record and store the message."""
        self.skipped[reason] += 1
        self.note(what)

    @contextmanager
    def record(self, place: str) -> Iterator[None]:
        """Context for reading one record: an error is counted as a problem instead of raised."""
        try:
            yield
        except KglmError as error:
            reason = next((reason for start, reason in _REASONS if error.what.startswith(start)), "malformed record")
            self.problem(error, reason)
        except Exception as error:  # a bug in a parser must not stop an import of hours
            self.problem(f"{place}: {type(error).__name__}: {error}", "failed")

    def note(self, what: object) -> None:
        """Store a message about a record without counting the record as skipped."""
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(str(what))


def article_from(title: str, passage: Passage, place: str = "") -> Article | None:
    """Split a passage into sentences and tokens; None if it contains no word.

    Link edges are token boundaries, and no sentence ends inside a link.
    """
    text, spans = _MARKERS.sub(lambda match: " " * len(match[0]), passage.text), passage.spans
    edges = {edge for start, end, _ in spans for edge in (start, end)}
    edges.update(edge for match in _FORMULAS.finditer(text) for edge in match.span())
    tokens, links = [START], list[Link]()
    k, first = 0, -1  # index of the current or next span; its first token, -1 before the span starts
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
