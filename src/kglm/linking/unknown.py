"""Names outside of the graph: sequences of capitalized words of which the linker links none.

"Paris Hilton" is one name, whether or not the graph has a Paris. Such a name has no candidates, so its NIL has
probability 1; names inside it that are probably NIL are parts of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kglm.kg.literals.dates import date_words
from kglm.linking.context import TITLES
from kglm.linking.linker import LinkedName
from kglm.text.common_words import OPENERS, is_common
from kglm.text.document import END, START
from kglm.text.function_words import is_content

_JOINING = "of de da di du del della la le van von der den bin al el - & 's ’s"
JOINING = frozenset(_JOINING.split())
"""Words inside of names, between capitalized ones: "Simone de Beauvoir", "University of Oslo"."""
MAX_JOINING = 2
"""Most joining words between two capitalized words."""


def with_unknown_names(words: Sequence[str], linked: Sequence[LinkedName]) -> list[LinkedName]:
    """The names with those outside of the graph, in order. Longer unknown names replace the names inside them."""
    sure = {position for name in linked if name.node is not None for position in range(name.start, name.end)}
    unknown = [
        LinkedName(start, end, ()) for start, end in capital_sequences(words) if sure.isdisjoint(range(start, end))
    ]
    covered = {position for name in unknown for position in range(name.start, name.end)}
    kept = []
    for name in linked:
        if name.start not in covered or (name.node is None and _same_span(name, unknown)):
            kept.append(name)
    spans = {(name.start, name.end) for name in kept}
    return sorted([*kept, *(name for name in unknown if (name.start, name.end) not in spans)])


def _same_span(name: LinkedName, unknown: Sequence[LinkedName]) -> bool:
    return any((name.start, name.end) == (other.start, other.end) for other in unknown)


def capital_sequences(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Spans of capitalized words that look like one name: no plain first word of a sentence, no title, no date."""
    start = 0
    while start < len(words):
        if not _begins(words, start):
            start += 1
            continue
        end = start + 1
        while (more := _joined(words, end)) is not None:
            end = more
        yield start, end
        start = end


def _begins(words: Sequence[str], at: int) -> bool:
    word = words[at]
    if not _is_capital(word) or word.casefold() in OPENERS or word.casefold() in date_words():
        return False
    if word.rstrip(".") in TITLES and at + 1 < len(words) and words[at + 1] != "of":
        return False
    if is_abbreviation(word) and words[at + 1 : at + 2] == ["of"]:
        return False
    first = at == 0 or words[at - 1] in (START, END)
    return not (first and is_common(word)) or (at + 1 < len(words) and _is_capital(words[at + 1]))


def is_abbreviation(word: str) -> bool:
    """True for two to four capital letters. Before "of" it is a role or a measure, "the CEO of Apple", no name."""
    return 2 <= len(word) <= 4 and word.isalpha() and word.isupper()


def _joined(words: Sequence[str], at: int) -> int | None:
    """End of the sequence if the words from here on belong to it."""
    for end in range(at, min(at + MAX_JOINING + 1, len(words))):
        if _is_capital(words[end]):
            return end + 1
        if words[end] not in JOINING or (words[end] in ("'s", "’s") and end > at):
            return None
    return None


def _is_capital(word: str) -> bool:
    return word[:1].isupper() and is_content(word)
