"""Fixtures that all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

# Two OpenMP threads of small work can spin against each other; the suite runs one process a core instead.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples in every run: a suite that fails now and then is no yardstick.
# `HYPOTHESIS_PROFILE=explore` looks further.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

ROOT = Path(__file__).resolve().parent.parent


class Left(NamedTuple):
    """How a command left."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Left]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`kglm` as it is typed, in this process: a process of its own takes seconds to load what it needs."""
    from kglm.cli.main import main

    def run(*words: str, cwd: Path | None = None) -> Left:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["kglm", *words])
            if cwd is not None:
                patch.chdir(cwd)
            with pytest.raises(SystemExit) as left:
                main()
        captured = capsys.readouterr()
        return Left(int(left.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real corpora and graphs beside the project; tests that need them are skipped where they are missing."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data (../shared/data) is not on this machine")
    return folder
