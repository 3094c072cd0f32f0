"""Words given an entity: generated from the vocabulary, or copied from an alias.

    no entity:   softmax(W h_x + b) over V
    entity e:    h' = W_proj [h_x ; v_e];  one softmax over V with scores W h' + b and over the slots j of e with
                 scores tanh(h'ᵀ W_copy) · a_j, where a_j is the alias LSTM's output at that word

Refinement, not in the paper: an alias slot that comes next after the words of the mention so far has a learned bias,
one for the first word of a mention and one for later words.

The probability of a word is its generated mass, if it is in V, plus that of every slot that holds it. A word outside of
V is copied if a slot holds it; otherwise it is scored as the unknown word.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from kglm.model.logsums import masked_logsumexp
from kglm.model.word_head import WordHead


class WordScores(NamedTuple):
    """log p(word | entity), and whether it is scored as the unknown word."""

    log_p_I: Tensor
    unknown_I: Tensor


class Renderer(nn.Module):
    """p(word | entity); the word matrix W and its bias b are shared with plain words."""

    def __init__(self, hidden: int, entity_size: int, *, alias_order: bool = True) -> None:
        super().__init__()
        self.alias_order = alias_order
        self.order = nn.Parameter(torch.zeros(2), requires_grad=alias_order)
        self.projection = nn.Linear(hidden + entity_size, hidden)
        self.copy = nn.Linear(hidden, hidden, bias=False)
        self.alias_lstm = nn.LSTM(hidden, hidden, batch_first=True)

    def encode_aliases(self, words: WordHead, alias_UAL: Tensor) -> Tensor:
        """a_j for all slots of the distinct entities."""
        entities, aliases, length = alias_UAL.shape
        alias_NL = alias_UAL.flatten(0, 1)
        length_N = (alias_NL != words.padding).sum(1)
        some_N = length_N.nonzero()[:, 0]  # most alias slots are empty
        embedded_NLH = words.embed(alias_NL[some_N])
        encoded_NLH = embedded_NLH.new_zeros(len(alias_NL), length, embedded_NLH.shape[-1])
        if len(some_N):
            packed = pack_padded_sequence(embedded_NLH, length_N[some_N].cpu(), batch_first=True, enforce_sorted=False)
            output_NLH, _ = pad_packed_sequence(self.alias_lstm(packed)[0], batch_first=True, total_length=length)
            encoded_NLH = encoded_NLH.index_copy(0, some_N, output_NLH)
        return encoded_NLH.view(entities, aliases * length, encoded_NLH.shape[-1])

    def project(self, h_IH: Tensor, entity_ID: Tensor) -> Tensor:
        """h' = W_proj [h_x ; v_e]."""
        projected: Tensor = self.projection(torch.cat([h_IH, entity_ID], -1))
        return projected

    def project_apart(self, h_TH: Tensor, entity_UD: Tensor) -> tuple[Tensor, Tensor]:
        """The two terms of h' = a + c: one of the text, one of the entity."""
        weight_HH, weight_HD = torch.split(self.projection.weight, [h_TH.shape[1], entity_UD.shape[1]], 1)
        return torch.nn.functional.linear(h_TH, weight_HH, self.projection.bias), entity_UD @ weight_HD.T

    def copy_scores(
        self, h_IH: Tensor, slot_UJH: Tensor, real_UJ: Tensor, order_IJ: Tensor, entity_I: Tensor
    ) -> Tensor:
        """tanh(h'ᵀ W_copy) · a_j + b, `order_IJ` says which b; a padding slot has exactly -inf."""
        query_IH: Tensor = self.copy(h_IH).tanh()
        i_Y, j_Y = real_UJ[entity_I].nonzero(as_tuple=True)  # most slots are padding
        score_Y = (query_IH[i_Y] * slot_UJH[entity_I[i_Y], j_Y]).sum(-1)
        if self.alias_order:
            score_Y = score_Y + torch.cat([self.order.new_zeros(1), self.order])[order_IJ[i_Y, j_Y]]
        return torch.full_like(order_IJ, -math.inf, dtype=score_Y.dtype).index_put((i_Y, j_Y), score_Y)

    def score(
        self, generated_I: Tensor, log_generate_I: Tensor, copy_IJ: Tensor, unknown_I: Tensor, match_IJ: Tensor
    ) -> WordScores:
        """log p of the targets from their scores W h' + b, log Σ exp of all scores over V, and the copy scores.

        `unknown_I` flags targets that are not in the vocabulary.
        """
        log_z_I = torch.logaddexp(log_generate_I, masked_logsumexp(copy_IJ, copy_IJ > -math.inf))
        copyable_I = match_IJ.any(-1)
        copied_I = masked_logsumexp(copy_IJ, match_IJ)
        known_I = ~unknown_I
        both_I = torch.logaddexp(generated_I, copied_I)
        mass_I = torch.where(known_I, both_I, torch.where(copyable_I, copied_I, generated_I))
        return WordScores(mass_I - log_z_I, unknown_I & ~copyable_I)


def real_slots(words: WordHead, alias_UAL: Tensor) -> Tensor:
    """True for the slots that hold a word."""
    return alias_UAL.flatten(1) != words.padding
