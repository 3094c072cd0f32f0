"""KGLM against enumeration: the fast code must give the probabilities of the formulas, and they must sum to 1."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from kglm.errors import ConfigError
from kglm.kg.ids import NEW
from kglm.model.encoders.awd_lstm import EncoderConfig
from kglm.model.options import PAPER, LatentConfig
from kglm.model.types import Type
from kglm.runs.tensors import load_into
from kglm.text.document import START, Document, Mention
from kglm.train.chunks import whole
from support.brute_force import enumerate_log_joint
from support.toys import (
    FACTS,
    STATEMENTS,
    YEAR,
    Step,
    Toy,
    annotated,
    legal_steps,
    make_toy,
    random_texts,
    sayable,
    surface_words,
)

ANNOTATED = LatentConfig(marginal="annotated")


def every_text(toy: Toy, length: int, begun: list[list[Step]] | None = None) -> list[list[Step]]:
    """Every way to say that many words (more)."""
    texts = begun or [[]]
    for _ in range(length):
        texts = [[*t, said] for t in texts for step in legal_steps(toy, t) for said in sayable(toy, step)]
    return texts


CONFIGS = {
    "refined": {"latent": ANNOTATED},
    "everything on": {"latent": replace(ANNOTATED, entity_bias=True)},
    "statements": {"latent": ANNOTATED, "statements": STATEMENTS},
    "tails by facts alone": {"latent": replace(ANNOTATED, tail_scores=False), "statements": STATEMENTS},
    "paper": {"latent": PAPER},
    "window": {"latent": ANNOTATED, "parent_window": 2},
    "three types": {"latent": PAPER, "mention_types": "paper"},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_joint_is_that_of_the_formulas(tmp_path: Path, name: str) -> None:
    toy = make_toy(tmp_path, **CONFIGS[name])  # type: ignore[arg-type]
    texts = random_texts(toy, 6, 60)
    fast = toy.log_joint(*(annotated(toy, steps) for steps in texts))
    for steps, value in zip(texts, fast, strict=True):
        assert value == pytest.approx(enumerate_log_joint(toy, steps), rel=1e-9)


def test_a_counted_document_does_not_count_for_itself(tmp_path: Path) -> None:
    """Introductions of training documents are left out of their own frequencies, in the sum over entities too."""
    toy = make_toy(tmp_path, latent=ANNOTATED)
    texts = random_texts(toy, 6, 60)
    encoded = [toy.encoder.encode(annotated(toy, steps)) for steps in texts]
    for document in encoded:
        document.counted = True
    with torch.no_grad():
        fast = toy.model.score(toy.builder.build([whole(document) for document in encoded])).total_BT.sum(1)
    slow = [enumerate_log_joint(toy, steps, counted=True) for steps in texts]
    assert fast.tolist() == pytest.approx(slow, rel=1e-9)
    differ = [abs(a - enumerate_log_joint(toy, steps)) > 1e-3 for a, steps in zip(slow, texts, strict=True)]
    assert sum(differ) > 20


def test_each_refinement_changes_something(tmp_path: Path) -> None:
    """A switch that does nothing would make the ablation a table of noise."""
    whole_ = make_toy(tmp_path / "all", latent=ANNOTATED)
    texts = [annotated(whole_, steps) for steps in random_texts(whole_, 6, 30)]
    best = whole_.log_joint(*texts)
    switches = [name for name, value in asdict(ANNOTATED).items() if isinstance(value, bool)]
    for name in [name for name in switches if name != "train_relations"]:
        toy = make_toy(tmp_path / name, latent=replace(ANNOTATED, **{name: not getattr(ANNOTATED, name)}))
        assert toy.log_joint(*texts) != pytest.approx(best, rel=1e-6), name


@pytest.mark.parametrize("name", ["refined", "paper"])
def test_all_texts_of_three_words_with_all_their_facts_share_what_their_first_word_has(
    tmp_path: Path, name: str
) -> None:
    """And all first words share 1."""
    toy = make_toy(
        tmp_path, facts=(("Q1", "P1", "Q2"),), names={"Q1": ("A",), "Q2": ("is B",)}, words=("is",), **CONFIGS[name]
    )  # type: ignore[arg-type]
    first = every_text(toy, 1)
    shares = toy.log_joint(*(annotated(toy, steps) for steps in first))
    assert sum(map(math.exp, shares)) == pytest.approx(1, abs=1e-9)
    said = {-1: "is", toy.graph.number("Q1"): "A", toy.graph.number("Q2"): "is"}
    begun = [(steps, share) for steps, share in zip(first, shares, strict=True) if steps[0].word == said[steps[0].node]]
    assert len(begun) == 3
    for steps, share in begun:
        texts = every_text(toy, 2, [steps])
        assert len(texts) > 500
        whole_ = sum(map(math.exp, toy.log_joint(*(annotated(toy, each) for each in texts))))
        assert whole_ == pytest.approx(math.exp(share), rel=1e-9)


def test_all_texts_of_two_words_in_the_whole_toy_sum_to_one(tmp_path: Path) -> None:
    """With parallel edges, several tails, a date, an entity without a name."""
    toy = make_toy(tmp_path, latent=ANNOTATED)
    texts = every_text(toy, 2)
    assert {toy.graph.id(step.node) for steps in texts for step in steps if step.node >= 0} >= {"Q3", YEAR}
    assert sum(map(math.exp, toy.log_joint(*(annotated(toy, steps) for steps in texts)))) == pytest.approx(1, abs=1e-9)


class TestWords:
    @pytest.mark.parametrize("id", ["Q1", "Q2", "Q3", YEAR, None])
    def test_words_given_an_entity_sum_to_one(self, tmp_path: Path, id: str | None) -> None:
        toy = make_toy(tmp_path)
        node = -1 if id is None else toy.graph.number(id)
        kind = Type.NONE if id is None else Type.NEW
        texts = [[said] for said in sayable(toy, Step("", kind, node))]
        if id == YEAR:  # a literal is never new: reach it by its fact
            texts = [
                [Step("Game", Type.NEW, toy.graph.number("Q2")), said]
                for said in sayable(toy, Step("", Type.RELATED, node, toy.graph.number("Q2"),
                                              toy.graph.find_relation("P3") or 0))
            ]  # fmt: skip
        word_BT = toy.score(*(annotated(toy, steps) for steps in texts)).word_BT
        assert float(word_BT[:, -1].exp().sum()) == pytest.approx(1, abs=1e-9)

    def test_a_word_out_of_the_vocabulary_is_copied_or_unknown(self, tmp_path: Path) -> None:
        toy = make_toy(tmp_path)
        q2 = toy.graph.number("Q2")
        copied, unknown = (toy.score(annotated(toy, [Step(word, Type.NEW, q2)])) for word in ("Game", "Tennis"))
        assert not copied.unknown_BT.any() and bool(unknown.unknown_BT[0, 0])
        same = toy.score(annotated(toy, [Step("@@UNKNOWN@@", Type.NEW, q2)]))
        assert torch.equal(unknown.word_BT, same.word_BT) and not torch.equal(copied.word_BT, same.word_BT)

    def test_a_slot_decides_only_its_own_score(self, tmp_path: Path) -> None:
        """9.1: a reshape where a transpose was meant mixes all slots."""
        toy = make_toy(tmp_path)
        generator = torch.Generator().manual_seed(0)
        h_SH, slot_SJH = (torch.randn(*s, generator=generator, dtype=torch.float64) for s in ((2, 4), (2, 6, 4)))
        real = torch.ones(2, 6, dtype=torch.bool)
        order = torch.zeros(2, 6, dtype=torch.int64)
        before = toy.model.renderer.copy_scores(h_SH, slot_SJH, real, order, torch.arange(2))
        slot_SJH[1, 3] += 1
        after = toy.model.renderer.copy_scores(h_SH, slot_SJH, real, order, torch.arange(2))
        assert [tuple(place) for place in (before != after).nonzero().tolist()] == [(1, 3)]

    def test_padding_slots_have_probability_zero(self, tmp_path: Path) -> None:
        toy = make_toy(tmp_path)
        scores = toy.model.renderer.copy_scores(
            torch.zeros(1, 4).double(),
            torch.zeros(1, 3, 4).double(),
            torch.tensor([[True, False, True]]),
            torch.zeros(1, 3, dtype=torch.int64),
            torch.zeros(1, dtype=torch.int64),
        )
        assert scores.exp().tolist() == [[1.0, 0.0, 1.0]]


class TestLegality:
    def types(self, toy: Toy, steps: list[Step]) -> torch.Tensor:
        chunk = toy.builder.build([whole(toy.encoder.encode(annotated(toy, steps)))])
        h = torch.randn(len(steps), 4, dtype=torch.float64)
        tables = toy.model.latent.relations.vectors(toy.model.words, toy.model.entities)
        return toy.model.latent.types.log_probs(
            h, chunk.types.state_BT[0], chunk.types.named, chunk.types.related_BT[0], chunk.types.continue_BT[0], tables
        ).exp()  # fmt: skip

    def test_illegal_types_have_probability_exactly_zero(self, tmp_path: Path) -> None:
        toy = make_toy(tmp_path)
        q1 = toy.graph.number("Q1")
        mention = [Step("Mario", Type.NEW, q1), Step("Land", Type.CONTINUE, q1)]
        steps = [Step("is", Type.NONE), *mention, Step("is", Type.NONE), Step("is", Type.NONE)]
        p = self.types(toy, steps)
        assert p[:, Type.CONTINUE].gt(0).tolist() == [False, False, True, True, False]
        assert p[:, Type.RELATED].gt(0).tolist() == [False, False, True, True, True]
        assert torch.allclose(p.sum(1), torch.ones(5, dtype=torch.float64))

    def test_the_window_ends_the_same_way_for_types_and_parents(self, tmp_path: Path) -> None:
        """Recency: the parent's last word at j supports t iff 1 ≤ t − j ≤ k."""
        toy = make_toy(tmp_path, latent=ANNOTATED, parent_window=2)
        q1 = toy.graph.number("Q1")
        steps = [Step("Mario", Type.NEW, q1), *[Step("is", Type.NONE)] * 4]
        assert self.types(toy, steps)[:, Type.RELATED].gt(0).tolist() == [False, True, True, False, False]


class TestExplanations:
    """Annotations that list facts twice, not at all, or wrongly."""

    def mentioned(self, toy: Toy, relations: tuple[str, ...], parents: tuple[str, ...], id: str = "Q2") -> Document:
        first = Mention(1, 2, "Q1", "WIKI", (NEW,), ("Q1",))
        return Document("t", [START, "Mario", "is", "Game"], [first, Mention(3, 4, id, "KG", relations, parents)])

    def test_a_parent_listed_twice_counts_once(self, tmp_path: Path) -> None:
        """9.4"""
        toy = make_toy(tmp_path, latent=ANNOTATED)
        once, twice = (self.mentioned(toy, ("P1",) * n, ("Q1",) * n) for n in (1, 2))
        assert toy.log_joint(once) == toy.log_joint(twice)

    def test_parallel_facts_add(self, tmp_path: Path) -> None:
        """9.5: P1 and P2 both lead from Q1 to Q2."""
        toy = make_toy(tmp_path, latent=ANNOTATED)
        one, two, both = (
            toy.score(self.mentioned(toy, relations, ("Q1",) * len(relations))).entity_BT[0, 2]
            for relations in (("P1",), ("P2",), ("P1", "P2"))
        )
        assert float(both.exp()) == pytest.approx(float(one.exp() + two.exp()), rel=1e-9)
        assert toy.score(self.mentioned(toy, ("P2",), ("Q1",))).entity_BT[0, 2] == pytest.approx(float(two))

    def test_all_facts_are_summed_when_asked(self, tmp_path: Path) -> None:
        every = make_toy(tmp_path / "all", latent=LatentConfig(marginal="all"))
        listed = make_toy(tmp_path / "listed", latent=ANNOTATED)
        value = every.score(self.mentioned(every, ("P1",), ("Q1",))).entity_BT[0, 2]
        assert float(value) == pytest.approx(
            float(listed.score(self.mentioned(listed, ("P1", "P2"), ("Q1", "Q1"))).entity_BT[0, 2])
        )

    def test_entity_sums_new_and_related(self, tmp_path: Path) -> None:
        toy = make_toy(tmp_path / "entity", latent=LatentConfig(marginal="entity"))
        apart = make_toy(tmp_path / "apart", latent=LatentConfig(marginal="all"))
        related = self.mentioned(apart, ("P1",), ("Q1",))
        new = self.mentioned(apart, (NEW,), ("Q2",))
        parts = [s.type_BT[0, 2] + s.entity_BT[0, 2] for s in (apart.score(related), apart.score(new))]
        for text in (related, new):
            whole_ = toy.score(text)
            assert float(whole_.type_BT[0, 2] + whole_.entity_BT[0, 2]) == pytest.approx(
                float(torch.logaddexp(*parts)), rel=1e-9
            )

    @pytest.mark.parametrize("marginal", ["annotated", "all", "entity"])
    def test_a_fact_that_the_graph_does_not_hold_is_counted_and_hurts_nothing(
        self, tmp_path: Path, marginal: str
    ) -> None:
        """9.11 and CHECKS 24: no -inf, no NaN, no silent floor."""
        toy = make_toy(tmp_path, latent=LatentConfig(marginal=marginal))  # type: ignore[arg-type]
        text = self.mentioned(toy, ("P3",), ("Q1",), YEAR)  # Q2 has the year, and Q2 is not mentioned
        chunk = toy.builder.build([whole(toy.encoder.encode(text))])
        scores = toy.model(chunk)
        assert int(scores.unexplained) == 1 and scores.entity_BT[0, 2].item() == 0
        scores.total_BT.sum().backward()
        assert torch.isfinite(scores.total_BT).all()
        assert all(p.grad is None or torch.isfinite(p.grad).all() for p in toy.model.parameters())

    def test_an_unknown_entity_is_plain_text_and_counted(self, tmp_path: Path) -> None:
        toy = make_toy(tmp_path)
        encoded = toy.encoder.encode(self.mentioned(toy, ("P1",), ("Q1",), "Q999"))
        assert encoded.counts == {"unknown_entity": 1} and encoded.type_T.tolist() == [1, 0, 0]


class TestTraining:
    def test_a_step_leaves_the_entity_table_alone(self, tmp_path: Path) -> None:
        toy = make_toy(tmp_path)
        before = toy.model.entities.vector_XD.clone()
        toy.model.train()
        optimiser = torch.optim.Adam(toy.model.parameters(), 0.1)
        chunk = toy.builder.build([whole(toy.encoder.encode(annotated(toy, random_texts(toy, 6, 1)[0])))])
        scores = toy.model(chunk, generator=torch.Generator().manual_seed(0))
        (scores.regularisation.mean() - scores.total_BT.sum()).backward()
        optimiser.step()
        assert torch.equal(toy.model.entities.vector_XD, before)

    def test_losses_are_charged_where_they_belong(self, tmp_path: Path) -> None:
        """9.3: the entity is paid for once, at the mention's first word."""
        toy = make_toy(tmp_path, latent=ANNOTATED)
        q1, q2 = toy.graph.number("Q1"), toy.graph.number("Q2")
        relation = toy.graph.find_relation("P1") or 0
        steps = [Step("Mario", Type.NEW, q1), Step("Land", Type.CONTINUE, q1), Step("is", Type.NONE)]
        steps += [Step("Game", Type.RELATED, q2, q1, relation), Step("Boy", Type.CONTINUE, q2, q1, relation)]
        scores = toy.score(annotated(toy, steps))
        assert scores.entity_BT[0].ne(0).tolist() == [True, False, False, True, False]
        assert scores.type_BT[0].ne(0).all() and scores.word_BT[0].ne(0).all()


def test_sizes_must_fit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"encoder\.output is 9, but"):
        EncoderConfig(embedding=4, hidden=5, layers=2, output=9).for_latent(3)


def test_the_toy_has_what_the_tests_need(tmp_path: Path) -> None:
    toy = make_toy(tmp_path)
    assert len(FACTS) == 4 and "Game" in surface_words(toy) and "Game" not in toy.vocabulary


class TestOddWorlds:
    """Graphs with what real ones have: each must still give every text its share of one."""

    def total(self, toy: Toy, length: int = 2) -> float:
        texts = every_text(toy, length)
        return sum(map(math.exp, toy.log_joint(*(annotated(toy, steps) for steps in texts))))

    def test_a_fact_that_is_stored_twice_counts_once(self, tmp_path: Path) -> None:
        once = make_toy(tmp_path / "once", latent=ANNOTATED, facts=(("Q1", "P1", "Q2"), ("Q1", "P1", "Q3")))
        twice = make_toy(
            tmp_path / "twice",
            latent=ANNOTATED,
            facts=(("Q1", "P1", "Q2"), ("Q1", "P1", "Q2"), ("Q1", "P1", "Q3"), ("Q1", "P1", "Q2")),
        )
        texts = [annotated(once, steps) for steps in random_texts(once, 6, 30)]
        assert once.log_joint(*texts) == pytest.approx(twice.log_joint(*texts), rel=1e-9)
        assert self.total(twice) == pytest.approx(1, abs=1e-9)

    def test_an_entity_without_a_fact_and_one_without_a_name(self, tmp_path: Path) -> None:
        """Q2 is only named, Q3 only in a fact; nothing but reflexive leads from Q2."""
        toy = make_toy(
            tmp_path, latent=ANNOTATED, facts=(("Q1", "P1", "Q3"),), names={"Q1": ("Mario",), "Q2": ("Boy",)}
        )
        assert toy.graph.edges(toy.graph.number("Q2")).relation.tolist() == [0]
        assert not any(toy.aliases[toy.graph.number("Q3")].surface)
        assert self.total(toy) == pytest.approx(1, abs=1e-9)

    def test_a_fact_of_an_entity_with_itself(self, tmp_path: Path) -> None:
        toy = make_toy(tmp_path, latent=ANNOTATED, facts=(("Q1", "P1", "Q1"), ("Q1", "P1", "Q2")))
        assert self.total(toy) == pytest.approx(1, abs=1e-9)

    def test_an_unknown_tail_and_an_unknown_word_do_not_match(self, tmp_path: Path) -> None:
        """9.11: both had the index 1. The entity is unknown, so its word is plain; nothing is copied from nobody."""
        toy = make_toy(tmp_path, latent=ANNOTATED)
        first = Mention(1, 2, "Q1", "WIKI", (NEW,), ("Q1",))
        unknown = Mention(2, 3, "Q12345", "KG", ("P1",), ("Q1",))
        with_it = toy.score(Document("t", [START, "Mario", "Tennis"], [first, unknown]))
        without = toy.score(Document("t", [START, "Mario", "Tennis"], [first]))
        assert torch.equal(with_it.total_BT, without.total_BT) and bool(with_it.unknown_BT[0, 1])


def test_weights_of_an_earlier_version_have_no_tail_facts(tmp_path: Path) -> None:
    """They open, and give the same as a model without the option."""
    with_facts = make_toy(tmp_path / "with", latent=ANNOTATED, statements=STATEMENTS)
    without = make_toy(tmp_path / "without", latent=replace(ANNOTATED, tail_facts=False), statements=STATEMENTS)
    texts = [annotated(with_facts, steps) for steps in random_texts(with_facts, 6, 30)]
    assert with_facts.log_joint(*texts) != pytest.approx(without.log_joint(*texts))
    load_into(with_facts.model, without.model.state_dict(), tmp_path)
    assert with_facts.log_joint(*texts) == pytest.approx(without.log_joint(*texts), rel=1e-9)
