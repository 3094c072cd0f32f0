"""Linked documents to look through: by words, by who is mentioned, by which fact, by where a mention comes from.

Documents are numbered from 1. Of each word, source, relation and entity it is known which documents have it, so that a
question is an intersection of sorted lists; only where several things are asked of one mention are mentions looked at.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kglm.text.document import END, START, Document, Mention
from kglm.text.tokenizer import detokenize, tokenizer

EXCERPT = 32
"""Words."""
PREFIXES = 2_000
"""Words that a prefix is taken for at most."""
Numbers = Sequence[int]


@dataclass(frozen=True)
class DocumentFilter:
    """Which documents: those that have all of the words, and a mention that fits."""

    words: str = ""
    source: str | None = None
    relation: str | None = None
    entity: str | None = None

    def fits(self, mention: Mention) -> bool:
        return (
            self.source in (None, mention.source)
            and self.relation in (None, *mention.relations)
            and self.entity in (None, mention.id)
        )

    @property
    def mention_conditions(self) -> int:
        """How many things are asked of a mention."""
        return sum(each is not None for each in (self.source, self.relation, self.entity))


class Library:
    """All documents of a corpus, in memory."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self.documents: list[Document] = []
        self._having: dict[tuple[str, str], array[int]] = {}
        for document in documents:
            self.documents.append(document)
            for key in _keys(document):
                self._having.setdefault(key, array("l")).append(len(self.documents))
        self._words = sorted(word for kind, word in self._having if kind == "word")

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, number: int) -> Document:
        return self.documents[number - 1]

    def find(self, wanted: DocumentFilter) -> Numbers:
        """The numbers of the documents that are wanted, in order."""
        lists: list[Numbers] = [self._starting(word) for word in words_of(wanted.words)]
        for kind in ("source", "relation", "entity"):
            value = getattr(wanted, kind)
            if value is not None:
                lists.append(self._having.get((kind, value), ()))
        if not lists:
            return range(1, len(self) + 1)
        found = set(lists[0]).intersection(*lists[1:])
        if wanted.mention_conditions > 1:
            found = {number for number in found if any(map(wanted.fits, self[number].mentions))}
        return sorted(found)

    def _starting(self, word: str) -> Sequence[int]:
        """Documents with words that start so."""
        place, found = bisect_left(self._words, word), set[int]()
        for known in self._words[place : place + PREFIXES]:
            if not known.startswith(word):
                break
            found.update(self._having["word", known])
        return sorted(found)

    @staticmethod
    def around(numbers: Numbers, number: int) -> tuple[int | None, int | None]:
        """The neighbours of a document among those found; it need not be one of them."""
        place = bisect_left(numbers, number)
        after = place + (place < len(numbers) and numbers[place] == number)
        return numbers[place - 1] if place else None, numbers[after] if after < len(numbers) else None

    def excerpt(self, number: int, wanted: DocumentFilter) -> str:
        """Some words of a document: around what was looked for, or the first."""
        tokens = [token for token in self[number].tokens if token not in (START, END)]
        sought = words_of(wanted.words)
        folded = (place for place, token in enumerate(tokens) if token.casefold().startswith(tuple(sought)))
        place = max(next(folded, 0) - EXCERPT // 4, 0) if sought else 0
        piece = detokenize(tokens[place : place + EXCERPT])
        return f"{'… ' if place else ''}{piece}{' …' if place + EXCERPT < len(tokens) else ''}"


def words_of(text: str) -> list[str]:
    return [word.casefold() for word in tokenizer().words(text)]


def _keys(document: Document) -> Iterator[tuple[str, str]]:
    words = {token.casefold() for token in document.tokens}
    yield from {("word", word) for word in (*words, *words_of(document.title))}
    yield from {("source", mention.source) for mention in document.mentions}
    yield from {("relation", relation) for mention in document.mentions for relation in mention.relations}
    yield from {("entity", mention.id) for mention in document.mentions}
