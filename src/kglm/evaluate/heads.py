"""Perplexity of documents under heads on a pretrained language model, beside the base alone on the same words.

Given the links, which are a function of the text, p(text) is computed exactly (see `kglm.heads.scoring`). The text is
read as a user's text: the annotation of a document only says which words are inside mentions.

    share = PPL / PPL of the base = exp(−Σ (log p − log p_B) / words)
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from kglm.errors import ConfigError
from kglm.evaluate.components import NAMES, components
from kglm.evaluate.perplexity import data_digest, interval, perplexity
from kglm.heads.all_names import AllNames
from kglm.heads.features import Features, FeatureStore, StoredFeatures, compute
from kglm.heads.lattice import score_text
from kglm.heads.links import links_of, text_linker
from kglm.heads.local import annotated_links
from kglm.heads.passage import passage, text_passage
from kglm.heads.prepared import prepare
from kglm.heads.run import HeadsRun
from kglm.heads.scoring import PassageScores
from kglm.kg.controls import shuffled, without
from kglm.kg.graph import KnowledgeGraph
from kglm.model.arrays import Bools, Floats
from kglm.parallel import ordered_map
from kglm.pretrained.base import STRIDE, WINDOW
from kglm.progress import progress
from kglm.runs.run import graph_path
from kglm.text.document import END, START, Document

Control = Literal["shuffled", "absent"]
CONTROLS: dict[Control, str] = {
    "shuffled": "the tails of the graph's facts are permuted within each relation",
    "absent": "the graph lacks all entities that the documents' annotations mention",
}
NOTE = (
    "open vocabulary: to be compared with its base on the same words, not with models that have unknown words, which "
    "also score the marks of sentences; the base's training text may include these articles"
)


@dataclass(frozen=True)
class HeadsTask:
    """What each process needs to score documents."""

    run: Path
    kg: Path
    annotated: bool = False
    """Link as the documents are annotated, instead of what the text so far tells."""
    control: Control | None = None
    absent: tuple[int, ...] = ()
    """Entities that control `absent` removes."""
    seed: int = 0
    """Of the permutation."""


@dataclass(frozen=True)
class ScoredText:
    """log p of each word of a document in nats, by the model and by the base alone."""

    title: str
    log_p_W: Floats
    base_W: Floats
    mention_W: Bools | None
    """True for words inside of annotated mentions; None without annotation."""
    part_WC: Floats
    """Components of log p − log p of the base."""
    links: int
    seconds: float


class HeadsScorer:
    """Scores documents with one run of heads on one graph."""

    def __init__(self, task: HeadsTask) -> None:
        self.task = task
        self.run = HeadsRun.open(task.run)
        self.graph = KnowledgeGraph.open(task.kg)
        self.tables = self.run.tables(self.graph)
        self.linker = text_linker(self.graph)
        if task.control == "shuffled":  # the text is linked as with the true graph
            self.tables = self.tables.on(shuffled(self.graph, task.seed))
        elif task.control == "absent":
            fewer = without(self.graph, task.absent)
            self.tables = replace(self.tables.on(fewer), all_names=AllNames.of(fewer, self.run.base.subwords))
            self.linker = text_linker(fewer, self.linker.names.without(task.absent))

    def score(self, document: Document, features: Features | None = None) -> ScoredText:
        """log p of one document; `features` are those of its text, if they are known."""
        base, tables, heads = self.run.base, self.tables, self.run.heads
        marked = passage(document, base.subwords, self.graph)
        text = text_passage(marked.text, base.subwords)
        features = compute(base, text.ids) if features is None else features
        started = time.perf_counter()
        links = annotated_links(marked, self.graph) if self.task.annotated else links_of(text, self.linker)
        scores = PassageScores.of(heads, prepare(text, features, tables, links, heads.config.max_tails))
        scored = score_text(scores)
        part_TC = components(scores, scored)
        seconds = time.perf_counter() - started
        words = np.array([token not in (START, END) for token in document.tokens], np.bool_)
        count = len(document.tokens)
        inside = np.zeros(count, np.bool_)
        for mention in document.mentions:
            inside[mention.start : mention.end] = True
        column_TX = np.column_stack([scored.log_p_T, scored.base_T, part_TC])
        column_WX = np.zeros((count, column_TX.shape[1]))
        np.add.at(column_WX, marked.word_T, column_TX)
        column_WX = column_WX[words]
        mention_W = inside[words] if document.annotated else None
        return ScoredText(
            document.title, column_WX[:, 0], column_WX[:, 1], mention_W, column_WX[:, 2:], len(links), seconds
        )


@lru_cache(maxsize=1)
def load_scorer(task: HeadsTask) -> HeadsScorer:
    """Load the run and the graph; each process keeps the latest."""
    return HeadsScorer(task)


def _score(item: tuple[HeadsTask, Document, Features | None]) -> ScoredText:
    torch.set_num_threads(1)
    task, document, features = item
    return load_scorer(task).score(document, features)


def graph_of_run(home: Path) -> Path:
    """The graph that a run was trained with."""
    if not (home / "kg.json").is_file():
        raise ConfigError("does not say which graph to use", place=home, remedy="give --kg KG")
    return graph_path(home)


@dataclass(frozen=True)
class HeadsReport:
    """The results for a set of documents; programs rely on the keys of `to_json`."""

    model: str
    scored: Sequence[ScoredText]
    about: dict[str, Any]
    """Which run, graph and data were evaluated."""

    def to_json(self, *, seed: int = 0) -> dict[str, Any]:
        words = np.array([len(each.log_p_W) for each in self.scored])
        log_p, base = (np.array([getattr(e, name).sum() for e in self.scored]) for name in ("log_p_W", "base_W"))
        total, seconds = max(int(words.sum()), 1), sum(each.seconds for each in self.scored)
        part_C = np.sum([np.zeros(len(NAMES)), *(each.part_WC.sum(0) for each in self.scored)], 0)
        nothing: dict[str, None] = {"upp": None, "upp_interval": None, "upp_mention": None, "upp_other": None}
        return {
            "model": self.model,
            "method": "exact",
            "samples": 1,
            "ppl": perplexity(log_p, words),
            "ppl_interval": interval(log_p, words, seed=seed),
            **nothing,
            "base_ppl": perplexity(base, words),
            "base_ppl_interval": interval(base, words, seed=seed),
            "share": perplexity(log_p - base, words),
            "share_interval": interval(log_p - base, words, seed=seed),
            **self._by_kind(total),
            "components": dict(zip(NAMES, (part_C / total).tolist(), strict=True)),
            "documents": len(self.scored),
            "tokens": int(words.sum()),
            "unknown_tokens": 0,
            "links": sum(each.links for each in self.scored),
            "tokens_per_second": float(words.sum() / seconds) if seconds else None,
            **self.about,
        }

    def _by_kind(self, total: int) -> dict[str, Any]:
        """The same for words inside and outside of mentions; `nats` are sums over them, per word of all text."""
        result: dict[str, Any] = {}
        for kind, inside in (("mention", True), ("other", False)):
            chosen = [(each, each.mention_W == inside) for each in self.scored if each.mention_W is not None]
            log_p_W, base_W = (
                np.concatenate([np.zeros(0), *(getattr(each, name)[where] for each, where in chosen)])
                for name in ("log_p_W", "base_W")
            )
            part_C = np.sum([np.zeros(len(NAMES)), *(each.part_WC[where].sum(0) for each, where in chosen)], 0)
            some = len(log_p_W) > 0
            result |= {
                f"ppl_{kind}": float(np.exp(-log_p_W.mean())) if some else None,
                f"base_ppl_{kind}": float(np.exp(-base_W.mean())) if some else None,
                f"share_{kind}": float(np.exp((base_W - log_p_W).mean())) if some else None,
                f"nats_{kind}": float(-log_p_W.sum() / total) if some else None,
                f"base_nats_{kind}": float(-base_W.sum() / total) if some else None,
                f"components_{kind}": dict(zip(NAMES, (part_C / total).tolist(), strict=True)) if some else None,
            }
        return result


def evaluate_heads(
    task: HeadsTask, documents: Sequence[Document], *, features: Path | None = None, workers: int = 1
) -> HeadsReport:
    """Score documents, in several processes if `workers` is above 1. `features`: folder of the base's states."""
    scorer = load_scorer(task)
    stored: Sequence[Features | None] | StoredFeatures = [None] * len(documents)
    if features is not None:
        subwords = scorer.run.base.subwords
        stored = FeatureStore(features, scorer.run.base).of([passage(each, subwords).ids for each in documents])
    scored = []
    with progress("scoring", sum(len(document.tokens) for document in documents), "tokens") as advance:
        items = ((task, document, stored[n]) for n, document in enumerate(documents))
        for document, each in zip(documents, ordered_map(_score, items, workers=workers), strict=True):
            scored.append(each)
            advance(len(document.tokens))
    run, record = scorer.run, scorer.run.record
    about = {
        "run": run.home.resolve().name,
        "base": record.base,
        "kg": task.kg.name,
        "parameters": sum(parameter.numel() for parameter in run.heads.parameters()),
        "window": WINDOW,
        "stride": STRIDE,
        "linked_by": "annotation" if task.annotated else "text so far",
        "control": task.control,
        "data": data_digest(documents),
        "note": NOTE,
    }
    model = f"KGLM on {record.base}" + (f", {task.control} graph" if task.control else "")
    return HeadsReport(model, scored, about)


def heads_task(
    run: Path,
    documents: Sequence[Document],
    *,
    kg: Path | None = None,
    annotated: bool = False,
    control: str | None = None,
    seed: int = 0,
) -> HeadsTask:
    """The settings of an evaluation; without `kg` the graph is that of the run."""
    if control is not None and control not in CONTROLS:
        raise ConfigError(f"there is no control {control!r}", remedy=f"use one of {', '.join(CONTROLS)}")
    kg = graph_of_run(run) if kg is None else kg
    absent: tuple[int, ...] = ()
    if control == "absent":
        with KnowledgeGraph.open(kg) as graph:
            found = {graph.find(mention.id) for document in documents for mention in document.mentions}
        absent = tuple(sorted(node for node in found if node is not None))
    return HeadsTask(run, kg, annotated, control, absent, seed)
