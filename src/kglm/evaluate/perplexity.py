"""Perplexity of documents without their annotation: with error bars, unknown-penalised, inside and outside mentions.

    PPL = exp(−Σ log p(x) / Σ targets)         UPP: the same with p(unknown word) divided by |U|, the unknown types

Documents are estimated independently, so their order and the number of processes do not change the result. Intervals
are bootstrapped over documents: they show the variation between documents. The error of the estimate of p(x) itself
shows in the effective sample size and k̂.
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
from kglm.marginal.estimate import Estimate, MarginalConfig, exact_estimate, log_marginal, log_marginal_tracked
from kglm.marginal.prepared_text import AllEntities, PreparedText, read
from kglm.model.arrays import Floats
from kglm.model.awd_lstm import AwdLstm
from kglm.model.entity_nlm import EntityNlm, EntityNlmProposal
from kglm.model.kglm import Kglm
from kglm.model.proposal import Proposal
from kglm.model.table import MODELS
from kglm.parallel import ordered_map
from kglm.progress import progress
from kglm.runs.run import Run
from kglm.text.document import Document
from kglm.train.chunks import ChunkBuilder, Piece
from kglm.train.encoding import DocumentEncoder

Method = Literal["importance", "particle", "beam", "exact", "annotated"]
RESAMPLES = 1000
"""Bootstrap samples of an interval."""
LENGTH = 500
"""Words scored in one step by method annotated."""


@dataclass(frozen=True)
class Scored:
    """The estimate of a document's probability."""

    estimate: Estimate
    mention_T: np.ndarray[Any, np.dtype[np.bool_]] | None
    """True where the target is inside an annotated mention; None without an annotation."""
    unexplained: int = 0
    """Annotated mentions that no fact explains; the annotated likelihood leaves out the probability of their entity."""


class Perplexity:
    """Scores documents with one model and one method."""

    def __init__(
        self,
        run: Run,
        method: Method,
        config: MarginalConfig,
        proposal: Run | None = None,
        adaptation: Adaptation = NO_ADAPTATION,
    ) -> None:
        self.run = run
        self.method = method
        self.adaptation = adaptation
        self.config = config if method == "annotated" else replace(config, method=method)
        self._kind = kind = run.settings.kind
        if kind.likelihood == "none":
            raise ConfigError(
                "is a proposal, which gives words no probability", place=run.home, remedy="evaluate a kglm run"
            )
        if self.adaptation.rate and not kind.adapts:
            raise ConfigError(
                "dynamic evaluation works with awd-lstm only", place=run.home, remedy="leave out --dynamic"
            )
        if self.adaptation.cache and (not kind.caches or method == "annotated"):
            raise ConfigError(
                f"{kind.title} has no cache with method {method}", place=run.home, remedy="leave out --cache"
            )
        if method not in kind.methods:
            raise ConfigError(
                f"{kind.title} has no method {method}", place=run.home, remedy=f"use {', '.join(kind.methods)}"
            )
        if method in kind.drawn:
            self._check_proposal(proposal)
        self._proposal = proposal.model if proposal is not None else None
        if kind.likelihood == "tracked" and (config.temperature != 1 or not config.peek):
            raise ConfigError(
                f"{kind.title} has no settings temperature and peek",
                place=run.home,
                remedy="leave out --temperature and --no-peek",
            )
        searches = kind.likelihood == "latent" and method in ("particle", "beam")  # only these use candidates
        self._names = NameIndex.for_graph(run.graph) if searches else None

    def _check_proposal(self, proposal: Run | None) -> None:
        """Raise an error unless the proposal fits the model."""
        expected = self._kind.proposal
        if proposal is None:
            raise ConfigError(f"method {self.method} needs a proposal: none is given", remedy="give --proposal RUN")
        if proposal.settings.model != expected:
            raise ConfigError(
                f"is a run of {proposal.settings.model}, not a proposal for {self._kind.title}",
                place=proposal.home,
                remedy=f"train one with: kglm train {expected}",
            )
        for what, own, other in (
            ("vocabulary", self.run.vocabulary.words, proposal.vocabulary.words),
            ("graph", self.run.graph.hash, proposal.graph.hash),
            ("setting data.mention_types", self.run.settings.data.mention_types, proposal.settings.data.mention_types),
            ("setting data.parent_window", self.run.settings.data.parent_window, proposal.settings.data.parent_window),
            ("setting latent.facts", self.run.settings.latent.facts, proposal.settings.latent.facts),
        ):
            if own != other:
                raise DataError(
                    f"has another {what} than {self.run.home}",
                    place=proposal.home,
                    remedy="train both on the same documents, graph and settings",
                )

    def score(self, document: Document) -> Scored:
        """Estimate p(x) of one document."""
        mentions = None
        if document.annotated:
            mentions = np.zeros(max(len(document.tokens) - 1, 0), np.bool_)
            for mention in document.mentions:
                mentions[max(mention.start - 1, 0) : mention.end - 1] = True
        if self.method != "annotated" or self._kind.likelihood == "words":
            started = time.perf_counter()
            estimate = self._ESTIMATES[self._kind.likelihood](self, document)
            return Scored(replace(estimate, seconds=time.perf_counter() - started), mentions)
        if mentions is None:
            raise DataError(
                "is not annotated",
                place=f"document {document.title!r}",
                remedy="use another --method: only this one needs annotations",
            )
        estimate, unexplained = self._annotated(document)
        return Scored(estimate, mentions, unexplained)

    def _words(self, document: Document) -> Estimate:
        """Exact p(x) of a plain language model, which may adapt to the document."""
        started, model = time.perf_counter(), cast(AwdLstm, self.run.model)
        words_N = np.array(self.run.vocabulary.encode(document.tokens), np.int64)
        log_p_T, cache_p_T = adaptive_log_probs(model, words_N, document.tokens, self.adaptation)
        unknown_T = words_N[1:] == model.words.unknown
        penalty = math.log(max(self.run.vocabulary.unknown_types, 1))
        both = (self.adaptation.cache.mixed(log_p_T, cache_p_T, unknown_T, cost) for cost in (0.0, penalty))
        return exact_estimate(document.title, *both, unknown=int(unknown_T.sum()), started=started)

    def _latent(self, document: Document) -> Estimate:
        """Estimate of p(x), the sum over mentions and facts."""
        model, cache = cast(Kglm, self.run.model), self.adaptation.cache
        if self._names is None:
            prepared = PreparedText(self.run, model, document, AllEntities(len(self.run.graph)), cache)
        else:
            prepared = prepare_text(self.run, model, document, self._names, cache)
        return log_marginal(prepared, self.config, proposal=cast(Proposal | None, self._proposal))

    def _tracked(self, document: Document) -> Estimate:
        """Estimate of p(x), the sum over tracked entities, by samples of the proposal."""
        model, proposal = cast(EntityNlm, self.run.model), cast(EntityNlmProposal, self._proposal)
        unknown_types = self.run.vocabulary.unknown_types
        return log_marginal_tracked(read(self.run, document), model, proposal, self.config, unknown_types)

    _ESTIMATES: ClassVar = {"words": _words, "latent": _latent, "tracked": _tracked}

    def _annotated(self, document: Document) -> tuple[Estimate, int]:
        """The joint likelihood of words and annotation, and the number of mentions that no fact explains."""
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
        unknown_words = sum(word not in self.run.vocabulary for word in document.tokens[1:])
        return exact_estimate(document.title, log_p_T, upp_T, unknown=unknown_words, started=started), unexplained


@dataclass(frozen=True)
class PerplexityReport:
    """The results for a set of documents; programs rely on the keys of `to_json`."""

    model: str
    method: str
    samples: int
    scored: Sequence[Scored]
    about: dict[str, Any] = field(default_factory=dict)
    """Which run, settings and data were evaluated."""

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
        """Perplexity of words inside and outside annotated mentions."""
        result: dict[str, float | None] = {}
        for measure, name in (("increments_T", "ppl"), ("upp_increments_T", "upp")):
            for kind, inside in (("mention", True), ("other", False)):
                annotated = [s for s in self.scored if s.mention_T is not None]
                values = [getattr(s.estimate, measure)[s.mention_T == inside] for s in annotated]
                log_p_T = np.concatenate([np.zeros(0), *values])
                result[f"{name}_{kind}"] = float(np.exp(-log_p_T.mean())) if len(log_p_T) else None
        return result


def perplexity(log_p: Floats, targets: np.ndarray[Any, Any]) -> float:
    total = int(targets.sum())
    return float(np.exp(-log_p.sum() / total)) if total else math.nan


def interval(log_p: Floats, targets: np.ndarray[Any, Any], *, seed: int, level: float = 0.95) -> list[float] | None:
    """Bootstrap interval of the perplexity over documents, independent of their order; None for one document."""
    if len(log_p) < 2:
        return None
    order = np.lexsort((targets, log_p))
    log_p, targets = log_p[order], targets[order]
    chosen = np.random.default_rng(seed).integers(len(log_p), size=(RESAMPLES, len(log_p)))
    values = np.exp(-log_p[chosen].sum(1) / np.maximum(targets[chosen].sum(1), 1))
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return [float(low), float(high)]


def corpus_protocol(scored: Sequence[Scored]) -> float:
    """Perplexity by the published protocol, for comparison: one importance weight per sample of the whole corpus.

    The weight of sample s is the product of its weights over documents; p(x) is the mean over samples. The variance is
    far greater than with one estimate per document, so the perplexity comes out higher.
    """
    log_w_S = np.sum([each.estimate.weights for each in scored], axis=0)
    targets = sum(each.estimate.targets for each in scored)
    return float(np.exp(-(np.logaddexp.reduce(log_w_S) - math.log(len(log_w_S))) / targets))


@dataclass(frozen=True)
class Task:
    """Paths and settings from which a process makes its `Perplexity`."""

    run: Path
    method: Method
    config: MarginalConfig
    proposal: Path | None = None
    kg: Path | None = None
    adaptation: Adaptation = NO_ADAPTATION


@lru_cache(maxsize=1)
def load_scorer(task: Task) -> Perplexity:
    """Load the model and its proposal; each process caches the latest."""
    run = Run.open(task.run, kg=task.kg)
    proposal = Run.open(task.proposal, kg=task.kg) if task.proposal is not None else None
    return Perplexity(run, task.method, task.config, proposal, task.adaptation)


def _score(item: tuple[Task, Document]) -> Scored:
    torch.set_num_threads(1)
    return load_scorer(item[0]).score(item[1])


def evaluate(task: Task, documents: Sequence[Document], *, workers: int = 1) -> PerplexityReport:
    """Score documents, in several processes if `workers` is above 1."""
    run = load_scorer(task).run
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
    exact, model = MODELS[model].likelihood == "words", model + task.adaptation.name
    if exact:  # no latent variables: p(x) is exact with any method
        return PerplexityReport(model, "exact", 1, scored, about)
    samples = task.config.samples if task.method in ("particle", "importance", "beam") else 1
    return PerplexityReport(model, task.method, samples, scored, about)


def data_digest(documents: Iterable[Document]) -> str:
    """Hash of the documents' words, independent of the order of documents."""
    return digest_of(sorted(digest_of(document.tokens) for document in documents))
