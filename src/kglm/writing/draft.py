"""An unfinished article: its text, the mentions in it, and the facts stated so far."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from kglm.text.tokenizer import tokenizer
from kglm.writing.english import capitalised
from kglm.writing.speaker import Fact, Segment

Split = Literal["train", "held", "all"]
"""Wordings to use: those for training, the held-out ones, or both."""


class Mark(NamedTuple):
    """A mention: characters [start, end) of a text refer to an entity."""

    start: int
    end: int
    node: int
    source: str


@dataclass
class Draft:
    """An unfinished article, with the mentions in it."""

    rng: random.Random
    topic: int
    split: Split
    text: str = ""
    marks: list[Mark] = field(default_factory=list)
    stated: set[Fact] = field(default_factory=set)
    """Facts stated so far; a fact that the graph stores under several relations is listed under all of them."""
    fact_count: int = 0
    """Number of facts stated so far."""
    used: set[str] = field(default_factory=set)
    """Texts of the wordings used so far: none is used twice."""
    named: set[int] = field(default_factory=set)
    """Entities named so far; the first name of an entity is a link."""
    sentences: list[set[int]] = field(default_factory=list)
    """Entities that each sentence mentions."""
    last_subject: int = -1
    """Entity that a pronoun in the next sentence refers to; -1 for none."""
    american: bool = True
    """True if dates are written with the month first."""
    heading: str = ""
    """Heading to insert before the next sentence."""

    def add(self, segments: Sequence[Segment]) -> None:
        """Append a sentence and its mentions."""
        if self.heading:
            self.text += f"\n\n{self.heading}\n\n" if self.text else f"{self.heading}\n\n"
            self.heading = ""
        elif self.text:
            self.text += " "
        mentioned = set()
        for place, segment in enumerate(segments):
            text = segment.text if place else capitalised(segment.text)
            if segment.node >= 0:
                source = segment.source
                if source == "WIKI":
                    source = "NEL" if segment.node in self.named and not _absorbs_full_stop(text) else "WIKI"
                    self.named.add(segment.node)
                self.marks.append(Mark(len(self.text), len(self.text) + len(text), segment.node, source))
                mentioned.add(segment.node)
            self.text += text
        self.text += "" if self.text.endswith((".", "!", "?")) else "."
        self.sentences.append(mentioned)

    def set_heading(self, title: str) -> None:
        """Start a section; its first sentence names its subject instead of using a pronoun."""
        self.heading = title
        self.last_subject = -1

    def recent(self, sentences: int = 2) -> set[int]:
        """Entities mentioned in the last sentences."""
        return set().union(*self.sentences[-sentences:])


@lru_cache(1 << 14)
def _absorbs_full_stop(name: str) -> bool:
    """True if the tokenizer takes a full stop after the name as part of it, as in "Lost Ark."; a link prevents that."""
    return tokenizer().words(f"{name}.")[-1] != "."
