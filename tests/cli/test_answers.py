"""`kglm complete`, `generate` and `link` as people meet them, by the model that comes with the package."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Command, CommandResult
from kglm import bundled
from kglm.answer.next_word import MissingFact, NextWordConfig, NextWords, next_words
from kglm.answer.reading import Reading
from kglm.cli.generated import text_pieces
from kglm.kg.store import READ_ONLY
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
    @pytest.mark.parametrize("how", [(), ("--words",)])
    def test_the_rows_add_up(self, ask: Ask, how: tuple[str, ...]) -> None:
        out = ask("complete", "Who is the wife of Barack Obama?", "--top", "8", *how).stdout
        shares = [
            float(share) for share in re.findall(r"^\S.*? +(\d+\.\d+)%", out.partition("because")[2], re.MULTILINE)
        ]
        assert len(shares) >= 9 and sum(shares) == pytest.approx(100, abs=0.1)
        assert ("other words" if how else "other answers") in out

    def test_answers_first_and_words_if_they_are_wanted(self, ask: Ask) -> None:
        words = ("complete", "Barack Obama was born on", "--top", "1")
        date = re.compile(r"^August 4, 1961 +\d+\.\d\d%  Barack Obama —date of birth→ August 4, 1961 *$", re.MULTILINE)
        assert date.search(ask(*words).stdout)
        assert re.search(
            r"^August +\d+\.\d\d%  \d+\.\d\d% related Barack Obama", ask(*words, "--words").stdout, re.MULTILINE
        )

    def test_markers_are_shown_in_words(self, ask: Ask) -> None:
        words = ("complete", "Barack Obama was born in Honolulu .", "--top", "3")
        assert END in [word["word"] for word in json.loads(ask(*words, "--json").stdout)["words"]]
        out = ask(*words).stdout
        assert "end of sentence" in out and "@@" not in out

    def test_why_shows_all_reasons(self, ask: Ask) -> None:
        words = ("complete", "Barack Obama is married to", "--top", "20", "--words")
        short, long = ([line.rstrip() for line in ask(*words, *why).stdout.splitlines()] for why in ((), ("--why",)))
        assert len(long) > len(short) and set(short) <= set(long)
        answers = ("complete", "Tokyo has a population of", "--top", "1")
        short, long = (ask(*answers, *why).stdout.splitlines() for why in ((), ("--why",)))
        best, further = long[long.index(next(line for line in long if line.startswith("answer"))) + 1 :][:2]
        assert len(long) > len(short) and "—country→ Japan" in best and "—← capital→ Japan" in further

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


class TestSeveralPrompts:
    """One a line, from standard input or a file; blank lines are skipped."""

    PROMPTS = ("Barack Obama was born on", "The capital of France is")

    @pytest.fixture
    def given(self, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[CommandResult]]:
        """A command with prompts from a file, and from standard input in both forms."""

        def run(*words: str, text: str = "\n\n".join(self.PROMPTS)) -> list[CommandResult]:
            (tmp_path / "prompts.txt").write_text(text)
            left = [ask(*words, "--file", "prompts.txt")]
            for last in (("-",), ("--file", "-")):
                monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
                left.append(ask(*words, *last))
            return left

        return run

    @pytest.mark.parametrize("verb", ["complete", "generate", "link"])
    def test_json_has_a_line_for_each(self, ask: Ask, given: Callable[..., list[CommandResult]], verb: str) -> None:
        more = {"complete": ("--top", "2"), "generate": ("--words", "3", "--beam", "1"), "link": ()}[verb]
        single = [json.loads(ask(verb, prompt, *more, "--json").stdout) for prompt in self.PROMPTS]
        for left in given(verb, *more, "--json"):
            assert left.returncode == 0 and [json.loads(line) for line in left.stdout.splitlines()] == single

    def test_tables_follow_their_prompts(self, given: Callable[..., list[CommandResult]]) -> None:
        for left in given("complete", "--top", "1"):
            place = [
                left.stdout.index(text) for text in (*self.PROMPTS[:1], "August 4, 1961", self.PROMPTS[1], "Paris")
            ]
            assert place == sorted(place)
        for left in given("generate", "--words", "3", "--beam", "1"):
            assert [
                line.startswith(prompt) for line, prompt in zip(left.stdout.splitlines(), self.PROMPTS, strict=True)
            ]

    def test_a_run_can_be_named(self, given: Callable[..., list[CommandResult]]) -> None:
        assert all(left.returncode == 0 for left in given("link", str(bundled.RUN)))

    @pytest.mark.parametrize(("text", "message"), [("", "has no prompt"), (" \n\n", "has no prompt")])
    def test_nothing_to_do(self, given: Callable[..., list[CommandResult]], text: str, message: str) -> None:
        for left, place in zip(
            given("link", text=text), ("prompts.txt", "standard input", "standard input"), strict=True
        ):
            assert left.returncode == 2 and f"{place}: {message}" in left.stderr

    def test_bytes_that_are_no_text(self, ask: Ask, tmp_path: Path) -> None:
        (tmp_path / "prompts.txt").write_bytes(b"France\n\xff\n")
        left = ask("link", "--file", "prompts.txt")
        assert left.returncode == 2 and "prompts.txt, line 2: is not UTF-8" in left.stderr and "France" in left.stdout


def test_a_name_that_may_be_of_no_entity_says_so(ask: Ask) -> None:
    linked, nil, *_ = ask("complete", "Netherlands lies in").stdout.splitlines()
    assert linked.startswith("Netherlands = Netherlands (Q55) – country in Europe, ")
    assert nil.startswith("Netherlands = no entity of the graph, ")


class TestMissing:
    """A fact that is asked for and missing; the model that finds it is not part of this test."""

    @pytest.fixture(autouse=True)
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def asked_for_spouse(reading: Reading, limits: NextWordConfig | None = None) -> NextWords:
            graph = reading.components.features.graph
            fact = MissingFact(0.8, graph.number("Q567"), graph.find_relation("P26") or -1)
            return replace(next_words(reading, limits), missing=(fact,))

        monkeypatch.setattr("kglm.answer.model.next_words", asked_for_spouse)

    def test_it_comes_first_with_what_to_do(self, ask: Ask) -> None:
        linked, missing, answers, *_ = ask("complete", "Angela Merkel is married to").stdout.splitlines()
        assert linked.startswith("Angela Merkel = Angela Merkel (Q567) – German politician, 99.")
        p = float(missing.partition("(p ")[2].partition(")")[0])
        assert missing == (
            f"the text asks for the spouse of Angela Merkel (p {p:.2f}); the graph has none – "
            'add it for one question with: --edit "Angela Merkel | spouse | …"'
        )
        assert 0.7 < p < 0.9 and answers.startswith("answer")

    def test_a_graph_of_ones_own_can_be_edited(self, ask: Ask, tmp_path: Path) -> None:
        for name in ("world.kg", "world.kg.arrays", "world.kg.names", "world.kg.vectors", "world.kg.checksums"):
            source = bundled.RUN / name
            (shutil.copytree if source.is_dir() else shutil.copyfile)(source, tmp_path / name)
        out = ask("complete", "Angela Merkel is married to", "--kg", "world.kg").stdout
        assert 'the graph has none – add it with: kglm kg edit world.kg --add "Angela Merkel | spouse | …"' in out

    def test_the_bundled_world_is_not_edited(self, ask: Ask, tmp_path: Path) -> None:
        for name in ("world.kg", "world.kg.arrays", "world.kg.names", "world.kg.vectors", "world.kg.checksums"):
            source = bundled.RUN / name
            (shutil.copytree if source.is_dir() else shutil.copyfile)(source, tmp_path / name)
        (tmp_path / READ_ONLY).write_text("It is made again.")
        out = ask("complete", "Angela Merkel is married to", "--kg", "world.kg").stdout
        assert 'add it for one question with: --edit "Angela Merkel | spouse | …"' in out

    def test_json_has_it_too(self, ask: Ask) -> None:
        [missing] = json.loads(ask("complete", "Angela Merkel is married to", "--json").stdout)["missing"]
        assert (missing["p"], missing["parent"], missing["relation"]) == (0.8, "Q567", "P26")


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
            (("link",), 'a text is missing; give one in quotes, or "-"'),
            (("link", "--file", "none.txt"), "none.txt: no such file"),
            (("link", "run", "text", "--file", "none.txt"), "2 arguments where at most 1 are expected"),
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
