"""Language models that take their facts from a knowledge graph.

    import kglm

    kglm.import_graph(["facts.tsv"], "world.kg", entities=["entities.jsonl"])
    graph = kglm.KnowledgeGraph.open("world.kg", writable=True)
    graph.set("Q76", "P569", "2013-03-21")
    for document in kglm.read_documents("docs.jsonl"):
        print(document.title, len(document.mentions))

Names are loaded when they are first used: `import kglm` is cheap and pulls in no optional package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

_HOMES = {
    "Document": "kglm.text.document",
    "KnowledgeGraph": "kglm.kg.graph",
    "Mention": "kglm.text.document",
    "Vocabulary": "kglm.text.vocabulary",
    "corpus_statistics": "kglm.annotate.statistics",
    "examine": "kglm.doctor",
    "import_graph": "kglm.kg.imports",
    "load": "kglm.answer.model",
    "read_documents": "kglm.text.document",
    "repair": "kglm.text.repair",
    "tokenizer": "kglm.text.tokenizer",
    "write_documents": "kglm.text.document",
}

__all__ = [  # noqa: RUF022 - the order of _HOMES, and the version
    "Document",
    "KnowledgeGraph",
    "Mention",
    "Vocabulary",
    "corpus_statistics",
    "examine",
    "import_graph",
    "load",
    "read_documents",
    "repair",
    "tokenizer",
    "write_documents",
    "__version__",
]

if TYPE_CHECKING:
    from kglm.annotate.statistics import corpus_statistics
    from kglm.answer.model import load
    from kglm.doctor import examine
    from kglm.kg.graph import KnowledgeGraph
    from kglm.kg.imports import import_graph
    from kglm.text.document import Document, Mention, read_documents, write_documents
    from kglm.text.repair import repair
    from kglm.text.tokenizer import tokenizer
    from kglm.text.vocabulary import Vocabulary


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kglm' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
