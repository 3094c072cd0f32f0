"""Answers of a pretrained model on a toy world, against the forward pass of `scoring`."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from kglm.answer.given import Edit
from kglm.answer.pretrained.answers import SubwordAnswers
from kglm.answer.pretrained.model import PretrainedLM
from kglm.errors import ConfigError
from kglm.heads import following
from kglm.heads.following import Following
from kglm.heads.run import HeadsRun
from kglm.heads.scoring import step
from kglm.heads.store import FORMAT, HeadsRecord
from kglm.kg.edits import FactEdit
from support.letters import LetterWorld

pytest.importorskip("transformers", reason="the extra hf is not installed")
PROMPTS = ["ab a", "a b, ab", "ab ab a"]
GIVEN = ("0:1=Q1", "1:2=Q2")


def letter_model(home: Path, **options: object) -> PretrainedLM:
    world = LetterWorld(home, **options)  # type: ignore[arg-type]
    heads = world.heads
    record = HeadsRecord(FORMAT, "0", "letters", "0" * 16, heads.hidden, heads.key, heads.config)
    run = HeadsRun(home, record, heads, world.base, None)
    return PretrainedLM(run, world.tables, trust=0.5)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> PretrainedLM:
    home = tmp_path_factory.mktemp("letters")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(home / "cache"))
        return letter_model(home / "world")


@pytest.mark.parametrize("prompt", PROMPTS)
def test_entities_have_the_mass_of_their_facts(model: PretrainedLM, prompt: str) -> None:
    """The forward pass says how probable it is that a mention of each entity begins, or goes on, with any subword."""
    reading, _ = model.read(prompt, GIVEN, links="none")
    expected: dict[int, float] = {}
    for subword in range(len(reading.log_p_V)):
        total, after = step(reading.scores, 0, subword, reading.weights, float(reading.log_p_V[subword].exp()))
        for state, p in after.items():
            if state is not None:
                expected[state.node] = expected.get(state.node, 0.0) + total * p
    answers = SubwordAnswers(reading)
    answers.__dict__["leads"] = [answers.start]  # function words are not replaced
    found = {answer.node: answer.p for answer in answers.entities(10)}
    assert found == pytest.approx(expected, abs=1e-5)
    for answer in answers.entities(10):
        assert sum(reason.p for reason in answer.reasons) == pytest.approx(answer.p, abs=1e-6)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_answers_are_distinct_and_sum_to_at_most_one(model: PretrainedLM, prompt: str) -> None:
    found = model.complete(prompt, GIVEN, links="none", top=100)
    assert sum(answer.p for answer in found.answers) <= 1 + 1e-5
    assert len({answer.text for answer in found.answers}) == len(found.answers)
    assert [answer.p for answer in found.answers] == sorted((answer.p for answer in found.answers), reverse=True)
    assert sum(word.p for word in found.words) <= 1 + 1e-5
    for each in (*found.answers, *found.words):
        assert sum(reason.p for reason in each.reasons) == pytest.approx(each.p, abs=1e-6)


def test_plain_words_and_first_words_of_names_add_up(model: PretrainedLM) -> None:
    found = model.complete("ab a", GIVEN, links="none", top=100)
    both = [word for word in found.words if len({reason.type for reason in word.reasons}) > 1]
    assert both


@pytest.mark.parametrize("prompt", PROMPTS)
def test_without_trust_only_the_base_answers(model: PretrainedLM, prompt: str) -> None:
    found = model.complete(prompt, GIVEN, links="none", trust=-math.inf)
    assert all(answer.entity is None for answer in found.answers) and not found.missing
    reading, _ = model.read(prompt, GIVEN, links="none", trust=-math.inf)
    assert torch.equal(SubwordAnswers(reading).start.following.p_V, reading.log_p_V.exp())


def test_more_trust_says_more_facts(model: PretrainedLM) -> None:
    shares = [
        sum(a.p for a in model.complete("ab a", GIVEN, links="none", top=50, trust=trust).answers if a.facts)
        for trust in (-2.0, 0.0, 2.0)
    ]
    assert shares == sorted(shares) and shares[0] < 0.8 * shares[-1]


@pytest.mark.parametrize(
    ("edits", "changes"), [(FactEdit("add", "Q4", "P3", "P2"), False), ("Q1 | P1 | Q4", True), ("Q2 | P3 | Q3", True)]
)
def test_edits_change_what_their_facts_touch(model: PretrainedLM, edits: Edit, changes: bool) -> None:
    """Q1 and Q2 are linked. A new fact between others leaves all answers as they are."""
    before = model.complete("ab a", GIVEN, links="none", top=50)
    after = model.edited(edits).complete("ab a", GIVEN, links="none", top=50)
    same = [(answer.text, pytest.approx(answer.p, abs=1e-9)) for answer in before.answers]
    assert ([(answer.text, answer.p) for answer in after.answers] != same) == changes
    assert model.complete("ab a", GIVEN, links="none", top=50).to_json() == before.to_json()


def test_an_edited_model_shares_what_the_edit_does_not_touch(model: PretrainedLM) -> None:
    edited = model.edited("Q1 | P1 | Q4")
    assert edited.run is model.run and edited.tables.all_names is model.tables.all_names
    assert edited.tables.key_RD is model.tables.key_RD


def test_what_is_missing_is_named_even_if_the_graph_does_not_have_the_relation(model: PretrainedLM) -> None:
    found = model.complete("ab a", GIVEN, links="none")
    assert found.missing
    reading, _ = model.read("ab a", GIVEN, links="none")
    asked = SubwordAnswers(reading).start.following.missing
    assert any(model.tables.relations.id(each.relation) == "P9" for each in asked)


def test_running_mentions_name_the_facts_that_began_them(model: PretrainedLM) -> None:
    found = model.complete("ab ab", ("0:1=Q1",), links="none", top=20)
    going_on = [answer for answer in found.answers if any(reason.type == "continue" for reason in answer.reasons)]
    assert going_on
    for answer in going_on:
        assert all(reason.parent is not None for reason in answer.reasons if reason.type == "continue")


def test_generation_is_a_function_of_its_seed(model: PretrainedLM) -> None:
    texts = [
        [word.to_json() for word in model.generate("ab a", GIVEN, links="none", words=6, seed=seed)]
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]
    assert 0 < len(texts[0]) <= 6


def test_generated_names_come_from_facts(model: PretrainedLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "SURE", 0.0)  # the names of the letters are no claims
    words = [
        word for seed in range(6) for word in model.generate("ab a", GIVEN, links="none", words=6, seed=seed, trust=3.0)
    ]
    assert {word.reason.type for word in words} >= {"none", "related"}
    assert all(word.reason.relation is not None for word in words if word.reason.type == "related")


@pytest.mark.parametrize("trust", [0.0, 1.5, -math.inf])
def test_in_fluent_text_the_base_decides_where_claims_are(model: PretrainedLM, trust: float) -> None:
    """Claims keep the base's probability; `trust` moves the log odds of facts against the base's own claims."""
    reading, _ = model.read("ab a", GIVEN, links="none", trust=0.0)
    before = Following.of(reading)
    claim_V = torch.zeros(len(reading.log_p_V), dtype=torch.bool)
    claim_V[list(before.first_subwords(int(before.facts.tail_F[0])))] = True
    base_V = reading.log_p_V.exp()
    found = before.in_text(claim_V, trust)
    running = sum(p for _, p in found.running)
    assert float(found.p_V.sum()) == pytest.approx(1, abs=1e-5)
    inside = float(found.outside_V[claim_V].sum()) + float(found.facts.p_F.sum())
    assert inside == pytest.approx((1 - running) * float(base_V[claim_V].sum()), abs=1e-5)
    if trust == -math.inf:
        assert torch.allclose(found.outside_V, (1 - running) * base_V, atol=1e-6)
        return
    kept = np.isin(before.facts.tail_F, found.facts.tail_F)
    odds = [
        math.log(each.facts.p_F[chosen].sum() / float(each.outside_V[claim_V].sum()))
        for each, chosen in ((before, kept), (found, slice(None)))
    ]
    assert odds[1] - odds[0] == pytest.approx(trust, abs=1e-4)


def test_fluent_text_does_not_repeat_a_name(model: PretrainedLM) -> None:
    reading, _ = model.read("ab a", GIVEN, links="none", trust=0.0)
    claim_V = torch.ones(len(reading.log_p_V), dtype=torch.bool)
    tail = int(Following.of(reading).facts.tail_F[0])
    assert tail in Following.of(reading).in_text(claim_V, 0.0).facts.tail_F
    assert tail not in Following.of(reading).in_text(claim_V, 0.0, {tail}).facts.tail_F


def test_the_text_is_that_of_the_words(model: PretrainedLM) -> None:
    words = list(model.generate("ab a", GIVEN, links="none", words=8, seed=3))
    assert all((word.text or "").lstrip() == word.word for word in words)


@pytest.mark.parametrize("beam", [1, 3])
def test_beam_search_does_not_depend_on_the_seed(model: PretrainedLM, beam: int) -> None:
    first, second = (
        [word.word for word in model.generate("ab a", GIVEN, links="none", words=4, seed=seed, beam=beam)]
        for seed in (1, 2)
    )
    assert first == second and first


def test_a_base_without_chat_format_answers_no_questions(model: PretrainedLM) -> None:
    with pytest.raises(ConfigError, match="chat format"):
        model.ask("a ab?")


def test_sampled_links_are_refused(model: PretrainedLM) -> None:
    with pytest.raises(ConfigError, match="sampled"):
        model.complete("ab a", links="sampled")
