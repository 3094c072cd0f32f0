"""The mistakes of the only public implementation that have no better place among the tests.

9.1 slots, 9.3 charges, 9.4 parents listed twice, 9.5 parallel edges, 9.11 unknown tails: test_kglm. 9.2 batches, 9.10
regularisation, 9.13 weight drop: test_every_model, test_encoder_dropout. 9.9 truncated reading: train/test_batches.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from kglm.kg.ids import NEW, REFLEXIVE
from kglm.model.options import LatentConfig
from kglm.model.types import Type
from kglm.text.document import START, Document, Mention
from kglm.train.chunks import whole
from support.brute_force import enumerate_log_joint
from support.toys import Step, Toy, annotated, make_toy

ANNOTATED = LatentConfig(marginal="annotated")


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return make_toy(tmp_path, latent=ANNOTATED)


def test_a_continued_mention_keeps_its_entity_whatever_else_is_in_the_batch(toy: Toy) -> None:
    """9.6: continuations lost their entity unless another row had a related mention."""
    q1 = toy.graph.number("Q1")
    text = annotated(toy, [Step("Mario", Type.NEW, q1), Step("Land", Type.CONTINUE, q1)])
    alone = toy.score(text)
    assert not alone.unknown_BT.any(), "Land is not in the vocabulary: only its entity can say it"
    first = Mention(1, 2, "Q1", "KG", (NEW,), ("Q1",))
    again = Mention(2, 3, "Q1", "KG", (REFLEXIVE,), ("Q1",))
    related = Document("related", [START, "Mario", "Mario"], [first, again])
    assert torch.allclose(toy.score(text, related).total_BT[0], alone.total_BT[0])


@pytest.mark.parametrize("id", ["Q1", "Q2"])
def test_copying_needs_the_entity_and_not_the_truth(toy: Toy, id: str) -> None:
    """9.7: any z can be scored, right or wrong; what can be copied follows from its aliases."""
    node = toy.graph.number(id)
    for word in ("Land", "Game"):
        step = Step(word, Type.NEW, node)
        scores = toy.score(annotated(toy, [step]))
        assert bool(scores.unknown_BT[0, 0]) == (word not in toy.aliases[node].surface)
        if not scores.unknown_BT.any():
            assert float(scores.total_BT.sum()) == pytest.approx(enumerate_log_joint(toy, [step]), rel=1e-9)


def test_without_a_viable_parent_nothing_is_related(tmp_path: Path) -> None:
    """9.8: a softmax of which everything is masked was one of which nothing is."""
    toy = make_toy(tmp_path, latent=ANNOTATED, parent_window=1)
    first = Mention(1, 2, "Q1", "KG", (NEW,), ("Q1",))
    late = Mention(4, 5, "Q2", "KG", ("P1",), ("Q1",))  # three words later: out of the window
    chunk = toy.builder.build(
        [whole(toy.encoder.encode(Document("t", [START, "Mario", "is", "is", "Boy"], [first, late])))]
    )
    assert chunk.types.related_BT.tolist() == [[False, True, False, False]]
    with torch.no_grad():
        scores = toy.model.score(chunk)
        h_x_TH = toy.model.encoder(chunk.words.input_BT).h_BTD[0, :, :4]
        tables = toy.model.latent.relations.vectors(toy.model.words, toy.model.entities)
        log_type = toy.model.latent.types.log_probs(
            h_x_TH,
            chunk.types.state_BT[0],
            chunk.types.named,
            chunk.types.related_BT[0],
            chunk.types.continue_BT[0],
            tables,
        )
    assert log_type[2:, Type.RELATED].tolist() == [-math.inf] * 2
    assert int(scores.unexplained) == 1 and scores.entity_BT[0, 3] == 0
    assert scores.type_BT[0, 3] == log_type[3, Type.NEW], "that a mention begins is paid for, whatever it is called"
    assert bool(torch.isfinite(scores.total_BT).all())


@pytest.mark.parametrize("window", [1, 2, 3])
def test_one_window_for_types_parents_and_paths(tmp_path: Path, window: int) -> None:
    """9.12: recency was one step longer in sampling than in scoring. Here all ask for 1 ≤ t − j ≤ k."""
    toy = make_toy(tmp_path, latent=ANNOTATED, parent_window=window)
    for gap in (1, 2, 3, 4):
        tokens = [START, "Mario", *["is"] * (gap - 1), "Boy"]
        mentions = [Mention(1, 2, "Q1", "KG", (NEW,), ("Q1",))]
        mentions.append(Mention(gap + 1, gap + 2, "Q2", "KG", ("P1",), ("Q1",)))
        encoded = toy.encoder.encode(Document("t", tokens, mentions))
        chunk = toy.builder.build([whole(encoded)])
        legal = gap <= window
        assert bool(chunk.types.related_BT[0, gap]) == legal
        assert bool((chunk.starts.parent_MP[1] >= 0).any()) == legal
        assert bool(encoded.starts[1].paths) == legal


def test_a_repeated_mention_has_the_number_of_its_entity(toy: Toy) -> None:
    """9.14: the reader gave it the number of entities so far."""
    ids = ["Q1", "Q2", "Q1", "Q2"]
    mentions = [Mention(k + 1, k + 2, id, "KG", (NEW,), (id,)) for k, id in enumerate(ids)]
    encoded = toy.encoder.encode(Document("t", [START, "Mario", "Boy", "Mario", "Boy"], mentions))
    assert encoded.mention_words_I3[:, :2].tolist() == [[0, 0], [1, 1], [2, 0], [3, 1]]
    assert encoded.entities == [toy.graph.number("Q1"), toy.graph.number("Q2")]
