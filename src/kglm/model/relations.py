"""The relation: which relation of the parent the mention follows.

    π(r | p) = softmax over the distinct relations of p of v_r · h_r

Refinements, not in the paper: the softmax also runs over the relations that p lacks (see `missing`); v_r also depends
on the words of the relation's name, v_r = v_r' + W mean(words of r), with another W for reverse relations; and a
relation that the words before the mention name gains a score (see `cues`).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from kglm.kg.arrays import run_starts
from kglm.kg.graph import KnowledgeGraph
from kglm.model.arrays import Floats, Ints, array
from kglm.model.chunk import HiddenFacts, Paths, RelationCues
from kglm.model.cues import relation_cue_scores
from kglm.model.entities import EntityTable
from kglm.model.logsums import segment_logsumexp
from kglm.model.node_cache import NodeScores
from kglm.model.options import LatentConfig
from kglm.model.word_head import WordHead

TINY = 1e-250
"""Below this, a sum of exponentials may have underflowed and is computed again by logaddexp."""


REVERSE_REFLEXIVE = 1
"""The index beside the reflexive relation. No entity has it, and no text asks for it."""


class RelationHead(nn.Module):
    """π(r | p) of paths."""

    def __init__(self, config: LatentConfig, hidden: int, entities: EntityTable) -> None:
        super().__init__()
        self.config = config
        used = config.facts != "none"
        start_RD = entities.relation_RD.clone()
        self.vector_RD = nn.Parameter(start_RD, requires_grad=config.train_relations and used)
        self.name_2HD = nn.Parameter(torch.zeros(2, hidden, entities.size), requires_grad=config.relation_text and used)

    def vectors(self, words: WordHead, entities: EntityTable) -> Tensor:
        """v_r of all relations; one that the graph has gained since training has its v_r' from the table."""
        vector_RD = torch.cat([self.vector_RD, entities.relation_RD[len(self.vector_RD) :]])
        if not self.config.relation_text:
            return vector_RD
        name_KH = words.mean_embedding(entities.relation_word_KL)
        return vector_RD + torch.einsum("nh,khd->nkd", name_KH, self.name_2HD).flatten(0, 1)

    def scores(
        self, h_r_MD: Tensor, vector_RD: Tensor, weight_MQ: Tensor | None, cues: RelationCues, row_F: Tensor
    ) -> Tensor:
        """v_r · h_r, plus the scores of cues, at some positions (rows × R).

        `row_F` gives the row of each flat position, -1 if it has none; `weight_MQ` are the weights of cues, by row.
        """
        score_MR = h_r_MD @ vector_RD.T
        if weight_MQ is None or not len(cues.position_Y):
            return score_MR
        row_Y = row_F[cues.position_Y]
        used_Y = row_Y >= 0
        value_Y2 = cues.value_Y2[used_Y].to(score_MR.dtype)
        cue_Y2 = relation_cue_scores(weight_MQ[row_Y[used_Y]], value_Y2[:, None])[:, 0]
        none_MK2 = torch.zeros_like(score_MR).view(len(score_MR), score_MR.shape[1] // 2, 2)
        cue_MK2 = none_MK2.index_put((row_Y[used_Y], cues.relation_Y[used_Y]), cue_Y2)
        return score_MR + cue_MK2.flatten(1)

    def log_totals(self, score_FR: Tensor) -> Tensor:
        """log Σ exp over all relations, without the reverse of the reflexive one."""
        none_R = torch.zeros(score_FR.shape[1], dtype=torch.bool, device=score_FR.device)
        none_R[REVERSE_REFLEXIVE] = True
        return score_FR.masked_fill(none_R, -math.inf).logsumexp(1)

    def log_sums(self, score_MR: Tensor, row_G: Tensor, groups: Paths | HiddenFacts) -> Tensor:
        """log Σ exp over the relations of the parent of each (start, parent) pair; `row_G` is its row in `score_MR`."""
        member_Y = score_MR[row_G[groups.member_group_Y], groups.member_relation_Y]
        return segment_logsumexp(member_Y, groups.member_group_Y, len(row_G))

    def log_probs(self, score_MR: Tensor, row_G: Tensor, paths: Paths, log_z_G: Tensor) -> Tensor:
        """log π(r | p) of each path, given log z of its pair: `log_sums`, or with missing facts `MissingHead.log_z`."""
        return score_MR[row_G[paths.group_W], paths.relation_W] - log_z_G[paths.group_W]


class TextRelations:
    """π(r | p) along one text."""

    def __init__(
        self,
        h_r_TD: Tensor,
        vector_RD: Tensor,
        graph: KnowledgeGraph,
        weight_TQ: Tensor | None,
        cue_TK2: Floats | None,
        *,
        first: int,
        scale: float,
    ) -> None:
        """`weight_TQ` are the weights of the cues `cue_TK2`."""
        self._first = first
        self._graph = graph
        self._score_TR = array(h_r_TD @ vector_RD.T) * scale
        if weight_TQ is not None and cue_TK2 is not None:
            score_TK2 = relation_cue_scores(weight_TQ.cpu().double() * scale, torch.from_numpy(cue_TK2))
            self._score_TR += array(score_TK2.flatten(1))
        self._highest_T = self._score_TR.max(1)
        self._mass_RT = np.exp(self._score_TR - self._highest_T[:, None]).T.copy()
        self._log_z = NodeScores(len(self._score_TR), self._log_sums)

    def scores(self, t: int, relation_N: npt.NDArray[np.integer]) -> Floats:
        """Scores of relations at position t."""
        return np.asarray(self._score_TR[t - self._first, relation_N])

    def log_probs(self, t: int, relation_N: npt.NDArray[np.integer], log_z: Floats) -> Floats:
        """log π(r | p) of relations at position t; `log_z` is that of their parents, one or one for each relation."""
        return np.asarray(self._score_TR[t - self._first, relation_N] - log_z)

    def log_z(self, t: int, node_P: Ints) -> Floats:
        """log Σ exp over the distinct relations of each parent at position t; -inf for one that has none."""
        return self._log_z.at(t - self._first, node_P)

    def log_totals(self) -> Floats:
        """log Σ exp over all relations at each position of the text: see `RelationHead.log_totals`."""
        mass_RT = self._mass_RT
        other_T = mass_RT[:REVERSE_REFLEXIVE].sum(0) + mass_RT[REVERSE_REFLEXIVE + 1 :].sum(0)
        return np.asarray(self._highest_T + np.log(np.maximum(other_T, TINY)))

    def _log_sums(self, node_N: Ints, rows: slice) -> Floats:
        mass_RT, highest_T = self._mass_RT[:, rows], self._highest_T[rows]
        log_z_NT = np.empty((len(node_N), len(highest_T)))
        for row, node in enumerate(node_N.tolist()):
            relation = self._graph.edges(node).relation  # sorted
            distinct = relation[run_starts(relation)]
            mass_T = mass_RT[distinct].sum(0)
            if len(distinct) and not mass_T.min(initial=1.0) > TINY:  # all far below the highest of other relations
                log_z_NT[row] = np.logaddexp.reduce(self._score_TR[rows][:, distinct], 1)
            else:
                with np.errstate(divide="ignore"):
                    log_z_NT[row] = highest_T + np.log(mass_T)
        return log_z_NT
