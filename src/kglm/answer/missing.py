"""Decide whether the answer to a prompt is that the graph lacks the fact that is asked for."""

from __future__ import annotations

from collections import defaultdict

from kglm.answer.next_word import MissingFact, NextWords
from kglm.model.types import Type

LEAST = 0.1
"""Least probability with which a text asks for missing facts."""
ODDS = 0.15
"""Least ratio of the probability that the fact is missing to that of all facts of the graph. Below 1, because training
hides only a fifth of the facts; chosen on the development half of `benchmarks/missing.py`."""


def says_missing(words: NextWords) -> MissingFact | None:
    """The fact that the text asks for, if the graph probably lacks it; otherwise None.

    The answer is that a fact is missing if Σ p(related, p, r missing) > ODDS · max p(related, p, r). The sum is over
    all missing facts, the maximum over the relations of the graph without that of an entity to itself.
    """
    reasons = words.explanations
    exists = float(reasons.mass_W[reasons.type_W == Type.RELATED].sum()) + words.rest["related"]
    if sum(fact.p for fact in words.missing) <= max(ODDS * exists, LEAST):
        return None
    mass: dict[tuple[int, int], float] = defaultdict(float)
    for fact in words.missing:
        missing[fact.parent, fact.relation // 2] += fact.p
    reasons = words.explanations
    columns = (reasons.type_W, reasons.parent_W, reasons.relation_W, reasons.mass_W)
    for kind, parent, relation, p in zip(*(column.tolist() for column in columns), strict=True):
        if kind == Type.RELATED and relation:
            exists[parent, relation // 2] += p
    best = max([*exists.values(), words.rest["related"]])
    if sum(missing.values()) <= max(ODDS * best, LEAST):
        return None
    asked, p = max(missing.items(), key=lambda item: item[1])
    return next(fact for fact in words.missing if (fact.parent, fact.relation // 2) == asked)._replace(p=p)
