"""Fixtures shared by all tests."""

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

# OpenMP threads with little work can slow each other down; the suite runs one process per core instead.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples in every run, so that results are reproducible; `HYPOTHESIS_PROFILE=explore` tries more and others.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

ROOT = Path(__file__).resolve().parent.parent
TOGETHER = {
    "evaluate/test_perplexity.py", "answer/test_model.py", "kg/test_imports.py", "kg/test_imports_killed.py",
    "text/test_articles_sample.py", "runs/test_run.py", "train/test_processes.py", "faults/test_fuzz.py",
}  # fmt: skip
"""Modules with expensive module fixtures: one worker runs all tests of such a module, so that each is built once."""

os.environ["KGLM_HEADS"] = "none"
"""Where no run is named, tests use the small model that comes with kglm."""

PRELOAD = [
    "hypothesis", "kglm.annotate.pipeline", "kglm.evaluate.perplexity", "kglm.train.loop", "pytest", "spacy.lang.en",
]  # fmt: skip


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Scheduler of pytest-xdist that keeps the tests of each module in `TOGETHER` on one worker."""
    from xdist.scheduler import LoadScopeScheduling

    if config.option.dist != "load":
        return None

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.split("::")[0]
            return module if module.removeprefix("tests/") in TOGETHER else nodeid

    return Scheduling(config, log)


class CommandResult(NamedTuple):
    """Exit code and output of a command."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., CommandResult]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a `kglm` command line in this process: a new process takes seconds to import its modules."""
    from kglm.cli.main import main

    def run(*words: str, cwd: Path | None = None) -> CommandResult:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["kglm", *words])
            if cwd is not None:
                patch.chdir(cwd)
            with pytest.raises(SystemExit) as left:
                main()
        captured = capsys.readouterr()
        return CommandResult(int(left.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def forks() -> BaseContext:
    """Context for processes that start with the slow modules imported, like the workers of a command.

    An earlier test may have started the fork server without these modules, so it is restarted.
    """
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
    forkserver.set_forkserver_preload(PRELOAD)
    forkserver.ensure_running()
    return multiprocessing.get_context("forkserver")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Use one torch thread, so that sums do not depend on the number of cores."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Directory of real corpora and graphs beside the project; tests are skipped where it is missing."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data (../shared/data) is not on this machine")
    return folder
