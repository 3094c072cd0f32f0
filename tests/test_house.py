"""Rules of the house that a machine can check."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kglm import __version__

SOURCE = Path(__file__).resolve().parent.parent / "src" / "kglm"
MODULES = sorted(SOURCE.rglob("*.py"))
UNSAFE = re.compile(r"\bpickle\b|torch\.load\b|(?<![\w.])eval\(|(?<![\w.])exec\(")  # a module's .eval() is harmless
RESTRICTED_IMPORTER = "kg/importers/authors.py"

ROOMS = [
    {"errors"}, {"packed"}, {"files"}, {"config", "progress", "parallel", "plots", "bundled"}, {"kg"}, {"text"},
    {"linking"}, {"annotate"}, {"writing"}, {"model"}, {"runs", "train"}, {"marginal"}, {"answer"}, {"evaluate"},
    {"doctor", "api"}, {"quickstart"}, {"serve"}, {"cli"}, {"__init__", "__main__"},
]  # fmt: skip
"""As the data flows. A module may import from its own room and from rooms above it, never from below."""


def name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def room(module: str) -> int:
    top = module.split(".")[1].split("/")[0]
    return next(k for k, names in enumerate(ROOMS) if top in names)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_nothing_runs_code_from_files(path: Path) -> None:
    found = [line for line in path.read_text().splitlines() if UNSAFE.search(line) and "allow_pickle=False" not in line]
    if name(path) == RESTRICTED_IMPORTER:
        assert found and "class _Unpickler(pickle.Unpickler):" in found
    else:
        assert not found


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_file_is_one_idea(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_nothing_walks_back(path: Path) -> None:
    own = room("kglm." + name(path).removesuffix(".py"))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kglm."):
            assert room(node.module or "") <= own, f"{name(path)} imports {node.module}"


@pytest.mark.parametrize(("module", "allowed"), [("kglm", set()), ("kglm.cli", {"typer", "rich"})])
def test_importing_the_package_is_cheap(module: str, allowed: set[str]) -> None:
    """`import kglm` loads no other package; its help only those that print it."""
    installed = set().union(*importlib.metadata.packages_distributions()) - {"kglm"}
    code = f"import sys; before = set(sys.modules); import {module}; print(*(set(sys.modules) - before))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in process.stdout.split()} & installed
    needed_by_typer = {"click", "shellingham", "typing_extensions", "annotated_doc", "pygments", "markdown_it", "mdurl"}
    assert loaded <= (allowed | needed_by_typer if allowed else set())


def test_the_version_is_the_one_of_the_package() -> None:
    pyproject = (SOURCE.parent.parent / "pyproject.toml").read_text()
    assert f'version = "{__version__}"' in pyproject


def test_public_names_exist() -> None:
    import kglm

    for public in kglm.__all__:
        assert getattr(kglm, public) is not None
    assert set(kglm._MODULES) | {"__version__"} == set(kglm.__all__)
    with pytest.raises(AttributeError):
        _ = kglm.nonsense
