"""Probabilities of the words of one text, given the entities they may refer to."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.marginal.cache import NO_CACHE, Cache
from kglm.model.aliases import AliasTable
from kglm.model.arrays import Bools, Floats, Ints, array
from kglm.model.chunk import FIRST_WORD, LATER_WORD
from kglm.model.kglm import Kglm
from kglm.model.text import Text

AT_ONCE = 4096
"""Words of mentions that are scored together."""


class MentionWord(NamedTuple):
    """Position t as a word of an entity, in a mention that began at position `begun`."""

    t: int
    node: int
    begun: int


class WordTable:
    """log p(x_t | entity); each word is scored once, however many histories need it."""

    def __init__(self, model: Kglm, h_TD: Tensor, text: Text, aliases: AliasTable, cache: Cache = NO_CACHE) -> None:
        self._model = model
        self._text = text
        self._aliases = aliases
        self._h_x_TH = model.hidden(h_TD).x
        self._target_T = torch.from_numpy(text.words_N[1:]).to(h_TD.device)
        self.unknown_T = text.words_N[1:] == model.words.unknown
        self._cache = cache
        self._generated_T = array(model.words.log_prob(self._h_x_TH, self._target_T))
        self._cache_T = cache.probabilities(self._h_x_TH, text.surface) if cache else np.zeros(len(text))
        self.plain = functools.cache(self._plain)
        self._scored: dict[MentionWord, tuple[float, bool]] = {}

    def __len__(self) -> int:
        """Number of mention words that have been scored."""
        return len(self._scored)

    def _plain(self, penalty: float = 0.0) -> Floats:
        """log p(x_t | no entity) at each position; an unknown word costs `penalty` more."""
        return self._cache.mixed(self._generated_T, self._cache_T, self.unknown_T, penalty)

    def prepare(self, wanted: Iterable[MentionWord]) -> None:
        """Score the words that have no score yet, many at a time."""
        missing = [word for word in dict.fromkeys(wanted) if word not in self._scored]
        if not missing:
            return
        missing.sort(
            key=lambda word: word.node
        )  # aliases of an entity are encoded once for all words that are scored together
        with torch.no_grad():
            log_z_I = self._log_z(missing)
            for start in range(0, len(missing), AT_ONCE):
                self._score(missing[start : start + AT_ONCE], log_z_I[start : start + AT_ONCE])

    def log_p(self, wanted: Sequence[MentionWord]) -> tuple[Floats, Bools]:
        """log p(x_t | entity), and whether it is scored as the unknown word."""
        self.prepare(wanted)
        values = [self._scored[word] for word in wanted]
        return np.array([p for p, _ in values], np.float64), np.array([unknown for _, unknown in values], np.bool_)

    def of(self, node_TS: Ints, begun_TS: Ints, penalty: float) -> tuple[Floats, Floats]:
        """log p(x_t | entity) for annotations of the whole text, and the penalty to subtract for unknown words.

        A node of -1 is no entity.
        """
        log_p_TS = np.repeat(self.plain(0.0)[:, None], node_TS.shape[1], 1)
        unknown_penalty_TS = np.repeat((self.plain(0.0) - self.plain(penalty))[:, None], node_TS.shape[1], 1)
        t_I, s_I = np.nonzero(node_TS >= 0)
        if len(t_I):
            columns = (t_I.tolist(), node_TS[t_I, s_I].tolist(), begun_TS[t_I, s_I].tolist())
            log_p_TS[t_I, s_I], unknown_I = self.log_p([MentionWord(*each) for each in zip(*columns, strict=True)])
            unknown_penalty_TS[t_I, s_I] = penalty * unknown_I
        return log_p_TS, unknown_penalty_TS

    def _log_z(self, wanted: list[MentionWord]) -> Tensor:
        """Sums over the vocabulary, which depend on the position and the entity only."""
        nodes, t_I, entity_I = self._rows(wanted)
        pairs, pair_I = torch.unique(torch.stack([t_I, entity_I]), dim=1, return_inverse=True)
        node_U = torch.tensor(list(nodes), device=t_I.device)
        return self._model.generated_log_z(self._h_x_TH, node_U, *pairs)[pair_I]

    def _rows(self, wanted: list[MentionWord]) -> tuple[dict[int, int], Tensor, Tensor]:
        nodes = {node: place for place, node in enumerate(dict.fromkeys(word.node for word in wanted))}
        t_I = torch.tensor([word.t for word in wanted], device=self._h_x_TH.device)
        return nodes, t_I, torch.tensor([nodes[word.node] for word in wanted], device=t_I.device)

    def _score(self, wanted: list[MentionWord], log_z_I: Tensor) -> None:
        nodes, t_I, entity_I = self._rows(wanted)
        device = t_I.device
        alias_UAL = torch.from_numpy(np.stack([self._aliases[node].words_AL for node in nodes])).to(device)
        match_IJ = torch.zeros(len(wanted), self._aliases.slots, dtype=torch.bool)
        order_IJ = torch.zeros(match_IJ.shape, dtype=torch.int64)
        for row, (t, node, begun) in enumerate(wanted):
            aliases = self._aliases[node]
            match_IJ[row, aliases.matches(self._text.target(t))] = True
            so_far = self._text.surface[begun + 1 : t + 1]
            order_IJ[row, aliases.next_slots(so_far)] = LATER_WORD if so_far else FIRST_WORD
        scores = self._model.entity_words(
            self._h_x_TH[t_I],
            entity_I,
            torch.tensor(list(nodes), device=device),
            alias_UAL,
            self._target_T[t_I],
            match_IJ.to(device),
            order_IJ.to(device),
            log_z_I,
        )
        values = zip(array(scores.log_p_I).tolist(), scores.unknown_I.tolist(), strict=True)
        self._scored.update(zip(wanted, values, strict=True))
