"""EntityNLM against its formulas, word for word; sums to one; chunks and rows do not matter."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from kglm.model.entity_nlm import EntityNlm, EntityNlmProposal
from kglm.model.options import LatentConfig
from kglm.text.document import Document
from kglm.train.chunks import Piece, whole
from kglm.train.encoding import EncodedDocument
from support.toys import Toy, make_toy
from support.tracking import LONGEST, Span, all_spans, document, log_joint, made


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return make_toy(tmp_path_factory.mktemp("toy"), latent=LatentConfig(facts="none"))


@pytest.fixture(scope="module")
def model(toy: Toy) -> EntityNlm:
    return made(toy)


def score(toy: Toy, model: EntityNlm, *documents: Document) -> list[float]:
    pieces = [whole(toy.encoder.encode(each)) for each in documents]
    with torch.no_grad():
        return [float(x) for x in model.score(toy.builder.build(pieces, ahead=model.ahead)).total_BT.sum(1)]


CASES: list[tuple[list[str], list[Span]]] = [
    (["is", "Mario"], []),
    (["Mario", "is", "Boy"], [(0, 1, "Q1")]),
    (["Mario", "Land", "is", "Boy", "is", "Mario"], [(0, 2, "Q1"), (3, 1, "Q2"), (5, 1, "Q1")]),
    (["Mario", "Boy", "Mario", "Mario", "is", "Boy"], [(0, 1, "Q1"), (1, 1, "Q2"), (2, 2, "Q1"), (5, 1, "Q2")]),
    (["is", "Mario", "Mario", "Mario"], [(1, 1, "Q1"), (2, 1, "Q1"), (3, 1, "Q1")]),
]


@pytest.mark.parametrize(("words", "spans"), CASES)
def test_it_is_what_the_formulas_say(toy: Toy, model: EntityNlm, words: list[str], spans: list[Span]) -> None:
    assert score(toy, model, document(words, spans)) == [pytest.approx(log_joint(toy, model, words, spans), rel=1e-9)]


def test_rows_do_not_disturb_one_another(toy: Toy, model: EntityNlm) -> None:
    documents = [document(*case) for case in CASES]
    alone = [value for each in documents for value in score(toy, model, each)]
    assert score(toy, model, *documents) == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_chunks_do_not_matter(toy: Toy, model: EntityNlm, length: int) -> None:
    """Vectors, distances and running mentions reach over the edge of a chunk."""
    encoded = [toy.encoder.encode(document(*case)) for case in (CASES[2], CASES[3])]
    total, state = 0.0, None
    with torch.no_grad():
        for start in range(0, 6, length):
            chunk = toy.builder.build([Piece(each, start, min(start + length, 6)) for each in encoded])
            scores = model.score(chunk, state)
            total, state = total + float(scores.total_BT.sum()), scores.state
    assert total == pytest.approx(sum(log_joint(toy, model, *case) for case in (CASES[2], CASES[3])), rel=1e-9)


def test_what_one_row_learns_does_not_depend_on_its_neighbours(toy: Toy) -> None:
    """Entities that a neighbour has and the row has not yet are no entities of the row."""
    row, neighbour = (toy.encoder.encode(document(*CASES[k])) for k in (3, 2))

    def gradient(*rows: EncodedDocument) -> Tensor:
        model = made(toy)
        state, total_H = None, torch.zeros_like(model.new_H)
        for start in (0, 2, 4):
            scores = model.score(toy.builder.build([Piece(each, start, start + 2) for each in rows]), state)
            total_H += torch.autograd.grad(scores.total_BT[0].sum(), model.new_H)[0]
            state = scores.state.detach()
            with torch.no_grad():
                model.new_H.add_(total_H)  # weights change between chunks
        return total_H

    assert torch.allclose(gradient(row), gradient(row, neighbour), rtol=1e-9)


def test_all_texts_and_annotations_sum_to_one(toy: Toy, model: EntityNlm) -> None:
    words = toy.vocabulary.words
    total = sum(
        math.exp(log_joint(toy, model, list(text), spans))
        for text in itertools.product(words, repeat=2)
        for spans in all_spans(2)
    )
    assert total == pytest.approx(1, rel=1e-9)


def test_a_proposal_reads_the_word_it_labels(toy: Toy) -> None:
    proposal = made(toy, EntityNlmProposal)
    texts = [["Mario", "is"], ["Mario", "Boy"]]
    one, other = (score(toy, proposal, document(words, [(1, 1, "Q2")]))[0] for words in texts)
    assert one != other
    nobody, short, *longer = (score(toy, proposal, document(["Mario"], spans))[0] for spans in all_spans(1)[:2])
    lengths = proposal.length_log_probs(*_first(toy, proposal, "Mario"))[0].exp().detach()
    assert not longer and math.exp(nobody) + math.exp(short) / float(lengths[0]) == pytest.approx(1)
    assert not proposal.word_HH.requires_grad and not proposal.word_bias_V.requires_grad


def _first(toy: Toy, model: EntityNlm, word: str) -> tuple[Tensor, Tensor]:
    """h with which the first word of a text is labelled, and the vector of an entity that begins there."""
    h_H = model.encoder(torch.tensor([toy.vocabulary.encode([word])])).h_BTD[0]
    return h_H, model.new_vector[None]


def test_every_parameter_learns(toy: Toy) -> None:
    model = made(toy).train()
    pieces = [whole(toy.encoder.encode(document(*case))) for case in CASES]
    scores = model.score(toy.builder.build(pieces), generator=torch.Generator().manual_seed(0))
    (-scores.total_BT.sum()).backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert [name for name, gradient in gradients.items() if gradient is None or not gradient.any()] == []


def test_a_mention_longer_than_any_counts_as_the_longest(toy: Toy, model: EntityNlm) -> None:
    words = ["Mario"] * (LONGEST + 4)
    spans = [(0, LONGEST + 3, "Q1")]
    assert score(toy, model, document(words, spans)) == [pytest.approx(log_joint(toy, model, words, spans), rel=1e-9)]


def test_dates_are_words(toy: Toy) -> None:
    year = "T::9::+1989-00-00T00:00:00Z"
    encoded = toy.encoder.encode(document(["Mario", "is", "1989"], [(0, 1, "Q1"), (2, 1, year)]))
    assert encoded.slot_T.tolist() == [0, -1, -1] and encoded.counts["new_literal"] == 1
