"""p(x) of EntityNLM: annotations are drawn word by word from its proposal, and weighted by p / q.

    importance   S annotations, each drawn to the end
    particle     the same, with resampling: annotations of small weight are replaced by copies of others

Both estimate p(x) without bias. Whether a word is unknown does not depend on the annotation, so the unknown-penalised
estimate is the other one minus log |U| for each unknown word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from kglm.marginal.draws import draw_columns, systematic
from kglm.marginal.windows import KEPT, WINDOW, HiddenWindows, Recent
from kglm.model.arrays import Bools, Floats, Ints, array
from kglm.model.buckets import DISTANCES
from kglm.model.entity_nlm import EntityNlm, EntityNlmProposal
from kglm.model.softmax import TINY
from kglm.model.text import Text

RESAMPLE_BELOW = 0.5
"""The particle filter resamples if the effective number of samples falls below this share."""
MENTION, ENTITY, LENGTH, RESAMPLE = range(4)
"""Uses of the random numbers of a step."""


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
    window: int = WINDOW,
) -> Tracked:
    """Estimate p(x); hidden states are computed for a window of positions at a time."""
    with torch.no_grad():
        models = _EntityVectors(model, text, samples, window), _EntityVectors(proposal, text, samples, window)
        words, mentions = _WordScores(model, models[0], text, samples), _Mentions(samples)
        log_w_S, before = np.zeros(samples), 0.0
        totals_T, ess_T = np.zeros(len(text)), np.zeros(len(text))
        rng = np.random.default_rng(seed)
        for t in range(len(text)):
            uniform_4S = rng.random((4, samples))
            log_w_S += _step(t, mentions, models, uniform_4S) + words.log_p(t, mentions)
            total = np.logaddexp.reduce(log_w_S)
            totals_T[t] = before + total - np.log(samples)
            ess_T[t] = np.exp(2 * total - np.logaddexp.reduce(2 * log_w_S))
            if method == "particle" and t + 1 < len(text) and ess_T[t] < RESAMPLE_BELOW * samples:
                chosen_S = systematic(np.exp(log_w_S - total), uniform_4S[RESAMPLE, 0])
                before, log_w_S = float(totals_T[t]), np.zeros(samples)
                for part in (mentions, words, *models):
                    part.select(chosen_S)
    return Tracked(totals_T, log_w_S + before, ess_T)


def _step(t: int, mentions: _Mentions, models: tuple[_EntityVectors, _EntityVectors], uniform_4S: Floats) -> Floats:
    """Draw z_t of each sample from the proposal; log p(z_t) − log q(z_t)."""
    for model in models:
        model.read(t, mentions)
    free_S = mentions.continue_mentions(t)
    (log_p_2, log_q_2), ratio_S = (model.mentions(t) for model in models), np.zeros(len(uniform_4S[0]))
    starts_M = free_S[uniform_4S[MENTION, free_S] < np.exp(log_q_2[1])]
    ratio_S[free_S] = log_p_2[0] - log_q_2[0]
    ratio_S[starts_M] = log_p_2[1] - log_q_2[1]
    if not len(starts_M):
        return ratio_S
    at_M = np.arange(len(starts_M))
    p_MP, q_MP = (model.entities(t, mentions, starts_M) for model in models)
    column_M = draw_columns(np.exp(q_MP), uniform_4S[ENTITY, starts_M])
    ratio_S[starts_M] += p_MP[at_M, column_M] - q_MP[at_M, column_M]
    is_new_M = column_M == q_MP.shape[1] - 1
    mentions.begin(t, starts_M, np.where(is_new_M, mentions.entity_count_S[starts_M], column_M))
    p_ML, q_ML = (model.lengths(t, mentions, starts_M) for model in models)
    further_M = draw_columns(np.exp(q_ML), uniform_4S[LENGTH, starts_M])
    ratio_S[starts_M] += p_ML[at_M, further_M] - q_ML[at_M, further_M]
    mentions.left_S[starts_M] = further_M
    return ratio_S


class _Mentions:
    """The entities mentioned in each sample, and their last positions."""

    def __init__(self, samples: int) -> None:
        self.entity_count_S: Ints = np.zeros(samples, np.int64)
        self.current_S: Ints = np.full(samples, -1, np.int64)
        """Slot of the entity mentioned last, or -1."""
        self.left_S: Ints = np.zeros(samples, np.int64)
        """Words left in the running mention."""
        self.in_mention_S: Bools = np.zeros(samples, np.bool_)
        """True if the last word is inside a mention."""
        self.vector_changed_S: Bools = np.zeros(samples, np.bool_)
        """True if the vector that conditions the next word has changed."""
        self.last_SP: Ints = np.zeros((samples, 0), np.int64)

    def continue_mentions(self, t: int) -> Ints:
        """Advance running mentions by one word; return the samples without a running mention."""
        self.vector_changed_S = self.in_mention_S.copy()  # they have read a word of their entity since
        self.in_mention_S = self.left_S > 0
        self.left_S = np.maximum(self.left_S - 1, 0)
        continuing = np.flatnonzero(self.in_mention_S)
        self.last_SP[continuing, self.current_S[continuing]] = t
        return np.flatnonzero(~self.in_mention_S)

    def begin(self, t: int, starts_M: Ints, column_M: Ints) -> None:
        """Record that sample s mentions entity e from position t on."""
        self.entity_count_S[starts_M] = np.maximum(self.entity_count_S[starts_M], column_M + 1)
        if (more := int(self.entity_count_S.max()) - self.last_SP.shape[1]) > 0:
            self.last_SP = np.pad(self.last_SP, ((0, 0), (0, more)))
        self.current_S[starts_M] = column_M
        self.last_SP[starts_M, column_M] = t
        self.in_mention_S[starts_M] = self.vector_changed_S[starts_M] = True

    def select(self, chosen_S: Ints) -> None:
        for name in ("entity_count_S", "current_S", "left_S", "in_mention_S", "vector_changed_S", "last_SP"):
            setattr(self, name, getattr(self, name)[chosen_S])


class _EntityVectors:
    """Entity vectors of each sample for one model, p or q, updated as words are read."""

    def __init__(self, model: EntityNlm, text: Text, samples: int, window: int) -> None:
        self._model = model
        self._hidden = HiddenWindows(model, text, length=window)
        self._mention_log_p = Recent[Floats](KEPT)
        self._vector_SPH = model.new_vector.new_zeros(samples, 0, len(model.new_vector))
        """Vectors of the entities, and room for more."""
        self._count = 0
        """Number of entities that have vectors."""

    def h(self, t: int) -> Tensor:
        """h at position t."""
        number = self._hidden.of(t)
        return self._hidden[number][t - self._hidden.bounds(number)[0]]

    def read(self, t: int, mentions: _Mentions) -> None:
        """Update the vectors of entities by the word before position t."""
        self._count = mentions.last_SP.shape[1]
        if (room := self._vector_SPH.shape[1]) < self._count:
            new_SPH = self._model.new_vector.expand(len(self._vector_SPH), 2 * self._count - room, -1)
            self._vector_SPH = torch.cat([self._vector_SPH, new_SPH], 1)
        updated = np.flatnonzero(mentions.in_mention_S)
        if len(updated):
            place = torch.from_numpy(updated), torch.from_numpy(mentions.current_S[updated])
            h_UH = self.h(t).expand(len(updated), -1)
            self._vector_SPH[place] = self._model.changed(self._vector_SPH[place], h_UH)

    def mentions(self, t: int) -> Floats:
        """log p that no mention begins, and that one does."""
        number = self._hidden.of(t)
        return np.asarray(self._mention_log_p.get(number, self._mention_log_probs)[t - self._hidden.bounds(number)[0]])

    def _mention_log_probs(self, number: int) -> Floats:
        return array(self._model.mention_head(self._hidden[number]).log_softmax(-1))

    def entities(self, t: int, mentions: _Mentions, starts_M: Ints) -> Floats:
        """log p of each entity, the new one last (M × (P + 1))."""
        model, h_H = self._model, self.h(t) @ self._model.entity_HH
        known_MP = np.arange(mentions.last_SP.shape[1]) < mentions.entity_count_S[starts_M, None]
        bucket_MP = np.searchsorted(DISTANCES, np.maximum(t - mentions.last_SP[starts_M], 1))
        score_MP = torch.stack([self._vector_SPH[s, : self._count] @ h_H for s in starts_M.tolist()])  # without copies
        new_M = (h_H @ model.new_vector).expand(len(starts_M))
        known, bucket = torch.from_numpy(known_MP), torch.from_numpy(bucket_MP)
        return array(model.entity_log_probs(score_MP, new_M, bucket, known))

    def lengths(self, t: int, mentions: _Mentions, starts_M: Ints) -> Floats:
        """log p of each length, from 1."""
        vector_MH = self.conditioning(mentions, starts_M)
        return array(self._model.length_log_probs(self.h(t).expand(len(starts_M), -1), vector_MH))

    def conditioning(self, mentions: _Mentions, index_M: Ints) -> Tensor:
        """Entity vector that conditions the next word: the most recently mentioned entity."""
        current_M = mentions.current_S[index_M]
        vector_MH = self._model.new_vector.repeat(len(index_M), 1)
        old = np.flatnonzero((current_M >= 0) & (current_M < self._count))
        vector_MH[torch.from_numpy(old)] = self._vector_SPH[
            torch.from_numpy(index_M[old]), torch.from_numpy(current_M[old])
        ]
        vector_MH[torch.from_numpy(current_M < 0)] = 0
        return vector_MH

    def select(self, chosen_S: Ints) -> None:
        self._vector_SPH = self._vector_SPH[torch.from_numpy(chosen_S)]


class _WordScores:
    """log p(x_t) of each sample. exp(W (h + W_v v)) has a factor for h and one for v, computed when v changes."""

    def __init__(self, model: EntityNlm, vectors: _EntityVectors, text: Text, samples: int) -> None:
        self._model, self._vectors = model, vectors
        self._target_T = torch.from_numpy(text.words_N[1:])
        self._head = model.words
        like_H = model.new_vector
        self._part_SH = like_H.new_zeros(samples, len(like_H))
        """W_v v."""
        self._exp_SV = like_H.new_ones(samples, len(self._head))
        self._highest_S = like_H.new_zeros(samples)

    def log_p(self, t: int, mentions: _Mentions) -> Floats:
        other = np.flatnonzero(mentions.vector_changed_S)
        if len(other):
            at = torch.from_numpy(other)
            self._part_SH[at] = part_UH = self._vectors.conditioning(mentions, other) @ self._model.word_HH
            score_UV = self._head.products(part_UH)
            self._highest_S[at] = highest_U = score_UV.amax(-1)
            self._exp_SV[at] = score_UV.sub_(highest_U[:, None]).exp_()
        h_H = self._vectors.h(t)
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
