"""Hide facts of training documents, so that the model learns to see that a fact is missing.

At some mentions that facts (p, r) lead to, the text is also scored as asking for these facts in a graph without them:

    log Σ_{(p, r) hidden} π(p) e^{s(r) + κ} / z(p),    z(p) without the hidden relations of p

in addition to the likelihood of the document, in which the facts are there (see `model.missing`). So no mention is lost
for training. The type is not part of the term, because the text asks for the same in both cases. The facts of a mention
are those that the annotation lists; all relations that lead from one of their parents to the entity are hidden
together. The seed and the words of the document decide which mentions are drawn.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kglm.model.arrays import Bools


class Hiding(NamedTuple):
    """Share of the mentions whose facts are hidden, and a seed."""

    share: float
    seed: int = 0

    def draw(self, words: Sequence[str], mentions: int) -> Bools:
        """Draw mentions of the document with these words."""
        key = zlib.crc32(" ".join(words).encode("utf-8", "surrogatepass"))
        return np.asarray(np.random.default_rng([self.seed, key]).random(mentions) < self.share)
