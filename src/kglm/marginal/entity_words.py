"""Words of one text, given the entities they may speak of: each scored once however many histories ask for it.

Legend: T targets of the text, S samples, P words of entities that are scored in one go, J alias slots.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.marginal.cache import NO_CACHE, Cache
from kglm.model.aliases import AliasTable
from kglm.model.chunk import FIRST_WORD, LATER_WORD
from kglm.model.kglm import Kglm
from kglm.model.text_scores import Bools, Floats, Ints, Text, array

AT_ONCE = 4096
"""Words of entities that are scored in one go."""


class Said(NamedTuple):
    """Target t as a word of an entity, in a mention that began at target `begun`."""

    t: int
    node: int
    begun: int


class WordTable:
    """log p(x_t | entity), each word scored once however many histories ask for it."""

    def __init__(self, model: Kglm, h_TD: Tensor, text: Text, aliases: AliasTable, cache: Cache = NO_CACHE) -> None:
        self._model = model
        self._text = text
        self._aliases = aliases
        self._h_x_TH = model.hidden(h_TD).x
        self._target_T = torch.from_numpy(text.words_N[1:]).to(h_TD.device)
        self.unknown_T = text.words_N[1:] == model.words.unknown
        self._cache = cache
        self._generated_T = array(model.words.log_prob(self._h_x_TH, self._target_T))
        self._again_T = cache.said_again(self._h_x_TH, text.surface) if cache else np.zeros(len(text))
        self.plain = functools.cache(self._plain)
        self._known: dict[Said, tuple[float, bool]] = {}

    def __len__(self) -> int:
        """How many words of entities have been scored."""
        return len(self._known)

    def _plain(self, penalty: float = 0.0) -> Floats:
        """log p(x_t | no entity) at each target; what is paid for as the unknown word costs `penalty` more."""
        return self._cache.mixed(self._generated_T, self._again_T, self.unknown_T, penalty)

    def prepare(self, wanted: Iterable[Said]) -> None:
        """Score what is not known yet, many at a time."""
        missing = [said for said in dict.fromkeys(wanted) if said not in self._known]
        if not missing:
            return
        missing.sort(key=lambda said: said.node)  # aliases are encoded once for all that is scored in one go
        with torch.no_grad():
            log_z_P = self._log_z(missing)
            for start in range(0, len(missing), AT_ONCE):
                self._score(missing[start : start + AT_ONCE], log_z_P[start : start + AT_ONCE])

    def log_p(self, wanted: Sequence[Said]) -> tuple[Floats, Bools]:
        """log p(x_t | entity), and whether it is paid for as the unknown word."""
        self.prepare(wanted)
        values = [self._known[said] for said in wanted]
        return np.array([p for p, _ in values], np.float64), np.array([unknown for _, unknown in values], np.bool_)

    def of(self, node_TS: Ints, begun_TS: Ints, penalty: float) -> tuple[Floats, Floats]:
        """log p(x_t | entity) for annotations of the whole text, and how much less it is with unknown words penalised.

        A node of -1 is no entity.
        """
        log_p_TS = np.repeat(self.plain(0.0)[:, None], node_TS.shape[1], 1)
        lost_TS = np.repeat((self.plain(0.0) - self.plain(penalty))[:, None], node_TS.shape[1], 1)
        t_P, s_P = np.nonzero(node_TS >= 0)
        if len(t_P):
            columns = (t_P.tolist(), node_TS[t_P, s_P].tolist(), begun_TS[t_P, s_P].tolist())
            log_p_TS[t_P, s_P], unknown_P = self.log_p([Said(*each) for each in zip(*columns, strict=True)])
            lost_TS[t_P, s_P] = penalty * unknown_P
        return log_p_TS, lost_TS

    def _log_z(self, wanted: list[Said]) -> Tensor:
        """Sums over the vocabulary: the same for a position and an entity, whenever the mention began."""
        nodes, t_P, place_P = self._places(wanted)
        pairs, pair_P = torch.unique(torch.stack([t_P, place_P]), dim=1, return_inverse=True)
        node_U = torch.tensor(list(nodes), device=t_P.device)
        return self._model.generated_log_z(self._h_x_TH, node_U, *pairs)[pair_P]

    def _places(self, wanted: list[Said]) -> tuple[dict[int, int], Tensor, Tensor]:
        nodes = {node: place for place, node in enumerate(dict.fromkeys(said.node for said in wanted))}
        t_P = torch.tensor([said.t for said in wanted], device=self._h_x_TH.device)
        return nodes, t_P, torch.tensor([nodes[said.node] for said in wanted], device=t_P.device)

    def _score(self, wanted: list[Said], log_z_P: Tensor) -> None:
        nodes, t_P, place_P = self._places(wanted)
        device = t_P.device
        alias_UAL = torch.from_numpy(np.stack([self._aliases[node].words_AL for node in nodes])).to(device)
        match_PJ = torch.zeros(len(wanted), self._aliases.slots, dtype=torch.bool)
        order_PJ = torch.zeros(match_PJ.shape, dtype=torch.int64)
        for row, (t, node, begun) in enumerate(wanted):
            aliases = self._aliases[node]
            match_PJ[row, aliases.matches(self._text.target(t))] = True
            so_far = self._text.surface[begun + 1 : t + 1]
            order_PJ[row, aliases.next_slots(so_far)] = LATER_WORD if so_far else FIRST_WORD
        scores = self._model.entity_words(
            self._h_x_TH[t_P],
            place_P,
            torch.tensor(list(nodes), device=device),
            alias_UAL,
            self._target_T[t_P],
            match_PJ.to(device),
            order_PJ.to(device),
            log_z_P,
        )
        values = zip(array(scores.log_p_S).tolist(), scores.unknown_S.tolist(), strict=True)
        self._known.update(zip(wanted, values, strict=True))
