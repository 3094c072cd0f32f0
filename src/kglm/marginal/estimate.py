"""log p(x) of a document without its annotation: one interface to four methods.

prepared = PreparedText(run, run.model, document, candidates)
estimate = log_marginal(prepared, MarginalConfig("particle", samples=100, seed=0))
estimate.log_p, estimate.upp_log_p          # nats; upp divides the probability of an unknown word by the unknown types

importance   unbiased estimate of p(x) by samples of a proposal (the paper); log p̂ is below log p(x) on average
particle     unbiased estimate of p(x) by a particle filter; log p̂ is below log p(x) on average, mostly by less
beam         a lower bound of p(x), always
exact        p(x) by enumeration, for small graphs and short texts
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

import numpy as np

from kglm.errors import ConfigError
from kglm.marginal.beam import BeamSearch, exact
from kglm.marginal.importance import proposal_latent, samplers
from kglm.marginal.particle import ParticleConfig, ParticleFilter
from kglm.marginal.prepared_text import PreparedText
from kglm.marginal.tracked import track
from kglm.model.arrays import Floats
from kglm.model.entity_nlm import EntityNlm, EntityNlmProposal
from kglm.model.proposal import Proposal
from kglm.model.text import Text

Method = Literal["importance", "particle", "beam", "exact"]
ResultT = TypeVar("ResultT", covariant=True)


@dataclass(frozen=True)
class MarginalConfig:
    """Settings of the estimate of p(x)."""

    method: Method = "particle"
    """importance, particle, beam or exact."""
    samples: int = 100
    """Samples, particles, or the width of the beam."""
    seed: int = 0
    """Random seed; it is combined with a hash of the text, so documents get different random numbers."""
    temperature: float = 1.0
    """Temperature of the proposal (importance)."""
    peek: bool = True
    """True if the proposal sees the word it labels (importance)."""
    block: int = 256
    """Samples drawn together (importance): bounds the memory."""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ConfigError(f"{self.samples} samples", remedy="give at least 1")
        if self.block < 1:
            raise ConfigError(f"blocks of {self.block} samples", remedy="give at least 1")
        if not 0 < self.temperature < float("inf"):
            raise ConfigError(f"temperature {self.temperature}", remedy="give a number above 0")
        if self.seed < 0:
            raise ConfigError(f"the seed {self.seed}", remedy="give 0 or more")


@dataclass(frozen=True)
class Estimate:
    """Estimate of p(x) of one document, in nats."""

    title: str
    method: Method
    samples: int
    log_p: float
    upp_log_p: float
    targets: int
    unknown: int
    """Targets outside the vocabulary."""
    weights: Floats
    """Log weights of the samples or particles; one number for beam and exact."""
    ess: float
    """Effective sample size; for the particle filter, the minimum over steps."""
    k_hat: float
    """Shape k̂ of the tail of the weights: below 0.7 the estimate is reliable; NaN for methods other than importance."""
    seconds: float
    increments_T: Floats = field(repr=False)
    """log p̂(x_t | x_<t), which sum to `log_p`."""
    upp_increments_T: Floats = field(repr=False)


def log_marginal(prepared: PreparedText, config: MarginalConfig, *, proposal: Proposal | None = None) -> Estimate:
    """Estimate p(x) of a prepared text."""
    started = time.perf_counter()
    penalty, seed = math.log(prepared.unknown_types), _seed(prepared.text, config)
    result = _METHODS[config.method](prepared, config, proposal, penalty, seed)
    return _estimate(prepared.text, config, result, int(prepared.words.unknown_T.sum()), started)


def log_marginal_tracked(
    text: Text, model: EntityNlm, proposal: EntityNlmProposal, config: MarginalConfig, unknown_types: int
) -> Estimate:
    """Estimate p(x) of a text under EntityNLM, by method importance or particle."""
    started = time.perf_counter()
    assert config.method == "importance" or config.method == "particle"
    found = track(text, model, proposal, config.samples, method=config.method, seed=_seed(text, config))
    unknown_T = text.words_N[1:] == model.words.unknown
    penalised_T = found.totals_T - math.log(max(unknown_types, 1)) * np.cumsum(unknown_T)
    min_ess = float(found.ess_T.min(initial=config.samples))
    ess = effective_size(found.log_w_S) if config.method == "importance" else min_ess
    return _estimate(text, config, (found.totals_T, penalised_T, found.log_w_S, ess), int(unknown_T.sum()), started)


def _seed(text: Text, config: MarginalConfig) -> int:
    """Seed that depends on the text, so that documents get different random numbers."""
    return zlib.crc32(" ".join(text.surface).encode("utf-8", "surrogatepass")) ^ config.seed


def _estimate(text: Text, config: MarginalConfig, result: Result, unknown: int, started: float) -> Estimate:
    totals_T, upp_T, weights, ess = result
    return Estimate(
        text.title,
        config.method,
        config.samples,
        float(totals_T[-1]) if len(totals_T) else 0.0,
        float(upp_T[-1]) if len(upp_T) else 0.0,
        len(text),
        unknown,
        weights,
        ess,
        pareto_k(weights) if config.method == "importance" else math.nan,
        time.perf_counter() - started,
        np.diff(totals_T, prepend=0.0),
        np.diff(upp_T, prepend=0.0),
    )


def exact_estimate(title: str, log_p_T: Floats, upp_T: Floats, *, unknown: int, started: float) -> Estimate:
    """Wrap exact log-probabilities of the targets as an `Estimate`."""
    total = float(log_p_T.sum())
    seconds = time.perf_counter() - started
    return Estimate(
        title,
        "exact",
        1,
        total,
        float(upp_T.sum()),
        len(log_p_T),
        unknown,
        np.array([total]),
        math.nan,
        math.nan,
        seconds,
        log_p_T,
        upp_T,
    )


Result = tuple[Floats, Floats, Floats, float]
"""log p̂(x_≤t), the same with unknown words penalised, the log weights, and the effective sample size."""


def _importance(
    prepared: PreparedText, config: MarginalConfig, proposal: Proposal | None, penalty: float, seed: int
) -> Result:
    if proposal is None:
        raise ConfigError("importance sampling needs a proposal: none is given", remedy="give --proposal RUN")
    latent = proposal_latent(prepared, proposal, temperature=config.temperature, peek=config.peek)
    sampling = samplers(prepared, latent, config.samples, block=config.block, seed=seed, penalty=penalty)
    totals_T, upp_T = np.empty(len(prepared)), np.empty(len(prepared))
    log_w_S, upp_S = np.zeros(config.samples), np.zeros(config.samples)
    start = 0
    for stop in prepared.hidden.ends():
        drawn = [sampler.read(stop) for sampler in sampling]
        log_w_TS = np.concatenate([each.log_p_TS - each.log_q_TS for each in drawn], 1)
        upp_TS = log_w_TS - np.concatenate([each.unknown_penalty_TS for each in drawn], 1)
        log_w_TS, upp_TS = log_w_S + np.cumsum(log_w_TS, 0), upp_S + np.cumsum(upp_TS, 0)
        totals_T[start:stop] = np.logaddexp.reduce(log_w_TS, 1)
        upp_T[start:stop] = np.logaddexp.reduce(upp_TS, 1)
        log_w_S, upp_S, start = log_w_TS[-1], upp_TS[-1], stop
    log_count = math.log(config.samples)
    return totals_T - log_count, upp_T - log_count, log_w_S, effective_size(log_w_S)


def _particle(
    prepared: PreparedText, config: MarginalConfig, proposal: Proposal | None, penalty: float, seed: int
) -> Result:
    del proposal
    filtering = ParticleConfig(config.samples)
    penalties = _penalties(prepared, penalty)
    plain, *penalised = _read_together(
        prepared, [ParticleFilter(prepared, filtering, seed, penalty=each) for each in penalties]
    )
    min_ess = float(plain.ess_T.min()) if len(prepared) else float(config.samples)
    return plain.totals_T, (penalised or [plain])[0].totals_T, plain.log_w_S, min_ess


def _beam(
    prepared: PreparedText, config: MarginalConfig, proposal: Proposal | None, penalty: float, seed: int
) -> Result:
    del proposal, seed
    penalties = _penalties(prepared, penalty)
    totals_T, *penalised = _read_together(
        prepared, [BeamSearch(prepared, config.samples, penalty=each) for each in penalties]
    )
    return totals_T, (penalised or [totals_T])[0], totals_T[-1:], math.nan


class _Reader(Protocol[ResultT]):
    """An estimator that reads a text forwards."""

    def read(self, stop: int) -> None: ...
    def result(self) -> ResultT: ...


def _read_together(prepared: PreparedText, readers: Sequence[_Reader[ResultT]]) -> list[ResultT]:
    """Let several estimators read a text window by window, so that each window is computed once."""
    for stop in prepared.hidden.ends():
        for reader in readers:
            reader.read(stop)
    return [reader.result() for reader in readers]


def _exact(
    prepared: PreparedText, config: MarginalConfig, proposal: Proposal | None, penalty: float, seed: int
) -> Result:
    del config, proposal, seed
    totals_T = exact(prepared)
    return totals_T, exact(prepared, penalty=penalty), totals_T[-1:], math.nan


def _penalties(prepared: PreparedText, penalty: float) -> list[float]:
    """No penalty, and the penalty if it changes the result: it is not zero, and the text has unknown words."""
    return [0.0, penalty] if penalty > 0 and bool(prepared.words.unknown_T.any()) else [0.0]


_METHODS = {"importance": _importance, "particle": _particle, "beam": _beam, "exact": _exact}


def effective_size(log_w_S: Floats) -> float:
    """Effective sample size (Σ w)² / Σ w²."""
    return float(np.exp(2 * np.logaddexp.reduce(log_w_S) - np.logaddexp.reduce(2 * log_w_S)))


def pareto_k(log_w_S: Floats) -> float:
    """k̂: the shape of a generalised Pareto distribution fitted to the largest weights (Vehtari et al., 2024).

    The fit follows Zhang and Stephens (2009): the posterior mean of one parameter over a grid, with the other profiled
    out. NaN with fewer than 25 samples or equal weights; infinite if too few weights exceed the rest to fit a tail.
    """
    count = len(log_w_S)
    if count < 25 or log_w_S.max() - log_w_S.min() < 1e-12:
        return math.nan
    tail = min(math.ceil(3 * math.sqrt(count)), count // 5)
    quarter = int(tail / 4 + 0.5) - 1
    ordered = np.sort(np.exp(log_w_S - log_w_S.max()))
    x = ordered[-tail:] - ordered[-tail - 1]
    if not x[quarter] > 0:  # too few weights exceed the rest: they dominate the sum
        return math.inf
    grid = 30 + int(math.sqrt(tail))
    place = np.arange(1, grid + 1) - 0.5
    theta = 1 / x[-1] + (1 - np.sqrt(grid / place)) / (3 * x[quarter])
    k_grid = np.log1p(-theta[:, None] * x).mean(1)
    likelihood = tail * (np.log(-theta / k_grid) - k_grid - 1)
    weight = 1 / np.exp(likelihood - likelihood[:, None]).sum(1)
    best = float((theta * weight).sum())
    k = float(np.log1p(-best * x).mean())
    return (tail * k + 10 * 0.5) / (tail + 10)  # weak prior at 0.5, which matters for short tails
