"""The numbers of one text under one model, computed once however many histories are weighed against it.

The encoder reads words only, so its hidden states, and all that follows from them at a position, do not depend on the
facts behind the text: scores of types and relations at every position, of a parent when it is first mentioned, of the
tails of a relation when some history first asks for one.

Legend: T targets of the text, C types or slots, R relation indices, K histories, E real entities, N nodes asked for, G
groups of entities, W single facts, P all facts of a parent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kglm.kg.arrays import IntArray
from kglm.kg.graph import KnowledgeGraph
from kglm.model.annotation import Type, boundaries
from kglm.model.chunk import MAX_SCORED_TAILS
from kglm.model.cues import FULL, OF_RELATIONS, TextCues
from kglm.model.parts import ChunkModel, LatentModel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
GROUP = 256
"""Entities whose probability of being new is kept as one sum, to draw from."""
BLOCK = 1 << 23
"""Numbers in a block of scores."""
TINY = 1e-250
"""Sums that are smaller may have lost something."""
WINDOW = 256
"""Positions for which numbers of nodes are computed together."""


@dataclass(frozen=True)
class Text:
    """The words of a document; target t is word t + 1."""

    title: str
    surface: Sequence[str]
    words_N: Ints
    topic: int | None = None
    """Whom it is about, for models that are told."""

    @cached_property
    def boundary_T(self) -> Ints:
        """For each target, the word before its sentence, or -1."""
        return boundaries(self.surface)

    def __len__(self) -> int:
        """How many targets there are."""
        return max(len(self.words_N) - 1, 0)

    def target(self, t: int) -> str:
        return self.surface[t + 1]


def hidden_states(model: ChunkModel, text: Text, *, ahead: int | None = None) -> Tensor:
    """h_t at every target (T × size of h); `ahead` = 1 reads the target itself before it speaks."""
    ahead = model.ahead if ahead is None else ahead
    h_TD, _ = model.encoder.read_text(torch.from_numpy(text.words_N[ahead : len(text) + ahead]))
    return h_TD


def array(tensor: Tensor) -> Floats:
    return tensor.detach().cpu().double().numpy()


class Fan(NamedTuple):
    """The facts of an entity by relation: the i-th has `size[i]` tails, from `first[i]` on."""

    relation: IntArray
    first: Ints
    size: Ints
    tail: IntArray


class LatentTables:
    """Scores of the latent variables of one text, under the model or the proposal; τ is the temperature.

    The hidden states may be those of a part of the text, from target `first` on.
    """

    def __init__(
        self,
        model: LatentModel,
        h_TD: Tensor,
        graph: KnowledgeGraph,
        cues: TextCues | None = None,
        *,
        temperature: float = 1.0,
        first: int = 0,
    ) -> None:
        self._latent = latent = model.latent
        self._graph = graph
        self._scale = 1 / temperature
        self._first = first
        config = latent.config
        h_x_TH, self._h_p_TD, h_r_TD = model.hidden(h_TD)
        tables = latent.tables(model.words)
        features_FC = latent.type_feature if config.type_features else torch.zeros_like(latent.type_feature)
        self._feature_FC = array(features_FC) * self._scale
        self._place_TQ = array(latent.parent_bias(h_x_TH)) * self._scale
        self._relation_TR = array(h_r_TD @ tables.relation_RD.T) * self._scale
        named = None if cues is None else cues.named(h_x_TH.device)
        self._type_TC = array(latent.type_scores(h_x_TH, named, tables)) * self._scale
        self._cues = cues if config.cues else None
        if self._cues is not None:
            m_TN, a_TN = np.moveaxis(self._cues.relation_TN2, -1, 0)
            feature_TN3 = np.stack([m_TN, m_TN >= FULL, a_TN], -1)
            weight_TQ = array(latent.cue_weights(h_x_TH)) * self._scale
            weight_T23 = weight_TQ[:, : 2 * OF_RELATIONS].reshape(-1, 2, OF_RELATIONS)
            self._relation_TR += (feature_TN3 @ weight_T23.transpose(0, 2, 1)).reshape(self._relation_TR.shape)
            self._kind_T, self._day_T = weight_TQ[:, 2 * OF_RELATIONS :].T
        self._relation_highest_T = self._relation_TR.max(1)
        self._relation_mass_RT = np.exp(self._relation_TR - self._relation_highest_T[:, None]).T.copy()
        h_new_TC = self._h_p_TD + h_r_TD
        if config.frequency_bias:
            h_new_TC = torch.cat([h_new_TC, latent.frequency.expand(len(h_new_TC), -1)], -1)
        self._h_new_TC = h_new_TC * self._scale
        self._bias_E = None if tables.bias_E is None else tables.bias_E * self._scale
        # the same for single scores, where the overhead of tensors would be most of the time
        self._h_new, self._real = self._h_new_TC.detach().cpu().numpy(), latent.real_EC.cpu().numpy()
        self._bias = None if self._bias_E is None else array(self._bias_E)
        self._place, self._node = latent.place_N.cpu().numpy(), latent.real_E.cpu().numpy()
        groups = -(-len(self._node) // GROUP)
        self._new_log_z_T, self._new_share_TG = np.full(len(self), np.nan), np.empty((len(self), groups))
        self._tail_TD = array(h_x_TH @ latent.tail_HD) * self._scale if config.tail_scores else None
        self._fan_log_z = _ByNode(len(self), self._fan_sums)
        self._parent = _ByNode(len(self), self._parent_scores)
        self._relation_log_z = _ByNode(len(self), self._relation_sums)

    def __len__(self) -> int:
        return len(self._type_TC)

    def types(self, t: int, feature_K: Ints, related_K: Bools, continue_K: Bools) -> Floats:
        """log p(type) in each state; an illegal type has exactly -inf."""
        logits_KC = self._type_TC[t - self._first] + self._feature_FC[feature_K]
        logits_KC[~related_K, Type.RELATED] = -np.inf
        logits_KC[~continue_K, Type.CONTINUE] = -np.inf
        if self._latent.config.facts == "topic":
            logits_KC[:, Type.NEW] = -np.inf
        highest_K1 = logits_KC.max(1, keepdims=True)
        log_z_K1: Floats = highest_K1 + np.log(np.exp(logits_KC - highest_K1).sum(1, keepdims=True))
        log_p_KC: Floats = logits_KC - log_z_K1
        return log_p_KC

    # New entities

    def likely_starts(self, chance: float) -> Ints:
        """The positions where a mention begins with more than this probability, in a middling mention state."""
        logits_FTC = self._type_TC + self._feature_FC[:, None]
        mass_FTC = np.exp(logits_FTC - logits_FTC.max(-1, keepdims=True))
        start_FT = (mass_FTC[..., Type.NEW] + mass_FTC[..., Type.RELATED]) / mass_FTC.sum(-1)
        return self._first + np.flatnonzero(np.median(start_FT, 0) > chance)

    def prepare_new(self, t_N: Ints) -> None:
        """Sum exp(v_e · h + b_e) over all entities at these positions: at once they cost a fraction of one by one."""
        row_N = t_N - self._first
        missing = np.unique(row_N[np.isnan(self._new_log_z_T[row_N])])
        if not len(missing):
            return
        count, groups = len(self._node), self._new_share_TG.shape[1]
        with torch.no_grad():
            for at in np.array_split(missing, -(-len(missing) * count // BLOCK)):
                score_TE = torch.nn.functional.linear(self._h_new_TC[at], self._latent.real_EC, self._bias_E)
                highest_T1 = score_TE.amax(-1, keepdim=True)
                mass_TE = torch.nn.functional.pad(score_TE.sub_(highest_T1).exp_(), (0, groups * GROUP - count))
                mass_TG = array(mass_TE.view(len(mass_TE), groups, GROUP).sum(-1))
                total_T1 = mass_TG.sum(1, keepdims=True)
                self._new_log_z_T[at] = array(highest_T1)[:, 0] + np.log(total_T1[:, 0])
                self._new_share_TG[at] = mass_TG / total_T1

    def _new_scores(self, t_N: Ints, place_N: Ints) -> Floats:
        score_N = np.einsum("nc,nc->n", self._h_new[t_N - self._first], self._real[place_N], dtype=np.float64)
        return np.asarray(score_N if self._bias is None else score_N + self._bias[place_N])

    def new(self, t_N: Ints, node_N: Ints) -> Floats:
        """log p(e | new) of pairs of position and entity; a literal is never new: -inf."""
        self.prepare_new(t_N)
        place_N = self._place[node_N]
        log_p_N: Floats = self._new_scores(t_N, np.maximum(place_N, 0)) - self._new_log_z_T[t_N - self._first]
        share = self._latent.config.uniform_share
        if share:
            log_p_N = np.logaddexp(log_p_N + math.log1p(-share), math.log(share / len(self._real)))
        log_p_N[place_N < 0] = -np.inf
        return log_p_N

    def most_probable_new(self, t: int, count: int) -> tuple[Ints, Floats]:
        """The entities of greatest p(e | new) at a position, and it."""
        with torch.no_grad():
            score_E = torch.nn.functional.linear(self._h_new_TC[t - self._first], self._latent.real_EC, self._bias_E)
            best = torch.topk(score_E, min(count, len(score_E)))
            log_z = float(score_E.double().logsumexp(0))
        share = self._latent.config.uniform_share
        p_N = (1 - share) * np.exp(array(best.values) - log_z) + share / len(self._node)
        return np.asarray(self._node[best.indices.cpu().numpy()], np.int64), p_N

    def draw_new(self, t: int, uniform_N: Floats) -> Ints:
        """Nodes drawn from p(e | new) at a position: one for each of the given numbers, which are even on [0, 1)."""
        share, count = self._latent.config.uniform_share, len(self._real)
        self.prepare_new(np.array([t]))
        until_G = np.cumsum(self._new_share_TG[t - self._first])
        before_G = np.concatenate([[0.0], until_G])
        place_N = np.empty(len(uniform_N), np.int64)
        even_N = uniform_N < share
        if even_N.any():
            place_N[even_N] = np.minimum(uniform_N[even_N] / share * count, count - 1)
        # the rest of the number chooses a group, and what is left of it then someone of the group
        wanted_N = np.maximum(uniform_N - share, 0.0) / (1 - share) * until_G[-1]
        group_N = np.minimum(np.searchsorted(until_G, wanted_N, side="right"), len(until_G) - 1)
        for group in np.unique(group_N[~even_N]).tolist():
            rows = np.flatnonzero((group_N == group) & ~even_N)
            members = np.arange(group * GROUP, min((group + 1) * GROUP, count))
            score = self._new_scores(np.full(len(members), t), members)
            until = np.cumsum(np.exp(score - score.max()))
            left = (wanted_N[rows] - before_G[group]) / max(until_G[group] - before_G[group], 1e-300)
            found = np.searchsorted(until, left * until[-1], side="right")
            place_N[rows] = members[np.minimum(found, len(members) - 1)]
        return np.asarray(self._node[place_N], np.int64)

    # Parents and relations

    def parents(self, t: int, node_C: Ints) -> Floats:
        """v_p · h_p of parents at a position."""
        return self._parent.at(t - self._first, node_C)

    def parent_places(self, t: int) -> Floats:
        """What the features of a parent's place in the text add at a position: see `model.parents`."""
        return np.asarray(self._place_TQ[t - self._first])

    def relations_log_z(self, t: int, node_C: Ints) -> Floats:
        """log Σ_r exp(v_r · h_r) over the distinct relations of parents; -inf where there are none."""
        return self._relation_log_z.at(t - self._first, node_C)

    def relations(self, t: int, relation_N: npt.NDArray[np.integer]) -> Floats:
        """v_r · h_r of relations at a position."""
        return np.asarray(self._relation_TR[t - self._first, relation_N])

    # Tails

    def tail_shares(self, t: int, fan: Fan) -> Floats:
        """π(e | p, r) of every fact of a parent, in the order of `fan.tail`."""
        share_P = np.repeat(1 / fan.size, fan.size)
        if self._tail_TD is None:
            return share_P
        scored = (fan.size > 1) & (fan.size <= MAX_SCORED_TAILS)
        for first, size in zip(fan.first[scored].tolist(), fan.size[scored].tolist(), strict=True):
            score = self._tail_scores(fan.tail[first : first + size], t)
            mass = np.exp(score - score.max())
            share_P[first : first + size] = mass / mass.sum()
        return share_P

    def tail_share(self, t: int, tail_W: Ints, parent_W: Ints, relation_W: Ints, size_W: Ints) -> Floats:
        """π(e | p, r) of single facts; `size_W` is how many tails their relations have."""
        share_W = 1 / size_W
        scored = np.flatnonzero((size_W > 1) & (size_W <= MAX_SCORED_TAILS))
        if self._tail_TD is not None and len(scored):
            key_W = parent_W[scored] * self._graph.relation_count + relation_W[scored]
            log_z_W = self._fan_log_z.at(t - self._first, key_W)
            score_W = self._tail_scores(tail_W[scored], t)
            share_W[scored] = np.exp(score_W - log_z_W)
        return share_W

    def _tail_scores(self, node_N: npt.NDArray[np.integer], t: int) -> Floats:
        row = t - self._first
        return self._tail_sums(node_N, slice(row, row + 1))[:, 0]

    def _tail_sums(self, node_N: npt.NDArray[np.integer], here: slice) -> Floats:
        """v_e · Q h_x of tails, with what the words before say of their kind, and of dates (N × positions)."""
        assert self._tail_TD is not None
        score_NT = self._vectors(node_N) @ self._tail_TD[here].T
        if self._cues is not None:
            nodes = node_N.tolist()
            score_NT += self._day_T[here] * self._cues.days(nodes)[:, None]
            if (kind_NT := self._cues.kinds(nodes, here)) is not None:
                score_NT += self._kind_T[here] * kind_NT
        return score_NT

    def _vectors(self, node_N: npt.NDArray[np.integer]) -> Floats:
        return array(self._latent.entity_vectors(torch.from_numpy(node_N.astype(np.int64))))

    # By node, for a window of positions

    def _fan_sums(self, key_C: Ints, here: slice) -> Floats:
        log_z_CT = np.empty((len(key_C), len(self._type_TC[here])))
        for row, key in enumerate(key_C.tolist()):
            tails = self._graph.tails(*divmod(key, self._graph.relation_count))
            score_NT = self._tail_sums(tails, here)
            highest_T = score_NT.max(0)
            log_z_CT[row] = highest_T + np.log(np.exp(score_NT - highest_T).sum(0))
        return log_z_CT

    def _parent_scores(self, node_C: Ints, here: slice) -> Floats:
        with torch.no_grad():
            vector_CD = self._latent.entity_vectors(torch.from_numpy(node_C).to(self._h_p_TD.device))
            return array(vector_CD @ self._h_p_TD[here].T) * self._scale

    def _relation_sums(self, node_C: Ints, here: slice) -> Floats:
        mass_RT, highest_T = self._relation_mass_RT[:, here], self._relation_highest_T[here]
        log_z_CT = np.empty((len(node_C), len(highest_T)))
        for row, node in enumerate(node_C.tolist()):
            distinct = np.unique(self._graph.edges(node).relation)
            mass_T = mass_RT[distinct].sum(0)
            if len(distinct) and not mass_T.min(initial=1.0) > TINY:  # all far below some other relation
                log_z_CT[row] = np.logaddexp.reduce(self._relation_TR[here][:, distinct], 1)
            else:
                with np.errstate(divide="ignore"):
                    log_z_CT[row] = highest_T + np.log(mass_T)
        return log_z_CT


class _ByNode:
    """Numbers of nodes at positions: for all nodes at once, and for a window of positions, as these come in order.

    What is kept does not grow with the length of the text.
    """

    def __init__(self, length: int, compute: Callable[[Ints, slice], Floats]) -> None:
        self._length = length
        self._compute = compute
        self._open(0)

    def _open(self, start: int) -> None:
        self._start = start
        self._row: dict[int, int] = {}
        self._rows_CT = np.empty((0, min(WINDOW, self._length - start)))
        self._node_C = self._place_C = np.empty(0, np.int64)
        """What was asked for last: mostly the same is asked for again, or the same and a few more."""

    def at(self, row: int, node_C: Ints) -> Floats:
        """The numbers of these nodes at a position."""
        if not self._start <= row < self._start + WINDOW:
            self._open(row - row % WINDOW)
        if self._node_C is not node_C:
            same = len(self._node_C)
            if not np.array_equal(self._node_C, node_C[:same]):
                same = 0
            self._place_C = np.concatenate([self._place_C[:same], self._find(node_C[same:])])
            self._node_C = node_C
        return np.asarray(self._rows_CT[self._place_C, row - self._start])

    def _find(self, node_C: Ints) -> Ints:
        nodes = node_C.tolist()
        missing = [node for node in dict.fromkeys(nodes) if node not in self._row]
        if missing:
            used, width = len(self._row), self._rows_CT.shape[1]
            if used + len(missing) > len(self._rows_CT):
                room_CT = np.empty((2 * (used + len(missing)), width))
                room_CT[:used] = self._rows_CT[:used]
                self._rows_CT = room_CT
            here = slice(self._start, self._start + width)
            self._rows_CT[used : used + len(missing)] = self._compute(np.array(missing, np.int64), here)
            self._row.update(zip(missing, range(used, used + len(missing)), strict=True))
        return np.array([self._row[node] for node in nodes], np.int64)
