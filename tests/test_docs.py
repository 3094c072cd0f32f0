"""What the documentation says can be typed is typed."""

from __future__ import annotations

import dataclasses
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import ROOT, Command, CommandResult
from kglm.config import describe
from kglm.runs.settings import RunConfig
from support import tiny

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
"""All of them have sound links; the commands of results.md are not run, they take minutes on the real data."""
OWN = ROOT / "docs" / "own-data.md"
READ = ("README.md", "own-data.md", "results.md")
"""Their commands are run below, or not at all."""
RUN = [page for page in PAGES if page.name not in READ]
GO_ON = ("systems.md", "perplexity.md", "training.md")
"""They go on where the first commands of own-data.md end."""
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


def commands(page: Path) -> list[list[str]]:
    """The calls of `kglm` in a page, as words."""
    lines = "".join(blocks(page)).splitlines()
    return [words[1:] for words in (shlex.split(line, comments=True) for line in lines) if words[:1] == ["kglm"]]


def write_files(page: Path, home: Path) -> None:
    for name, text in files(page).items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)


@pytest.fixture
def typed(command: Command, tmp_path: Path) -> Callable[[list[str]], CommandResult]:
    """A command of a page, where the reader types it."""

    def run(words: list[str]) -> CommandResult:
        left = command(*words, *QUICK.get(words[0], ()), cwd=tmp_path)
        assert left.returncode == 0, f"{shlex.join(words)}\n{left.stderr}"
        return left

    return run


def prepare(page: Path, home: Path, typed: Callable[[list[str]], CommandResult]) -> None:
    """What a page says that the reader has made before: nothing, the files of another page, or tables of its own."""
    write_files(page, home)
    if page.name in GO_ON:
        write_files(OWN, home)
        for words in commands(OWN)[:4]:
            typed(words)
    if page.name == "formats.md":
        shutil.copy(tiny.FACTS, home / "facts.tsv")
        shutil.copy(tiny.ENTITIES, home / "entities.jsonl")
        shutil.copy(tiny.RELATIONS, home / "relations.tsv")
        (home / "redirects.tsv").write_text("NYC\tNew York City\n")


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_every_command(
    page: Path, tmp_path: Path, typed: Callable[[list[str]], CommandResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(page, tmp_path, typed)
    for words in commands(page):
        typed(words)
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), {"__name__": "__main__"})


def test_ones_own_data_answer(tmp_path: Path, typed: Callable[[list[str]], CommandResult]) -> None:
    """What the page promises: the fact comes first, and after the edit the other one."""
    write_files(OWN, tmp_path)
    said = [typed(words).stdout for words in commands(OWN)]
    assert [re.findall(r"because *\n(\S+)", out) for out in said[-2:]] == [["Veltheim"], ["Ostmark"]]


def test_the_readme(tmp_path: Path, typed: Callable[[list[str]], CommandResult]) -> None:
    """Its answers begin as it shows, whatever the last training made of the rest; its Python prints what was edited."""
    page = ROOT / "README.md"
    write_files(page, tmp_path)
    said = [typed(words).stdout for words in commands(page)]
    firsts = [re.findall(r"because *\n(\S+)", out) for out in (*said, *blocks(page, "text"))]
    answers = [words[0] for words in firsts if words]
    assert answers[:2] == answers[-2:] == ["August", "March"]
    assert answers[2:4] == ["Paris", "Lyon"] and "Veltheim" in answers and "Ostmark" in answers
    for block in blocks(page, "python"):
        process = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True)
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
