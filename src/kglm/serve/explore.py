"""Search in linked documents: by words, and by entity, relation and source of a mention.

Documents are numbered from 1. An inverted index lists the documents of each word, source, relation and entity, and a
search intersects these lists. Mentions are checked one by one only if a filter has several conditions on a mention.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kglm.text.document import END, START, Document, Mention
from kglm.text.tokenizer import detokenize, tokenizer

EXCERPT_WORDS = 32
MAX_EXPANSIONS = 2_000
"""Words that a prefix may stand for."""
Numbers = Sequence[int]


@dataclass(frozen=True)
class DocumentFilter:
    """Documents that contain all of the words, and a mention with this source, relation and entity."""

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
        """Number of conditions on a mention."""
        return sum(value is not None for value in (self.source, self.relation, self.entity))


class Library:
    """All documents of a corpus in memory, with an inverted index."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self.documents: list[Document] = []
        self._index: dict[tuple[str, str], array[int]] = {}
        for document in documents:
            self.documents.append(document)
            for key in _keys(document):
                self._index.setdefault(key, array("l")).append(len(self.documents))
        self._words = sorted(word for kind, word in self._index if kind == "word")

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, number: int) -> Document:
        return self.documents[number - 1]

    def find(self, filter: DocumentFilter) -> Numbers:
        """Numbers of the documents that pass the filter, in order."""
        lists: list[Numbers] = [self._with_prefix(word) for word in words_of(filter.words)]
        for kind in ("source", "relation", "entity"):
            value = getattr(filter, kind)
            if value is not None:
                lists.append(self._index.get((kind, value), ()))
        if not lists:
            return range(1, len(self) + 1)
        numbers = set(lists[0]).intersection(*lists[1:])
        if filter.mention_conditions > 1:
            numbers = {number for number in numbers if any(map(filter.fits, self[number].mentions))}
        return sorted(numbers)

    def _with_prefix(self, prefix: str) -> Sequence[int]:
        """Documents with a word that starts with the prefix."""
        place, numbers = bisect_left(self._words, prefix), set[int]()
        for word in self._words[place : place + MAX_EXPANSIONS]:
            if not word.startswith(prefix):
                break
            numbers.update(self._index["word", word])
        return sorted(numbers)

    @staticmethod
    def neighbours(numbers: Numbers, number: int) -> tuple[int | None, int | None]:
        """The numbers before and after a document in a search result, which need not contain it."""
        place = bisect_left(numbers, number)
        after = place + (place < len(numbers) and numbers[place] == number)
        return numbers[place - 1] if place else None, numbers[after] if after < len(numbers) else None

    def excerpt(self, number: int, filter: DocumentFilter) -> str:
        """Some words of a document: around the first match, or from the start."""
        tokens = [token for token in self[number].tokens if token not in (START, END)]
        prefixes = words_of(filter.words)
        matches = (place for place, token in enumerate(tokens) if token.casefold().startswith(tuple(prefixes)))
        place = max(next(matches, 0) - EXCERPT_WORDS // 4, 0) if prefixes else 0
        piece = detokenize(tokens[place : place + EXCERPT_WORDS])
        return f"{'… ' if place else ''}{piece}{' …' if place + EXCERPT_WORDS < len(tokens) else ''}"


def words_of(text: str) -> list[str]:
    return [word.casefold() for word in tokenizer().words(text)]


def _keys(document: Document) -> Iterator[tuple[str, str]]:
    words = {token.casefold() for token in document.tokens}
    yield from {("word", word) for word in (*words, *words_of(document.title))}
    yield from {("source", mention.source) for mention in document.mentions}
    yield from {("relation", relation) for mention in document.mentions for relation in mention.relations}
    yield from {("entity", mention.id) for mention in document.mentions}
