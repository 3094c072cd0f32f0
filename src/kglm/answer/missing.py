"""Decide whether the answer to a prompt is that the graph lacks the fact that is asked for."""

from __future__ import annotations

from collections import defaultdict

from kglm.answer.next_word import MissingFact, NextWords
from kglm.model.types import Type

ODDS = 0.3
"""Least probability of missing facts relative to that of the most probable relation of the graph. It is below 1 because
of the handicap of missing facts; it was chosen on the development prompts of `benchmarks/missing.py`."""
LEAST = 0.05
"""Least probability with which a text asks for missing facts."""
Asked = tuple[int, int]
"""A parent, and a relation or its reverse, which count as one."""


def says_missing(words: NextWords) -> MissingFact | None:
    """The missing fact that the text asks for; None if the graph has the fact, or if no fact is asked for.

    The answer is that a fact is missing if Σ p(related, p, r missing) > ODDS · max p(related, p, r). The sum is over
    all missing facts, the maximum over the relations of the graph without that of an entity to itself.
    """
    missing, exists = defaultdict[Asked, float](float), defaultdict[Asked, float](float)
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
