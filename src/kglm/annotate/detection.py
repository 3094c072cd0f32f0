"""Which names of a text are meant as names, where no link says so: the linker knows whose a name is, if it is one.

A text is full of words that are a name of something in the graph: "Hotel" in the name of a hotel, "7" for a television
channel, "David" before an unknown surname. What is meant as a name here stands by itself, is no number and no month,
and belongs to something that has a name of its own (its label begins with a capital) and is not itself a name.
"""

from __future__ import annotations

from collections.abc import Sequence

from kglm.annotate.linker import Linked, Linker
from kglm.annotate.story import Found
from kglm.annotate.traits import TraitReader
from kglm.kg.dates import date_words
from kglm.kg.graph import KnowledgeGraph
from kglm.text.document import END, START
from kglm.text.function_words import is_content

NAMES_ONLY = frozenset(["name", "given name", "family name", "surname", "disambiguation page", "letter", "number"])
"""Kinds of things that are said and not meant."""


class NameDetector:
    """Finds names that are meant as such, and whose they are, for one graph."""

    def __init__(self, linker: Linker, traits: TraitReader, *, min_p: float) -> None:
        self._linker = linker
        self._graph: KnowledgeGraph = linker.graph
        self._traits = traits
        self._min_p = min_p

    def find(self, tokens: Sequence[str], found: Sequence[Found]) -> list[Found]:
        """Names beside those found, where the linker is sure enough."""
        linked = self._linker.link(tokens, [(each.start, each.end, each.node) for each in found])
        given = {each.start for each in found}
        known = {place for each in found for place in range(each.start, each.end)}
        meant = [
            Found(each.start, each.end, each.node, "NEL")
            for each in linked
            if each.start not in given and self._is_sure(each) and _reads_as_name(tokens, each.start, each.end)
        ]
        while True:  # a name beside one that is part of a longer name is part of it too
            marked = known | {place for each in meant for place in range(each.start, each.end)}
            alone = [each for each in meant if _stands_alone(tokens, each.start, each.end, marked)]
            if len(alone) == len(meant):
                return alone
            meant = alone

    def _is_sure(self, linked: Linked) -> bool:
        return linked.candidates[0].p >= self._min_p and self._is_somebody(linked.node)

    def _is_somebody(self, node: int) -> bool:
        label = self._graph.names(node)[:1]
        return bool(label) and not label[0][:1].islower() and NAMES_ONLY.isdisjoint(self._traits.of(node).kinds)


def _reads_as_name(tokens: Sequence[str], start: int, end: int) -> bool:
    """Whether words say a name and no number or date; where a sentence begins, one short word does not."""
    words = [word for word in tokens[start:end] if is_content(word)]
    if not any(char.isupper() for word in words for char in word):
        return False
    if all(_is_number(word) or word.casefold() in date_words() for word in words):
        return False
    begins = start == 0 or tokens[start - 1] in (START, END)
    return not begins or len(words) > 1 or not words[0][1:].islower() or len(words[0]) > LONG_WORD


LONG_WORD = 4
"""A sentence may begin with any short word; longer ones that are someone's name are more often that."""


def _is_number(word: str) -> bool:
    return any(char.isdigit() for char in word) or set(word) <= set("IVXLCDM")


def _stands_alone(tokens: Sequence[str], start: int, end: int, marked: set[int]) -> bool:
    """Whether words with a capital are not part of a longer name, but for a neighbour that is known by itself."""
    return not any(
        0 <= place < len(tokens)
        and tokens[place][:1].isupper()
        and is_content(tokens[place])
        and place not in marked
        and tokens[place - 1] not in (START, END)
        for place in (start - 1, end)
    )
