"""Beam search over annotations: a guaranteed lower bound of p(x), and p(x) itself if the beam has no width limit.

Every step keeps the K histories with the greatest p(x_≤t, z_≤t). Histories with the same future distribution are
merged and their probabilities added. The result is a sum over distinct annotations, so it is at most p(x).
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from kglm.errors import ConfigError
from kglm.marginal.prepared_text import AllEntities, Candidates, PreparedText
from kglm.model.arrays import Floats, Ints
from kglm.model.histories import FIRST, Histories

EXACT_LIMIT = 200_000
"""Most steps that exact enumeration may score at one position; above, it raises an error."""


class BeamSearch:
    """log Σ p(x_≤t, z_≤t) over the histories in the beam; over all histories without a width."""

    def __init__(
        self,
        prepared: PreparedText,
        width: int | None,
        *,
        penalty: float = 0.0,
        candidates: Candidates | None = None,
    ) -> None:
        if width is not None and width < 1:
            raise ConfigError(f"beam width {width}", remedy="give at least 1")
        self._prepared, self._width, self._penalty = prepared, width, penalty
        self._candidates = prepared.candidates if candidates is None else candidates
        self._histories, self._log_w_S = prepared.histories(1), np.zeros(1)
        self._totals_T = np.empty(len(prepared))
        self._t = 0

    def read(self, stop: int) -> None:
        """Read the words up to position `stop`."""
        for t in range(self._t, stop):
            self._prepared.prepare(t)
            self._step(t)
        self._t = stop

    def result(self) -> Floats:
        """The log of the sum after each target that has been read."""
        return self._totals_T[: self._t]

    def _step(self, t: int) -> None:
        prepared, width, penalty, histories = self._prepared, self._width, self._penalty, self._histories
        nodes = list(self._candidates.at(t))
        _check_size(prepared, t, width, len(histories) * (FIRST + len(nodes)))
        joint_SZ = self._log_w_S[:, None] + prepared.joint(t, histories, nodes, penalty)
        lookahead_SZ = prepared.lookahead(t, histories, nodes, penalty)
        kept = np.flatnonzero(np.isfinite(joint_SZ))
        if width is not None and len(kept) > 4 * width:  # more than the width, because some will be merged
            best = np.argpartition((joint_SZ + lookahead_SZ).flat[kept], -4 * width)[-4 * width :]
            kept = kept[np.sort(best)]
        from_S, column_S = np.divmod(kept, FIRST + len(nodes))
        histories = histories.select(from_S)
        histories.advance(t, column_S, nodes)
        keep_S, log_w_S = _recombined(histories, joint_SZ.flat[kept])
        lookahead_S = log_w_S + lookahead_SZ.flat[kept][keep_S]
        if width is not None and len(keep_S) > width:
            best = np.sort(np.argsort(lookahead_S, kind="stable")[-width:])
            keep_S, log_w_S = keep_S[best], log_w_S[best]
        self._histories, self._log_w_S = histories.select(keep_S), log_w_S
        self._totals_T[t] = np.logaddexp.reduce(log_w_S)


def beam_search(
    prepared: PreparedText, width: int | None, *, penalty: float = 0.0, candidates: Candidates | None = None
) -> Floats:
    """log Σ p(x_≤t, z_≤t) over the histories in the beam, after each target; over all histories without a width."""
    search = BeamSearch(prepared, width, penalty=penalty, candidates=candidates)
    search.read(len(prepared))
    return search.result()


def exact(prepared: PreparedText, *, penalty: float = 0.0) -> Floats:
    """log p(x_≤t) after each target, by enumeration; for small graphs and short texts only."""
    return beam_search(prepared, None, penalty=penalty, candidates=AllEntities(len(prepared.graph)))


def _check_size(prepared: PreparedText, t: int, width: int | None, steps: int) -> None:
    if width is None and steps > EXACT_LIMIT:
        raise ConfigError(
            f"{steps:,} steps to score at word {t + 1} of {prepared.text.title!r}: too many for exact enumeration",
            remedy="use the method particle, beam or importance",
        )


def _recombined(histories: Histories, log_w_S: Floats) -> tuple[Ints, Floats]:
    """Index of one history of each group with the same future, and the log of the group's total weight."""
    heads = histories.heads()
    times = Counter(heads)
    first: dict[bytes | int, int] = {}
    # the whole key is compared only if another history has the same head
    keys = (k if times[head] == 1 else histories.key(k) for k, head in enumerate(heads))
    group_S = np.array([first.setdefault(key, len(first)) for key in keys])
    total_G = np.full(len(first), -np.inf)
    np.logaddexp.at(total_G, group_S, log_w_S)
    _, keep_G = np.unique(group_S, return_index=True)
    return keep_G, total_G
