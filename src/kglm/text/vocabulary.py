"""The vocabulary: the words a model can generate, and the number of rarer words that it maps to unknown.

Words are counted on the training split only. Index 0 is padding, 1 the unknown word, then `@@START@@`, `@@END@@`,
then the words seen at least `min_count` times, most frequent first. The rarer words form the set U; the
unknown-penalised perplexity needs its size |U|.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import msgspec

from kglm.errors import DataError, VersionError
from kglm.files import read_record, reading, write_json
from kglm.files.records import Count
from kglm.text.document import END, START, Document

PADDING, UNKNOWN = "@@PADDING@@", "@@UNKNOWN@@"
PADDING_INDEX, UNKNOWN_INDEX = 0, 1
FORMAT = 1


@dataclass(frozen=True)
class Vocabulary:
    """`words[i]` is the word with index i; `unknown_types` is |U|."""

    padding: ClassVar[int] = PADDING_INDEX
    """Index of the padding word."""
    unknown: ClassVar[int] = UNKNOWN_INDEX
    """Index of the unknown word."""

    words: tuple[str, ...]
    unknown_types: int = 0

    def __post_init__(self) -> None:
        if self.words[:2] != (PADDING, UNKNOWN):
            raise DataError(
                f"the vocabulary starts with {self.words[:2]}",
                remedy=f"start it with {PADDING}, {UNKNOWN}",
            )
        if len(self.index) != len(self.words):
            duplicate = next(word for word, count in Counter(self.words).items() if count > 1)
            raise DataError(f"the vocabulary lists the word {duplicate!r} twice", remedy="list every word once")

    @cached_property
    def index(self) -> dict[str, int]:
        """Index of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self.index

    def encode(self, words: Iterable[str]) -> list[int]:
        """Indices of words; a word outside the vocabulary gets the index `unknown`."""
        get = self.index.get
        return [get(word, self.unknown) for word in words]

    @classmethod
    def count(cls, documents: Iterable[Document], *, min_count: int = 3) -> Vocabulary:
        """Build the vocabulary of training documents; words of equal frequency are in alphabetical order."""
        counts: Counter[str] = Counter()
        for document in documents:
            counts.update(document.tokens)
        special = (PADDING, UNKNOWN, START, END)
        for word in special:
            counts.pop(word, None)
        frequent = sorted(
            (word for word, count in counts.items() if count >= min_count),
            key=lambda word: (-counts[word], word),
        )
        return cls((*special, *frequent), len(counts) - len(frequent))

    def record(self) -> VocabularyRecord:
        """The vocabulary as JSON stores it."""
        return VocabularyRecord(FORMAT, list(self.words), self.unknown_types)

    def save(self, path: Path) -> None:
        """Write the vocabulary as JSON."""
        write_json(path, self.record())

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read a vocabulary that `save` wrote."""
        return cls.of_record(read_record(path, VocabularyRecord), path)

    @classmethod
    def of_record(cls, record: VocabularyRecord, place: Path) -> Vocabulary:
        """The vocabulary of a JSON record."""
        if record.format != FORMAT:
            raise VersionError(
                f"has vocabulary format {record.format}; this version reads format {FORMAT}", place=place
            )
        try:
            return cls(tuple(record.words), record.unknown_types)
        except DataError as error:
            raise DataError(error.what, place=place, remedy=error.remedy) from error


class VocabularyRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of `vocabulary.json`."""

    format: int
    words: list[str]
    unknown_types: Count = 0


@dataclass(frozen=True)
class AuthorsVocabulary:
    """The vocabulary directory of the paper's published models."""

    tokens: Vocabulary
    entity_ids: tuple[str, ...]
    raw_entity_ids: tuple[str, ...]
    relations: tuple[str, ...]

    @classmethod
    def load(cls, directory: Path) -> AuthorsVocabulary:
        """Read `tokens.txt`, `tokens_unk.txt`, `entity_ids.txt`, `raw_entity_ids.txt`, `relations.txt`.

        Line k (from 0) has index k + 1 in a padded file and index k in a `*_unk` file. The first line of a padded
        file is the unknown word.
        """
        tokens = _namespace(directory / "tokens.txt", padded=True)
        rare = _namespace(directory / "tokens_unk.txt", padded=False)
        return cls(
            Vocabulary(tokens, len(set(rare) - {UNKNOWN, PADDING})),
            _namespace(directory / "entity_ids.txt", padded=True),
            _namespace(directory / "raw_entity_ids.txt", padded=True),
            _namespace(directory / "relations.txt", padded=True),
        )


def _namespace(path: Path, *, padded: bool) -> tuple[str, ...]:
    """Entries of a namespace file by index, with the padding word first if `padded`."""
    with reading(path):
        content = path.read_bytes()
    try:
        lines = content.decode().removesuffix("\n").split("\n")  # a blank line has an index, too
    except UnicodeDecodeError as error:
        raise DataError("invalid UTF-8", place=path, remedy="convert the file to UTF-8") from error
    return (PADDING, *lines) if padded else tuple(lines)
