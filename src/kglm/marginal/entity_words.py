"""Probabilities of the words of one text, given the entities they may refer to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.marginal.cache import NO_CACHE, Cache
from kglm.marginal.windows import KEPT, HiddenWindows, Recent, empty
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
    """log p(x_t | entity); each word is scored once, however many histories need it, and dropped behind them."""

    def __init__(
        self, model: Kglm, hidden: HiddenWindows, text: Text, aliases: AliasTable, cache: Cache = NO_CACHE
    ) -> None:
        self._model = model
        self._hidden = hidden
        self._text = text
        self._aliases = aliases
        self._target_T = torch.from_numpy(text.words_N[1:]).to(model.words.weight_VH.device)
        self.unknown_T = text.words_N[1:] == model.words.unknown
        self._cache = cache
        self._generated_T, self._cache_T = np.full(len(text), np.nan), np.zeros(len(text))
        """log p(x_t | no entity) of the model, not a number until it is computed, and p(x_t) of the cache."""
        self._plain: dict[float, Floats] = {}
        """log p of the mixture of both, by penalty; not a number until it is computed."""
        self._scored = Recent[dict[MentionWord, tuple[float, bool]]](KEPT)
        """Scores by window."""

    def __len__(self) -> int:
        """Number of mention words whose scores are kept."""
        return sum(map(len, self._scored.values()))

    # Plain words

    def plain(self, penalty: float = 0.0, start: int = 0, stop: int | None = None) -> Floats:
        """log p(x_t | no entity) at the positions [start, stop); an unknown word costs `penalty` more."""
        stop = len(self._text) if stop is None else stop
        numbers = range(self._hidden.of(start), self._hidden.of(stop - 1) + 1) if stop > start else ()
        plain_T = self._plain.setdefault(penalty, np.full(len(self._text), np.nan))
        for number in numbers:
            if np.isnan(plain_T[number * self._hidden.length]):
                self._fill(number, penalty)
        return plain_T[start:stop]

    def plain_at(self, t: int, penalty: float = 0.0) -> float:
        """log p(x_t | no entity) at one position."""
        plain_T = self._plain.get(penalty)
        if plain_T is None or np.isnan(value := plain_T[t]):
            value = self.plain(penalty, t, t + 1)[0]
        return float(value)

    def _fill(self, number: int, penalty: float) -> None:
        """Compute log p of plain words in a window."""
        start, stop = self._hidden.bounds(number)
        if np.isnan(self._generated_T[start]):
            with torch.no_grad():
                h_x_TH = self._model.hidden(self._hidden[number]).x
                self._generated_T[start:stop] = array(self._model.words.log_prob(h_x_TH, self._target_T[start:stop]))
                if self._cache:
                    first = max(start - self._cache.window, 0)
                    h_x_TH = self._model.hidden(self._hidden.between(first, stop)).x
                    surface = self._text.surface[first : stop + 1]
                    self._cache_T[start:stop] = self._cache.last_probabilities(h_x_TH, surface, stop - start)
        here = slice(start, stop)
        self._plain[penalty][here] = self._cache.mixed(
            self._generated_T[here], self._cache_T[here], self.unknown_T[here], penalty, start
        )

    # Words of mentions

    def prepare(self, wanted: Iterable[MentionWord]) -> None:
        """Score the words that have no score yet, many at a time."""
        by_window: dict[int, list[MentionWord]] = {}
        for word in dict.fromkeys(wanted):
            number = self._hidden.of(word.t)
            if word not in self._scored.get(number, empty):
                by_window.setdefault(number, []).append(word)
        for number, missing in by_window.items():
            missing.sort(key=lambda word: word.node)  # aliases of an entity are encoded once for words scored together
            with torch.no_grad():
                h_x_TH, first = self._model.hidden(self._hidden[number]).x, number * self._hidden.length
                log_z_I = self._log_z(missing, h_x_TH, first)
                for start in range(0, len(missing), AT_ONCE):
                    some = slice(start, start + AT_ONCE)
                    self._scored.get(number, empty).update(self._score(missing[some], log_z_I[some], h_x_TH, first))

    def log_p(self, wanted: Sequence[MentionWord]) -> tuple[Floats, Bools]:
        """log p(x_t | entity), and whether it is scored as the unknown word."""
        if not all(word in self._scored.get(self._hidden.of(word.t), empty) for word in wanted):
            self.prepare(wanted)
        values = [self._scored.get(self._hidden.of(word.t), empty)[word] for word in wanted]
        return np.array([p for p, _ in values], np.float64), np.array([unknown for _, unknown in values], np.bool_)

    def of(self, first: int, node_TS: Ints, begun_TS: Ints, penalty: float) -> tuple[Floats, Floats]:
        """log p(x_t | entity) for annotations of the positions from `first` on, and the penalty for unknown words.

        A node of -1 is no entity. The penalty is to be subtracted.
        """
        plain_T, penalised_T = (self.plain(each, first, first + len(node_TS)) for each in (0.0, penalty))
        log_p_TS = np.repeat(plain_T[:, None], node_TS.shape[1], 1)
        unknown_penalty_TS = np.repeat((plain_T - penalised_T)[:, None], node_TS.shape[1], 1)
        t_I, s_I = np.nonzero(node_TS >= 0)
        if len(t_I):
            columns = ((first + t_I).tolist(), node_TS[t_I, s_I].tolist(), begun_TS[t_I, s_I].tolist())
            log_p_TS[t_I, s_I], unknown_I = self.log_p([MentionWord(*each) for each in zip(*columns, strict=True)])
            unknown_penalty_TS[t_I, s_I] = penalty * unknown_I
        return log_p_TS, unknown_penalty_TS

    def _log_z(self, wanted: list[MentionWord], h_x_TH: Tensor, first: int) -> Tensor:
        """Sums over the vocabulary, which depend on the position and the entity only; `h_x_TH` begins at `first`."""
        nodes, t_I, entity_I = self._rows(wanted, first)
        pairs, pair_I = torch.unique(torch.stack([t_I, entity_I]), dim=1, return_inverse=True)
        node_U = torch.tensor(list(nodes), device=t_I.device)
        return self._model.generated_log_z(h_x_TH, node_U, *pairs)[pair_I]

    def _rows(self, wanted: list[MentionWord], first: int) -> tuple[dict[int, int], Tensor, Tensor]:
        """The distinct nodes, and for each word its row in the window and that of its node."""
        nodes = {node: place for place, node in enumerate(dict.fromkeys(word.node for word in wanted))}
        t_I = torch.tensor([word.t - first for word in wanted], device=self._target_T.device)
        return nodes, t_I, torch.tensor([nodes[word.node] for word in wanted], device=t_I.device)

    def _score(
        self, wanted: list[MentionWord], log_z_I: Tensor, h_x_TH: Tensor, first: int
    ) -> Iterable[tuple[MentionWord, tuple[float, bool]]]:
        nodes, t_I, entity_I = self._rows(wanted, first)
        device = t_I.device
        alias_UAL = torch.from_numpy(self._aliases.stack(list(nodes))).to(device)
        match_IJ = torch.zeros(len(wanted), alias_UAL[0].numel(), dtype=torch.bool)
        order_IJ = torch.zeros(match_IJ.shape, dtype=torch.int64)
        for row, (t, node, begun) in enumerate(wanted):
            aliases = self._aliases[node]
            match_IJ[row, aliases.matches(self._text.target(t))] = True
            so_far = self._text.surface[begun + 1 : t + 1]
            order_IJ[row, aliases.next_slots(so_far)] = LATER_WORD if so_far else FIRST_WORD
        scores = self._model.entity_words(
            h_x_TH[t_I],
            entity_I,
            torch.tensor(list(nodes), device=device),
            alias_UAL,
            self._target_T[first + t_I],
            match_IJ.to(device),
            order_IJ.to(device),
            log_z_I,
        )
        values = zip(array(scores.log_p_I).tolist(), scores.unknown_I.tolist(), strict=True)
        return zip(wanted, values, strict=True)
