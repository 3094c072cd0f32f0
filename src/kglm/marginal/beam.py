"""Beam search over annotations: a guaranteed lower bound of p(x), and p(x) itself if the beam has no width limit.

Every step keeps the K histories with the greatest p(x_≤t, z_≤t). Histories with the same future distribution are
merged and their probabilities added. The result is a sum over distinct annotations, so it is at most p(x).
"""

from __future__ import annotations

import numpy as np

from kglm.errors import ConfigError
from kglm.marginal.prepared_text import AllEntities, Candidates, Scene
from kglm.model.histories import FIRST, Cast, Histories
from kglm.model.text_scores import Floats, Ints

EXACT_LIMIT = 200_000
"""Most steps that exact enumeration may score at one position; above, it raises an error."""


def beam_search(
    scene: Scene, width: int | None, *, penalty: float = 0.0, candidates: Candidates | None = None
) -> Floats:
    """log Σ p(x_≤t, z_≤t) over the histories in the beam, after each target; over all histories without a width."""
    candidates = scene.candidates if candidates is None else candidates
    if width is not None and width < 1:
        raise ConfigError(f"beam width {width}", remedy="give at least 1")
    histories, log_w_K = scene.histories(1, Cast(scene.parts.graph)), np.zeros(1)
    totals_T = np.empty(len(scene))
    for t in range(len(scene)):
        nodes = list(candidates.at(t))
        _check_size(scene, t, width, len(histories) * (FIRST + len(nodes)))
        joint_KJ = log_w_K[:, None] + scene.joint(t, histories, nodes, penalty)
        hope_KJ = scene.hopes(t, histories, nodes, penalty)
        kept = np.flatnonzero(np.isfinite(joint_KJ))
        if width is not None and len(kept) > 4 * width:  # more than the width, because some will be merged
            best = np.argpartition((joint_KJ + hope_KJ).flat[kept], -4 * width)[-4 * width :]
            kept = kept[np.sort(best)]
        from_K, column_K = np.divmod(kept, FIRST + len(nodes))
        histories = histories.select(from_K)
        histories.advance(t, column_K, nodes)
        keep_K, log_w_K = _recombined(histories, joint_KJ.flat[kept])
        hope_K = log_w_K + hope_KJ.flat[kept][keep_K]
        if width is not None and len(keep_K) > width:
            best = np.sort(np.argsort(hope_K, kind="stable")[-width:])
            keep_K, log_w_K = keep_K[best], log_w_K[best]
        histories = histories.select(keep_K)
        totals_T[t] = np.logaddexp.reduce(log_w_K)
    return totals_T


def exact(scene: Scene, *, penalty: float = 0.0) -> Floats:
    """log p(x_≤t) after each target, by enumeration; for small graphs and short texts only."""
    return beam_search(scene, None, penalty=penalty, candidates=AllEntities(len(scene.parts.graph)))


def _check_size(scene: Scene, t: int, width: int | None, steps: int) -> None:
    if width is None and steps > EXACT_LIMIT:
        raise ConfigError(
            f"{steps:,} steps to score at word {t + 1} of {scene.text.title!r}: too many for exact enumeration",
            remedy="use the method particle, beam or importance",
        )


def _recombined(histories: Histories, log_w_K: Floats) -> tuple[Ints, Floats]:
    """Index of one history of each group with the same future, and the log of the group's total weight."""
    first: dict[bytes, int] = {}
    group_K = np.array([first.setdefault(histories.key(k), len(first)) for k in range(len(histories))])
    total_G = np.full(len(first), -np.inf)
    np.logaddexp.at(total_G, group_K, log_w_K)
    _, keep_G = np.unique(group_K, return_index=True)
    return keep_G, total_G
