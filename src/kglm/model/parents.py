"""What the place of a parent in the text says for it: how long ago it was mentioned, whether it is the article's
subject, whether it stands in the same sentence.

After "Japan lies in Asia. The capital of France is" the parent is France: it stands in the sentence. After "… Its
capital is" it is the subject. Which of these counts how much depends on the text, so

    b_p = Σ_q f_q(p, t) (w + U h_x)_q

with a feature for each log-bucket of the distance, one for the first entity mentioned, one for the sentence.

Legend: Q features of a place, K candidates, X pairs of a history and a candidate, H size of h_x.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from kglm.model.annotation import DISTANCES

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
BUCKETS = len(DISTANCES) + 1
SUBJECT, SENTENCE = BUCKETS, BUCKETS + 1
PLACES = BUCKETS + 2
"""Features of a place: the buckets of its distance, then these two."""
START_SENTENCE = 1.0
"""What a mention in the same sentence adds before anything is learned."""


def places(t: int, boundary: int, last_K: Ints, subject_K: Bools) -> Ints:
    """Where parents stand at target t, which is word t + 1: bucket of the distance, subject or not, in the sentence or
    not (K × 3).

    `last_K` is the last target that was a word of the parent, `boundary` the word before the sentence.
    """
    bucket_K = np.searchsorted(DISTANCES, np.maximum(t - last_K, 1))
    return np.stack([bucket_K, subject_K, last_K + 1 > boundary], -1)


def place_scores(weight_Q: Floats, place_K3: Ints) -> Floats:
    """b_p of parents, given the weights of the features."""
    return np.asarray(weight_Q[place_K3[:, 0]] + place_K3[:, 1:] @ weight_Q[SUBJECT:])


class ParentBias(nn.Module):
    """The weights w + U h_x; those of features that are left out are 0."""

    used_Q: Tensor

    def __init__(self, hidden: int, *, recency: bool, subject: bool, sentence: bool) -> None:
        super().__init__()
        used = torch.tensor([recency] * BUCKETS + [subject, sentence])
        start_Q = torch.zeros(PLACES)
        start_Q[SENTENCE] = START_SENTENCE
        self.register_buffer("used_Q", used, persistent=False)
        self.weight_Q = nn.Parameter(start_Q, requires_grad=bool(used.any()))
        self.context_HQ = nn.Parameter(torch.zeros(hidden, PLACES), requires_grad=bool(used.any()))

    def forward(self, h_x_MH: Tensor) -> Tensor:
        """The weights at positions (M × Q)."""
        return (self.weight_Q + h_x_MH @ self.context_HQ) * self.used_Q

    def scores(self, h_x_MH: Tensor, place_MK3: Tensor) -> Tensor:
        """b_p of the candidates of each start."""
        weight_MQ: Tensor = self(h_x_MH)
        of_rest_MK = (place_MK3[..., 1:].to(weight_MQ) @ weight_MQ[:, SUBJECT:, None])[..., 0]
        return weight_MQ.gather(1, place_MK3[..., 0]) + of_rest_MK
