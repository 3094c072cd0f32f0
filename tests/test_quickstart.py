"""`kglm quickstart` from the command line, with 40 entities and the smallest models."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from conftest import Command
from kglm import bundled
from kglm.cli import quickstart
from kglm.errors import KglmError
from kglm.quickstart import run_in_background
from kglm.text.document import read_documents
from support.questions import open_heads, save_heads

SMALL = ("--entities", "40", "--texts", "1", "--epochs", "1", "--config", "tiny")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quickstart")


def test_all_steps_and_a_second_call_that_repeats_none(
    home: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    left = command("quickstart", *SMALL, cwd=home)
    assert left.returncode == 0, left.stderr
    for part in (" facts of ", "filtered MRR", "UPP of AWD-LSTM's", "KGLM, importance 100", "@1 / @5", "Done in"):
        assert part in left.stdout, part
    assert "This is a small trial" in left.stdout
    assert "10  The real world" in left.stdout and "left out: it needs the language model" in left.stdout
    folder = home / bundled.TRIAL
    mentioned = {mention.id for document in read_documents(folder / "corpus.jsonl") for mention in document.mentions}
    assert mentioned and "Q76" not in mentioned
    asked = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
    assert asked and {row["entity_id"] for row in asked}.isdisjoint(mentioned)
    measured, checked = (
        {document.title for document in read_documents(folder / name)}
        for name in ("held-corpus.jsonl", "checked-corpus.jsonl")
    )
    assert measured and checked and not measured & checked  # the test data does not choose the checkpoint

    monkeypatch.chdir(home)
    assert bundled.default_run() == bundled.RUN, "a trial is not used by default"
    assert "is for the full quickstart" in command("quickstart", *SMALL, "--to", str(bundled.QUICKSTART)).stderr
    assert not bundled.QUICKSTART.exists()
    bundled.QUICKSTART.symlink_to(bundled.TRIAL)
    assert bundled.default_run() == bundled.QUICKSTART / "kglm"
    named = command("complete", str(bundled.default_run()), "Barack Obama was born on", "--json")
    unnamed = command("complete", "Barack Obama was born on", "--json")
    assert unnamed.stdout == named.stdout and "quickstart/kglm" in unnamed.stderr
    assert command("complete", str(bundled.default_run())).returncode == 2  # a run without a prompt

    again = command("quickstart", *SMALL)
    assert again.returncode == 0 and " facts of " not in again.stdout  # no step is repeated
    assert again.stdout.split("6  Perplexity")[1].split("Done")[0].count("\n") > 20
    other = command("quickstart", *SMALL, "--seed", "1")
    assert other.returncode == 2 and "other options" in other.stderr


def test_it_ends_with_the_pretrained_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Answers, a missing fact, an edit and a text; here of a toy graph."""
    pytest.importorskip("transformers", reason="the extra hf is not installed")
    monkeypatch.setenv("KGLM_CACHE", str(tmp_path / "cache"))
    save_heads(tmp_path)
    toy = open_heads(tmp_path)
    monkeypatch.setattr("kglm.answer.model.default_run", lambda: tmp_path / "heads")
    monkeypatch.setattr("kglm.answer.model.load", lambda home: toy)
    spouse, born = "What is the spouse of Barack Obama?", "What is the place of birth of Barack Obama?"
    monkeypatch.setattr(quickstart, "QUESTIONS", (spouse, born))
    monkeypatch.setattr(quickstart, "WORLD_EDIT", (born, "Barack Obama | place of birth | Honolulu"))
    quickstart._ask_the_world()
    shown = capsys.readouterr().out
    assert f'kglm ask "{spouse}"\nThe spouse of Barack Obama is Michelle Obama.' in shown
    assert "the text asks for the place of birth of Barack Obama" in shown
    assert "The place of birth of Barack Obama is Honolulu." in shown
    assert f'kglm generate "{quickstart.TEXT}"\n{quickstart.TEXT}' in shown


@pytest.mark.parametrize("wrong", [("--config", "no-such"), ("--entities", "4"), ("--seed", "-1")])
def test_invalid_options_are_refused_before_any_step(tmp_path: Path, command: Command, wrong: list[str]) -> None:
    left = command("quickstart", *wrong, cwd=tmp_path)
    assert left.returncode == 2 and not list(tmp_path.iterdir())


def test_failed_background_training_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "log"
    failing = [[sys.executable, "-c", "print('why'); exit(3)"]]
    with pytest.raises(KglmError, match="exited with code 3"), run_in_background(failing, log):
        pass
    assert log.read_text() == "why\n"


def test_exception_ends_the_background_training(tmp_path: Path) -> None:
    """The process would wait for a signal for ever; the block ends only because it is terminated."""
    started = tmp_path / "started"
    os.mkfifo(started)
    endless = [[sys.executable, "-c", f"import signal; open({str(started)!r}, 'w').close(); signal.pause()"]]
    with pytest.raises(KeyError), run_in_background(endless, tmp_path / "log"):
        started.open().close()  # returns when the process has opened the other end
        raise KeyError


def test_exception_before_the_background_process_starts(tmp_path: Path) -> None:
    endless = [[sys.executable, "-c", "import signal; signal.pause()"]]
    with pytest.raises(KeyError), run_in_background(endless, tmp_path / "log"):
        raise KeyError
