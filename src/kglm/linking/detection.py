"""Mention detection: decide which words of a text are used as names where no link marks them.

Many words of a text match a name in the graph without referring to it: "Hotel" in the name of a hotel, "7" for a
television channel, "David" before an unknown surname. A detected name is not part of a longer name, is no number or
month, and its entity has a proper name (a capitalized label) and is not itself a name, letter or number.
"""

from __future__ import annotations

from collections.abc import Sequence

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.dates import date_words
from kglm.linking.context import TITLES, _CONNECTORS
from kglm.linking.linker import LinkedName, Linker
from kglm.linking.ner import SpacyNames
from kglm.linking.spans import LinkedSpan, covered_positions
from kglm.linking.traits import TraitReader
from kglm.text.document import END, START
from kglm.text.function_words import is_content

NAMES_ONLY = frozenset(["name", "given name", "family name", "surname", "disambiguation page", "letter", "number"])
"""Classes of entities that mentions rarely refer to."""


class NameDetector:
    """Finds names without a link in a text and links them to the entities of one graph."""

    def __init__(self, linker: Linker, traits: TraitReader, *, min_p: float, names: SpacyNames | None = None) -> None:
        """`min_p`: least probability of the best candidate. `names`: detect names with spaCy instead of capitals."""
        self._names = names
        self._linker = linker
        self._graph: KnowledgeGraph = linker.graph
        self._traits = traits
        self._min_p = min_p

    def find(self, tokens: Sequence[str], given: Sequence[LinkedSpan]) -> list[LinkedSpan]:
        """Names outside the given spans whose best candidate reaches `min_p`."""
        linked = self._linker.link(tokens, [(each.start, each.end, each.node) for each in given])
        given_starts = {each.start for each in given}
        covered = covered_positions(given)
        detected = [
            LinkedSpan(each.start, each.end, each.node, "NEL")
            for each in linked
            if each.start not in given_starts and self._is_sure(each) and _reads_as_name(tokens, each.start, each.end)
        ]
        if self._names is not None:
            spans = self._names.spans(tokens)
            return [each for each in detected if (each.start, each.end) in spans]
        return [
            each
            for each in detected
            if _stands_alone(tokens, each.start, each.end, covered, human=self._traits.of(each.node).human)
        ]

    def _is_sure(self, linked: LinkedName) -> bool:
        return linked.candidates[0].p >= self._min_p and self._has_proper_name(linked.node)

    def _has_proper_name(self, node: int) -> bool:
        label = self._graph.names(node)[:1]
        return bool(label) and not label[0][:1].islower() and NAMES_ONLY.isdisjoint(self._traits.of(node).kinds)


def _reads_as_name(tokens: Sequence[str], start: int, end: int) -> bool:
    """True if the words look like a name: a capital, no number or date, no single short word that begins a sentence."""
    words = [word for word in tokens[start:end] if is_content(word)]
    if not any(char.isupper() for word in words for char in word):
        return False
    if all(_is_number(word) or word.casefold() in date_words() for word in words):
        return False
    begins = start == 0 or tokens[start - 1] in (START, END)
    return not begins or len(words) > 1 or not words[0][1:].islower() or len(words[0]) > LONG_WORD


LONG_WORD = 4
"""Characters. A capitalized first word of a sentence that is no longer than this is taken as a plain word."""


def _is_number(word: str) -> bool:
    return any(char.isdigit() for char in word) or set(word) <= set("IVXLCDM")


def _stands_alone(tokens: Sequence[str], start: int, end: int, covered: set[int], *, human: bool) -> bool:
    """True if no word beside the span extends it to a longer name.

    Words of other mentions, and a title before a person, do not extend it.
    """

    def extends(position: int, beyond: int) -> bool:
        if not 0 <= position < len(tokens) or position in covered:
            return False
        word = tokens[position]
        if word in _CONNECTORS:
            return 0 <= beyond < len(tokens) and tokens[beyond][:1].isupper()
        return word[:1].isupper() and is_content(word) and tokens[position - 1] not in (START, END)

    titled = human and start > 0 and tokens[start - 1].rstrip(".") in TITLES
    return (titled or not extends(start - 1, start - 2)) and not extends(end, end + 1)
