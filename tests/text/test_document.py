"""Linked documents: parsing, writing, errors."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from kglm.errors import DataError
from kglm.text.document import (
    END,
    START,
    Document,
    Mention,
    parse_document,
    read_documents,
    to_line,
    write_documents,
)
from support.strategies import documents

NEW = {"source": "WIKI", "id": "Q1", "relation": ["@@NEW@@"], "parent_id": ["Q1"], "span": [1, 2]}
RELATED = {"source": "KG", "id": "Q2", "relation": ["P3"], "parent_id": ["Q1"], "span": [3, 4]}


def record(**changes: Any) -> dict[str, Any]:
    return {"title": "t", "tokens": [START, "a", "b", "c", END], "annotations": [NEW, RELATED]} | changes


def parse(value: Any) -> Document:
    return parse_document(json.dumps(value).encode(), "f.jsonl, line 3")


def test_record_is_parsed_with_its_mentions() -> None:
    first, second = parse(record()).mentions
    assert first.is_new and first.explanations == ()
    assert not second.is_new and second.explanations == (("Q1", "P3"),)


def test_explanations_are_distinct_pairs_in_order() -> None:
    mention = Mention(0, 1, "Q9", "KG", ("P1", "P1", "P2"), ("Q1", "Q1", "Q1"))
    assert mention.explanations == (("Q1", "P1"), ("Q1", "P2"))


@given(documents())
def test_written_document_is_read_back(document: Document) -> None:
    assert parse_document(to_line(document), "here") == document


def test_plain_and_compressed_files(tmp_path: Path) -> None:
    originals = [parse(record(title=str(n))) for n in range(3)]
    for name in ("a.jsonl", "a.jsonl.gz"):
        assert write_documents(tmp_path / name, originals) == 3
        assert list(read_documents(tmp_path / name)) == originals
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()) == (tmp_path / "a.jsonl").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"a.jsonl", "a.jsonl.gz"}


def test_real_corpus_is_written_byte_for_byte(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "lw2" / "valid.jsonl.gz"
    write_documents(tmp_path / "copy.jsonl", read_documents(source))
    assert (tmp_path / "copy.jsonl").read_bytes() == gzip.decompress(source.read_bytes())


def test_additional_keys_are_kept() -> None:
    document = parse(record(url="https://example.org", revision=7))
    assert document.extra == {"url": "https://example.org", "revision": 7}
    assert json.loads(to_line(document)) == record(url="https://example.org", revision=7)


def test_plain_text_stays_without_annotations() -> None:
    plain = {"title": "t", "tokens": [START, "a", END]}
    assert not parse(plain).annotated and json.loads(to_line(parse(plain))) == plain
    empty = plain | {"annotations": []}
    assert parse(empty).annotated and json.loads(to_line(parse(empty))) == empty


class TestNestedForm:
    """Files older than July 2019 nest tokens by sentence and have no inner sentence ends."""

    nested = (("@@START@@",), ("A", "b", "."), ("C", "d", "e", "."), ("@@END@@",))

    def load(self, *spans: tuple[int, int]) -> Document:
        annotations = [NEW | {"span": list(span)} for span in spans]
        return parse(record(tokens=[list(s) for s in self.nested], annotations=annotations))

    def test_sentence_ends_are_inserted(self) -> None:
        assert self.load().tokens == [START, "A", "b", ".", END, "C", "d", "e", ".", END]

    @pytest.mark.parametrize(
        ("old", "words"),
        [
            ((1, 2), "A"),
            ((2, 4), "b ."),
            ((4, 5), "C"),
            ((5, 8), "d e ."),
            ((3, 5), ". @@END@@ C"),
            ((0, 2), "@@START@@ A"),
        ],
    )
    def test_spans_keep_their_words_and_end_in_a_word(self, old: tuple[int, int], words: str) -> None:
        document = self.load(old)
        assert document.text(document.mentions[0]) == words

    def test_span_over_the_last_marker_ends_before_it(self) -> None:
        document = self.load((6, 9))
        assert document.text(document.mentions[0]) == "e ."

    def test_flat_and_nested_records_give_the_same_document(self) -> None:
        flat = record(
            tokens=[START, "A", "b", ".", END, "C", "d", "e", ".", END],
            annotations=[NEW | {"span": [2, 4]}, NEW | {"span": [6, 8]}],
        )
        assert self.load((2, 4), (5, 7)) == parse(flat)

    def test_nested_record_without_markers(self) -> None:
        document = parse(record(tokens=[["A", "b"], ["C"]], annotations=[NEW | {"span": [2, 3]}]))
        assert document.tokens == [START, "A", "b", END, "C", END]
        assert document.text(document.mentions[0]) == "C"

    def test_mix_of_words_and_sentences_is_an_error(self) -> None:
        with pytest.raises(DataError, match="mix words and sentences"):
            parse(record(tokens=[START, ["A"]], annotations=[]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": "abc"}, r"\$\.tokens: expected `array`"),
        ({"tokens": [1]}, r"\$\.tokens"),
        ({"title": None}, r"\$\.title"),
        ({"annotations": [NEW | {"span": [1, 9]}]}, r"annotation 1: span \[1, 9\) does not fit 5 tokens"),
        ({"annotations": [NEW | {"span": [2, 2]}]}, "does not fit"),
        ({"annotations": [NEW | {"span": [-1, 2]}]}, "does not fit"),
        ({"annotations": [RELATED, NEW]}, "annotation 2: .*overlaps or precedes"),
        ({"annotations": [NEW | {"span": [1, 3]}, RELATED | {"span": [2, 4]}]}, "overlaps"),
        ({"annotations": [NEW | {"span": [1]}]}, r"span"),
        ({"annotations": [NEW | {"source": "ME"}]}, "unknown source 'ME'; use one of WIKI"),
        ({"annotations": [NEW | {"relation": []}]}, "0 relations for 1 parents"),
        ({"annotations": [NEW | {"relation": ["born"]}]}, "unknown relation 'born'"),
        ({"annotations": [NEW | {"parent_id": ["Q2"]}]}, "with another relation or parent"),
        ({"annotations": [NEW | {"extra": 1}]}, "unknown field `extra`"),
        ({"annotations": [{"id": "Q1"}]}, "missing required field"),
    ],
)
def test_invalid_record_is_an_error_with_its_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        parse(record(**changes))
    assert str(caught.value).startswith("f.jsonl, line 3")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"nonsense", "not JSON"),
        (b'{"title": "t", "tok', "not JSON"),
        (b'{"title": "\xff"}', "UTF-8"),
        (b"[]", "expected `object`"),
        (b'{"title": "\\ud800", "tokens": []}', "lone surrogate"),
    ],
)
def test_invalid_line_is_an_error(line: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_document(line, "x")


def test_line_of_ten_megabytes(tmp_path: Path) -> None:
    tokens = [START, *["wörd"] * 1_200_000, END]
    path = tmp_path / "long.jsonl"
    path.write_bytes(json.dumps({"title": "long", "tokens": tokens}).encode())
    assert path.stat().st_size > 10 << 20
    [document] = read_documents(path)
    assert document.tokens == tokens


def test_sentences_of_a_document() -> None:
    assert list(parse(record(tokens=[START, "a", "b", END, "c", END], annotations=[])).sentences()) == [
        ["a", "b"],
        ["c"],
    ]
