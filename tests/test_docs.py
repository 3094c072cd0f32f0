"""What the documentation says can be typed is typed."""

from __future__ import annotations

import bz2
import dataclasses
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tiny
from conftest import ROOT, Command
from dumps import entity, item, lines, statement
from kglm.config import describe
from kglm.train.settings import RunConfig

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
"""All of them have sound links; the commands of results.md are not run, they take minutes on the real data."""
QUICK = {"train": ("--set", "train.epochs=2"), "annotate": ("--workers", "1")}
"""What is added to a command: that a model is trained is the test, not that it is a good one."""


def blocks(page: Path, language: str = "") -> list[str]:
    """The code blocks of a page that are marked as this language."""
    pieces = re.split(r"^```(.*)\n", page.read_text(), flags=re.MULTILINE)
    return [code for mark, code in zip(pieces[1::4], pieces[2::4], strict=True) if mark == language]


def files(page: Path) -> dict[str, str]:
    """The code blocks of a page that are files: marked with a name that has a dot."""
    marks = re.findall(r"^```(\S+\.\S+)$", page.read_text(), flags=re.MULTILINE)
    return {name: text for name in marks for text in blocks(page, name)}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the files that the examples name."""
    shutil.copy(tiny.FACTS, tmp_path / "facts.tsv")
    shutil.copy(tiny.ENTITIES, tmp_path / "entities.jsonl")
    shutil.copy(tiny.RELATIONS, tmp_path / "relations.tsv")
    shutil.copy(tiny.DOCUMENTS, tmp_path / "corpus.jsonl")
    (tmp_path / "redirects.tsv").write_text("NYC\tNew York City\n")
    dump = lines([entity("Q76", "Barack Obama", {"P27": [statement(item("Q30"))]}), entity("Q30", "United States")])
    (tmp_path / "latest-all.json.bz2").write_bytes(bz2.compress(dump))
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "results.md"], ids=lambda page: page.name)
def test_every_command(page: Path, home: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in files(page).items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)
    for line in "".join(blocks(page)).splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["kglm"]:
            left = command(*words[1:], *QUICK.get(words[1], ()), cwd=home)
            assert left.returncode == 0, f"{page.name}: {line}\n{left.stderr}"
    monkeypatch.chdir(home)
    for block in blocks(page, "python") if page.name != "README.md" else ():
        exec(compile(block, page.name, "exec"), {"__name__": "__main__"})


def test_the_python_of_the_readme(home: Path, command: Command) -> None:
    command("kg", "import", "facts.tsv", "--entities", "entities.jsonl", "--to", "world.kg", cwd=home)
    for block in blocks(ROOT / "README.md", "python"):
        process = subprocess.run([sys.executable, "-c", block], cwd=home, capture_output=True, text=True)
        assert process.returncode == 0, process.stderr
        assert "March 21, 2013" in process.stdout


def test_the_table_of_settings() -> None:
    """Every setting with its default and its own words, and no other."""
    defaults, expected = RunConfig(), []
    for section in ("data", "encoder", "latent", "train"):
        settings = getattr(defaults, section)
        texts = describe(type(settings))
        for field in dataclasses.fields(settings):
            value = getattr(settings, field.name)
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            cell = "" if value is None else f"`{shown}`"
            expected.append(f"| `{section}.{field.name}` | {cell} | {texts[field.name]} |")
    found = [
        line
        for line in (ROOT / "docs" / "training.md").read_text().splitlines()
        if re.match(r"\| `(data|encoder|latent|train)\.", line)
    ]
    assert found == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target.partition("#")[0]).exists(), f"{page.name}: {target}"
