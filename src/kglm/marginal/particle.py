"""A particle filter over annotations: unbiased like importance sampling, without a second model.

A particle is a mention history. At every step its possible next steps (none, continue, start of a candidate) are scored
exactly by p(z_t) p(x_t | z_t), and one is drawn. One further choice stands for the start of any other entity, which is
then drawn from the model's own distribution of starts. So every annotation can be drawn, and with
w ← w · p(z_t, x_t) / q(z_t) the mean of the weights is an unbiased estimate of p(x).

Drawing and resampling use look-ahead scores, the gain from the remaining words of a name: the first word of a mention
costs probability that the later words earn back. The weights correct for the look-ahead in q and in resampling.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kglm.errors import ConfigError
from kglm.marginal.draws import draw_columns, draw_related, systematic
from kglm.marginal.prepared_text import PreparedText
from kglm.model.arrays import Floats, Ints
from kglm.model.histories import FIRST, Histories
from kglm.model.types import Type


@dataclass(frozen=True)
class ParticleConfig:
    """Settings of the particle filter."""

    particles: int = 100
    """Number of particles."""
    other: float = 0.01
    """Guess of p(word | start of an entity that is no candidate) / p(plain word), for words of the vocabulary; for
    unknown words, which are frequent in names, the ratio is 1."""
    resample: float = 0.5
    """Resample when the effective sample size falls below this share of the particles."""

    def __post_init__(self) -> None:
        if self.particles < 1:
            raise ConfigError(f"{self.particles} particles", remedy="give at least 1")
        if not 0 < self.other < float("inf"):
            raise ConfigError(f"ratio {self.other} for other entities", remedy="give a number above 0")


@dataclass(frozen=True)
class Filtered:
    """Result of the particle filter."""

    log_w_S: Floats
    """Log weights of the particles; p̂(x) is the mean of the weights."""
    totals_T: Floats
    """log p̂(x_≤t) after each target."""
    ess_T: Floats
    """Effective sample size after each target, before resampling."""
    histories: Histories
    """Mention histories after the last target."""
    steps_T: list[tuple[Ints, Ints]]
    """Step of each particle at each target: its kind (none, continue, start), and the entity that starts or -1.

    Empty if paths are not kept."""
    ancestors: dict[int, Ints]
    """Ancestor of each particle after resampling at step t."""

    def paths(self) -> Iterator[list[tuple[int, int]]]:
        """Steps of each surviving particle, from the first word to the last."""
        at_S, path_TS = np.arange(len(self.log_w_S)), []
        for t in range(len(self.steps_T) - 1, -1, -1):
            at_S = self.ancestors[t][at_S] if t in self.ancestors else at_S
            column_S, node_S = self.steps_T[t]
            path_TS.append(list(zip(column_S[at_S].tolist(), node_S[at_S].tolist(), strict=True)))
        return ([step_S[k] for step_S in reversed(path_TS)] for k in range(len(self.log_w_S)))


class ParticleFilter:
    """Estimates p(x); with a penalty, Σ_z p(x, z) exp(−penalty · unknown words)."""

    def __init__(
        self, prepared: PreparedText, config: ParticleConfig, seed: int, *, penalty: float = 0.0, paths: bool = False
    ) -> None:
        """`paths` says whether the steps of particles are kept, for `Filtered.paths`."""
        self._prepared, self._config, self._penalty = prepared, config, penalty
        self._rng = np.random.default_rng(seed)
        self._histories, self._log_w_S = prepared.histories(config.particles), np.zeros(config.particles)
        self._others = None if prepared.candidates.complete else _Others(prepared, config, self._rng)
        self._totals_T, self._ess_T = np.empty(len(prepared)), np.empty(len(prepared))
        self._steps_T: list[tuple[Ints, Ints]] | None = [] if paths else None
        self._ancestors: dict[int, Ints] = {}
        self._t = 0

    def read(self, stop: int) -> None:
        """Read the words up to position `stop`."""
        for t in range(self._t, stop):
            self._prepared.prepare(t)
            self._step(t)
        self._t = stop

    def result(self) -> Filtered:
        """The estimate for the words that have been read."""
        steps_T, read = self._steps_T or [], slice(self._t)
        totals_T, ess_T = self._totals_T[read], self._ess_T[read]
        return Filtered(self._log_w_S, totals_T, ess_T, self._histories, steps_T, self._ancestors)

    def _step(self, t: int) -> None:
        prepared, config, penalty, others = self._prepared, self._config, self._penalty, self._others
        histories, latent, log_w_S = self._histories, prepared.latent.at(t), self._log_w_S
        count, all_S = config.particles, np.arange(config.particles)
        nodes = list(prepared.candidates.at(t))
        [type_SC] = histories.types(t, latent)
        prior_SZ = histories.steps(t, nodes, latent, type_SC)
        joint_SZ = prior_SZ + prepared.word_scores(t, histories, nodes, penalty)
        lookahead_SZ = prepared.lookahead(t, histories, nodes, penalty)
        score_SZ = joint_SZ + lookahead_SZ
        if others is not None:
            score_SZ = np.concatenate([score_SZ, others.score(t, type_SC, prior_SZ, penalty)], 1)
        q_SZ = _normalised(score_SZ)
        column_S = draw_columns(q_SZ, self._rng.random(count))
        at_S = np.minimum(column_S, joint_SZ.shape[1] - 1)
        log_p_S, lookahead_S, q_S = joint_SZ[all_S, at_S], lookahead_SZ[all_S, at_S], q_SZ[all_S, at_S]
        if others is not None:
            starts_S = (column_S >= FIRST) & (column_S < joint_SZ.shape[1])
            q_S = q_S + np.where(starts_S, q_SZ[:, -1] * others.density(type_SC, prior_SZ[all_S, at_S]), 0.0)
            away = np.flatnonzero(column_S == joint_SZ.shape[1])
            if len(away):
                found = others.draw(t, histories.select(away), type_SC[away])
                log_p_S[away], q_S[away], lookahead_S[away] = others.weigh(
                    t, histories.select(away), type_SC[away], found, nodes, q_SZ[away], penalty
                )
                new = sorted(set(found.tolist()) - set(nodes))
                places = {node: FIRST + place for place, node in enumerate([*nodes, *new])}
                column_S[away] = [places[node] for node in found.tolist()]
                nodes = [*nodes, *new]
        log_w_S = log_w_S + log_p_S - np.log(q_S)
        histories.advance(t, column_S, nodes)
        if self._steps_T is not None:
            node_Z = np.array([-1] * FIRST + nodes)
            self._steps_T.append((np.minimum(column_S, FIRST), node_Z[column_S]))
        self._totals_T[t] = np.logaddexp.reduce(log_w_S) - np.log(count)
        share_S = _normalised((log_w_S + lookahead_S)[None])[0]
        self._ess_T[t] = 1 / np.square(share_S).sum()
        if self._ess_T[t] < config.resample * count and t + 1 < len(prepared):
            ancestor_S = systematic(share_S, self._rng.random())
            total = np.logaddexp.reduce(log_w_S + lookahead_S) - np.log(count)
            self._histories = histories.select(ancestor_S)
            log_w_S = total - lookahead_S[ancestor_S]
            if self._steps_T is not None:
                self._ancestors[t] = ancestor_S
        self._log_w_S = log_w_S


def particle_filter(prepared: PreparedText, config: ParticleConfig, seed: int, *, penalty: float = 0.0) -> Filtered:
    """Read the whole text, and keep the steps of the particles."""
    reader = ParticleFilter(prepared, config, seed, penalty=penalty, paths=True)
    reader.read(len(prepared))
    return reader.result()


def _normalised(score_SZ: Floats) -> Floats:
    mass_SZ = np.exp(score_SZ - score_SZ.max(1, keepdims=True))
    share_SZ: Floats = mass_SZ / mass_SZ.sum(1, keepdims=True)
    return share_SZ


class _Others:
    """Starts of entities that are no candidates, drawn from p(start of e) / p(start)."""

    def __init__(self, prepared: PreparedText, config: ParticleConfig, rng: np.random.Generator) -> None:
        self._prepared = prepared
        self._log_ratio = np.log(config.other)
        self._rng = rng

    def score(self, t: int, type_SC: Floats, prior_SZ: Floats, penalty: float) -> Floats:
        """Guess of log p(start of another entity, x_t), from the probability that the candidates leave (S × 1)."""
        log_start_S = _log_start(type_SC)
        left_S = np.maximum(1 - _share(prior_SZ[:, FIRST:], log_start_S[:, None]).sum(1), 1e-6)
        words = self._prepared.words
        plain = words.plain_at(t, penalty)
        log_ratio = 0.0 if words.unknown_T[t] else self._log_ratio
        return np.asarray(log_start_S + np.log(left_S) + plain + log_ratio)[:, None]

    def density(self, type_SC: Floats, log_p_S: Floats) -> Floats:
        """p(start of e) / p(start), given log p(start of e)."""
        return _share(log_p_S, _log_start(type_SC))

    def draw(self, t: int, histories: Histories, type_SC: Floats) -> Ints:
        """Draw an entity to start in each history."""
        found = np.empty(len(histories), np.int64)
        related_S = np.log(self._rng.random(len(found))) < type_SC[:, Type.RELATED] - _log_start(type_SC)
        found[~related_S] = self._prepared.latent.at(t).new_entities.draw(t, self._rng.random(int((~related_S).sum())))
        rows = np.flatnonzero(related_S)
        if len(rows):
            uniform_3S = self._rng.random((3, len(rows)))
            found[rows] = draw_related(t, histories.select(rows), self._prepared.latent.at(t), uniform_3S)
        return found

    def weigh(
        self,
        t: int,
        histories: Histories,
        type_SC: Floats,
        found: Ints,
        nodes: list[int],
        q_SZ: Floats,
        penalty: float,
    ) -> tuple[Floats, Floats, Floats]:
        """log p(z_t, x_t), q(z_t) and look-ahead score of the drawn starts, some of which may be candidates."""
        distinct = sorted(set(found.tolist()))
        at, place = np.arange(len(found)), np.searchsorted(distinct, found)
        prior_S = histories.starts(t, distinct, (self._prepared.latent.at(t), type_SC))[0][at, place]
        log_word_S = self._prepared.word_scores(t, histories, distinct, penalty)[at, FIRST + place]
        lookahead_S = self._prepared.lookahead(t, histories, distinct, penalty)[at, FIRST + place]
        local = {node: FIRST + column for column, node in enumerate(nodes)}
        local_S = np.array([q_SZ[k, local[node]] if node in local else 0.0 for k, node in enumerate(found.tolist())])
        return prior_S + log_word_S, local_S + q_SZ[:, -1] * self.density(type_SC, prior_S), lookahead_S


def _share(log_part: Floats, log_whole: Floats) -> Floats:
    """part / whole; 0 if the whole is 0."""
    return np.asarray(np.exp(log_part - np.where(np.isfinite(log_whole), log_whole, 0.0)))


def _log_start(type_SC: Floats) -> Floats:
    """log p(new or related)."""
    return np.asarray(np.logaddexp(type_SC[:, Type.NEW], type_SC[:, Type.RELATED]))
