"""What comes with the package works as it is: a trained model of the bundled world, its graph, and articles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Command
from kglm import bundled
from kglm.answer.model import FactAwareLM
from kglm.doctor import examine
from kglm.text.document import read_documents

MOST = 25_000_000


@pytest.fixture(scope="module")
def live() -> FactAwareLM:
    return FactAwareLM.open(bundled.RUN)


def best(live: FactAwareLM, prompt: str) -> tuple[str, str, str, bool]:
    """The first word after a prompt, and the fact that it mainly comes from."""
    word = live.complete(prompt, top=1).words[0]
    reason = word.reasons[0]
    assert reason.parent is not None and reason.relation is not None
    return word.word, reason.parent.id, reason.relation.id, reason.copied


def test_an_edit_of_the_graph_changes_the_words(live: FactAwareLM) -> None:
    """The paper's example; nothing was ever said of Barack Obama in training."""
    prompt = "Barack Obama was born on"
    assert best(live, prompt) == ("August", "Q76", "P569", True)
    edited = live.edited(["Barack Obama | date of birth | 21 March 2013"])
    assert best(edited, prompt) == ("March", "Q76", "P569", True)
    assert best(live, prompt)[0] == "August"
    counted = json.loads((bundled.RUN / "introductions.json").read_text())
    assert "Q76" not in counted and len(counted) > 1000


@pytest.mark.parametrize(
    ("prompt", "word", "relation"),
    [
        ("The capital of France is", "Paris", "P36"),
        ("Michelle Obama is married to", "Barack", "P26"),
        ("Hamlet was written by", "William", "P50"),
        ("Super Mario Land was developed by", "Nintendo", "P178"),
        ("Marie Curie was born in", "Warsaw", "P19"),
    ],
)
def test_it_knows_its_world(live: FactAwareLM, prompt: str, word: str, relation: str) -> None:
    said, _, by, copied = best(live, prompt)
    assert (said, by, copied) == (word, relation, True)


def test_it_is_what_a_verb_takes_if_nothing_is_named(command: Command, tmp_path: Path) -> None:
    left = command("complete", "The capital of France is", "--why", cwd=tmp_path)
    assert left.returncode == 0 and "Paris" in left.stdout and "capital" in left.stdout
    assert "comes with kglm" in left.stderr and not list(tmp_path.iterdir())


def test_it_is_small_whole_and_of_no_machine() -> None:
    files = [path for path in bundled.RUN.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST
    assert not [finding for finding in examine(bundled.RUN) if finding.level == "error"]
    known = json.loads((bundled.RUN / "kg.json").read_text())
    assert known["path"] == known["beside"] == "world.kg"
    assert not any(b"/tmp/" in path.read_bytes() or b"/home/" in path.read_bytes() for path in files)


def test_the_articles_are_linked_documents_about_its_graph(live: FactAwareLM) -> None:
    documents = list(read_documents(bundled.ARTICLES))
    assert len(documents) >= 200
    ids = {mention.id for document in documents for mention in document.mentions}
    assert len(ids) > 500 and all(id in live.graph for id in ids)


@pytest.mark.parametrize("page", ["docs/model-card.md", "CHANGELOG.md"])
def test_pages_tell_how_large_the_world_is(page: str) -> None:
    counts = [len(path.read_text(encoding="utf-8").splitlines()) for path in (bundled.ENTITIES, bundled.FACTS)]
    text = (Path(__file__).parent.parent.parent / page).read_text(encoding="utf-8")
    assert f"{counts[0]:,} entities" in text and f"{counts[1]:,} facts" in text
