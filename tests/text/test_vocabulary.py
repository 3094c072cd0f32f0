"""Vocabularies: counting, indices, files."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from kglm.errors import DataError, VersionError
from kglm.text.document import END, START, Document
from kglm.text.vocabulary import (
    PADDING,
    PADDING_INDEX,
    UNKNOWN,
    UNKNOWN_INDEX,
    AuthorsVocabulary,
    Vocabulary,
)

DOCUMENTS = [
    Document("1", [START, *["b", "b", "b", "a", "a", "a", "c", "c", "rare"], END]),
    Document("2", [START, *["c", "d", "d", "d", "d", "c"], END]),
]


def test_frequent_words_in_order_of_count_then_spelling() -> None:
    vocabulary = Vocabulary.count(DOCUMENTS, min_count=3)
    assert vocabulary.words == (PADDING, UNKNOWN, START, END, "c", "d", "a", "b")
    assert vocabulary.unknown_types == 1


def test_rare_words_are_counted_in_u() -> None:
    vocabulary = Vocabulary.count(DOCUMENTS, min_count=100)
    assert vocabulary.words == (PADDING, UNKNOWN, START, END) and vocabulary.unknown_types == 5


def test_unknown_words_get_the_unknown_index() -> None:
    vocabulary = Vocabulary.count(DOCUMENTS)
    assert vocabulary.encode(["d", "zebra", START]) == [5, 1, 2]
    assert "d" in vocabulary and "zebra" not in vocabulary


def test_indices_of_padding_and_unknown() -> None:
    vocabulary = Vocabulary.count(DOCUMENTS)
    assert (Vocabulary.padding, Vocabulary.unknown) == (PADDING_INDEX, UNKNOWN_INDEX)
    assert vocabulary.words[vocabulary.padding] == PADDING and vocabulary.words[vocabulary.unknown] == UNKNOWN
    with pytest.raises(FrozenInstanceError):
        vocabulary.unknown = 5  # type: ignore[misc]


def test_save_and_load(tmp_path: Path) -> None:
    vocabulary = Vocabulary.count(DOCUMENTS)
    vocabulary.save(tmp_path / "v.json")
    assert Vocabulary.load(tmp_path / "v.json") == vocabulary


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("[1]", DataError, "expected `object`, got `array`"),
        ("{", DataError, "is not JSON"),
        ('{"format": 9, "words": []}', VersionError, "format 9; this version reads format 1"),
        ('{"format": 1, "words": ["a"]}', DataError, "starts with"),
        (json.dumps({"format": 1, "words": [PADDING, UNKNOWN, "a", "a"]}), DataError, "'a' twice"),
    ],
)
def test_invalid_file_is_an_error(tmp_path: Path, content: str, error: type[Exception], message: str) -> None:
    (tmp_path / "v.json").write_text(content)
    with pytest.raises(error, match=message):
        Vocabulary.load(tmp_path / "v.json")


def test_directory_of_the_authors(tmp_path: Path) -> None:
    for name, lines in {
        "tokens": [UNKNOWN, "the", ","],
        "tokens_unk": ["Tuckahoe", "zymurgy"],
        "entity_ids": [UNKNOWN, "", "Q1"],
        "raw_entity_ids": [UNKNOWN, "Q1", "Q2"],
        "relations": [UNKNOWN, "@@NEW@@", "P31"],
    }.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    loaded = AuthorsVocabulary.load(tmp_path)
    assert loaded.tokens.index["the"] == 2, "line 1 (from 0) is index 2 in a padded file"
    assert loaded.entity_ids.index("Q1") == 3, "a blank line has an index too"
    assert loaded.relations.index("P31") == 3
    assert loaded.tokens.unknown_types == 2
    (tmp_path / "relations.txt").unlink()
    with pytest.raises(DataError, match="no such file"):
        AuthorsVocabulary.load(tmp_path)
