"""A particle filter over annotations: unbiased like importance sampling, without a second model.

A particle is a mention history. At every step all steps that are worth weighing (none, continue, the candidates of this
place) are weighed exactly by p(z_t) p(x_t | z_t), and one is drawn; with a small share ε the step is the start of an
entity drawn from a broad distribution that covers everything else. So every annotation can be drawn, and with
w ← w · p(z_t, x_t) / q(z_t) the mean of the weights is an unbiased estimate of p(x).

What is drawn, and who survives, is judged with the rest of the mention in view (`Scene.hopes`): a name is paid for at
its first word and repaid by the others. That changes q and the odds of resampling, and the weights take it back.

Legend: T targets, K particles, J steps, C slots, N candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kglm.errors import ConfigError
from kglm.infer.histories import CONTINUE, FIRST, Cast, Histories
from kglm.infer.scene import Scene
from kglm.infer.tables import Floats, Ints


@dataclass(frozen=True)
class ParticleConfig:
    """How to filter."""

    particles: int = 100
    """Histories that are kept side by side."""
    broad: float = 0.002
    """ε: the share of steps that begin a mention of anyone at all."""
    resample: float = 0.5
    """Resample when the effective number of particles falls below this share."""

    def __post_init__(self) -> None:
        if self.particles < 1:
            raise ConfigError(f"{self.particles} particles", remedy="give at least 1")
        if not 0 < self.broad < 1:
            raise ConfigError(f"a broad share of {self.broad}", remedy="give a number between 0 and 1")


@dataclass(frozen=True)
class Filtered:
    """Where the filter ended."""

    log_w_K: Floats
    """Weights of the particles; p̂(x) is their mean."""
    totals_T: Floats
    """log p̂(x_≤t) after each target."""
    ess_T: Floats
    """Effective number of particles after each target, before resampling."""


def particle_filter(scene: Scene, config: ParticleConfig, seed: int, *, penalty: float = 0.0) -> Filtered:
    """Estimate p(x); with a penalty, Σ_z p(x, z) exp(−penalty · unknown words)."""
    rng = np.random.default_rng(seed)
    count = config.particles
    histories, log_w_K = scene.histories(count, Cast(scene.parts.graph)), np.zeros(count)
    broad = 0.0 if scene.candidates.complete else config.broad
    totals_T, ess_T = np.empty(len(scene)), np.empty(len(scene))
    for t in range(len(scene)):
        nodes = list(scene.candidates.at(t, histories.cast))
        joint_KJ = scene.joint(t, histories, nodes, penalty)
        hope_KJ = scene.hopes(t, histories, nodes, penalty)
        local_KJ = _normalised(joint_KJ + hope_KJ)
        column_K = _draw(local_KJ, rng.random(count))
        log_q_K = np.log1p(-broad) + np.log(local_KJ[np.arange(count), column_K])
        hope_K = hope_KJ[np.arange(count), column_K]
        log_p_K = joint_KJ[np.arange(count), column_K]
        if broad:
            away_K = np.flatnonzero(rng.random(count) < broad)
            if len(away_K):
                nodes = _go_away(scene, t, histories, away_K, nodes, column_K, rng)
                log_p_K[away_K] = _joint_of(scene, t, histories, away_K, nodes, column_K, penalty)
                hope_K[away_K] = 0.0
            starts_K = np.flatnonzero(column_K >= FIRST)
            if len(starts_K):
                log_q_K[starts_K] = _start_density(
                    t, histories.select(starts_K), nodes, column_K[starts_K], local_KJ[starts_K], broad, scene
                )
        log_w_K = log_w_K + log_p_K - log_q_K
        histories.advance(t, column_K, nodes)
        totals_T[t] = np.logaddexp.reduce(log_w_K) - np.log(count)
        share_K = _normalised((log_w_K + hope_K)[None])[0]
        ess_T[t] = 1 / np.square(share_K).sum()
        if ess_T[t] < config.resample * count and t + 1 < len(scene):
            ancestors = _systematic(share_K, rng.random())
            total = np.logaddexp.reduce(log_w_K + hope_K) - np.log(count)
            histories = histories.select(ancestors)
            log_w_K = total - hope_K[ancestors]
    return Filtered(log_w_K, totals_T, ess_T)


def _normalised(score_KJ: Floats) -> Floats:
    mass_KJ = np.exp(score_KJ - score_KJ.max(1, keepdims=True))
    share_KJ: Floats = mass_KJ / mass_KJ.sum(1, keepdims=True)
    return share_KJ


def _draw(mass_KJ: Floats, uniform_K: Floats) -> Ints:
    until_KJ = np.cumsum(mass_KJ, 1)
    column_K = (uniform_K[:, None] * until_KJ[:, -1:] >= until_KJ).sum(1)
    highest = mass_KJ.shape[1] - 1 - np.argmax(mass_KJ[:, ::-1] > 0, 1)
    return np.asarray(np.minimum(column_K, highest), np.int64)


def _systematic(share_K: Floats, uniform: float) -> Ints:
    """Ancestors: each is taken as often as its share says, up to one more or less."""
    places = (np.arange(len(share_K)) + uniform) / len(share_K)
    return np.minimum(np.searchsorted(np.cumsum(share_K), places, side="right"), len(share_K) - 1)


# The broad part of q: the start of a real entity drawn evenly from all, or of a neighbour of someone mentioned


def _go_away(
    scene: Scene,
    t: int,
    histories: Histories,
    away_K: Ints,
    nodes: list[int],
    column_K: Ints,
    rng: np.random.Generator,
) -> list[int]:
    """Draw an entity for each of these particles; sets their columns, and returns the entities with theirs added."""
    cast, real_E = histories.cast, scene.model.latent.real_E
    can_KC = histories.candidates(t)[away_K]
    column_of = {node: FIRST + place for place, node in enumerate(nodes)}
    for row, k in enumerate(away_K.tolist()):
        parents = np.flatnonzero(can_KC[row])
        if len(parents) and rng.random() < 0.5:
            edges = cast.graph.edges(cast.nodes[int(rng.choice(parents))])
            node = int(edges.tail[rng.integers(len(edges.tail))])
        else:
            node = int(real_E[int(rng.integers(len(real_E)))])
        column_K[k] = column_of.setdefault(node, FIRST + len(column_of))
    return [*nodes, *list(column_of)[len(nodes) :]]


def _joint_of(
    scene: Scene, t: int, histories: Histories, away_K: Ints, nodes: Sequence[int], column_K: Ints, penalty: float
) -> Floats:
    """log p(z_t, x_t) of the steps that these particles take."""
    few = histories.select(away_K)
    wanted = [nodes[column - FIRST] for column in column_K[away_K].tolist()]
    distinct = sorted(set(wanted))
    joint_KJ = scene.joint(t, few, distinct, penalty)
    return np.asarray(joint_KJ[np.arange(len(few)), FIRST + np.searchsorted(distinct, wanted)])


def _start_density(
    t: int,
    histories: Histories,
    nodes: Sequence[int],
    column_K: Ints,
    local_KJ: Floats,
    broad: float,
    scene: Scene,
) -> Floats:
    """log q of the starts: the local part, and the broad one."""
    inside_K = column_K < local_KJ.shape[1]
    local_K = np.where(inside_K, local_KJ[np.arange(len(column_K)), np.where(inside_K, column_K, CONTINUE)], 0.0)
    can_KC = histories.candidates(t)
    cast, count = histories.cast, len(scene.model.latent.real_E)
    even_K = np.zeros(len(column_K))
    for k, column in enumerate(column_K.tolist()):
        node = nodes[column - FIRST]
        parents = int(can_KC[k].sum())
        near = sum(can_KC[k, slot] / cast.degree[slot] for slot, _, _ in cast.ways(node)) / max(parents, 1)
        anywhere = 0.0 if cast.is_literal(node) else 1 / count
        even_K[k] = 0.5 * near + 0.5 * anywhere if parents else anywhere
    return np.asarray(np.log((1 - broad) * local_K + broad * even_K))
