"""Decide whether an answer is that the graph lacks the fact that a text asks for."""

from __future__ import annotations

import numpy as np

from kglm.answer.next_word import NextWords
from kglm.model.types import Type


def says_missing(words: NextWords) -> bool:
    """True if the text more probably asks for a missing fact than for any fact that the graph has.

    p(missing) > p(related), the sum over the facts of the graph.
    """
    reasons = words.explanations
    related = float(reasons.mass_W[reasons.type_W == Type.RELATED].sum()) + words.rest["related"]
    return float(np.sum([fact.p for fact in words.missing])) > related
