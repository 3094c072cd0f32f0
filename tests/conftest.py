"""Fixtures that all tests share."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, NamedTuple

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
TOGETHER = {
    "evaluate/test_perplexity.py", "answer/test_model.py", "kg/test_imports.py", "kg/test_imports_killed.py",
    "text/test_articles_sample.py", "runs/test_run.py", "train/test_processes.py",
}  # fmt: skip
"""Modules whose tests share what takes seconds to make: one worker runs them all, so that it is made once."""

LOADS = [
    "hypothesis", "kglm.annotate.pipeline", "kglm.evaluate.perplexity", "kglm.train.loop", "pytest", "spacy.lang.en",
]  # fmt: skip


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Test by test to whoever is free, as without it, but for those modules, which come first."""
    from xdist.scheduler import LoadScopeScheduling

    if config.option.dist != "load":
        return None

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.split("::")[0]
            return module if module.removeprefix("tests/") in TOGETHER else nodeid

    return Scheduling(config, log)


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
def forks() -> BaseContext:
    """Processes of their own that begin with what takes seconds to load, as the workers of a command do.

    Work that an earlier test gave to workers may have started the process they are forked from, without all that.
    """
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
    forkserver.set_forkserver_preload(LOADS)
    forkserver.ensure_running()
    return multiprocessing.get_context("forkserver")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Sums in one order, however many cores there are."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real corpora and graphs beside the project; tests that need them are skipped where they are missing."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data (../shared/data) is not on this machine")
    return folder
