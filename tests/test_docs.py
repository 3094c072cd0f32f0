"""Run every command and every Python example of the documentation, and check the names that it mentions."""

from __future__ import annotations

import ast
import dataclasses
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import kglm
from conftest import ROOT, Command, CommandResult
from kglm.config import describe
from kglm.runs.settings import RunConfig
from support import tiny

SOURCE = ROOT / "src" / "kglm"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
README, OWN_DATA = ROOT / "README.md", ROOT / "docs" / "own-data.md"
SKIPPED_PAGES = {
    "api.md": "tests/serve/test_api_docs.py sends its requests to a server",
    "pretrained.md": "its commands need a pretrained model; see tests/cli/test_pretrained.py",
    "results.md": "its commands take minutes to hours on data that is not part of the project",
}
"""Pages whose commands this module does not run, and why."""
SKIPPED_COMMANDS = {
    "make quickstart": "takes minutes; tests/test_quickstart.py runs a small one",
    "make test": "runs this test",
    "python3 -m venv": "creates an environment",
    "pip install": "changes the environment",
    "torchrun": "has placeholders; tests/train/test_processes.py trains with two processes",
    "benchmarks/reproduce.sh": "takes hours on data that is not part of the project",
    "kglm quickstart": "takes minutes; tests/test_quickstart.py runs a small one",
    "kglm train kglm --base": "needs a pretrained model; see tests/train/heads/test_start.py",
    "kglm complete heads-run": "needs a pretrained model",
    "kglm ask": "needs a pretrained model; see tests/answer/pretrained/test_default.py",
    "kglm serve": "runs until Ctrl-C; tests/serve starts servers",
    "kglm annotate enwiki-latest": "needs a dump of Wikipedia and a Ray cluster; see tests/annotate/test_on_ray.py",
    "kglm evaluate heads-run": "needs a pretrained model; see tests/evaluate/test_heads.py",
    "kglm table perplexity --run heads-run": "needs a pretrained model; see tests/evaluate/test_heads.py",
    "kglm features": "needs a pretrained model; see tests/heads/test_feature_jobs.py",
    "kglm evaluate smollm2": "needs a pretrained model; see tests/evaluate/test_pretrained.py",
    "kglm kg show world": "unpacks the bundled world for ten seconds; tests/worlds uses a small one",
    "kglm kg find world": "as above",
    "kglm world --to": "as above",
    'kglm kg edit my.kg --set "France | capital | Lyon"': "as above",
    "kglm table completion prompts.jsonl --run model --run smollm2": "needs a pretrained model",
}
"""Beginnings of commands that are not run, and why. All other command lines must be commands of kglm, and are run."""
COMMANDS = ("", "sh")
"""Marks of code blocks with commands; blocks marked `text`, `json` or with a file name are data."""
CONTINUED = ("systems.md", "perplexity.md", "training.md")
"""Pages that use the files of the first four commands of own-data.md."""
QUICK = {"train": ("--set", "train.epochs=2"), "annotate": ("--workers", "1")}
"""Options added to commands to save time: the tests do not depend on how good a trained model is."""
OTHER_OPTIONS = {"--extra-index-url", "--no-deps"}
"""Options of pip."""
Type = Callable[[list[str]], CommandResult]


def blocks(page: Path, *marks: str) -> list[str]:
    """Code blocks of a page with one of these marks."""
    pieces = re.split(r"^```(.*)\n", page.read_text(), flags=re.MULTILINE)
    return [code for mark, code in zip(pieces[1::4], pieces[2::4], strict=True) if mark in marks]


def files(page: Path) -> dict[str, str]:
    """Code blocks of a page that are marked with the name of a file."""
    marks = re.findall(r"^```(\S+\.\S+)$", page.read_text(), flags=re.MULTILINE)
    return {name: text for name in marks for text in blocks(page, name)}


def command_lines(page: Path) -> list[str]:
    lines = "".join(blocks(page, *COMMANDS)).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def is_skipped(line: str) -> bool:
    return line.startswith(tuple(SKIPPED_COMMANDS))


def commands(page: Path) -> list[list[str]]:
    """Arguments of the `kglm` commands of a page that are run."""
    lines = [shlex.split(line, comments=True) for line in command_lines(page) if not is_skipped(line)]
    return [words[1:] for words in lines if words[0] == "kglm"]


def outside_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def inline_code(page: Path) -> list[str]:
    """Code within sentences and tables."""
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", outside_blocks(page))]


def write_files(page: Path, home: Path) -> None:
    for name, text in files(page).items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)


@pytest.fixture
def run(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Type:
    """Run a command of a page in the folder of the test; it must succeed."""
    monkeypatch.delenv("COLUMNS", raising=False)  # the width of the terminal that the tests run in

    def run(words: list[str]) -> CommandResult:
        left = command(*words, *QUICK.get(words[0], ()), cwd=tmp_path)
        assert left.returncode == 0, f"{shlex.join(words)}\n{left.stderr}"
        return left

    return run


@pytest.fixture
def run_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Path], str]:
    """Run the Python examples of a page in the folder of the test; return what they print."""

    def run(page: Path) -> str:
        monkeypatch.chdir(tmp_path)
        capsys.readouterr()
        for block in blocks(page, "python"):
            exec(compile(block, page.name, "exec"), {"__name__": "__main__"})
        return capsys.readouterr().out

    return run


def prepare(page: Path, home: Path, run: Type) -> None:
    """Make the files that a page takes for granted."""
    write_files(page, home)
    if page.name in CONTINUED:
        write_files(OWN_DATA, home)
        for words in commands(OWN_DATA)[:4]:
            run(words)
    if page.name == "formats.md":
        shutil.copy(tiny.FACTS, home / "facts.tsv")
        shutil.copy(tiny.ENTITIES, home / "entities.jsonl")
        shutil.copy(tiny.RELATIONS, home / "relations.tsv")
        (home / "redirects.tsv").write_text("NYC\tNew York City\n")


def first_words(output: str) -> list[str]:
    """The most probable word of each completion in an output."""
    return re.findall(r"because *\n(\S+)", output)


def without_numbers(output: str) -> list[str]:
    return [re.sub(r" *[\d.]+%", " %", line).rstrip() for line in output.splitlines()]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page not in (README, OWN_DATA) and page.name not in SKIPPED_PAGES],
    ids=lambda page: page.name,
)
def test_every_command(page: Path, tmp_path: Path, run: Type, run_python: Callable[[Path], str]) -> None:
    prepare(page, tmp_path, run)
    for words in commands(page):
        run(words)
    assert run_python(page) or not blocks(page, "python")


def test_own_data(tmp_path: Path, run: Type, run_python: Callable[[Path], str]) -> None:
    """The first answer is the fact, the answer after the edit is the new one, from the command line and from Python."""
    write_files(OWN_DATA, tmp_path)
    outputs = [run(words).stdout for words in commands(OWN_DATA)]
    assert [first_words(output) for output in outputs[-2:]] == [["Veltheim"], ["Ostmark"]]
    printed = run_python(OWN_DATA).splitlines()
    assert len(printed) == 11 and printed[0].startswith("1 ")
    assert printed[1].startswith("Veltheim  ") and printed[6].startswith("Ostmark  ")


def test_readme(tmp_path: Path, run: Type, run_python: Callable[[Path], str]) -> None:
    """The first two completions are those that the page shows, except for digits; the others begin as the page says."""
    write_files(README, tmp_path)
    ran = [(words[0], run(words).stdout) for words in commands(README)]
    outputs = [output for command, output in ran if command == "complete"]
    assert [without_numbers(output) for output in outputs[:2]] == [
        without_numbers(output) for output in blocks(README, "text")
    ]
    answers = [word for output in outputs for word in first_words(output)]
    assert answers[:4] == ["August", "March", "Paris", "Lyon"] and {"Veltheim", "Ostmark"} <= set(answers)
    printed = run_python(README)
    assert printed.startswith("August 4, 1961  ") and "March 21, 2013" in printed


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in SKIPPED_PAGES], ids=lambda page: page.name)
def test_no_example_is_left_out(page: Path) -> None:
    """Each code block is run or is data; each command line is a command of kglm, or is skipped with a reason."""
    marks = re.findall(r"^```(.*)$", page.read_text(), flags=re.MULTILINE)[::2]
    assert {mark for mark in marks if "." not in mark} <= {*COMMANDS, "python", "text", "json"}
    assert [line for line in command_lines(page) if not line.startswith("kglm ") and not is_skipped(line)] == []
    assert not re.findall(r"\n\n {4}\S.*", outside_blocks(page)), "mark code blocks with ```"


def test_every_skipped_command_is_in_a_page() -> None:
    lines = [line for page in PAGES for line in command_lines(page)]
    assert [start for start in SKIPPED_COMMANDS if not any(line.startswith(start) for line in lines)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_use_public_names(page: Path) -> None:
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            assert not isinstance(node, ast.ImportFrom), ast.unparse(node)
            if isinstance(node, ast.Import):
                assert [alias.name for alias in node.names] == ["kglm"], ast.unparse(node)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "kglm":
                assert node.attr in kglm.__all__
    assert {code for code in inline_code(page) if re.fullmatch(r"kglm\.[a-z][a-z_]+", code)} <= {
        f"kglm.{name}" for name in kglm.__all__
    }


def verbs() -> dict[str, set[str]]:
    """The commands of kglm and the options of each."""
    from kglm.cli.main import app

    def walk(command: Any, name: str) -> Iterator[tuple[str, set[str]]]:
        context = command.make_context(name, [], resilient_parsing=True)
        if hasattr(command, "list_commands"):
            for verb in command.list_commands(context):
                yield from walk(command.get_command(context, verb), f"{name} {verb}".strip())
        else:
            yield name, {option for param in command.params for option in (*param.opts, *param.secondary_opts)}

    return dict(walk(typer.main.get_command(app), ""))


def test_every_command_and_option_exists() -> None:
    """Also of commands in sentences, and of commands that are not run."""
    known = verbs()
    scripts = {
        path.name: path.read_text() for path in (ROOT / "benchmarks").rglob("*.*") if path.suffix in (".py", ".sh")
    }
    options = set().union(*known.values(), OTHER_OPTIONS, {"--debug", "--help", "--version"})
    options |= {option for text in scripts.values() for option in re.findall(r'"(--[a-z-]+)"', text)}
    for page in PAGES:
        for code in (*command_lines(page), *inline_code(page)):
            words = code.split()
            used = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
            place = f"{page.name}: {code}"
            if words[0] == "kglm" and len(words) > 1 and not words[1].startswith("-"):
                verb = words[1] if words[1] in known else " ".join(words[1:3])
                family = {name for name in known if name.split()[0] == words[1]}
                assert verb in known or (len(words) == 2 and family), place
                assert used <= known.get(verb, set()) | {"--debug"}, place
            elif words[0] == "python" and words[1].startswith("benchmarks/"):
                assert all(f'"{option}"' in scripts[Path(words[1]).name] for option in used), place
            elif words[0].startswith("--"):
                assert used <= options, place


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_every_source_file_and_link_exists(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if not target.startswith("http"):
            path, _, heading = target.partition("#")
            assert (page.parent / path).exists(), target
            assert not heading or heading in anchors(page.parent / path), target
    for code in inline_code(page):
        if re.fullmatch(r"[\w/.-]+/[\w-]*\.(?:py|sh)|(?:src|tests|benchmarks)/[\w/.-]*", code):
            assert any((root / code).exists() for root in (ROOT, SOURCE, ROOT / "tests")), code


def anchors(page: Path) -> set[str]:
    """Link targets of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def code_map() -> list[str]:
    """Paths below src/kglm in the tree of CONTRIBUTING.md."""
    [tree] = [block for block in blocks(ROOT / "CONTRIBUTING.md", "text") if block.startswith("src/kglm/")]
    found, folder = [], ""
    for line in tree.splitlines()[1:]:
        indent, name = len(line) - len(line.lstrip()), line.split()[0]
        folder = folder if indent == 4 else name if name.endswith("/") else ""
        found.append(folder if name == folder else folder + name)
        found += [folder + other for other in re.findall(r"\b\w+(?:\.py|/)", line.replace(name, "", 1))]
    return found


def test_code_map() -> None:
    """Each file of the map exists, and the map has each subpackage."""
    missing = [path for path in code_map() if not (SOURCE / path).exists()]
    assert missing == []
    packages = {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    assert packages <= set(code_map())


def test_table_of_formulas() -> None:
    """Each row of the table in how-it-works.md names code and a test that exist."""
    page = (ROOT / "docs" / "how-it-works.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if re.search(r"\.py` `\w+`", line)]
    assert len(rows) >= 15
    for *_, code, test in rows:
        path, *names = re.findall(r"`([^`]+)`", code)
        source = (SOURCE / path).read_text()
        assert [name for name in names if not re.search(rf"^(class|def) {name}\b", source, re.M)] == [], code
        file, name = test.strip(" |`").split("::")
        assert re.search(rf"^ *def {name}\(", (ROOT / "tests" / file).read_text(), re.M), test


def settings_table() -> list[str]:
    """The rows of the table in training.md: each setting with its default and its docstring."""
    defaults, rows = RunConfig(), []
    for section in ("data", "encoder", "latent", "train"):
        settings = getattr(defaults, section)
        texts = describe(type(settings))
        for field in dataclasses.fields(settings):
            value = getattr(settings, field.name)
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            cell = "" if value is None else f"`{shown}`"
            rows.append(f"| `{section}.{field.name}` | {cell} | {texts[field.name]} |")
    return rows


def test_the_table_of_settings() -> None:
    """To write the table from the docstrings: UPDATE_DOCS=1 python -m pytest tests/test_docs.py -k settings"""
    page = ROOT / "docs" / "training.md"
    head, line, table = page.read_text().partition("| setting | default | |\n|---|---|---|\n")
    expected = "\n".join([*settings_table(), ""])
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(head + line + expected)
    else:
        assert table == expected, "run this test with UPDATE_DOCS=1"
