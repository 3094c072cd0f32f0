"""The entity of a new mention: any real entity of the graph.

    p(e | new) = softmax over real entities of v_e · (h_p + h_r) + b_e

Refinements, not in the paper: b_e is learned for each log-bucket of the number of *other* training documents that
introduce e (otherwise every entity of training would look frequent); with `entity_bias`, each entity also has a bias of
its own. A share of the probability is uniform, so that each entity has at least share / |E|.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from kglm.model.arrays import Floats, Ints, array
from kglm.model.buckets import BUCKETS
from kglm.model.chunk import OwnIntroductions
from kglm.model.entities import EntityTable
from kglm.model.options import LatentConfig
from kglm.model.softmax import Changes, linear_logsumexp

GROUP = 256
"""Entities whose probabilities are kept as one sum, to draw from."""
BLOCK = 1 << 23
"""Scores computed at once."""


class NewEntityHead(nn.Module):
    """p(e | new) at mention starts."""

    def __init__(self, config: LatentConfig, entities: EntityTable) -> None:
        super().__init__()
        self.config = config
        used = config.facts != "topic"
        self.frequency_Q = nn.Parameter(torch.zeros(BUCKETS + 1), requires_grad=config.frequency_bias and used)
        self.bias_E = nn.Parameter(torch.zeros(len(entities.real_E)), requires_grad=config.entity_bias and used)

    def query(self, h_ND: Tensor) -> Tensor:
        """[h ; biases of the buckets], whose product with `keys` is v_e · h + b_e; without frequencies, h alone."""
        if not self.config.frequency_bias:
            return h_ND
        return torch.cat([h_ND, self.frequency_Q.expand(len(h_ND), -1)], -1)

    def keys(self, entities: EntityTable) -> Tensor:
        """[v_e ; 1 at the bucket of e] of all entities, or v_e alone (E × Q)."""
        return entities.real_EQ if self.config.frequency_bias else entities.real_EQ[:, : entities.size]

    def bias(self, entities: EntityTable) -> Tensor | None:
        """b_e of single entities; 0 for those that the graph has gained since training."""
        if not self.config.entity_bias:
            return None
        return functional.pad(self.bias_E, (0, len(entities.real_E) - len(self.bias_E)))

    def mixed(self, log_p: Tensor, entities: EntityTable) -> Tensor:
        """log-probabilities after mixing in the uniform distribution."""
        share = self.config.uniform_share
        if share == 0:
            return log_p
        uniform = log_p.new_tensor(math.log(share / len(entities.real_E)))
        return torch.logaddexp(log_p + math.log1p(-share), uniform)

    def log_probs(
        self, h_MD: Tensor, node_M: Tensor, wanted_M: Tensor, own: OwnIntroductions, entities: EntityTable
    ) -> Tensor:
        """log p(e | new) of the entity of each wanted mention start; -inf for the other starts, and for literals."""
        place_M = entities.place_N[node_M]
        at_N = (wanted_M & (place_M >= 0)).nonzero()[:, 0]
        query_NQ, key_EQ, place_N = self.query(h_MD[at_N]), self.keys(entities), place_M[at_N]
        score_N = (query_NQ * key_EQ[place_N]).sum(-1)
        if (bias_E := self.bias(entities)) is not None:
            score_N = score_N + bias_E[place_N]
        changes = None
        if self.config.frequency_bias and len(own.start_Y):
            changes = self._without_own(own, at_N, len(place_M), entities)
            chosen_Y = changes.column_Y == place_N[changes.row_Y]
            score_N = score_N.index_add(0, changes.row_Y[chosen_Y], changes.amount_Y[chosen_Y])
        log_z_N = linear_logsumexp(query_NQ, key_EQ, bias_E, changes, uneven=True)
        none_M = h_MD.new_full((len(place_M),), -math.inf)
        return none_M.index_copy(0, at_N, self.mixed(score_N - log_z_N, entities))

    def _without_own(self, own: OwnIntroductions, at_N: Tensor, starts: int, entities: EntityTable) -> Changes:
        """Changes of b_e where a document's own introductions are not counted; rows are those of `at_N`."""
        row_M = at_N.new_full((starts,), -1)
        row_M[at_N] = torch.arange(len(at_N), device=at_N.device)
        row_Y = row_M[own.start_Y]
        wanted_Y = row_Y >= 0
        column_Y = entities.place_N[own.node_Y[wanted_Y]]
        before_Y, after_Y = entities.frequency_E[column_Y], own.frequency_Y[wanted_Y]
        return Changes(row_Y[wanted_Y], column_Y, self.frequency_Q[after_Y] - self.frequency_Q[before_Y])


class TextNewEntities:
    """p(e | new) along one text."""

    def __init__(
        self,
        head: NewEntityHead,
        h_TD: Tensor,
        entities: EntityTable,
        *,
        first: int,
        scale: float,
        log_z_T: Floats | None = None,
    ) -> None:
        """`h_TD` is h_p + h_r. `log_z_T` are sums over all entities, not a number where unknown; it is filled in."""
        self._head = head
        self._key_EQ = head.keys(entities)
        self._first = first
        self._query_TQ = head.query(h_TD) * scale
        bias_E = head.bias(entities)
        self._bias_E = None if bias_E is None else bias_E * scale
        # the same as arrays: for single scores the overhead of tensors would be most of the time
        self._query, self._real = self._query_TQ.detach().cpu().numpy(), self._key_EQ.cpu().numpy()
        self._bias = None if self._bias_E is None else array(self._bias_E)
        self._place, self._node = entities.place_N.cpu().numpy(), entities.real_E.cpu().numpy()
        self._log_z_T = np.full(len(h_TD), np.nan) if log_z_T is None else log_z_T
        """Sums over all entities; not a number until they are computed."""
        self._share_TG: dict[int, Floats] = {}
        """Shares of groups in them, by row."""

    def prepare(self, t_N: Ints) -> None:
        """Compute the sums over all entities at these positions: together they cost a fraction of one by one."""
        row_N = t_N - self._first
        missing = np.unique(row_N[np.isnan(self._log_z_T[row_N])])
        if len(missing):
            self._sum(missing)

    def _sum(self, missing: Ints) -> None:
        """Compute the sums, and the shares of groups in them, at these rows."""
        count, groups = len(self._node), -(-len(self._node) // GROUP)
        with torch.no_grad():
            for at in np.array_split(missing, -(-len(missing) * count // BLOCK)):
                score_TE = functional.linear(self._query_TQ[at], self._key_EQ, self._bias_E)
                highest_T1 = score_TE.amax(-1, keepdim=True)
                mass_TE = functional.pad(score_TE.sub_(highest_T1).exp_(), (0, groups * GROUP - count))
                mass_TG = array(mass_TE.view(len(mass_TE), groups, GROUP).sum(-1))
                total_T1 = mass_TG.sum(1, keepdims=True)
                self._log_z_T[at] = array(highest_T1)[:, 0] + np.log(total_T1[:, 0])
                self._share_TG.update(zip(at.tolist(), mass_TG / total_T1, strict=True))

    def _scores(self, t_N: Ints, place_N: Ints) -> Floats:
        score_N = np.einsum("nq,nq->n", self._query[t_N - self._first], self._real[place_N], dtype=np.float64)
        return np.asarray(score_N if self._bias is None else score_N + self._bias[place_N])

    def _mixed(self, log_p_N: Floats) -> Floats:
        share = self._head.config.uniform_share
        if share == 0:
            return log_p_N
        return np.asarray(np.logaddexp(log_p_N + math.log1p(-share), math.log(share / len(self._node))))

    def log_probs(self, t_N: Ints, node_N: Ints) -> Floats:
        """log p(e | new) of pairs of position and entity; -inf for literals."""
        self.prepare(t_N)
        place_N = self._place[node_N]
        log_p_N = self._mixed(self._scores(t_N, np.maximum(place_N, 0)) - self._log_z_T[t_N - self._first])
        log_p_N[place_N < 0] = -np.inf
        return log_p_N

    def most_probable(self, t: int, count: int) -> tuple[Ints, Floats]:
        """The entities of the largest p(e | new) at position t, and these probabilities."""
        with torch.no_grad():
            score_E = functional.linear(self._query_TQ[t - self._first], self._key_EQ, self._bias_E)
            best = torch.topk(score_E, min(count, len(score_E)))
            log_z = float(score_E.double().logsumexp(0))
        p_N = np.exp(self._mixed(array(best.values) - log_z))
        return np.asarray(self._node[best.indices.cpu().numpy()], np.int64), p_N

    def draw(self, t: int, uniform_N: Floats) -> Ints:
        """Entities drawn from p(e | new) at position t, one for each of these numbers in [0, 1)."""
        share, count = self._head.config.uniform_share, len(self._real)
        row = t - self._first
        if row not in self._share_TG:
            self._sum(np.array([row]))
        until_G = np.cumsum(self._share_TG[row])
        before_G = np.concatenate([[0.0], until_G])
        place_N = np.empty(len(uniform_N), np.int64)
        even_N = uniform_N < share
        if even_N.any():
            place_N[even_N] = np.minimum(uniform_N[even_N] / share * count, count - 1)
        # the rest of the number chooses a group, and the rest of that an entity of the group
        wanted_N = np.maximum(uniform_N - share, 0.0) / (1 - share) * until_G[-1]
        group_N = np.minimum(np.searchsorted(until_G, wanted_N, side="right"), len(until_G) - 1)
        for group in np.unique(group_N[~even_N]).tolist():
            rows = np.flatnonzero((group_N == group) & ~even_N)
            members = np.arange(group * GROUP, min((group + 1) * GROUP, count))
            score = self._scores(np.full(len(members), t), members)
            until = np.cumsum(np.exp(score - score.max()))
            left = (wanted_N[rows] - before_G[group]) / max(until_G[group] - before_G[group], 1e-300)
            found = np.searchsorted(until, left * until[-1], side="right")
            place_N[rows] = members[np.minimum(found, len(members) - 1)]
        return np.asarray(self._node[place_N], np.int64)
