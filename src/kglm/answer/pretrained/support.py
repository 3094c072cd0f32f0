"""Names, dates and numbers: which words of a text state any, and which of these the graph or the prompt supports.

A word counts as a claim if it has a digit, is a number in words or the name of a month, or is capitalized and no
common word at the beginning of a sentence. It is supported if it belongs to a name that a fact led to, if the prompt
has it, or if it is a word of a name of an entity that is linked or that a fact of a linked entity leads to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kglm.heads.reading import LinkedEntities
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.context import TITLES
from kglm.model.arrays import Ints
from kglm.text.common_words import OPENERS, is_common
from kglm.text.document import END, START
from kglm.text.function_words import is_content
from kglm.text.tokenizer import tokenizer

_NUMBERS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
    " nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen hundreds"
    " thousands millions billions"
)
NUMBER_WORDS = frozenset(_NUMBERS.split())
MONTHS = frozenset(
    ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
     "december", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
)  # fmt: skip
ENTITIES_KEPT = 1024
OPENING_MARKS = frozenset("\"'“‘(")


def is_claim(word: str, before: str | None) -> bool:
    """True if a word states a name, a date or a number; `before` is the word before it, None at the beginning.

    >>> is_claim("1961", "in"), is_claim("Honolulu", "in"), is_claim("He", "."), is_claim("was", "He")
    (True, True, False, False)
    """
    if any(char.isdigit() for char in word) or word.casefold() in NUMBER_WORDS:
        return True
    if not word[:1].isupper():
        return False
    folded = word.casefold()
    if folded in MONTHS:
        return folded not in ("may", "march") or not begins_sentence(before)
    if not is_content(word) or folded in OPENERS or word.rstrip(".") in TITLES:
        return False
    return not (begins_sentence(before) and is_common(word))


def begins_sentence(before: str | None) -> bool:
    """True if a sentence begins after this word."""
    return before is None or before in (START, END) or before[-1:] in ".!?:" or before in OPENING_MARKS


class NameWords:
    """The words of the names of entities and of the values of their facts, kept for entities that come up again."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._kept: dict[int, frozenset[str]] = {}

    def around(self, node: int, tails: Ints) -> frozenset[str]:
        """Words of the names of an entity and of these tails of its facts."""
        found = self._kept.get(node)
        if found is None:
            if len(self._kept) >= ENTITIES_KEPT:
                self._kept.clear()
            found = self._kept[node] = frozenset(self._words([node, *tails.tolist()]))
        return found

    def _words(self, nodes: Iterable[int]) -> Iterator[str]:
        words_of = tokenizer().words
        for node in nodes:
            for name in list(self._graph.aliases(node))[:8]:
                yield from (word.casefold() for word in words_of(name) if is_content(word))


class Support:
    """The words of names, dates and numbers that a text may state."""

    def __init__(self, graph: KnowledgeGraph, prompt: Sequence[str], names: NameWords | None = None) -> None:
        """`names` keeps the words of names from one text to the next."""
        self._names = names or NameWords(graph)
        self.prompt = frozenset(word for word in prompt if word not in (START, END))
        self._linked: tuple[LinkedEntities | None, frozenset[str]] = (None, frozenset())

    def supports(self, word: str, linked: LinkedEntities) -> bool:
        """True if the prompt has a word, or if it is in a name that the facts of the linked entities offer."""
        if word in self.prompt:
            return True
        return word.casefold() in self._words(linked)

    def _words(self, linked: LinkedEntities) -> frozenset[str]:
        if self._linked[0] is not linked:
            words = frozenset[str]().union(
                *(
                    self._names.around(node, facts.node_U)
                    for node, facts in zip(linked.local.mentioned.nodes, linked.facts.entities, strict=True)
                )
            )
            self._linked = linked, words
        return self._linked[1]
