"""What the words around a name say about NIL: is it part of a longer name, a plain word, a number?

These features belong to the mention, not to a candidate. `Linker` weighs them against the scores of the candidates.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy

from kglm.kg.literals.dates import date_words
from kglm.text.common_words import is_common
from kglm.text.document import END, START
from kglm.text.function_words import is_content

NIL_FEATURES = (
    "bias",
    "one word",
    "capital after",
    "name after",
    "capital before",
    "first word before",
    "name before",
    "of a longer name",
    "a or own before",
    "the before",
    "common word",
    "first common word",
    "first word",
    "small letters",
    "small common letters",
    "small among capitals",
    "small in this text",
    "number or date",
    "part of an unknown name",
    "abbreviation",
)
_INDEFINITE = frozenset(
    ["a", "an", "my", "your", "his", "her", "our", "their", "some", "every", "each", "no", "another", "any"]
)
_CONNECTORS = frozenset(["-", "–", "/", "&"])
_TITLES = """
President Vice-President Chancellor Minister Senator Governor Mayor Judge Justice Ambassador King Queen Prince Princess
Emperor Empress Sultan Pope Saint St Sir Lady Lord Count Duke Baron Dr Mr Mrs Ms Miss Professor Prof General Admiral
Colonel Captain Major Lieutenant Sergeant Marshal Commander Bishop Archbishop Cardinal Father Reverend Rabbi Imam
"""
TITLES = frozenset(_TITLES.split())
_JOBS = "CEO CFO MP VP PM Congressman Congresswoman Representative Actor Singer Coach"
_ROLES = TITLES | frozenset(_JOBS.split())


class TextView:
    """A text with what is known about all its words before names are linked."""

    def __init__(self, words: Sequence[str], spans: Collection[tuple[int, int]]) -> None:
        """`spans`: all names, whatever they refer to."""
        self.words = words
        self.small: set[str] = set()
        """Words that occur in small letters."""
        self.named = {position for start, end in spans for position in range(start, end)}
        """Positions inside of names."""
        self.unknown: set[str] = set()
        """Words of longer names that are in no graph: "Paris" and "Hilton" after "Paris Hilton"."""
        self.mixed = False
        """True if the text uses capital letters."""
        for place in range(len(words)):
            self.add_word(place)

    def fork(self, words: Sequence[str]) -> TextView:
        """A copy for a text that begins with the same words."""
        other = copy(self)
        other.words = words
        other.small, other.named, other.unknown = set(self.small), set(self.named), set(self.unknown)
        return other

    def add_word(self, position: int) -> None:
        """Take the word at a position into account, of a text that grows."""
        word = self.words[position]
        if word.islower():
            self.small.add(word)
        elif not self.mixed and word[:1].isupper() and not self.is_first(position):
            self.mixed = True

    def is_first(self, position: int) -> bool:
        """True if a word begins a sentence."""
        return position == 0 or self.words[position - 1] in (START, END)

    def titled(self, start: int) -> bool:
        """True if a title stands before a name: "President", "Mrs."."""
        return start > 0 and self.words[start - 1].rstrip(".") in TITLES

    def nil_features(self, start: int, end: int) -> tuple[float, ...]:
        """The features of NIL for words [start, end), in the order of `NIL_FEATURES`."""
        words = self.words
        inside = [word for word in words[start:end] if is_content(word)]
        one, first, small = len(inside) == 1, self.is_first(start), words[start].islower()
        common = all(map(is_common, inside))
        before = words[start - 1] if start and not first else ""
        after = self._capital(end, end + 1)
        left = 0 if first else self._capital(start - 1, start - 2)
        opens = bool(left) and self.is_first(start - 1)
        return (
            1.0,
            one,
            after == 1,
            after == 2,
            left == 1 and not opens,
            left == 1 and opens,
            left == 2,
            self._within_of(start, end),
            before.casefold() in _INDEFINITE,
            before.casefold() == "the",
            one and common and not first,
            one and common and first,
            one and first and not common,
            small,
            small and common,
            small and self.mixed,
            one and not small and words[start].casefold() in self.small,
            all(_is_number(word) or word.casefold() in date_words() for word in inside),
            one and words[start] in self.unknown,
            one and end == start + 1 and is_abbreviation(words[start]),
        )

    def _capital(self, position: int, beyond: int) -> int:
        """1 if the word at this position extends a name beside it, 2 if it is in another name, else 0."""
        words = self.words
        if not 0 <= position < len(words):
            return 0
        word = words[position]
        if word in _CONNECTORS:
            return int(0 <= beyond < len(words) and words[beyond][:1].isupper())
        if not word[:1].isupper() or not is_content(word) or word.rstrip(".") in _ROLES:
            return 0
        if self.is_first(position) and is_common(word):
            return 0
        return 2 if position in self.named else 1

    def _within_of(self, start: int, end: int) -> bool:
        """True for "X of …" and "Battle of X": a capitalized noun joined by "of", outside of other names."""
        words = self.words
        if end < len(words) - 1 and words[end] == "of" and not words[start].islower():
            return True
        at = start - 2 if start > 1 and words[start - 1] != "the" else start - 3
        if at < 0 or words[at + 1] != "of" or at in self.named:
            return False
        return words[at][:1].isupper() and is_content(words[at]) and not (self.is_first(at) and is_common(words[at]))

    def add_unknown(self, start: int, end: int) -> set[str]:
        """Record that words [start, end) are part of a longer name that is in no graph; returns its words if new."""
        words = self.words
        while start and words[start - 1][:1].isupper() and is_content(words[start - 1]):
            start -= 1
        while end < len(words) and words[end][:1].isupper() and is_content(words[end]):
            end += 1
        if end - start < 2:
            return set()
        new = {word for word in words[start:end] if not is_common(word) and word not in TITLES} - self.unknown
        self.unknown |= new
        return new


def is_abbreviation(word: str) -> bool:
    """True for a word in capital letters, with or without full stops: "BBC", "U.S."

    >>> is_abbreviation("U.S."), is_abbreviation("A"), is_abbreviation("BBCs"), is_abbreviation("XIV")
    (True, False, False, False)
    """
    letters = word.replace(".", "")
    return len(letters) > 1 and letters.isalpha() and letters.isupper() and not _is_number(letters)


def _is_number(word: str) -> bool:
    return any(char.isdigit() for char in word) or set(word) <= set("IVXLCDM")
