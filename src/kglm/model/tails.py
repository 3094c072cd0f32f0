"""The tail: which of the entities that the parent's relation leads to is mentioned.

    π(e | p, r) = 1 / n_{p,r}                                          the paper: uniform over the tails
    π(e | p, r) = softmax over the tails of v_e · Q h_x + cues + facts    refinement, for up to `MAX_TAILS` tails

After "in the state of", the tail is the state, not the county. The cues are γ for a tail of the kind that the words
before name, and δ for a date with a day (see `cues`). The facts tell the current and main value from others: ranks and
times of the statements, and how the tails stand in the graph (see `tail_facts`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from kglm.kg.tail_features import MAX_TAILS
from kglm.model.arrays import Floats, Ints, array
from kglm.model.chunk import Paths, ScoredTails
from kglm.model.cues import TextCues
from kglm.model.entities import EntityTable
from kglm.model.graph_features import GraphFeatures
from kglm.model.local_graph import EdgeGroups
from kglm.model.logsums import segment_logsumexp
from kglm.model.node_cache import NodeScores
from kglm.model.options import LatentConfig
from kglm.model.tail_facts import TailFactWeights, tail_fact_scores


def is_scored(tails: Any) -> Any:
    """True if a relation with this number of tails has scored tails; a number or an array. Others are uniform."""
    return (tails > 1) & (tails <= MAX_TAILS)


class TailHead(nn.Module):
    """π(e | p, r) of paths."""

    def __init__(self, config: LatentConfig, hidden: int, entity_size: int) -> None:
        super().__init__()
        used = config.facts != "none"
        self.by_text = config.tail_scores
        self.scored = config.tail_scores or config.tail_facts
        self.query_HD = nn.Parameter(torch.zeros(hidden, entity_size), requires_grad=config.tail_scores and used)
        self.facts = TailFactWeights(hidden, trained=used) if config.tail_facts else None

    def log_probs(
        self, h_x_MH: Tensor, paths: Paths, tails: ScoredTails, weight_M2: Tensor | None, entities: EntityTable
    ) -> Tensor:
        """log π(e | p, r) of each path; `weight_M2` are γ and δ, or None if no cues are read."""
        log_p_W = -paths.log_tails_W.to(h_x_MH.dtype)
        if not self.scored or not len(tails.path_Y):
            return log_p_W
        start_Y = paths.group_start_G[paths.group_W][tails.path_Y]
        score_Y = h_x_MH.new_zeros(len(start_Y))
        if self.by_text:
            score_Y = ((h_x_MH @ self.query_HD)[start_Y] * entities.vectors(tails.node_Y)).sum(-1)
        if weight_M2 is not None:
            score_Y = score_Y + (weight_M2[start_Y] * tails.hint_Y2).sum(-1)
        if self.facts is not None:
            score_Y = score_Y + (self.facts(h_x_MH)[start_Y] * tails.fact_YQ.to(h_x_MH.dtype)).sum(-1)
        log_z_W = segment_logsumexp(score_Y, tails.path_Y, len(log_p_W))
        path_N = tails.path_Y[tails.own_Y]
        return log_p_W.index_copy(0, path_N, score_Y[tails.own_Y] - log_z_W[path_N])


class TextTails:
    """π(e | p, r) along one text."""

    def __init__(
        self,
        head: TailHead,
        h_x_TH: Tensor,
        features: GraphFeatures,
        weight_T2: Tensor | None,
        cues: TextCues | None,
        *,
        first: int,
        scale: float,
    ) -> None:
        """`weight_T2` are the weights γ and δ of the cues."""
        assert features.entities is not None
        self._first = first
        self._entities = features.entities
        self._graph = features.graph
        self._scored = head.scored
        self._query_TD = array(h_x_TH @ head.query_HD) * scale if head.by_text else None
        self._cues = cues if weight_T2 is not None else None
        if weight_T2 is not None:
            self._kind_T, self._day_T = array(weight_T2).T * scale
        self._features = features.tails if head.facts is not None else None
        if head.facts is not None:
            self._fact_TQ = array(head.facts(h_x_TH)) * scale
        self._years = {} if cues is None else cues.years
        self._log_z = NodeScores(len(h_x_TH), self._log_sums)

    def of_edges(self, t: int, edges: EdgeGroups) -> Floats:
        """π(e | p, r) of every edge of a parent, in the order of `edges.tail`."""
        p_N = np.repeat(1 / edges.size, edges.size)
        if not self._scored:
            return p_N
        row, scored = t - self._first, is_scored(edges.size)
        groups = (column[scored].tolist() for column in (edges.relation, edges.first, edges.size))
        for relation, first, size in zip(*groups, strict=True):
            score = self._group_scores(edges.node, relation, slice(row, row + 1))[:, 0]
            mass = np.exp(score - score.max())
            p_N[first : first + size] = mass / mass.sum()
        return p_N

    def of_paths(self, t: int, tail_W: Ints, parent_W: Ints, relation_W: Ints, size_W: Ints) -> Floats:
        """π(e | p, r) of single edges; `size_W` is the number of tails of their relations."""
        p_W = 1 / size_W
        scored = np.flatnonzero(is_scored(size_W))
        if self._scored and len(scored):
            row = slice(t - self._first, t - self._first + 1)
            key_W = parent_W[scored] * self._graph.relation_count + relation_W[scored]
            score_W = self._scores(tail_W[scored], row)[:, 0]
            if self._features is not None:
                edges = zip(
                    parent_W[scored].tolist(), relation_W[scored].tolist(), tail_W[scored].tolist(), strict=True
                )
                score_W += [self._fact_score(*edge, row) for edge in edges]
            p_W[scored] = np.exp(score_W - self._log_z.at(row.start, key_W))
        return p_W

    def _scores(self, node_N: npt.NDArray[np.integer], rows: slice) -> Floats:
        """v_e · Q h_x + cues (N × rows)."""
        score_NT = np.zeros((len(node_N), rows.stop - rows.start))
        if self._query_TD is not None:
            vector_ND = array(self._entities.vectors(torch.from_numpy(node_N.astype(np.int64))))
            score_NT += vector_ND @ self._query_TD[rows].T
        if self._cues is not None:
            nodes = node_N.tolist()
            score_NT += self._day_T[rows] * self._cues.days(nodes)[:, None]
            if (kind_NT := self._cues.kinds(nodes, rows)) is not None:
                score_NT += self._kind_T[rows] * kind_NT
        return score_NT

    def _group_scores(self, parent: int, relation: int, rows: slice) -> Floats:
        """The whole score of all tails of a relation (N × rows)."""
        score_NT = self._scores(self._graph.tails(parent, relation), rows)
        if self._features is not None:
            score_NT += tail_fact_scores(self._features.of(parent, relation), self._fact_TQ, self._years, rows)
        return score_NT

    def _fact_score(self, parent: int, relation: int, tail: int, row: slice) -> float:
        """Σ_q ω_q f_q of one tail at one row."""
        assert self._features is not None
        features = self._features.of(parent, relation)
        place = int(np.searchsorted(features.tail, tail))
        return float(tail_fact_scores(features.only(place), self._fact_TQ, self._years, row)[0, 0])

    def _log_sums(self, key_N: Ints, rows: slice) -> Floats:
        """log Σ exp over the tails of each (parent, relation)."""
        sums = []
        for key in key_N.tolist():
            parent, relation = divmod(key, self._graph.relation_count)
            score_NT = self._group_scores(parent, relation, rows)
            highest_T = score_NT.max(0)
            sums.append(highest_T + np.log(np.exp(score_NT - highest_T).sum(0)))
        return np.stack(sums)
