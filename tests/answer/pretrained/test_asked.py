"""Questions: facts in a sentence, what is missing, and what is no question about the graph."""

from __future__ import annotations

from pathlib import Path

import pytest

import kglm
from kglm.answer.pretrained.asked import NO_ENTITY
from kglm.answer.pretrained.model import PretrainedLM
from kglm.errors import ConfigError
from support.questions import open_heads, save_heads

pytest.importorskip("transformers", reason="the extra hf is not installed")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("heads")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(home / "cache"))
        save_heads(home)
    return home


@pytest.fixture
def model(home: Path, monkeypatch: pytest.MonkeyPatch) -> PretrainedLM:
    monkeypatch.setenv("KGLM_CACHE", str(home / "cache"))
    return open_heads(home)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is the spouse of Barack Obama?", "The spouse of Barack Obama is Michelle Obama."),
        ("What is the date of birth of Barack Obama?", "The date of birth of Barack Obama is August 4, 1961."),
        ("Who does Nora Feld works for?", "Nora Feld works for Barack Obama."),
    ],
)
def test_the_answer_is_a_sentence_with_its_fact(model: PretrainedLM, question: str, text: str) -> None:
    found = model.ask(question)
    assert found.text == text == str(found) and found.note is None
    assert found.answers[0].text in text and found.answers[0].facts
    assert sum(answer.p for answer in found.answers) <= 1


def test_several_values_are_listed(model: PretrainedLM) -> None:
    found = model.ask("Who is the child of Barack Obama?")
    assert found.text is not None and found.text.startswith("Barack Obama has more than one child: ")
    assert "Malia Obama" in found.text and "Sasha Obama" in found.text


def test_a_relation_with_very_many_values_is_said_with_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its facts are not enumerated: here, two are already too many."""
    monkeypatch.setenv("KGLM_CACHE", str(tmp_path / "cache"))
    save_heads(tmp_path, max_tails=1)
    found = open_heads(tmp_path).ask("Who is the child of Barack Obama?")
    assert found.text in (
        "Barack Obama has more than one child: Malia Obama and Sasha Obama.",
        "Barack Obama has more than one child: Sasha Obama and Malia Obama.",
    )


def test_a_fact_that_the_graph_lacks_is_missing(model: PretrainedLM) -> None:
    found = model.ask("What is the place of birth of Barack Obama?")
    assert found.text is None and found.asks_for_missing
    assert found.note is not None and found.note.startswith("the text asks for the place of birth of Barack Obama")
    assert found.missing[0].relation.id == "P19"
    edited = model.edited("Barack Obama | place of birth | Honolulu").ask("What is the place of birth of Barack Obama?")
    assert edited.text == "The place of birth of Barack Obama is Honolulu."


def test_edits_are_said_at_once(model: PretrainedLM) -> None:
    question = "What is the spouse of Barack Obama?"
    assert model.ask(question, edits="Barack Obama | spouse | Nora Feld").text == (
        "The spouse of Barack Obama is Nora Feld."
    )
    assert model.ask(question).text == "The spouse of Barack Obama is Michelle Obama."


def test_a_question_without_a_name_of_the_graph_is_not_answered(model: PretrainedLM) -> None:
    found = model.ask("What is the weather like?")
    assert (found.text, found.note, found.answers) == (None, NO_ENTITY, ())


def test_the_entity_can_be_given(model: PretrainedLM) -> None:
    assert model.ask("What is his spouse?", ["his=Q76"]).text == "The spouse of Barack Obama is Michelle Obama."


def test_the_public_function_opens_heads(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGLM_CACHE", str(home / "cache"))
    model = kglm.load(home / "heads", kg=home / "toy.kg", base=home / "base", trust=0.0)
    assert isinstance(model, PretrainedLM) and model.trust == 0
    assert kglm.ask("What is the spouse of Barack Obama?", model).to_json()["text"]


def test_without_trained_heads_a_base_cannot_be_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGLM_HEADS", raising=False)
    monkeypatch.setattr("kglm.bundled.HEADS", home / "none")
    with pytest.raises(ConfigError, match="no trained heads"):
        kglm.load(kg=home / "toy.kg", base=home / "base")


def test_an_lstm_model_answers_no_questions() -> None:
    with pytest.raises(ConfigError, match="no questions"):
        kglm.load().ask("When was Barack Obama born?")
