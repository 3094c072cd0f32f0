"""`kglm ask`, `complete`, `generate` and `link` with a pretrained model, as people meet them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Command, CommandResult
from support.causal import save_english, save_gguf
from support.questions import save_heads

pytest.importorskip("transformers", reason="the extra hf is not installed")
QUESTION = "What is the spouse of Barack Obama?"
Ask = Callable[..., CommandResult]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("heads")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(home / "cache"))
        save_heads(home)
    return home


@pytest.fixture
def ask(command: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """A command with the heads, the graph and the base of this module."""
    monkeypatch.setenv("KGLM_CACHE", str(home / "cache"))
    given = ("--kg", str(home / "toy.kg"), "--base", str(home / "base"))
    return lambda verb, *words: command(verb, str(home / "heads"), *words, *given, cwd=tmp_path)


def test_an_answer_is_a_sentence(ask: Ask) -> None:
    assert ask("ask", QUESTION).stdout == "The spouse of Barack Obama is Michelle Obama.\n"
    why = ask("ask", QUESTION, "--why").stdout
    assert "Barack Obama —spouse→ Michelle Obama" in why and "Q76" in why


def test_json_of_a_question(ask: Ask) -> None:
    found = json.loads(ask("ask", QUESTION, "--json").stdout)
    assert list(found) == ["prompt", "text", "note", "answers", "missing", "mentions"]
    assert found["answers"][0]["facts"][0]["relation"] == "P26"


def test_a_missing_fact_is_named(ask: Ask) -> None:
    found = ask("ask", "What is the place of birth of Barack Obama?")
    assert found.returncode == 0 and "the place of birth of Barack Obama" in found.stdout
    said = ask("ask", "What is the place of birth of Barack Obama?", "--edit", "Q76 P19 Q5").stdout
    assert said == "The place of birth of Barack Obama is Honolulu.\n"


def test_questions_of_a_file(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "questions.txt").write_text(f"{QUESTION}\nWhat is the weather?\n")
    lines = ask("ask", "--json", "--file", str(tmp_path / "questions.txt")).stdout.splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["The spouse of Barack Obama is Michelle Obama.", None]


def test_trust_changes_a_completion(ask: Ask) -> None:
    prompt = "The spouse of Barack Obama is"
    found = {
        trust: json.loads(ask("complete", prompt, "--json", "--trust", trust).stdout)["answers"][0]["facts"]
        for trust in ("8", "-inf")
    }
    assert found["8"] and not found["-inf"]


def test_generated_text_is_marked(ask: Ask) -> None:
    words = ("generate", "The spouse of Barack Obama is", "--words", "12", "--seed", "2")
    found = json.loads(ask(*words, "--json").stdout)
    marks = [word["supported"] for word in found["words"]]
    assert found["text"].startswith("The spouse of Barack Obama is") and set(marks) <= {True, False, None}
    assert ask(*words).stdout.count("[?]") == marks.count(False)
    grounded = json.loads(ask(*words, "--json", "--grounded").stdout)
    assert all(word["supported"] is not False for word in grounded["words"])
    assert "because" in ask(*words, "--why", "--trust", "8").stdout


def test_names_are_linked(ask: Ask, command: Command, home: Path, tmp_path: Path) -> None:
    found = command("link", str(home / "heads"), "Obama met Nora Feld", "--kg", str(home / "toy.kg"), "--base",
                    str(home / "base"), "--json", cwd=tmp_path)  # fmt: skip
    assert {mention["id"] for mention in json.loads(found.stdout)["mentions"]} == {"Q76", "Q3"}


class TestBadInput:
    """Each is one line, and exit code 2."""

    def refused(self, found: CommandResult, *parts: str) -> None:
        assert found.returncode == 2 and not found.stdout
        assert all(part in found.stderr.splitlines()[-1] for part in parts), found.stderr

    @pytest.fixture
    def asked(self, command: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
        """A question to the heads with another base."""
        monkeypatch.setenv("KGLM_CACHE", str(tmp_path / "cache"))
        kg = ("--kg", str(home / "toy.kg"))
        return lambda base: command("ask", str(home / "heads"), QUESTION, *kg, "--base", str(base), cwd=tmp_path)

    def test_heads_of_another_base(self, asked: Ask, tmp_path: Path) -> None:
        other = save_english(tmp_path / "other", hidden=32, chat=True)
        self.refused(asked(other), "heads were trained on the base", "train heads for this one")

    def test_no_base(self, asked: Ask, tmp_path: Path) -> None:
        self.refused(asked(tmp_path / "nothing"), "does not exist", "smollm2")

    def test_a_base_without_tokenizer(self, asked: Ask, home: Path, tmp_path: Path) -> None:
        other = shutil.copytree(home / "base", tmp_path / "other")
        for file in other.glob("*token*"):
            file.unlink()
        self.refused(asked(other), "tokenizer")

    def test_a_truncated_gguf(self, asked: Ask, home: Path, tmp_path: Path) -> None:
        pytest.importorskip("gguf")
        file = save_gguf(save_english(tmp_path / "wide", hidden=32), tmp_path / "base.gguf")
        file.write_bytes(file.read_bytes()[:-200])
        self.refused(asked(file), "base.gguf")
        assert not list((tmp_path / "cache").rglob("model.json"))

    def test_no_room_in_the_cache_folder(self, asked: Ask, home: Path, tmp_path: Path) -> None:
        (tmp_path / "cache").write_text("a file")
        self.refused(asked(home / "base"), "cache")

    def test_options_of_pretrained_models(self, command: Command, tmp_path: Path) -> None:
        self.refused(command("complete", "Barack Obama is", "--trust", "1", cwd=tmp_path), "trust")
        self.refused(command("generate", "Barack Obama is", "--grounded", cwd=tmp_path), "--grounded")
        self.refused(command("ask", QUESTION, cwd=tmp_path), "answers no questions")
