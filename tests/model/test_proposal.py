"""The proposal q(z | x): proper, over the same variables as the model, and independent of what else is in the batch."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kglm.model.options import PAPER, LatentConfig
from kglm.text.document import Document
from kglm.train.chunks import whole
from support.toys import Step, Toy, annotated, legal_steps, make_toy

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
