"""The tail: which of the entities that the parent's relation leads to is mentioned.

    π(e | p, r) = 1 / n_{p,r}                                          the paper: uniform over the tails
    π(e | p, r) = softmax over the tails of v_e · Q h_x + cues         refinement, for up to `MAX_SCORED_TAILS` tails

After "in the state of", the tail is the state, not the county. The cues are γ for a tail of the kind that the words
before name, and δ for a date with a day (see `cues`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from kglm.kg.graph import KnowledgeGraph
from kglm.model.arrays import Floats, Ints, array
from kglm.model.chunk import MentionStarts, Paths, ScoredTails
from kglm.model.cues import TextCues
from kglm.model.entities import EntityTable
from kglm.model.local_graph import EdgeGroups
from kglm.model.logsums import segment_logsumexp
from kglm.model.node_cache import NodeScores
from kglm.model.options import LatentConfig

MAX_SCORED_TAILS = 64
"""Among more tails than these, each has the same probability."""


def is_scored(tails: Any) -> Any:
    """True if a relation with this number of tails has scored tails; a number or an array."""
    return (tails > 1) & (tails <= MAX_SCORED_TAILS)


class TailHead(nn.Module):
    """π(e | p, r) of paths."""

    def __init__(self, config: LatentConfig, hidden: int, entity_size: int) -> None:
        super().__init__()
        self.scored = config.tail_scores
        self.query_HD = nn.Parameter(
            torch.zeros(hidden, entity_size), requires_grad=config.tail_scores and config.facts != "none"
        )

    def log_probs(
        self,
        h_x_MH: Tensor,
        starts: MentionStarts,
        paths: Paths,
        tails: ScoredTails,
        weight_M2: Tensor | None,
        entities: EntityTable,
    ) -> Tensor:
        """log π(e | p, r) of each path; `weight_M2` are γ and δ, or None if no cues are read."""
        log_p_W = -paths.log_tails_W.to(h_x_MH.dtype)
        if not self.scored or not len(tails.path_Y):
            return log_p_W
        start_W = paths.group_start_G[paths.group_W]
        start_Y = start_W[tails.path_Y]
        query_MD = h_x_MH @ self.query_HD
        score_Y = (query_MD[start_Y] * entities.vectors(tails.node_Y)).sum(-1)
        own_M = (query_MD * entities.vectors(starts.node_M)).sum(-1)
        if weight_M2 is not None:
            score_Y = score_Y + (weight_M2[start_Y] * tails.hint_Y2).sum(-1)
            own_M = own_M + (weight_M2 * starts.hint_M2).sum(-1)
        log_z_W = segment_logsumexp(score_Y, tails.path_Y, len(start_W))
        scored = torch.unique(tails.path_Y)
        return log_p_W.index_copy(0, scored, own_M[start_W[scored]] - log_z_W[scored])


class TextTails:
    """π(e | p, r) along one text."""

    def __init__(
        self,
        head: TailHead,
        h_x_TH: Tensor,
        entities: EntityTable,
        graph: KnowledgeGraph,
        weight_T2: Tensor | None,
        cues: TextCues | None,
        *,
        first: int,
        scale: float,
    ) -> None:
        """`weight_T2` are the weights γ and δ of the cues."""
        self._first = first
        self._entities = entities
        self._graph = graph
        self._query_TD = array(h_x_TH @ head.query_HD) * scale if head.scored else None
        self._cues = cues if weight_T2 is not None else None
        if weight_T2 is not None:
            self._kind_T, self._day_T = array(weight_T2).T * scale
        self._log_z = NodeScores(len(h_x_TH), self._log_sums)

    def of_edges(self, t: int, edges: EdgeGroups) -> Floats:
        """π(e | p, r) of every edge of a parent, in the order of `edges.tail`."""
        p_N = np.repeat(1 / edges.size, edges.size)
        if self._query_TD is None:
            return p_N
        row, scored = t - self._first, is_scored(edges.size)
        for first, size in zip(edges.first[scored].tolist(), edges.size[scored].tolist(), strict=True):
            score = self._scores(edges.tail[first : first + size], slice(row, row + 1))[:, 0]
            mass = np.exp(score - score.max())
            p_N[first : first + size] = mass / mass.sum()
        return p_N

    def of_paths(self, t: int, tail_W: Ints, parent_W: Ints, relation_W: Ints, size_W: Ints) -> Floats:
        """π(e | p, r) of single edges; `size_W` is the number of tails of their relations."""
        p_W = 1 / size_W
        scored = np.flatnonzero(is_scored(size_W))
        if self._query_TD is not None and len(scored):
            row = t - self._first
            key_W = parent_W[scored] * self._graph.relation_count + relation_W[scored]
            score_W = self._scores(tail_W[scored], slice(row, row + 1))[:, 0]
            p_W[scored] = np.exp(score_W - self._log_z.at(row, key_W))
        return p_W

    def _scores(self, node_N: npt.NDArray[np.integer], rows: slice) -> Floats:
        """v_e · Q h_x + cues (N × rows)."""
        assert self._query_TD is not None
        vector_ND = array(self._entities.vectors(torch.from_numpy(node_N.astype(np.int64))))
        score_NT = vector_ND @ self._query_TD[rows].T
        if self._cues is not None:
            nodes = node_N.tolist()
            score_NT += self._day_T[rows] * self._cues.days(nodes)[:, None]
            if (kind_NT := self._cues.kinds(nodes, rows)) is not None:
                score_NT += self._kind_T[rows] * kind_NT
        return score_NT

    def _log_sums(self, key_N: Ints, rows: slice) -> Floats:
        """log Σ exp over the tails of each (parent, relation)."""
        sums = []
        for key in key_N.tolist():
            score_NT = self._scores(self._graph.tails(*divmod(key, self._graph.relation_count)), rows)
            highest_T = score_NT.max(0)
            sums.append(highest_T + np.log(np.exp(score_NT - highest_T).sum(0)))
        return np.stack(sums)
