"""A particle filter over annotations: unbiased like importance sampling, without a second model.

A particle is a mention history. At every step its possible next steps (none, continue, start of a candidate) are scored
exactly by p(z_t) p(x_t | z_t), and one is drawn. One further choice stands for the start of any other entity, which is
then drawn from the model's own distribution of starts. So every annotation can be drawn, and with
w ← w · p(z_t, x_t) / q(z_t) the mean of the weights is an unbiased estimate of p(x).

Drawing and resampling use look-ahead scores, the gain from the remaining words of a name: the first word of a mention
costs probability that the later words earn back. The weights correct for the look-ahead in q and in resampling.

Legend: T targets, K particles, J possible steps, C mention types.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kglm.errors import ConfigError
from kglm.marginal.draws import draw_columns, draw_related, systematic
from kglm.marginal.prepared_text import Scene
from kglm.model.annotation import Type
from kglm.model.histories import FIRST, Cast, Histories
from kglm.model.text_scores import Floats, Ints


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

    log_w_K: Floats
    """Log weights of the particles; p̂(x) is the mean of the weights."""
    totals_T: Floats
    """log p̂(x_≤t) after each target."""
    ess_T: Floats
    """Effective sample size after each target, before resampling."""
    histories: Histories
    """Mention histories after the last target."""
    steps_T: list[tuple[Ints, Ints]]
    """Step of each particle at each target: its kind (none, continue, start), and the entity that starts or -1."""
    ancestors: dict[int, Ints]
    """Ancestor of each particle after resampling at step t."""

    def paths(self) -> Iterator[list[tuple[int, int]]]:
        """Steps of each surviving particle, from the first word to the last."""
        at_K, path_TK = np.arange(len(self.log_w_K)), []
        for t in range(len(self.steps_T) - 1, -1, -1):
            at_K = self.ancestors[t][at_K] if t in self.ancestors else at_K
            column_K, node_K = self.steps_T[t]
            path_TK.append(list(zip(column_K[at_K].tolist(), node_K[at_K].tolist(), strict=True)))
        return ([step_K[k] for step_K in reversed(path_TK)] for k in range(len(self.log_w_K)))


def particle_filter(scene: Scene, config: ParticleConfig, seed: int, *, penalty: float = 0.0) -> Filtered:
    """Estimate p(x); with a penalty, Σ_z p(x, z) exp(−penalty · unknown words)."""
    rng = np.random.default_rng(seed)
    count, all_K = config.particles, np.arange(config.particles)
    histories, log_w_K = scene.histories(count, Cast(scene.parts.graph)), np.zeros(count)
    others = None if scene.candidates.complete else _Others(scene, config, rng)
    totals_T, ess_T = np.empty(len(scene)), np.empty(len(scene))
    steps_T: list[tuple[Ints, Ints]] = []
    ancestors: dict[int, Ints] = {}
    for t in range(len(scene)):
        nodes = list(scene.candidates.at(t))
        [type_KC] = histories.types(t, scene.latent)
        prior_KJ = histories.steps(t, nodes, scene.latent, type_KC)
        joint_KJ = prior_KJ + scene.word_scores(t, histories, nodes, penalty)
        hope_KJ = scene.hopes(t, histories, nodes, penalty)
        score_KJ = joint_KJ + hope_KJ
        if others is not None:
            score_KJ = np.concatenate([score_KJ, others.score(t, type_KC, prior_KJ, penalty)], 1)
        q_KJ = _normalised(score_KJ)
        column_K = draw_columns(q_KJ, rng.random(count))
        at_K = np.minimum(column_K, joint_KJ.shape[1] - 1)
        log_p_K, hope_K, q_K = joint_KJ[all_K, at_K], hope_KJ[all_K, at_K], q_KJ[all_K, at_K]
        if others is not None:
            starts_K = (column_K >= FIRST) & (column_K < joint_KJ.shape[1])
            q_K = q_K + np.where(starts_K, q_KJ[:, -1] * others.density(type_KC, prior_KJ[all_K, at_K]), 0.0)
            away = np.flatnonzero(column_K == joint_KJ.shape[1])
            if len(away):
                found = others.draw(t, histories.select(away), type_KC[away])
                log_p_K[away], q_K[away], hope_K[away] = others.weigh(
                    t, histories.select(away), type_KC[away], found, nodes, q_KJ[away], penalty
                )
                new = sorted(set(found.tolist()) - set(nodes))
                places = {node: FIRST + place for place, node in enumerate([*nodes, *new])}
                column_K[away] = [places[node] for node in found.tolist()]
                nodes = [*nodes, *new]
        log_w_K = log_w_K + log_p_K - np.log(q_K)
        histories.advance(t, column_K, nodes)
        node_J = np.array([-1] * FIRST + nodes)
        steps_T.append((np.minimum(column_K, FIRST), node_J[column_K]))
        totals_T[t] = np.logaddexp.reduce(log_w_K) - np.log(count)
        share_K = _normalised((log_w_K + hope_K)[None])[0]
        ess_T[t] = 1 / np.square(share_K).sum()
        if ess_T[t] < config.resample * count and t + 1 < len(scene):
            ancestors[t] = systematic(share_K, rng.random())
            total = np.logaddexp.reduce(log_w_K + hope_K) - np.log(count)
            histories = histories.select(ancestors[t])
            log_w_K = total - hope_K[ancestors[t]]
    return Filtered(log_w_K, totals_T, ess_T, histories, steps_T, ancestors)


def _normalised(score_KJ: Floats) -> Floats:
    mass_KJ = np.exp(score_KJ - score_KJ.max(1, keepdims=True))
    share_KJ: Floats = mass_KJ / mass_KJ.sum(1, keepdims=True)
    return share_KJ


class _Others:
    """Starts of entities that are no candidates, drawn from p(start of e) / p(start)."""

    def __init__(self, scene: Scene, config: ParticleConfig, rng: np.random.Generator) -> None:
        self._scene = scene
        self._log_ratio = np.log(config.other)
        self._rng = rng

    def score(self, t: int, type_KC: Floats, prior_KJ: Floats, penalty: float) -> Floats:
        """Guess of log p(start of another entity, x_t), from the probability that the candidates leave (K × 1)."""
        log_start_K = _log_start(type_KC)
        left_K = np.maximum(1 - _share(prior_KJ[:, FIRST:], log_start_K[:, None]).sum(1), 1e-6)
        words = self._scene.words
        plain = words.plain(penalty)[t]
        log_ratio = 0.0 if words.unknown_T[t] else self._log_ratio
        return np.asarray(log_start_K + np.log(left_K) + plain + log_ratio)[:, None]

    def density(self, type_KC: Floats, log_p_K: Floats) -> Floats:
        """p(start of e) / p(start), given log p(start of e)."""
        return _share(log_p_K, _log_start(type_KC))

    def draw(self, t: int, histories: Histories, type_KC: Floats) -> Ints:
        """Draw an entity to start in each history."""
        found = np.empty(len(histories), np.int64)
        related_K = np.log(self._rng.random(len(found))) < type_KC[:, Type.RELATED] - _log_start(type_KC)
        found[~related_K] = self._scene.latent.draw_new(t, self._rng.random(int((~related_K).sum())))
        rows = np.flatnonzero(related_K)
        if len(rows):
            uniform_3K = self._rng.random((3, len(rows)))
            found[rows] = draw_related(t, histories.select(rows), self._scene.latent, uniform_3K)
        return found

    def weigh(
        self,
        t: int,
        histories: Histories,
        type_KC: Floats,
        found: Ints,
        nodes: list[int],
        q_KJ: Floats,
        penalty: float,
    ) -> tuple[Floats, Floats, Floats]:
        """log p(z_t, x_t), q(z_t) and look-ahead score of the drawn starts, some of which may be candidates."""
        distinct = sorted(set(found.tolist()))
        at, place = np.arange(len(found)), np.searchsorted(distinct, found)
        prior_K = histories.starts(t, distinct, self._scene.latent, type_KC)[at, place]
        log_word_K = self._scene.word_scores(t, histories, distinct, penalty)[at, FIRST + place]
        hope_K = self._scene.hopes(t, histories, distinct, penalty)[at, FIRST + place]
        local = {node: FIRST + column for column, node in enumerate(nodes)}
        local_K = np.array([q_KJ[k, local[node]] if node in local else 0.0 for k, node in enumerate(found.tolist())])
        return prior_K + log_word_K, local_K + q_KJ[:, -1] * self.density(type_KC, prior_K), hope_K


def _share(log_part: Floats, log_whole: Floats) -> Floats:
    """part / whole; 0 if the whole is 0."""
    return np.asarray(np.exp(log_part - np.where(np.isfinite(log_whole), log_whole, 0.0)))


def _log_start(type_KC: Floats) -> Floats:
    """log p(new or related)."""
    return np.asarray(np.logaddexp(type_KC[:, Type.NEW], type_KC[:, Type.RELATED]))
