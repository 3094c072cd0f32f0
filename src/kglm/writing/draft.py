"""A text on its way: what was said so far, of whom, and where."""

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
"""Which wordings are used: those to train on, those that are held out, or both."""


class Mark(NamedTuple):
    """Characters [start, end) of a text mention an entity."""

    start: int
    end: int
    node: int
    source: str


@dataclass
class Draft:
    """A text on its way, with the mentions in it."""

    rng: random.Random
    topic: int
    split: Split
    text: str = ""
    marks: list[Mark] = field(default_factory=list)
    stated: set[Fact] = field(default_factory=set)
    """Facts that need not be said any more; one that is stored in several ways is there in all of them."""
    fact_count: int = 0
    """How many were said."""
    used: set[str] = field(default_factory=set)
    """Wordings: none is used twice."""
    named: set[int] = field(default_factory=set)
    """Whoever was named so far; their first names are links."""
    sentences: list[set[int]] = field(default_factory=list)
    """Whom each sentence mentions."""
    last_subject: int = -1
    american: bool = True
    """How its dates are written."""
    heading: str = ""
    """It stands over the next sentence."""

    def add(self, segments: Sequence[Segment]) -> None:
        """A sentence."""
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
        """A heading for what follows: whoever was spoken of before is named again."""
        self.heading = title
        self.last_subject = -1

    def recent(self, sentences: int = 2) -> set[int]:
        """Whoever was mentioned in the last sentences."""
        return set().union(*self.sentences[-sentences:])


@lru_cache(1 << 14)
def _absorbs_full_stop(name: str) -> bool:
    """Whether a full stop after a name would be taken for a part of it, as in "Lost Ark.": a link keeps it out."""
    return tokenizer().words(f"{name}.")[-1] != "."
