"""`kglm quickstart` as a stranger types it, on a part of the world and with the smallest models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Command
from kglm import bundled
from kglm.text.document import read_documents

SMALL = ("--entities", "40", "--texts", "1", "--epochs", "1", "--config", "tiny")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quickstart")


def test_the_whole_story(home: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    left = command("quickstart", *SMALL, cwd=home)
    assert left.returncode == 0, left.stderr
    for part in (" facts of ", "filtered MRR", "UPP of AWD-LSTM's", "KGLM, importance 100", "@1 / @5", "Done in"):
        assert part in left.stdout, part
    folder = home / bundled.QUICKSTART
    mentioned = {mention.id for document in read_documents(folder / "corpus.jsonl") for mention in document.mentions}
    assert mentioned and "Q76" not in mentioned
    asked = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
    assert asked and {row["entity_id"] for row in asked}.isdisjoint(mentioned)
    measured, checked = (
        {document.title for document in read_documents(folder / name)}
        for name in ("held-corpus.jsonl", "checked-corpus.jsonl")
    )
    assert measured and checked and not measured & checked  # what is measured with has no say in what is kept

    monkeypatch.chdir(home)
    assert bundled.default_run() == bundled.QUICKSTART / "kglm"
    named = command("complete", str(bundled.default_run()), "Barack Obama was born on", "--json")
    unnamed = command("complete", "Barack Obama was born on", "--json")
    assert unnamed.stdout == named.stdout and "quickstart/kglm" in unnamed.stderr
    assert command("complete", str(bundled.default_run())).returncode == 2  # a run, and no text

    again = command("quickstart", *SMALL)
    assert again.returncode == 0 and " facts of " not in again.stdout  # nothing is made twice
    assert again.stdout.split("6  Perplexity")[1].split("Done")[0].count("\n") > 20
    other = command("quickstart", *SMALL, "--seed", "1")
    assert other.returncode == 2 and "other options" in other.stderr


@pytest.mark.parametrize("wrong", [("--config", "no-such"), ("--entities", "4"), ("--seed", "-1")])
def test_what_cannot_be_is_refused_before_anything_is_made(tmp_path: Path, command: Command, wrong: list[str]) -> None:
    left = command("quickstart", *wrong, cwd=tmp_path)
    assert left.returncode == 2 and not list(tmp_path.iterdir())


def test_a_training_that_fails_beside_is_told(tmp_path: Path) -> None:
    import sys

    from kglm.errors import KglmError
    from kglm.quickstart import beside

    log = tmp_path / "log"
    with pytest.raises(KglmError, match="left with 3"), beside([[sys.executable, "-c", "print('why'); exit(3)"]], log):
        pass
    assert log.read_text() == "why\n"
    slow = [[sys.executable, "-c", "import time; time.sleep(60)"]]
    with pytest.raises(KeyError), beside(slow, log):  # what fails here ends those beside
        raise KeyError
