"""Language models that take their facts from a knowledge graph.

    import kglm

    model = kglm.load()  # the model that comes with kglm, or kglm.load("own-run")
    print(model.complete("The capital of France is"))
    print(model.edited("France | capital | Lyon").complete("The capital of France is"))
    for word in model.generate("France is", words=12, seed=1):
        print(word.word, word.reason)

There is a function for each command: import_graph, embed, annotate_articles, train_model, evaluate_model, link,
complete, ask, generate. Names are loaded when they are first used: `import kglm` loads no other package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

_MODULES = {
    "AnnotateConfig": "kglm.annotate.annotator",
    "AnnotateReport": "kglm.annotate.pipeline",
    "Answer": "kglm.answer.completion",
    "Completion": "kglm.answer.completion",
    "CorpusStatistics": "kglm.annotate.statistics",
    "Document": "kglm.text.document",
    "EmbedReport": "kglm.kg.embedding.transe",
    "FactAwareLM": "kglm.answer.model",
    "FactEdit": "kglm.kg.edits",
    "Finding": "kglm.doctor",
    "GenerateConfig": "kglm.answer.generate",
    "GeneratedWord": "kglm.answer.completion",
    "ImportReport": "kglm.kg.imports",
    "KglmError": "kglm.errors",
    "KnowledgeGraph": "kglm.kg.graph",
    "LinkedMention": "kglm.answer.mentions",
    "Mention": "kglm.text.document",
    "Missing": "kglm.answer.completion",
    "Named": "kglm.answer.completion",
    "NewEntity": "kglm.kg.edits",
    "NextWordConfig": "kglm.answer.next_word",
    "NextWords": "kglm.answer.next_word",
    "PerplexityReport": "kglm.evaluate.perplexity",
    "Reason": "kglm.answer.completion",
    "PretrainedLM": "kglm.answer.pretrained.model",
    "Reasons": "kglm.answer.completion",
    "Reply": "kglm.answer.pretrained.asked",
    "Span": "kglm.answer.reading",
    "TransEConfig": "kglm.kg.embedding.transe",
    "Vocabulary": "kglm.text.vocabulary",
    "Word": "kglm.answer.completion",
    "annotate_articles": "kglm.api",
    "ask": "kglm.api",
    "complete": "kglm.api",
    "corpus_statistics": "kglm.annotate.statistics",
    "embed": "kglm.api",
    "evaluate_model": "kglm.api",
    "examine": "kglm.doctor",
    "generate": "kglm.api",
    "export_graph": "kglm.api",
    "import_graph": "kglm.api",
    "link": "kglm.api",
    "load": "kglm.answer.model",
    "read_documents": "kglm.text.document",
    "repair": "kglm.text.repair",
    "tokenizer": "kglm.text.tokenizer",
    "train_model": "kglm.api",
    "world": "kglm.api",
    "write_documents": "kglm.text.document",
}
"""The module that defines each public name."""

__all__ = [  # noqa: RUF022 - the order of _MODULES, and the version
    "AnnotateConfig",
    "AnnotateReport",
    "Answer",
    "Completion",
    "CorpusStatistics",
    "Document",
    "EmbedReport",
    "FactAwareLM",
    "FactEdit",
    "Finding",
    "GenerateConfig",
    "GeneratedWord",
    "ImportReport",
    "KglmError",
    "KnowledgeGraph",
    "LinkedMention",
    "Mention",
    "Missing",
    "Named",
    "NewEntity",
    "NextWordConfig",
    "NextWords",
    "PerplexityReport",
    "Reason",
    "PretrainedLM",
    "Reasons",
    "Reply",
    "Span",
    "TransEConfig",
    "Vocabulary",
    "Word",
    "annotate_articles",
    "ask",
    "complete",
    "corpus_statistics",
    "embed",
    "evaluate_model",
    "examine",
    "generate",
    "export_graph",
    "import_graph",
    "link",
    "load",
    "read_documents",
    "repair",
    "tokenizer",
    "train_model",
    "world",
    "write_documents",
    "__version__",
]

if TYPE_CHECKING:
    from kglm.annotate.annotator import AnnotateConfig
    from kglm.annotate.pipeline import AnnotateReport
    from kglm.annotate.statistics import CorpusStatistics, corpus_statistics
    from kglm.answer.completion import (
        Answer,
        Completion,
        GeneratedWord,
        Missing,
        Named,
        Reason,
        Reasons,
        Word,
    )
    from kglm.answer.generate import GenerateConfig
    from kglm.answer.mentions import LinkedMention
    from kglm.answer.model import FactAwareLM, load
    from kglm.answer.next_word import NextWordConfig, NextWords
    from kglm.answer.pretrained.asked import Reply
    from kglm.answer.pretrained.model import PretrainedLM
    from kglm.answer.reading import Span
    from kglm.api import (
        annotate_articles,
        ask,
        complete,
        embed,
        evaluate_model,
        export_graph,
        generate,
        import_graph,
        link,
        train_model,
        world,
    )
    from kglm.doctor import Finding, examine
    from kglm.errors import KglmError
    from kglm.evaluate.perplexity import PerplexityReport
    from kglm.kg.edits import FactEdit, NewEntity
    from kglm.kg.embedding.transe import EmbedReport, TransEConfig
    from kglm.kg.graph import KnowledgeGraph
    from kglm.kg.imports import ImportReport
    from kglm.text.document import Document, Mention, read_documents, write_documents
    from kglm.text.repair import repair
    from kglm.text.tokenizer import tokenizer
    from kglm.text.vocabulary import Vocabulary


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'kglm' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
