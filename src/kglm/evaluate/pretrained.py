"""Evaluate a pretrained language model, with its own subwords, on the prompts and documents of the tables.

Completion accuracy is comparable with that of runs: all models rank words, and the same words are right. Perplexity is
not comparable, and its `note` says so: the model has no unknown word, hence no unknown-penalised perplexity; sentence
marks are not scored; and the documents may be part of its training text.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kglm.evaluate.completion import TOP, Prediction, Row, score_prompts
from kglm.evaluate.perplexity import PerplexityReport, Scored, data_digest
from kglm.evaluate.prompts import Prompt
from kglm.kg.graph import KnowledgeGraph
from kglm.marginal.estimate import exact_estimate
from kglm.model.encoders.pretrained import NOTE, Pretrained
from kglm.model.table import Mode
from kglm.progress import progress
from kglm.text.document import END, START, Document

EMBEDDED = "smollm2"
"""Name of the pretrained model that can be installed as a Python package."""


def open_pretrained(name: str) -> Pretrained | None:
    """Open a pretrained model by path, or the installed one by the name `smollm2`; None if the name is of a run."""
    path = Path(name)
    if name == EMBEDDED and not path.exists():
        return Pretrained.open()
    if path.suffix == ".gguf" or ((path / "config.json").exists() and not (path / "run.json").exists()):
        return Pretrained.open(path)
    return None


def complete_pretrained(model: Pretrained, graph: KnowledgeGraph, prompts: Sequence[Prompt]) -> list[Row]:
    """Complete all prompts as plain text; the graph is used only to decide which words are right."""

    def predict(prompt: Prompt, mode: Mode) -> Prediction:
        del mode
        words = model.next_words(prompt.words, TOP)
        return Prediction(words, [None] * len(words))

    return score_prompts(model.name, predict, graph, prompts)


@dataclass(frozen=True)
class OpenReport(PerplexityReport):
    """Results of a model with an open vocabulary: it has no unknown words, so UPP is None."""

    def to_json(self, *, seed: int = 0) -> dict[str, Any]:
        result = super().to_json(seed=seed)
        penalised = {key: None for key in result if key.startswith("upp")}
        return {**result, **penalised}


def evaluate_pretrained(model: Pretrained, documents: Sequence[Document]) -> OpenReport:
    """Word-level perplexity of documents, exp(−log p(text) / words), without sentence marks."""
    scored = []
    with progress(f"scoring with {model.name}", sum(len(each.tokens) for each in documents), "tokens") as advance:
        for document in documents:
            scored.append(score_document(model, document))
            advance(len(document.tokens))
    about = {"data": data_digest(documents), "window": model.window, "note": NOTE}
    return OpenReport(model.name, "exact", 1, scored, about)


def score_document(model: Pretrained, document: Document) -> Scored:
    """log p of the words of one document, without its sentence marks."""
    started = time.perf_counter()
    places = [place for place, word in enumerate(document.tokens) if place and word not in (START, END)]
    log_p_W = model.word_log_probs(document.tokens)[places]
    inside = {place for mention in document.mentions for place in range(mention.start, mention.end)}
    estimate = exact_estimate(document.title, log_p_W, log_p_W, unknown=0, started=started)
    mention_W = np.array([place in inside for place in places], np.bool_)
    return Scored(estimate, mention_W if document.annotated else None)
