"""The ring of `rings` as a graph, for all tests of vectors; a module can override `path`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kglm.kg.embedding.triples import GraphTriples, graph_triples
from kglm.kg.graph import KnowledgeGraph
from support.rings import ring
from support.worlds import make_store


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("world"), ring(), {"Q5000": ("isolated",)})


@pytest.fixture(scope="module")
def data(path: Path) -> GraphTriples:
    with KnowledgeGraph.open(path) as graph:
        return graph_triples(graph)
