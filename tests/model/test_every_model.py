"""What holds for every model: its scores depend on the document alone, and training reaches what it should."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch

from kglm.model.base import ChunkModel, Scores
from kglm.model.options import LatentConfig
from kglm.text.document import Document
from kglm.train.chunks import Piece, whole
from support.toys import OPTIONS, Toy, make_toy, random_documents

MARGINALS = ("entity", "all", "annotated")
MODELS = [
    *((world, name) for world in (*MARGINALS, "no facts", "topic") for name in ("model", "proposal")),
    ("entity", "plain"),
    ("no facts", "tracker"),
    ("no facts", "tracker_proposal"),
]
"""A plain language model has no facts to sum over; EntityNLM has none either."""


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Toy]:
    options: dict[str, dict[str, Any]] = {
        marginal: {"latent": LatentConfig(marginal=marginal, entity_bias=True)}  # type: ignore[arg-type]
        for marginal in MARGINALS
    }
    options |= {name: OPTIONS[name] for name in ("no facts", "topic")}
    return {name: make_toy(tmp_path_factory.mktemp("toy"), **option) for name, option in options.items()}


@pytest.fixture(params=MODELS, ids="-".join)
def which(request: pytest.FixtureRequest) -> tuple[str, str]:
    marginal, name = request.param
    return marginal, name


@pytest.fixture
def toy(toys: dict[str, Toy], which: tuple[str, str]) -> Toy:
    return toys[which[0]]


@pytest.fixture
def model(toy: Toy, which: tuple[str, str]) -> ChunkModel:
    found: ChunkModel = getattr(toy, which[1])
    return found.eval()


def score(toy: Toy, model: ChunkModel, pieces: list[Piece], state: object = None) -> Scores:
    with torch.no_grad():
        return model.score(toy.builder.build(pieces, ahead=model.ahead), state)  # type: ignore[arg-type]


def log_p(toy: Toy, model: ChunkModel, *documents: Document) -> list[float]:
    pieces = [whole(toy.encoder.encode(document)) for document in documents]
    return [float(value) for value in score(toy, model, pieces).total_BT.sum(1)]


def test_alone_in_a_batch_of_sixty_and_in_any_order(toy: Toy, model: ChunkModel) -> None:
    """9.2: with stray terms of other rows, perplexity depends on the batch."""
    documents = random_documents(toy, 60)
    together = log_p(toy, model, *documents)
    alone = [log_p(toy, model, document)[0] for document in documents[::3]]
    assert together[::3] == pytest.approx(alone, rel=1e-9)
    assert log_p(toy, model, *reversed(documents)) == pytest.approx(together[::-1], rel=1e-9)


@pytest.mark.parametrize("length", [1, 3, 7])
def test_in_chunks_with_carried_state(toy: Toy, model: ChunkModel, length: int) -> None:
    """A row of its own, and several of which some end before others."""
    documents = random_documents(toy, 12)
    together = log_p(toy, model, *documents)
    for rows in ([4], range(12)):
        encoded = [toy.encoder.encode(documents[row]) for row in rows]
        state, totals = None, torch.zeros(len(encoded), dtype=torch.float64)
        for start in range(0, max(map(len, encoded)), length):
            pieces = [Piece(e, start, min(start + length, len(e))) if start < len(e) else Piece(None) for e in encoded]
            scores = score(toy, model, pieces, state)
            state, totals = scores.state, totals + scores.total_BT.sum(1)
        assert totals.tolist() == pytest.approx([together[row] for row in rows], rel=1e-9)


def test_rows_that_have_nothing_to_do(toy: Toy, model: ChunkModel) -> None:
    document = random_documents(toy, 6)[5]
    scores = score(toy, model, [Piece(None), whole(toy.encoder.encode(document)), Piece(None)])
    expected = [0.0, log_p(toy, model, document)[0], 0.0]
    assert scores.total_BT.sum(1).tolist() == pytest.approx(expected, rel=1e-9)
    nothing = score(toy, model, [Piece(None)])
    assert nothing.total_BT.sum() == 0 and not nothing.unknown_BT.any()


def test_scores_are_log_probabilities_and_their_parts_add_up(toy: Toy, model: ChunkModel) -> None:
    scores = score(toy, model, [whole(toy.encoder.encode(document)) for document in random_documents(toy, 20)])
    parts = [scores.type_BT, scores.new_BT, scores.parent_BT, scores.relation_BT, scores.word_BT]
    assert torch.allclose(sum(parts), scores.total_BT)
    assert all(bool((part <= 1e-12).all()) for part in parts)
    assert bool((scores.new_BT * scores.parent_BT == 0).all()), "an entity is new or related"


def test_regularisation_is_no_part_of_evaluation(toy: Toy, model: ChunkModel) -> None:
    """9.10"""
    scores = score(toy, model, [whole(toy.encoder.encode(random_documents(toy, 4)[3]))])
    assert scores.regularisation.mean() == 0


def test_training_draws_masks_and_evaluation_none(toy: Toy, model: ChunkModel) -> None:
    """9.13"""
    chunk = toy.builder.build([whole(toy.encoder.encode(random_documents(toy, 6)[5]))], ahead=model.ahead)
    with torch.no_grad():
        exact = [model.score(chunk).total_BT for _ in range(2)]
        model.train()
        drawn = [model.score(chunk, generator=torch.Generator().manual_seed(seed)).total_BT for seed in (1, 1, 2)]
    assert torch.equal(*exact)
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


def test_every_parameter_that_is_trained_has_a_gradient_and_it_is_finite(toy: Toy, model: ChunkModel) -> None:
    documents = [toy.encoder.encode(document) for document in random_documents(toy, 60)]
    for document in documents:
        document.counted = True
    chunk = toy.builder.build([whole(document) for document in documents], ahead=model.ahead)
    model.train()
    model.zero_grad()
    scores = model.score(chunk, generator=torch.Generator().manual_seed(0))
    (scores.regularisation.mean() - scores.total_BT.sum()).backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None and bool(torch.isfinite(parameter.grad).all()), name
            assert bool(parameter.grad.any()), name


def test_gradients_are_right(toy: Toy, model: ChunkModel) -> None:
    documents = [toy.encoder.encode(document) for document in random_documents(toy, 4, seed=9)]
    for document in documents:
        document.counted = True
    chunk = toy.builder.build([whole(document) for document in documents], ahead=model.ahead)
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def loss(*values: torch.Tensor) -> torch.Tensor:
        scores = torch.func.functional_call(model, dict(zip(trained, values, strict=True)), (chunk,))
        total: torch.Tensor = scores.total_BT.sum()
        return total

    assert torch.autograd.gradcheck(loss, tuple(trained.values()), eps=1e-6, atol=1e-5, fast_mode=True)


def test_the_state_is_not_kept_in_the_module(toy: Toy, model: ChunkModel) -> None:
    document = random_documents(toy, 6)[5]
    first = log_p(toy, model, document)
    score(toy, model, [whole(toy.encoder.encode(random_documents(toy, 3)[2]))])
    assert log_p(toy, model, document) == first and math.isfinite(first[0])


def test_a_copy_scores_the_same_and_shares_no_weights(toy: Toy, model: ChunkModel) -> None:
    pieces = [whole(toy.encoder.encode(random_documents(toy, 3)[2]))]
    other = copy.deepcopy(model)
    assert torch.equal(score(toy, model, pieces).total_BT, score(toy, other, pieces).total_BT)
    for parameter in other.parameters():
        parameter.data.add_(1)
    assert not any(torch.equal(one, two) for one, two in zip(model.parameters(), other.parameters(), strict=True))
