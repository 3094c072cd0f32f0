"""p(x) of EntityNLM: annotations are drawn word by word from its proposal, and weighed by p / q.

    importance   S annotations, each drawn to the end
    particle     the same, but annotations that explain the text badly are given up for others on the way

Both estimate p(x) without bias. A word is the unknown one whatever the annotation, so the unknown-penalised estimate is
the other one less log |U| for each of them.

Legend: T targets, S samples, K entities that some sample has mentioned, H size of h, V words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from kglm.marginal.draws import draw_columns, systematic
from kglm.model.annotation import DISTANCES
from kglm.model.entity_nlm import EntityNlm, EntityNlmProposal
from kglm.model.softmax import TINY
from kglm.model.text_scores import Bools, Floats, Ints, Text, array, hidden_states

RESAMPLE_BELOW = 0.5
"""Share of the samples that the effective number must fall below, for a filter to draw them anew."""
MENTION, ENTITY, LENGTH, AGAIN = range(4)
"""What the random numbers of a step are for."""


@dataclass(frozen=True)
class Tracked:
    """Estimates of log p(x_≤t), and the weights at the end."""

    totals_T: Floats
    log_w_S: Floats
    ess_T: Floats


def track(
    text: Text,
    model: EntityNlm,
    proposal: EntityNlmProposal,
    samples: int,
    *,
    method: Literal["importance", "particle"],
    seed: int,
) -> Tracked:
    """Estimate p(x)."""
    with torch.no_grad():
        views = _View(model, text, samples), _View(proposal, text, samples)
        said, cast = _Words(model, views[0], text, samples), _Cast(samples)
        log_w_S, before = np.zeros(samples), 0.0
        totals_T, ess_T = np.zeros(len(text)), np.zeros(len(text))
        rng = np.random.default_rng(seed)
        for t in range(len(text)):
            uniform_4S = rng.random((4, samples))
            log_w_S += _step(t, cast, views, uniform_4S) + said.log_p(t, cast)
            total = np.logaddexp.reduce(log_w_S)
            totals_T[t] = before + total - np.log(samples)
            ess_T[t] = np.exp(2 * total - np.logaddexp.reduce(2 * log_w_S))
            if method == "particle" and t + 1 < len(text) and ess_T[t] < RESAMPLE_BELOW * samples:
                chosen_S = systematic(np.exp(log_w_S - total), uniform_4S[AGAIN, 0])
                before, log_w_S = float(totals_T[t]), np.zeros(samples)
                for part in (cast, said, *views):
                    part.select(chosen_S)
    return Tracked(totals_T, log_w_S + before, ess_T)


def _step(t: int, cast: _Cast, views: tuple[_View, _View], uniform_4S: Floats) -> Floats:
    """Draw z_t of each sample from the proposal; log p(z_t) − log q(z_t)."""
    for view in views:
        view.read(t, cast)
    free_S = cast.go_on(t)
    (log_p_2, log_q_2), ratio_S = (view.mentions(t) for view in views), np.zeros(len(uniform_4S[0]))
    starts_M = free_S[uniform_4S[MENTION, free_S] < np.exp(log_q_2[1])]
    ratio_S[free_S] = log_p_2[0] - log_q_2[0]
    ratio_S[starts_M] = log_p_2[1] - log_q_2[1]
    if not len(starts_M):
        return ratio_S
    at_M = np.arange(len(starts_M))
    p_MK, q_MK = (view.entities(t, cast, starts_M) for view in views)
    column_M = draw_columns(np.exp(q_MK), uniform_4S[ENTITY, starts_M])
    ratio_S[starts_M] += p_MK[at_M, column_M] - q_MK[at_M, column_M]
    is_new_M = column_M == q_MK.shape[1] - 1
    cast.begin(t, starts_M, np.where(is_new_M, cast.known_S[starts_M], column_M))
    p_ML, q_ML = (view.lengths(t, cast, starts_M) for view in views)
    further_M = draw_columns(np.exp(q_ML), uniform_4S[LENGTH, starts_M])
    ratio_S[starts_M] += p_ML[at_M, further_M] - q_ML[at_M, further_M]
    cast.left_S[starts_M] = further_M
    return ratio_S


class _Cast:
    """Who was mentioned in each sample, and when."""

    def __init__(self, samples: int) -> None:
        self.known_S: Ints = np.zeros(samples, np.int64)
        self.current_S: Ints = np.full(samples, -1, np.int64)
        """The last entity that was mentioned, or -1."""
        self.left_S: Ints = np.zeros(samples, np.int64)
        """Words that the running mention still has."""
        self.spoke_S: Bools = np.zeros(samples, np.bool_)
        """Whether the last word was one of a mention."""
        self.other_S: Bools = np.zeros(samples, np.bool_)
        """Whether the vector that words are said with is another than before."""
        self.last_SK: Ints = np.zeros((samples, 0), np.int64)

    def go_on(self, t: int) -> Ints:
        """Take one more word of each running mention; the samples that have none."""
        self.other_S = self.spoke_S.copy()  # they have read a word of their entity since
        self.spoke_S = self.left_S > 0
        self.left_S = np.maximum(self.left_S - 1, 0)
        speaking = np.flatnonzero(self.spoke_S)
        self.last_SK[speaking, self.current_S[speaking]] = t
        return np.flatnonzero(~self.spoke_S)

    def begin(self, t: int, starts_M: Ints, column_M: Ints) -> None:
        """Mention these entities, in these samples."""
        self.known_S[starts_M] = np.maximum(self.known_S[starts_M], column_M + 1)
        if (more := int(self.known_S.max()) - self.last_SK.shape[1]) > 0:
            self.last_SK = np.pad(self.last_SK, ((0, 0), (0, more)))
        self.current_S[starts_M] = column_M
        self.last_SK[starts_M, column_M] = t
        self.spoke_S[starts_M] = self.other_S[starts_M] = True

    def select(self, chosen_S: Ints) -> None:
        for name in ("known_S", "current_S", "left_S", "spoke_S", "other_S", "last_SK"):
            setattr(self, name, getattr(self, name)[chosen_S])


class _View:
    """The vectors of all entities of all samples, as one model sees them."""

    def __init__(self, model: EntityNlm, text: Text, samples: int) -> None:
        self._model = model
        self.h_TH = hidden_states(model, text)
        self._mention_T2 = array(model.mention_head(self.h_TH).log_softmax(-1))
        self._vector_SKH = self.h_TH.new_zeros(samples, 0, self.h_TH.shape[1])

    def read(self, t: int, cast: _Cast) -> None:
        """What the last word has changed."""
        if (more := cast.last_SK.shape[1] - self._vector_SKH.shape[1]) > 0:
            new_SKH = self._model.new_vector.expand(len(self._vector_SKH), more, -1)
            self._vector_SKH = torch.cat([self._vector_SKH, new_SKH], 1)
        spoke = np.flatnonzero(cast.spoke_S)
        if len(spoke):
            place = torch.from_numpy(spoke), torch.from_numpy(cast.current_S[spoke])
            h_UH = self.h_TH[t].expand(len(spoke), -1)
            self._vector_SKH[place] = self._model.changed(self._vector_SKH[place], h_UH)

    def mentions(self, t: int) -> Floats:
        """log p that no mention begins, and that one does."""
        return np.asarray(self._mention_T2[t])

    def entities(self, t: int, cast: _Cast, starts_M: Ints) -> Floats:
        """log p of each entity, the new one last (M × (K + 1))."""
        model, h_H = self._model, self.h_TH[t] @ self._model.entity_HH
        known_MK = np.arange(cast.last_SK.shape[1]) < cast.known_S[starts_M, None]
        bucket_MK = np.searchsorted(DISTANCES, np.maximum(t - cast.last_SK[starts_M], 1))
        score_MK = self._vector_SKH[torch.from_numpy(starts_M)] @ h_H
        new_M = (h_H @ model.new_vector).expand(len(starts_M))
        known, bucket = torch.from_numpy(known_MK), torch.from_numpy(bucket_MK)
        return array(model.entity_log_probs(score_MK, new_M, bucket, known))

    def lengths(self, t: int, cast: _Cast, starts_M: Ints) -> Floats:
        """log p of each length, from 1."""
        vector_MH = self.said(cast, starts_M)
        return array(self._model.length_log_probs(self.h_TH[t].expand(len(starts_M), -1), vector_MH))

    def said(self, cast: _Cast, index_M: Ints) -> Tensor:
        """The vector that the next word is said with: of the last entity that was mentioned."""
        current_M = cast.current_S[index_M]
        kept = self._vector_SKH.shape[1]
        vector_MH = self._model.new_vector.repeat(len(index_M), 1)
        old = np.flatnonzero((current_M >= 0) & (current_M < kept))
        vector_MH[torch.from_numpy(old)] = self._vector_SKH[
            torch.from_numpy(index_M[old]), torch.from_numpy(current_M[old])
        ]
        vector_MH[torch.from_numpy(current_M < 0)] = 0
        return vector_MH

    def select(self, chosen_S: Ints) -> None:
        self._vector_SKH = self._vector_SKH[torch.from_numpy(chosen_S)]


class _Words:
    """log p(x_t) of each sample. exp(W (h + W_v v)) is a product, so the part of v is made when v changes, not at every
    word."""

    def __init__(self, model: EntityNlm, view: _View, text: Text, samples: int) -> None:
        self._model, self._view = model, view
        self._target_T = torch.from_numpy(text.words_N[1:])
        self._head = model.words
        self._part_SH = view.h_TH.new_zeros(samples, view.h_TH.shape[1])
        """W_v v."""
        self._exp_SV = view.h_TH.new_ones(samples, len(self._head))
        self._highest_S = view.h_TH.new_zeros(samples)

    def log_p(self, t: int, cast: _Cast) -> Floats:
        other = np.flatnonzero(cast.other_S)
        if len(other):
            at = torch.from_numpy(other)
            self._part_SH[at] = part_UH = self._view.said(cast, other) @ self._model.word_HH
            score_UV = self._head.products(part_UH)
            self._highest_S[at] = highest_U = score_UV.amax(-1)
            self._exp_SV[at] = score_UV.sub_(highest_U[:, None]).exp_()
        h_H = self._view.h_TH[t]
        score_V = self._head.scores(h_H)
        highest = score_V.max()
        total_S = self._exp_SV @ (score_V - highest).exp()
        target = self._target_T[t]
        log_p_S = score_V[target] + self._part_SH @ self._head.embed(target)
        log_p_S = log_p_S - total_S.log() - highest - self._highest_S
        lost = (total_S < TINY).nonzero()[:, 0]
        if len(lost):
            h_UH = h_H + self._part_SH[lost]
            log_p_S[lost] = self._head.log_prob(h_UH, target.expand(len(lost)))
        return array(log_p_S)

    def select(self, chosen_S: Ints) -> None:
        at = torch.from_numpy(chosen_S)
        self._part_SH, self._exp_SV, self._highest_S = self._part_SH[at], self._exp_SV[at], self._highest_S[at]
