"""Rules for the code: no unsafe loading, module size, import order, cheap imports, public names."""

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
    {"errors"}, {"packed"}, {"files"}, {"config", "progress", "parallel", "on_ray", "plots", "bundled"}, {"pretrained"},
    {"kg"}, {"text"}, {"linking"}, {"worlds"}, {"annotate"}, {"writing"}, {"model"}, {"heads"}, {"runs"}, {"train"},
    {"marginal"},
    {"answer"}, {"evaluate"}, {"doctor", "api"}, {"quickstart"}, {"serve"}, {"cli"}, {"__init__", "__main__"},
]  # fmt: skip
"""Top-level modules and packages in the order of the data flow. A module may import from its own line and from those
above it. `kglm/__init__` comes last: its public names load all others, so that no module may import them from there."""


def name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def room(module: str) -> int:
    """Place in `ROOMS` of a dotted name below `kglm`; a public name of the package itself belongs to `__init__`."""
    top = [*module.split("."), "__init__"][1]
    return next((k for k, names in enumerate(ROOMS) if top in names), len(ROOMS) - 1)


def imports(source: str, path: str) -> set[str]:
    """Dotted names below `kglm` that a module imports, by any form of import."""
    package = ["kglm", *Path(path).parent.parts]
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            found |= {f"kglm.{alias.name}" for alias in node.names} if module == "kglm" else {module}
    return {module for module in found if module.split(".")[0] == "kglm"} - {"kglm.__version__"}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_module_runs_code_from_files(path: Path) -> None:
    found = [line for line in path.read_text().splitlines() if UNSAFE.search(line) and "allow_pickle=False" not in line]
    if name(path) == RESTRICTED_IMPORTER:
        assert found and "class _Unpickler(pickle._Unpickler):" in found
    else:
        assert not found


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module_has_at_most_400_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module_imports_only_from_rooms_above(path: Path) -> None:
    own = room("kglm." + name(path).removesuffix(".py").replace("/", "."))
    assert [module for module in imports(path.read_text(), name(path)) if room(module) > own] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import json, kglm.cli.main", {"kglm.cli.main"}),
        ("import kglm.serve as server", {"kglm.serve"}),
        ("import kglm", {"kglm"}),
        ("from kglm import __version__, cli, load", {"kglm.cli", "kglm.load"}),
        ("from kglm.serve.app import make", {"kglm.serve.app"}),
        ("def late():\n    from ..cli import main", {"kglm.cli"}),
        ("from .. import cli", {"kglm.cli"}),
        ("from .graph import KnowledgeGraph", {"kglm.kg.graph"}),
        ("from . import graph", {"kglm.kg"}),
        ("import kglmx; from json import load", set()),
    ],
)
def test_every_form_of_import_is_recognised(source: str, found: set[str]) -> None:
    assert imports(source, "kg/store.py") == found
    forbidden = any(room(module) > room("kglm.kg") for module in found)
    assert forbidden == (not found <= {"kglm.kg", "kglm.kg.graph"})


@pytest.mark.parametrize(("module", "allowed"), [("kglm", set()), ("kglm.cli", {"typer", "rich"})])
def test_importing_the_package_is_cheap(module: str, allowed: set[str]) -> None:
    """`import kglm` loads no other package, `kglm.cli` only those that print help."""
    installed = set().union(*importlib.metadata.packages_distributions()) - {"kglm"}
    code = f"import sys; before = set(sys.modules); import {module}; print(*(set(sys.modules) - before))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in process.stdout.split()} & installed
    needed_by_typer = {"click", "shellingham", "typing_extensions", "annotated_doc", "pygments", "markdown_it", "mdurl"}
    assert loaded <= (allowed | needed_by_typer if allowed else set())


def test_version_is_that_of_pyproject() -> None:
    pyproject = (SOURCE.parent.parent / "pyproject.toml").read_text()
    assert f'version = "{__version__}"' in pyproject


def test_public_names_exist() -> None:
    import kglm

    for public in kglm.__all__:
        assert getattr(kglm, public) is not None
    assert set(kglm._MODULES) | {"__version__"} == set(kglm.__all__)
    with pytest.raises(AttributeError):
        _ = kglm.nonsense
