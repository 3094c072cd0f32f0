"""The output layer over words, softmax(W h + b), and the word embeddings: the only way to the output matrix.

Letters: see `kglm.model`; N are rows of any kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from kglm.model.softmax import (
    linear_log_prob,
    linear_log_probs,
    linear_logsumexp,
    linear_score,
    pair_logsumexp,
)
from kglm.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class WordHead:
    """W (V × H), which is also the embedding of words, and b.

    A view of parameters that an encoder and a model own: make one whenever it is needed, it costs nothing.
    """

    weight_VH: Tensor
    bias_V: Tensor | None = None
    unknown: int = Vocabulary.unknown
    """Index of the word that stands for all words outside of the vocabulary."""
    padding: int = Vocabulary.padding

    def __len__(self) -> int:
        """Size of the vocabulary."""
        return len(self.weight_VH)

    # Embeddings

    def embed(self, word: Tensor) -> Tensor:
        """Embeddings of words, of any shape."""
        return functional.embedding(word, self.weight_VH)

    def mean_embedding(self, word_NL: Tensor) -> Tensor:
        """Mean embedding of each row of words, padding left out."""
        return functional.embedding_bag(word_NL, self.weight_VH, mode="mean", padding_idx=self.padding)

    # Scores and probabilities

    def products(self, h_NH: Tensor) -> Tensor:
        """W h of every word, without the bias (N × V)."""
        return functional.linear(h_NH, self.weight_VH)

    def scores(self, h_NH: Tensor) -> Tensor:
        """W h + b of every word (N × V)."""
        return functional.linear(h_NH, self.weight_VH, self.bias_V)

    def score(self, h_NH: Tensor, word_N: Tensor) -> Tensor:
        """W h + b of one word for each row."""
        return linear_score(h_NH, self.weight_VH, self._bias, word_N)

    def log_sum(self, h_NH: Tensor, *, uneven: bool = False) -> Tensor:
        """log Σ_v exp(W h + b)_v of each row; `uneven` says that rows will have different gradients."""
        return linear_logsumexp(h_NH, self.weight_VH, self.bias_V, uneven=uneven)

    def pair_log_sums(self, left_TH: Tensor, right_UH: Tensor, left_N: Tensor, right_N: Tensor) -> Tensor:
        """log Σ_v exp(W (a_t + c_u) + b)_v of many pairs (t, u); without gradient."""
        return pair_logsumexp(left_TH, right_UH, self.weight_VH, self._bias, left_N, right_N)

    def log_prob(self, h_NH: Tensor, word_N: Tensor) -> Tensor:
        """log p of one word for each row."""
        return linear_log_prob(h_NH, self.weight_VH, self._bias, word_N)

    def log_probs(self, h_NH: Tensor) -> Tensor:
        """log p of every word (N × V): for few rows, because all of it is held."""
        return linear_log_probs(h_NH, self.weight_VH, self._bias)

    @property
    def _bias(self) -> Tensor:
        return self.weight_VH.new_zeros(len(self)) if self.bias_V is None else self.bias_V

    def is_unknown(self, word: Tensor) -> Tensor:
        """True where a word is the unknown one."""
        unknown: Tensor = torch.eq(word, self.unknown)
        return unknown
