"""The benchmark scripts fit the package: they can be imported, and their docstrings begin with their command."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
FILES = sorted(BENCHMARKS.glob("*.py"))
SCRIPTS = [path for path in FILES if "__main__" in path.read_text()]
IMPORT_ALL = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module(name)
"""


def test_all_can_be_imported() -> None:
    """In one process of its own: their names, such as `graph`, must not shadow other modules of the tests."""
    command = [sys.executable, "-c", IMPORT_ALL, str(BENCHMARKS), *(path.stem for path in FILES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_docstring_begins_with_the_command(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring is not None
    assert docstring.startswith(f"python benchmarks/{path.name} ")
