"""A pretrained language model in the tables: the same prompts and documents as the runs, by its own subwords.

Completion can be compared: words are ranked, and the same words are right. Perplexity can not, and says so in its
`note`: the model has no unknown word and so no unknown-penalised perplexity, sentence marks are not scored, and the
model may have read the documents when it was trained.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kglm.evaluate.completion import TOP, Row, Said, ask
from kglm.evaluate.perplexity import Report, Scored, data_digest
from kglm.evaluate.prompts import Prompt
from kglm.kg.graph import KnowledgeGraph
from kglm.marginal.estimate import known
from kglm.model.encoders.pretrained import NOTE, Pretrained
from kglm.model.table import Mode
from kglm.progress import progress
from kglm.text.document import END, START, Document

EMBEDDED = "smollm2"
"""What the pretrained model that comes inside a package is called."""


def open_pretrained(name: str) -> Pretrained | None:
    """The pretrained model of this name, if it is one: `smollm2` is the embedded one. None for a run."""
    path = Path(name)
    if name == EMBEDDED and not path.exists():
        return Pretrained.open()
    if path.suffix == ".gguf" or ((path / "config.json").exists() and not (path / "run.json").exists()):
        return Pretrained.open(path)
    return None


def complete_pretrained(model: Pretrained, graph: KnowledgeGraph, prompts: Sequence[Prompt]) -> list[Row]:
    """All prompts, as plain text; the graph only says which words are right."""

    def speak(prompt: Prompt, mode: Mode) -> Said:
        del mode
        words = model.next_words(prompt.words, TOP)
        return Said(words, [None] * len(words))

    return ask(model.name, speak, graph, prompts)


@dataclass(frozen=True)
class OpenReport(Report):
    """The numbers of a model without a vocabulary: nothing is unknown, so nothing is penalised."""

    def to_json(self, *, seed: int = 0) -> dict[str, Any]:
        result = super().to_json(seed=seed)
        penalised = {key: None for key in result if key.startswith("upp")}
        return {**result, **penalised}


def evaluate_pretrained(model: Pretrained, documents: Sequence[Document]) -> OpenReport:
    """Word-level perplexity of documents: −log p(text) by the number of words, sentence marks aside."""
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
    estimate = known(document.title, log_p_W, log_p_W, unknown=0, started=started)
    mention_W = np.array([place in inside for place in places], np.bool_)
    return Scored(estimate, mention_W if document.annotated else None)
