"""Decide whether the answer to a prompt is that the graph lacks the fact that is asked for."""

from __future__ import annotations

from collections import defaultdict

from kglm.answer.next_word import MissingFact, NextWords
from kglm.model.types import Type

LEAST = 0.05
"""Least probability with which a text asks for a fact."""


def says_missing(words: NextWords) -> MissingFact | None:
    """The fact that the text asks for, if the graph lacks it; None if it has the fact, or if no fact is asked for.

    A text asks for the relation (p, r), among those that p has and those that it lacks, that has the greatest
    probability; a relation and its reverse count as one. What `NextWords.rest` has of facts counts as one relation.
    """
    missing: dict[tuple[int, int], float] = defaultdict(float)
    exists: dict[tuple[int, int], float] = defaultdict(float)
    for fact in words.missing:
        missing[fact.parent, fact.relation // 2] += fact.p
    each = words.explanations
    columns = (each.type_W, each.parent_W, each.relation_W, each.mass_W)
    for kind, parent, relation, p in zip(*(column.tolist() for column in columns), strict=True):
        if kind == Type.RELATED:
            exists[parent, relation // 2] += p
    highest = max([*exists.values(), words.rest["related"], LEAST])
    asked, p = max(missing.items(), key=lambda item: item[1], default=((-1, -1), 0.0))
    if p <= highest:
        return None
    return next(fact for fact in words.missing if (fact.parent, fact.relation // 2) == asked)._replace(p=p)
