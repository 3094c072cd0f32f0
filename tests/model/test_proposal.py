"""The proposal q(z | x): proper, over the same variables as the model, and independent of what else is in the batch."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kglm.model.chunk import Piece, whole
from kglm.model.latent import PAPER, LatentConfig
from kglm.text.document import Document
from toys import Step, Toy, annotated, legal_steps, make_toy, random_documents

ANNOTATED = LatentConfig(marginal="annotated")


def log_q(toy: Toy, *documents: Document) -> list[float]:
    pieces = [whole(toy.encoder.encode(document)) for document in documents]
    with torch.no_grad():
        scores = toy.proposal.score(toy.builder.build(pieces, ahead=toy.proposal.ahead))
    assert not scores.word_BT.any(), "words are given"
    return [float(x) for x in scores.total_BT.sum(1)]


def every_annotation(toy: Toy, words: list[str]) -> list[list[Step]]:
    texts: list[list[Step]] = [[]]
    for word in words:
        texts = [[*t, replace(step, word=word)] for t in texts for step in legal_steps(toy, t)]
    return texts


@pytest.mark.parametrize(
    "options",
    [{"latent": ANNOTATED}, {"latent": PAPER}, {"latent": ANNOTATED, "parent_window": 1}],
    ids=["refined", "paper", "window"],
)
@pytest.mark.parametrize("words", [["Mario", "is", "Boy"], ["Game", "Boy", "Tennis"]], ids=" ".join)
def test_the_annotations_of_a_text_sum_to_one(tmp_path: Path, options: dict, words: list[str]) -> None:  # type: ignore[type-arg]
    toy = make_toy(tmp_path, **options)
    annotations = every_annotation(toy, words)
    assert len(annotations) > 100
    total = sum(map(math.exp, log_q(toy, *(annotated(toy, steps) for steps in annotations))))
    assert total == pytest.approx(1, abs=1e-9)


def test_it_sees_the_word_it_labels(tmp_path: Path) -> None:
    toy = make_toy(tmp_path, latent=ANNOTATED)
    new = Step("", legal_steps(toy, [])[1].type, legal_steps(toy, [])[1].node)
    one, other = (log_q(toy, annotated(toy, [replace(new, word=word)]))[0] for word in ("Mario", "is"))
    assert one != other
    prior = [float(toy.score(annotated(toy, [replace(new, word=word)])).type_BT[0, 0]) for word in ("Mario", "is")]
    assert prior[0] == prior[1], "the model decides before it sees the word"


def test_a_row_does_not_depend_on_the_others(tmp_path: Path) -> None:
    """9.2: stray terms of other rows made log q, and the perplexity, depend on the batch."""
    toy = make_toy(tmp_path, latent=ANNOTATED)
    documents = random_documents(toy, 60)
    alone = [log_q(toy, document)[0] for document in documents]
    assert log_q(toy, *documents) == pytest.approx(alone, rel=1e-9)
    assert log_q(toy, *reversed(documents)) == pytest.approx(alone[::-1], rel=1e-9)


def test_chunks_with_carried_state(tmp_path: Path) -> None:
    toy = make_toy(tmp_path, latent=ANNOTATED)
    for document in random_documents(toy, 8):
        encoded = toy.encoder.encode(document)
        state, total = None, 0.0
        with torch.no_grad():
            for start in range(0, len(encoded), 2):
                piece = Piece(encoded, start, min(start + 2, len(encoded)))
                scores = toy.proposal.score(toy.builder.build([piece], ahead=1), state)
                state, total = scores.state, total + float(scores.total_BT.sum())
        assert total == pytest.approx(log_q(toy, document)[0], rel=1e-9)
