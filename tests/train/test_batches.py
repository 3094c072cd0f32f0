from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kglm.errors import ConfigError
from kglm.model.encoders.awd_lstm import LayerState, LstmState
from kglm.text.document import START, Document, read_documents
from kglm.text.repair import repair
from kglm.train.batches import Carried, Plan, StreamPlan, epoch_plan
from kglm.train.encoding import EncodedDocument
from support.toys import make_toy


def encoded(title: str, length: int) -> EncodedDocument:
    return EncodedDocument.plain(title, np.zeros(length + 1, np.int64), [])


@given(st.lists(st.integers(0, 30), max_size=12), st.integers(1, 5), st.integers(1, 9), st.integers(0, 3))
def test_every_target_is_seen_exactly_once(lengths: list[int], rows: int, length: int, epoch: int) -> None:
    documents = [encoded(str(k), size) for k, size in enumerate(lengths)]
    plan = epoch_plan(documents, rows=rows, length=length, seed=1, epoch=epoch)
    seen: Counter[tuple[str, int]] = Counter()
    chunks = list(plan)
    for lines in chunks:
        assert 0 < len(lines) <= rows
        for _, piece in lines:
            assert piece.document is not None and 0 < piece.end - piece.start <= length
            seen.update((piece.document.title, t) for t in range(piece.start, piece.end))
    assert seen == {(document.title, t): 1 for document in documents for t in range(len(document))}
    assert len(chunks) == len(plan) and plan.targets == sum(lengths)


@given(st.lists(st.integers(1, 30), max_size=12), st.integers(1, 5), st.integers(1, 9))
def test_a_row_reads_each_document_in_order_without_a_gap(lengths: list[int], rows: int, length: int) -> None:
    expected: dict[int, tuple[str, int]] = {}
    before = list(range(rows))
    for lines in Plan([encoded(str(k), size) for k, size in enumerate(lengths)], rows=rows, length=length):
        assert [line.row for line in lines] == [row for row in before if row in {line.row for line in lines}]
        before = [line.row for line in lines]
        for row, piece in lines:
            assert piece.document is not None
            if piece.start:
                assert expected[row] == (piece.document.title, piece.start)
            expected[row] = (piece.document.title, piece.end)


@given(st.lists(st.integers(1, 40), min_size=40, max_size=80), st.integers(2, 6), st.integers(0, 3))
def test_rows_end_together(lengths: list[int], rows: int, epoch: int) -> None:
    """As far as whole documents allow; otherwise the last steps of an epoch would all come from one document."""
    documents = [encoded(str(k), size) for k, size in enumerate(lengths)]
    widths = [len(lines) for lines in epoch_plan(documents, rows=rows, length=1, seed=1, epoch=epoch)]
    assert widths == sorted(widths, reverse=True)
    assert sum(width < rows for width in widths) <= max(lengths)


def test_the_state_of_continued_rows() -> None:
    state = LstmState([LayerState(torch.tensor([[1.0], [2.0], [3.0]]), torch.zeros(3, 1))])
    carried = Carried([0, 2, 5], state)
    assert carried.state_of([0, 2, 5]) is state and carried.state_of([]) is None
    [layer] = carried.state_of([0, 5]) or ()
    assert layer.h_BH.tolist() == [[1.0], [3.0]]


def test_epochs_are_shuffled_and_repeatable() -> None:
    documents = [encoded(str(k), 3) for k in range(50)]

    def order(seed: int, epoch: int) -> list[str]:
        plan = epoch_plan(documents, rows=1, length=9, seed=seed, epoch=epoch)
        return [line.piece.document.title for lines in plan for line in lines if line.piece.document is not None]

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1, 2)}) == 6


def test_invalid_sizes() -> None:
    with pytest.raises(ConfigError):
        Plan([], rows=0, length=70)


def test_the_real_validation_split_is_read_whole(shared_data: Path, tmp_path: Path) -> None:
    """60 documents in a batch of 60: 216,016 positions; truncating readers saw 50,331."""
    toy = make_toy(tmp_path)
    documents = [
        toy.encoder.encode(Document(document.title, repair(document)[0].tokens))
        for document in read_documents(shared_data / "lw2" / "valid.jsonl.gz")
    ]
    plan = Plan(documents, rows=60, length=70)
    assert sum(piece.end - piece.start for lines in plan for _, piece in lines) == plan.targets == 216_016
    assert all(document.surface[0] == START for document in documents)


class TestStream:
    """All documents concatenated, as in the training of AWD-LSTM."""

    def plan(self, lengths: list[int], rows: int, length: int = 7, epoch: int = 0) -> StreamPlan:
        first = 0
        documents = []
        for size in lengths:
            documents.append(EncodedDocument.plain("d", np.arange(first, first + size), []))
            first += size
        made = epoch_plan(documents, rows=rows, length=length, seed=1, epoch=epoch, batching="stream")
        assert isinstance(made, StreamPlan)
        return made

    def test_every_word_follows_the_one_before(self) -> None:
        plan = self.plan([40, 1, 63, 100], rows=4)
        read: list[list[int]] = [[] for _ in range(4)]
        ends = [0] * 4
        for lines in plan:
            assert [line.row for line in lines] == [0, 1, 2, 3] and len({line.piece.end for line in lines}) == 1
            for row, piece in lines:
                assert piece.document is not None and piece.start == ends[row], "no word is skipped"
                read[row] += piece.document.words_N[piece.start + 1 : piece.end + 1].tolist()
                ends[row] = piece.end
        assert [word for row in read for word in row] == list(range(1, 201))
        assert plan.targets == 200 and len(plan) == len(list(plan))

    def test_cuts_differ_between_epochs(self) -> None:
        one, same, other = (
            [lines[0].piece.end for lines in self.plan([900], 2, length=20, epoch=epoch)] for epoch in (0, 0, 1)
        )
        assert one == same != other and min(np.diff([0, *one])[:-1]) >= 5

    def test_fewer_words_than_rows(self) -> None:
        with pytest.raises(ConfigError, match="a stream of 4 words in 4 rows"):
            self.plan([3, 1], rows=4)
