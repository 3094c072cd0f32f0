"""A small run, made once, and a server on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kglm.answer.model import FactAwareLM
from support.serving import Client, make_run, serving


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def model(run: Path) -> FactAwareLM:
    return FactAwareLM.open(run)


@pytest.fixture(scope="session")
def client(run: Path, model: FactAwareLM) -> Iterator[Client]:
    """Of a server that allows edits; each test has a session of its own if it edits."""
    with serving(model, run.parent / "said.jsonl", allow_edit=True) as client:
        yield client
