"""Perplexity of documents, without their annotation, with error bars; unknown-penalised and by kind of word.

    PPL = exp(−Σ log p(x) / Σ targets)         UPP: the same with p(unknown) divided by |U| wherever it is paid

Every document is estimated for itself, so their order, how many are read at once and by how many processes changes
nothing. Intervals are bootstrapped over documents: they say how much the number would differ on other documents of the
kind, not how well p(x) of these is known (that is what the effective sample size and k̂ are about).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch

from kglm.errors import ConfigError, DataError
from kglm.evaluate.adaptive import NO_ADAPTATION, Adaptation, adaptive_log_probs
from kglm.files import digest_of
from kglm.linking.name_index import NameIndex
from kglm.marginal.candidates import prepare_text
from kglm.marginal.estimate import Estimate, MarginalConfig, known, log_marginal, log_marginal_tracked
from kglm.marginal.prepared_text import AllEntities, PreparedText, read
from kglm.model.arrays import Floats
from kglm.model.awd_lstm import AwdLstm
from kglm.model.entity_nlm import EntityNlm, EntityNlmProposal
from kglm.model.kglm import Kglm
from kglm.model.proposal import Proposal
from kglm.parallel import ordered_map
from kglm.progress import progress
from kglm.runs.run import Run
from kglm.text.document import Document
from kglm.train.chunks import ChunkBuilder, Piece
from kglm.train.encoding import DocumentEncoder

How = Literal["importance", "particle", "beam", "exact", "annotated"]
RESAMPLES = 1000
LENGTH = 500
"""Words that are scored in one go where nothing has to be estimated."""


@dataclass(frozen=True)
class Scored:
    """A document and what is known of its probability."""

    estimate: Estimate
    mention_T: np.ndarray[Any, np.dtype[np.bool_]] | None
    """Whether each target is a word of a mention, as the document is annotated; None if it is not."""
    unexplained: int = 0
    """Mentions of an annotation that no fact explains: what is scored as annotated pays nothing for their entities."""


class Perplexity:
    """Scores documents with one model, by one method."""

    def __init__(
        self,
        run: Run,
        how: How,
        config: MarginalConfig,
        proposal: Run | None = None,
        adaptation: Adaptation = NO_ADAPTATION,
    ) -> None:
        self.run = run
        self.how = how
        self.adaptation = adaptation
        self.config = config if how == "annotated" else replace(config, method=how)
        self._kind = kind = run.settings.kind
        if kind.likelihood == "none":
            raise ConfigError("a proposal gives no words a probability", place=run.home, remedy="evaluate a kglm run")
        if self.adaptation.rate and not kind.adapts:
            raise ConfigError(
                "only a plain language model learns as it reads", place=run.home, remedy="leave out --dynamic"
            )
        if self.adaptation.cache and (not kind.caches or how == "annotated"):
            raise ConfigError("no cache is there for this", place=run.home, remedy="leave out --cache")
        if how not in kind.methods:
            raise ConfigError(
                f"{how} is not there for {kind.title}", place=run.home, remedy=f"use {', '.join(kind.methods)}"
            )
        if how in kind.drawn:
            self._check(proposal)
        self._proposal = proposal.model if proposal is not None else None
        if kind.likelihood == "tracked" and (config.temperature != 1 or not config.peek):
            raise ConfigError(
                f"{kind.title}'s proposal is drawn from as it is",
                place=run.home,
                remedy="leave temperature and peek out",
            )
        searches = kind.likelihood == "latent" and how in ("particle", "beam")  # the others ask for no candidates
        self._names = NameIndex.for_graph(run.graph) if searches else None

    def _check(self, proposal: Run | None) -> None:
        wanted = self._kind.proposal
        if proposal is None:
            raise ConfigError(f"{self.how} draws from a proposal: none is given", remedy="give --proposal RUN")
        if proposal.settings.model != wanted:
            raise ConfigError("is not its proposal", place=proposal.home, remedy=f"train one with: kglm train {wanted}")
        for what, ours, theirs in (
            ("vocabulary", self.run.vocabulary.words, proposal.vocabulary.words),
            ("graph", self.run.graph.hash, proposal.graph.hash),
            ("way to type mentions", self.run.settings.data.mention_types, proposal.settings.data.mention_types),
            ("parent window", self.run.settings.data.parent_window, proposal.settings.data.parent_window),
            ("setting latent.facts", self.run.settings.latent.facts, proposal.settings.latent.facts),
        ):
            if ours != theirs:
                raise DataError(
                    f"has another {what} than {self.run.home}",
                    place=proposal.home,
                    remedy="train both on the same documents, graph and settings",
                )

    def score(self, document: Document) -> Scored:
        """What is known of p(x) of one document."""
        mentions = None
        if document.annotated:
            mentions = np.zeros(max(len(document.tokens) - 1, 0), np.bool_)
            for mention in document.mentions:
                mentions[max(mention.start - 1, 0) : mention.end - 1] = True
        if self.how != "annotated" or self._kind.likelihood == "words":
            started = time.perf_counter()
            estimate = self._ESTIMATES[self._kind.likelihood](self, document)
            return Scored(replace(estimate, seconds=time.perf_counter() - started), mentions)
        if mentions is None:
            raise DataError(
                "is not annotated", place=f"document {document.title!r}", remedy="use another --method, none needs it"
            )
        estimate, unexplained = self._joint(document)
        return Scored(estimate, mentions, unexplained)

    def _words(self, document: Document) -> Estimate:
        """The words of a plain language model, which may adapt to the document: exact."""
        started, model = time.perf_counter(), cast(AwdLstm, self.run.model)
        words_N = np.array(self.run.vocabulary.encode(document.tokens), np.int64)
        log_p_T, again_T = adaptive_log_probs(model, words_N, document.tokens, self.adaptation)
        unknown_T = words_N[1:] == model.words.unknown
        penalty = math.log(max(self.run.vocabulary.unknown_types, 1))
        both = (self.adaptation.cache.mixed(log_p_T, again_T, unknown_T, cost) for cost in (0.0, penalty))
        return known(document.title, *both, unknown=int(unknown_T.sum()), started=started)

    def _latent(self, document: Document) -> Estimate:
        """Σ over mentions and facts, by the method."""
        model, cache = cast(Kglm, self.run.model), self.adaptation.cache
        if self._names is None:
            prepared = PreparedText(self.run, model, document, AllEntities(len(self.run.graph)), cache)
        else:
            prepared = prepare_text(self.run, model, document, self._names, cache)
        return log_marginal(prepared, self.config, proposal=cast(Proposal | None, self._proposal))

    def _tracked(self, document: Document) -> Estimate:
        """Σ over tracked entities, by samples of the proposal."""
        model, proposal = cast(EntityNlm, self.run.model), cast(EntityNlmProposal, self._proposal)
        unknown_types = self.run.vocabulary.unknown_types
        return log_marginal_tracked(read(self.run, document), model, proposal, self.config, unknown_types)

    _ESTIMATES: ClassVar = {"words": _words, "latent": _latent, "tracked": _tracked}

    def _joint(self, document: Document) -> tuple[Estimate, int]:
        """Nothing is estimated: the annotated joint likelihood."""
        started = time.perf_counter()
        encoded, builder = DocumentEncoder.of(self.run).encode(document), ChunkBuilder.of(self.run)
        model, state, unexplained = self.run.model, None, 0
        log_p, unknown = [np.zeros(0)], [np.zeros(0, np.bool_)]
        with torch.no_grad():
            for start in range(0, len(encoded), LENGTH):
                piece = Piece(encoded, start, min(start + LENGTH, len(encoded)))
                scores = model.score(builder.build([piece], ahead=model.ahead), state)
                state = scores.state
                unexplained += int(scores.unexplained)
                log_p.append(scores.total_BT[0].double().numpy())
                unknown.append(scores.unknown_BT[0].numpy())
        log_p_T, unknown_T = np.concatenate(log_p), np.concatenate(unknown)
        upp_T = log_p_T - unknown_T * math.log(max(self.run.vocabulary.unknown_types, 1))
        unfamiliar = sum(word not in self.run.vocabulary for word in document.tokens[1:])
        return known(document.title, log_p_T, upp_T, unknown=unfamiliar, started=started), unexplained


@dataclass(frozen=True)
class Report:
    """The numbers of a set of documents; `to_json` has the names that programs rely on."""

    model: str
    method: str
    samples: int
    scored: Sequence[Scored]
    about: dict[str, Any] = field(default_factory=dict)
    """What the numbers are of."""

    def to_json(self, *, seed: int = 0) -> dict[str, Any]:
        estimates = [each.estimate for each in self.scored]
        targets = np.array([estimate.targets for estimate in estimates])
        log_p, upp = (np.array([getattr(e, name) for e in estimates]) for name in ("log_p", "upp_log_p"))
        ess = [estimate.ess for estimate in estimates if not math.isnan(estimate.ess)]
        k_hat = [estimate.k_hat for estimate in estimates if not math.isnan(estimate.k_hat)]
        seconds = sum(estimate.seconds for estimate in estimates)
        return {
            "model": self.model,
            "method": self.method,
            "samples": self.samples,
            "ppl": perplexity(log_p, targets),
            "upp": perplexity(upp, targets),
            "ppl_interval": interval(log_p, targets, seed=seed),
            "upp_interval": interval(upp, targets, seed=seed),
            **self._by_kind(),
            "documents": len(estimates),
            "tokens": int(targets.sum()),
            "unknown_tokens": sum(estimate.unknown for estimate in estimates),
            "unexplained_mentions": sum(each.unexplained for each in self.scored),
            "ess_median": float(np.median(ess)) if ess else None,
            "ess_quantiles": [float(q) for q in np.quantile(ess, [0, 0.25, 0.5, 0.75, 1])] if ess else None,
            "k_hat_max": min(max(k_hat), sys.float_info.max) if k_hat else None,
            "tokens_per_second": float(targets.sum() / seconds) if seconds else None,
            **self.about,
        }

    def _by_kind(self) -> dict[str, float | None]:
        """Perplexity of words inside mentions and outside, as the documents are annotated."""
        result: dict[str, float | None] = {}
        for measure, name in (("increments_T", "ppl"), ("upp_increments_T", "upp")):
            for kind, inside in (("mention", True), ("other", False)):
                annotated = [s for s in self.scored if s.mention_T is not None]
                values = [getattr(s.estimate, measure)[s.mention_T == inside] for s in annotated]
                every = np.concatenate([np.zeros(0), *values])
                result[f"{name}_{kind}"] = float(np.exp(-every.mean())) if len(every) else None
        return result


def perplexity(log_p: Floats, targets: np.ndarray[Any, Any]) -> float:
    total = int(targets.sum())
    return float(np.exp(-log_p.sum() / total)) if total else math.nan


def interval(log_p: Floats, targets: np.ndarray[Any, Any], *, seed: int, level: float = 0.95) -> list[float] | None:
    """A bootstrap interval of the perplexity over documents, whatever their order; None for a single one."""
    if len(log_p) < 2:
        return None
    order = np.lexsort((targets, log_p))
    log_p, targets = log_p[order], targets[order]
    chosen = np.random.default_rng(seed).integers(len(log_p), size=(RESAMPLES, len(log_p)))
    values = np.exp(-log_p[chosen].sum(1) / np.maximum(targets[chosen].sum(1), 1))
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return [float(low), float(high)]


def corpus_protocol(scored: Sequence[Scored]) -> float:
    """The published protocol, for comparison: one weight for a pass over the whole corpus.

    Sample s of every document is taken together, weights multiplied over documents and then averaged over samples. It
    estimates the same p(x) with far more variance, so it comes out higher.
    """
    log_w_S = np.sum([each.estimate.weights for each in scored], axis=0)
    targets = sum(each.estimate.targets for each in scored)
    return float(np.exp(-(np.logaddexp.reduce(log_w_S) - math.log(len(log_w_S))) / targets))


@dataclass(frozen=True)
class Task:
    """What to score with: enough for another process to set itself up."""

    run: Path
    how: How
    config: MarginalConfig
    proposal: Path | None = None
    kg: Path | None = None
    adaptation: Adaptation = NO_ADAPTATION


@lru_cache(maxsize=1)
def judge(task: Task) -> Perplexity:
    """The model and all it needs; a process keeps the one it works with."""
    run = Run.open(task.run, kg=task.kg)
    proposal = Run.open(task.proposal, kg=task.kg) if task.proposal is not None else None
    return Perplexity(run, task.how, task.config, proposal, task.adaptation)


def _score(item: tuple[Task, Document]) -> Scored:
    torch.set_num_threads(1)
    return judge(item[0]).score(item[1])


def evaluate(task: Task, documents: Sequence[Document], *, workers: int = 1) -> Report:
    """Score documents, on several cores if asked."""
    run = judge(task).run
    model: str = run.settings.model
    scored = []
    about = {
        "run": run.home.name,
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "vocabulary": digest_of(run.vocabulary.words),
        "unknown_types": run.vocabulary.unknown_types,
        "facts": run.settings.latent.facts if run.settings.kind.uses_vectors else None,
        "batching": run.settings.train.batching,
        "proposal": None if task.proposal is None else task.proposal.resolve().name,
        "temperature": task.config.temperature,
        "peek": task.config.peek,
        "adaptation": asdict(task.adaptation) if task.adaptation else None,
        "data": data_digest(documents),
    }
    with progress("scoring", sum(len(document.tokens) for document in documents), "tokens") as advance:
        items = ((task, document) for document in documents)
        for document, each in zip(documents, ordered_map(_score, items, workers=workers), strict=True):
            scored.append(each)
            advance(len(document.tokens))
    plain, model = model == "awd-lstm", model + task.adaptation.name
    if plain:  # nothing is latent: there is nothing to estimate
        return Report(model, "exact", 1, scored, about)
    samples = task.config.samples if task.how in ("particle", "importance", "beam") else 1
    return Report(model, task.how, samples, scored, about)


def data_digest(documents: Iterable[Document]) -> str:
    """Tells corpora apart, by their words; the order of documents does not matter."""
    return digest_of(sorted(digest_of(document.tokens) for document in documents))
