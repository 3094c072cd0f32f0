"""Graphs to write about, wordings and writers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kglm import bundled
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import import_graph
from kglm.writing.articles import Writer
from kglm.writing.wordings import Wordings, read_wordings
from support.famous import FACTS, NAMES
from support.worlds import make_store


def _bundled_store(home: Path) -> Path:
    """The bundled graph, imported into `home`."""
    import_graph(
        [bundled.FACTS], home / "world.kg", entities=[bundled.ENTITIES], relations=[bundled.RELATIONS], workers=1
    )
    return home / "world.kg"


@pytest.fixture(scope="module", params=["toy", "bundled"])
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    home = tmp_path_factory.mktemp(request.param)
    path = make_store(home, FACTS, NAMES) if request.param == "toy" else _bundled_store(home)
    return KnowledgeGraph.open(path)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("toy"), FACTS, NAMES))


@pytest.fixture(scope="module")
def wordings() -> Wordings:
    return read_wordings()


@pytest.fixture(scope="module")
def writer(graph: KnowledgeGraph, wordings: Wordings) -> Writer:
    return Writer(graph, wordings, seed=0)


@pytest.fixture(scope="module")
def nodes(writer: Writer) -> list[int]:
    topics = writer.topics()
    return topics[:: max(len(topics) // 40, 1)]
