"""`kglm complete`, `generate` and `link` as people meet them, by the model that comes with the package."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import Command, CommandResult
from kglm.cli.generated import text_pieces
from kglm.text.document import END
from kglm.text.tokenizer import detokenize

NO_NAME = "this text contains no name of the graph"
Ask = Callable[..., CommandResult]


@pytest.fixture
def ask(command: Command, tmp_path: Path) -> Ask:
    """A command that is given where nothing lies."""
    return lambda *words: command(*words, cwd=tmp_path)


@pytest.mark.parametrize("prompt", ["a" * 300, "It was long ago. " * 300, "no/such/path " * 30])
def test_a_long_prompt_is_a_prompt(ask: Ask, prompt: str) -> None:
    assert len(prompt.encode()) >= 300
    assert ask("link", prompt).stdout.startswith(NO_NAME)
    left = ask("complete", prompt, "--top", "1")
    assert left.returncode == 0 and "because" in left.stdout


def test_a_long_prompt_is_continued(ask: Ask) -> None:
    left = ask("generate", "a" * 300, "--words", "1", "--json")
    assert json.loads(left.stdout)["prompt"] == ["a" * 300]


class TestComplete:
    def test_the_rows_add_up(self, ask: Ask) -> None:
        out = ask("complete", "Who is the wife of Barack Obama?", "--top", "8").stdout
        shares = [
            float(share) for share in re.findall(r"^\S.*? +(\d+\.\d+)%", out.partition("because")[2], re.MULTILINE)
        ]
        assert len(shares) >= 9 and sum(shares) == pytest.approx(100, abs=0.1)
        assert "other words" in out

    def test_markers_are_shown_in_words(self, ask: Ask) -> None:
        words = ("complete", "Barack Obama was born in Honolulu .", "--top", "3")
        assert END in [word["word"] for word in json.loads(ask(*words, "--json").stdout)["words"]]
        out = ask(*words).stdout
        assert "end of sentence" in out and "@@" not in out

    def test_why_shows_all_reasons(self, ask: Ask) -> None:
        words = ("complete", "Barack Obama is married to", "--top", "20")
        short, long = ([line.rstrip() for line in ask(*words, *why).stdout.splitlines()] for why in ((), ("--why",)))
        assert len(long) > len(short) and set(short) <= set(long)

    def test_a_text_without_names(self, ask: Ask) -> None:
        assert ask("complete", "he was born on").stdout.startswith(NO_NAME)
        assert NO_NAME not in ask("complete", "Barack Obama was born on").stdout
        assert NO_NAME not in ask("complete", "he was born on", "--links", "none").stdout

    def test_names_without_capitals(self, ask: Ask) -> None:
        """Only of several words: "may" and "nice" are words."""
        found = json.loads(ask("complete", "barack obama was born on", "--json").stdout)
        assert [(each["start"], each["end"], each["id"]) for each in found["mentions"]] == [(0, 2, "Q76")]
        linked = json.loads(ask("link", "france and super mario land", "--json").stdout)["mentions"]
        assert [each["text"] for each in linked] == ["super mario land"]
        linked = json.loads(ask("link", "Paris and super mario land", "--json").stdout)["mentions"]
        assert [each["text"] for each in linked] == ["Paris", "super mario land"]


class TestGenerate:
    def test_why_has_the_text_and_a_row_for_each_name(self, ask: Ask) -> None:
        words = ("generate", "Super Mario Land was developed by", "--words", "6", "--beam", "1")
        plain, why = ask(*words).stdout, ask(*words, "--why").stdout
        text, _, table = why.partition("\n\n")
        assert text == plain.strip() and plain.startswith("Super Mario Land was developed by Nintendo")
        assert re.search(r"^Nintendo\b.* {2,}Super Mario Land —developer→ Nintendo", table, re.MULTILINE)
        assert "copied" not in table and "@@" not in why

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "Who",
            f'He said " well - known . " {END} It is n\'t ( yet ) here .',
            f"A side - scrolling game {END} {END} 3 - 4 , and / or",
        ],
    )
    def test_the_pieces_form_the_text(self, text: str) -> None:
        words = text.split()
        pieces = list(text_pieces(words))
        assert "".join(pieces).split() == detokenize(words).split()
        assert len(pieces) > len(words) // 2 or len(words) < 2

    def test_a_word_is_shown_before_the_last_is_known(self) -> None:
        def words() -> Iterator[str]:
            for word in ("One", "two", "three"):
                drawn.append(word)
                yield word

        drawn: list[str] = []
        assert next(text_pieces(words())) == "One" and drawn == ["One", "two"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("complete", "x", "--top", "0"), "--top 0; give at least 1"),
            (("generate", "x", "--words", "-4"), "--words -4; give at least 1"),
            (("generate", "x", "--words", "0"), "--words 0; give at least 1"),
            (("complete", "x", "--new-entity", "Q_x"), "'Q_x' has no name"),
            (("complete", "x", "--kg", "none.kg"), "none.kg: no such file"),
            (("complete", "nowhere", "x"), "nowhere: is not a run"),
            (("link", "Barack", "Obama"), "or only a text, in quotes"),
        ],
    )
    def test_before_anything_is_loaded(self, ask: Ask, words: tuple[str, ...], message: str) -> None:
        left = ask(*words)
        assert left.returncode == 2 and message in left.stderr and left.stderr.count("\n") == 1

    def test_without_torch(self, tmp_path: Path) -> None:
        code = (
            "import sys; sys.argv = ['kglm', 'complete', 'nowhere', 'x']\n"
            "from kglm.cli.main import main\n"
            "try: main()\n"
            "finally: print('torch' in sys.modules)"
        )
        left = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert left.returncode == 2 and left.stdout.strip() == "False"


def test_help_shows_no_value_where_none_is_taken(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    for words in (("--help",), ("generate", "--help"), ("kg", "find", "--help")):
        assert "bool" not in command(*words).stdout.casefold()
    assert "embed, verbalise" in command("--help").stdout
