"""Which names of a text are meant as names, where no link says so: the linker knows whose a name is, if it is one.

A text is full of words that are a name of something in the graph: "Hotel" in the name of a hotel, "7" for a television
channel, "David" before an unknown surname. What is meant as a name here stands by itself, is no number and no month,
and belongs to something that has a name of its own (its label begins with a capital) and is not itself a name.
"""

from __future__ import annotations

from collections.abc import Sequence

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.dates import date_words
from kglm.linking.linker import Linked, Linker
from kglm.linking.ner import SpacyNames
from kglm.linking.spans import Found, taken_places
from kglm.linking.traits import TraitReader
from kglm.text.document import END, START
from kglm.text.function_words import is_content

NAMES_ONLY = frozenset(["name", "given name", "family name", "surname", "disambiguation page", "letter", "number"])
"""Kinds of things that are said and not meant."""


class NameDetector:
    """Finds names that are meant as such, and whose they are, for one graph."""

    def __init__(self, linker: Linker, traits: TraitReader, *, min_p: float, names: SpacyNames | None = None) -> None:
        """`names` says where names are, instead of capitals."""
        self._names = names
        self._linker = linker
        self._graph: KnowledgeGraph = linker.graph
        self._traits = traits
        self._min_p = min_p

    def find(self, tokens: Sequence[str], found: Sequence[Found]) -> list[Found]:
        """Names beside those found, where the linker is sure enough."""
        linked = self._linker.link(tokens, [(each.start, each.end, each.node) for each in found])
        given = {each.start for each in found}
        known = taken_places(found)
        meant = [
            Found(each.start, each.end, each.node, "NEL")
            for each in linked
            if each.start not in given and self._is_sure(each) and _reads_as_name(tokens, each.start, each.end)
        ]
        if self._names is not None:
            spans = self._names.spans(tokens)
            return [each for each in meant if (each.start, each.end) in spans]
        return [
            each
            for each in meant
            if _stands_alone(tokens, each.start, each.end, known, human=self._traits.of(each.node).human)
        ]

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


def _stands_alone(tokens: Sequence[str], start: int, end: int, known: set[int], *, human: bool) -> bool:
    """Whether words with a capital are not part of a longer name, but for a neighbour that is known by itself, and for
    a title before a person."""

    def joins(place: int, beyond: int) -> bool:
        if not 0 <= place < len(tokens) or place in known:
            return False
        word = tokens[place]
        if word in _JOINTS:
            return 0 <= beyond < len(tokens) and tokens[beyond][:1].isupper()
        return word[:1].isupper() and is_content(word) and tokens[place - 1] not in (START, END)

    titled = human and start > 0 and tokens[start - 1].rstrip(".") in TITLES
    return (titled or not joins(start - 1, start - 2)) and not joins(end, end + 1)


_JOINTS = frozenset(["-", "–", "/", "&"])
_TITLES = """
President Vice-President Chancellor Minister Senator Governor Mayor Judge Justice Ambassador King Queen Prince Princess
Emperor Empress Sultan Pope Saint St Sir Lady Lord Count Duke Baron Dr Mr Mrs Ms Miss Professor Prof General Admiral
Colonel Captain Major Lieutenant Sergeant Marshal Commander Bishop Archbishop Cardinal Father Reverend Rabbi Imam
"""
TITLES = frozenset(_TITLES.split())
