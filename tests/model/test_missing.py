"""Missing facts: the share of words that they explain, facts that training hides, and edits."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from kglm.answer.missing import LEAST, says_missing
from kglm.answer.next_word import ODDS, NextWordConfig, next_words
from kglm.answer.reading import Span, read
from kglm.model.arrays import Floats
from kglm.model.base import Scores
from kglm.model.options import PAPER, LatentConfig
from kglm.model.types import Type
from kglm.text.document import START
from kglm.train.chunks import Piece, whole
from kglm.train.hidden import Hiding
from support.brute_force import enumerate_log_joint, path_probability
from support.toys import OPTIONS, Step, Toy, annotated, make_toy, random_documents

ANNOTATED = LatentConfig(marginal="annotated")


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return make_toy(tmp_path, latent=ANNOTATED)


def story(toy: Toy) -> list[Step]:
    """Mario Land, whose P1 is Game Boy."""
    q1, q2, p1 = toy.graph.number("Q1"), toy.graph.number("Q2"), toy.graph.find_relation("P1") or 0
    return [
        Step("Mario", Type.NEW, q1),
        Step("is", Type.NONE),
        Step("Game", Type.RELATED, q2, q1, p1),
        Step("Boy", Type.CONTINUE, q2, q1, p1),
        Step("is", Type.NONE),
    ]


def test_an_infinite_handicap_gives_the_paper(tmp_path: Path) -> None:
    """κ → −∞ gives the model without missing facts."""
    toy = make_toy(tmp_path / "with", latent=replace(PAPER, missing=True))
    paper = make_toy(tmp_path / "without", latent=PAPER)
    weights = {name: tensor for name, tensor in toy.model.state_dict().items() if "missing" not in name}
    paper.model.load_state_dict(weights)
    texts = random_documents(toy, 10)
    assert toy.log_joint(*texts) != pytest.approx(paper.log_joint(*texts), rel=1e-6)
    assert toy.model.latent.missing is not None
    toy.model.latent.missing.bias.data[:] = -200.0
    assert toy.log_joint(*texts) == pytest.approx(paper.log_joint(*texts), rel=1e-9)


def sums(scores: Scores) -> Floats:
    """log p(x, z), and what hidden facts add."""
    return np.array([float(each.detach().sum()) for each in (scores.total_BT, scores.asked_BT)])


@pytest.mark.parametrize("name", ["best", "window", "topic"])
def test_chunks_of_hidden_facts(tmp_path: Path, name: str) -> None:
    """The score of a document with hidden facts does not depend on how it is cut."""
    toy = make_toy(tmp_path, **OPTIONS[name])  # type: ignore[arg-type]
    encoded = [toy.encoder.encode(document, Hiding(0.8)) for document in random_documents(toy, 30)]
    assert sum(start.hides for document in encoded for start in document.starts) > 2
    with torch.no_grad():
        for document in encoded:
            together = sums(toy.model.score(toy.builder.build([whole(document)])))
            state, total = None, np.zeros(2)
            for start in range(0, len(document), 3):
                piece = Piece(document, start, min(start + 3, len(document)))
                scores = toy.model.score(toy.builder.build([piece]), state)
                state, total = scores.state, total + sums(scores)
            assert total == pytest.approx(together, rel=1e-9)


def test_a_hidden_fact_is_asked_for_in_a_graph_that_lacks_it(toy: Toy) -> None:
    """π(p) π(r | p) in a graph without the facts between the two, beside the likelihood of the text as it is."""
    steps = story(toy)
    document = toy.encoder.encode(annotated(toy, steps), Hiding(1.0))
    q1, relations = toy.graph.number("Q1"), [toy.graph.find_relation(id) for id in ("P1", "P2")]
    assert [start.hides for start in document.starts] == [False, True]
    with torch.no_grad():
        scores = toy.model.score(toy.builder.build([whole(document)]))
    assert float(scores.total_BT.sum()) == pytest.approx(enumerate_log_joint(toy, steps), rel=1e-9)
    toy.hidden = {q1: frozenset(relations)}  # type: ignore[arg-type]
    h_TD = toy.model.encoder(torch.tensor([toy.vocabulary.encode([START, "Mario", "is"])])).h_BTD[0]
    asked = Step("Game", Type.NONE, -1, q1, relations[0] or 0)
    with torch.no_grad():
        p = path_probability(toy, *h_TD[2].split(toy.model.sizes), {q1: 0}, 2, asked, ["Mario", "is"])
    assert float(scores.asked_BT[0, 2]) == pytest.approx(math.log(p), rel=1e-9)
    assert int((scores.asked_BT != 0).sum()) == 1


def test_facts_of_entities_that_the_text_knows_are_not_hidden(toy: Toy) -> None:
    q1, q2 = toy.graph.number("Q1"), toy.graph.number("Q2")
    again = [*story(toy), Step("Boy", Type.RELATED, q2, q1, toy.graph.find_relation("P1") or 0)]
    year = toy.graph.edges(q2).tail.tolist()
    parent = [*story(toy), Step("1989", Type.RELATED, max(year), q2, toy.graph.find_relation("P3") or 0)]
    cases = ((again, [False, True, False]), (parent, [False, True, True]))
    for steps, hides in (*cases, ([Step("Mario", Type.NEW, q1)] * 2, [False, False])):
        document = toy.encoder.encode(annotated(toy, steps), Hiding(1.0))
        assert [start.hides for start in document.starts] == hides


def test_hiding_depends_on_the_seed_and_the_document(toy: Toy) -> None:
    documents = [annotated(toy, [*story(toy), Step(word, Type.NONE)]) for word in ("Mario", "is", "Boy") * 2]

    def asked(share: float, seed: int) -> list[bool]:
        return [toy.encoder.encode(each, Hiding(share, seed)).starts[1].hides for each in documents]

    drawn = [asked(0.5, seed) for seed in range(40)]
    assert drawn == [asked(0.5, seed) for seed in range(40)]
    assert all(row[:3] == row[3:] for row in drawn)
    assert 0.3 < np.mean(drawn) < 0.7 and len({tuple(row) for row in drawn}) == 8
    assert not any(asked(0.0, 0))


def test_in_training_a_plain_word_is_no_missing_fact(toy: Toy) -> None:
    """Only hidden facts teach when a fact is missing: P(no mention) of other words is p(∅), and less than in use."""
    document = annotated(toy, [story(toy)[0], Step("is", Type.NONE), Step("is", Type.NONE)])
    chunk = toy.builder.build([whole(toy.encoder.encode(document))])
    latent, types = toy.model.latent, chunk.types
    with torch.no_grad():
        hidden = toy.model.hidden(toy.model.encoder(chunk.words.input_BT).h_BTD.flatten(0, 1))
        relation_RD = toy.model.relation_vectors()
        legal = types.related_BT.flatten(), types.continue_BT.flatten()
        type_FC = latent.types.log_probs(hidden.x, types.state_BT.flatten(), types.named, *legal, relation_RD)
        scores = latent.relation_scores(hidden, chunk, relation_RD)
        in_use_F, in_training_F = (
            latent.train(training).plain_types(type_FC, hidden, chunk, scores, toy.model.entities)
            for training in (False, True)
        )
    assert torch.equal(in_training_F, type_FC[:, Type.NONE])
    assert bool((in_use_F[1:] > in_training_F[1:]).all()) and in_use_F[0] == in_training_F[0]


def test_a_chunk_for_training_gives_the_same_loss(toy: Toy) -> None:
    """It leaves out the candidate parents of plain words, which training does not use."""
    pieces = [whole(toy.encoder.encode(document, Hiding(0.5))) for document in random_documents(toy, 20)]
    toy.model.train()
    scored = []
    for training in (False, True):
        chunk = toy.builder.build(pieces, training=training)
        assert (chunk.candidates is None) == training and len(chunk.hidden.relation_W)
        scored.append(sums(toy.model.score(chunk, generator=torch.Generator().manual_seed(0))))
    assert scored[0] == pytest.approx(scored[1], rel=1e-9)


def test_gradients_are_finite_and_reach_the_handicap(toy: Toy) -> None:
    documents = [toy.encoder.encode(document, Hiding(0.5)) for document in random_documents(toy, 20)]
    toy.model.zero_grad()
    chunk = toy.builder.build([whole(each) for each in documents], training=True)
    scores = toy.model.train().score(chunk, generator=torch.Generator().manual_seed(0))
    torch.autograd.backward(-(scores.total_BT + scores.asked_BT).sum())
    head = toy.model.latent.missing
    assert head is not None
    for parameter in head.parameters():
        assert parameter.grad is not None and float(parameter.grad.abs().sum()) > 0
    assert all(bool(torch.isfinite(p.grad).all()) for p in toy.model.parameters() if p.grad is not None)


class TestEdits:
    def asked(self, toy: Toy, relation: str) -> float:
        """Probability that the text asks for a missing fact of Q1 after "Mario is"."""
        q1 = toy.graph.number("Q1")
        found = next_words(read(toy, toy.model, [START, "Mario", "is"], [(1.0, [Span(1, 2, q1)])]))
        index = toy.graph.find_relation(relation)
        return sum(fact.p for fact in found.missing if (fact.parent, fact.relation) == (q1, index))

    def test_an_added_fact_is_no_longer_missing_and_a_removed_one_is(self, tmp_path: Path) -> None:
        toy = make_toy(tmp_path)
        assert self.asked(toy, "P3") > 0 and self.asked(toy, "P2") == 0
        fork = toy.graph.fork()
        fork.add("Q1", "P3", "Q3")
        fork.remove("Q1", "P2", "Q2")
        features = replace(toy.features, graph=fork)
        edited = replace(toy, features=features, model=toy.model.on(features))
        assert self.asked(edited, "P3") == 0 and self.asked(edited, "P2") > 0

    def test_an_entity_without_facts_lacks_every_relation(self, tmp_path: Path) -> None:
        toy = make_toy(tmp_path, facts=(("Q2", "P1", "Q3"),), names={"Q1": ("Mario",), "Q2": ("Game Boy",)})
        q1 = toy.graph.number("Q1")
        found = next_words(read(toy, toy.model, ["Mario", "is"], [(1.0, [Span(0, 1, q1)])]))
        assert {(fact.parent, fact.relation) for fact in found.missing} == {(q1, 2), (q1, 3)}
        assert sum(found.p_N) == pytest.approx(1)


def test_says_missing_compares_missing_facts_with_those_of_the_graph(tmp_path: Path) -> None:
    toy = make_toy(tmp_path)
    words = next_words(read(toy, toy.model, ["Mario", "is"], [(1.0, [Span(0, 1, toy.graph.number("Q1"))])]))
    reasons = [reason for word in words.words for reason in words.derivations(word)]
    least = max(ODDS * sum(reason.p for reason in reasons if reason.type == Type.RELATED), LEAST)
    one = words.missing[0]
    other, third = one._replace(relation=one.relation ^ 1), one._replace(relation=one.relation + 2)
    cases = (((0.4, 0.4, 0.3), True), ((0.3, 0.3, 0.5), True), ((0.3, 0.3, 0.3), False), ((0.0, 0.0, 0.0), False))
    for shares, says in cases:
        facts = tuple(
            fact._replace(p=share * least) for fact, share in zip((one, other, third), shares, strict=True) if share
        )
        found = says_missing(replace(words, missing=facts))
        wanted = one._replace(p=pytest.approx((shares[0] + shares[1]) * least)) if says else None
        assert found == wanted
    assert says_missing(replace(words, missing=(one._replace(p=0.9 * ODDS),), rest={"related": 1.0})) is None
    nothing = words.explanations._replace(mass_W=words.explanations.mass_W * 1e-6)
    assert says_missing(replace(words, missing=(one._replace(p=0.9 * LEAST),), explanations=nothing)) is None


def test_few_missing_facts_are_listed_and_the_rest_is_plain(tmp_path: Path) -> None:
    toy = make_toy(tmp_path)
    reading = read(toy, toy.model, ["Mario", "is"], [(1.0, [Span(0, 1, toy.graph.number("Q1"))])])
    every, few = next_words(reading), next_words(reading, NextWordConfig(max_missing=1))
    assert len(every.missing) > 1 and few.missing == every.missing[:1]
    for word in ("is", "Boy"):
        assert few[word] == every[word]
        assert math.fsum(reason.p for reason in few.derivations(word)) == pytest.approx(few[word])
