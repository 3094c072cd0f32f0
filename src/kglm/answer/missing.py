"""Decide whether the answer to a prompt is that the graph lacks the fact that is asked for."""

from __future__ import annotations

from collections import defaultdict

from kglm.answer.next_word import Distribution, MissingFact

LEAST = 0.1
"""Least probability with which a text asks for missing facts."""


def says_missing(words: Distribution) -> MissingFact | None:
    """The fact that the text asks for, if the graph probably lacks it; otherwise None.

    Compares p(related, missing) with p(related, the graph has the fact), each summed over all parents and relations.
    The result is the most probable missing fact; a relation and its reverse count as one.
    """
    if sum(fact.p for fact in words.missing) <= max(words.missing_odds * words.p_facts, LEAST):
        return None
    mass: dict[tuple[int, int], float] = defaultdict(float)
    for fact in words.missing:
        mass[fact.parent, fact.relation // 2] += fact.p
    asked, p = max(mass.items(), key=lambda item: item[1])
    return next(fact for fact in words.missing if (fact.parent, fact.relation // 2) == asked)._replace(p=p)
