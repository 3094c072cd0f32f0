"""Answers to questions: facts of the graph in a sentence, or what is missing.

The question stands in the chat format of the base. At the first position of the answer, the relation that is asked for
is the (parent, relation) of the largest

    p(p, r) = p(related) π(p) π(r | p);

its values are ranked by π(e | p, r). If one of several values is clearly meant, it is said alone. Nothing is said that
is not a fact of the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kglm.answer.answers import RankedAnswer
from kglm.answer.completion import LEAST_MISSING, MAX_MISSING, MAX_REASONS, Answer, Missing
from kglm.answer.mentions import LinkedMention
from kglm.answer.missing import says_missing
from kglm.answer.next_word import Derivation
from kglm.answer.pretrained.answers import SubwordDistribution
from kglm.answer.sentences import MOST, fact_sentence
from kglm.heads.following import Following
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REVERSE_LABEL
from kglm.model.types import Type

SURE = 0.9
"""Share of the values of a relation from which one of them is said alone."""
LEAST_ASKED = 0.12
"""Probability of a relation below which the question does not ask for it."""
NO_ENTITY = "this question contains no name of the graph"
NO_FACT = "this question asks for no fact that the graph could have"


@dataclass(frozen=True)
class Reply:
    """The answer to a question."""

    prompt: tuple[str, ...]
    """The words of the question."""
    text: str | None
    """The answer as a sentence; None if the graph has none."""
    note: str | None
    """Why there is no answer: what is missing, or that nothing is asked for."""
    answers: tuple[Answer, ...]
    """The values of the asked relations, best first."""
    missing: tuple[Missing, ...]
    """Facts that the question asks for and the graph lacks."""
    asks_for_missing: bool
    mentions: tuple[LinkedMention, ...]

    def __str__(self) -> str:
        return self.text or self.note or NO_FACT

    def to_json(self, *, reasons: int = MAX_REASONS) -> dict[str, Any]:
        """The one JSON form of an answer."""
        return {
            "prompt": list(self.prompt),
            "text": self.text,
            "note": self.note,
            "answers": [answer.to_json(reasons=reasons) for answer in self.answers],
            "missing": [missing.to_json() for missing in self.missing],
            "mentions": [mention.to_json() for mention in self.mentions],
        }


class _Asked(NamedTuple):
    """A relation of a linked entity, its probability, and its values with their shares of it."""

    p: float
    parent: int
    relation: int
    values: list[tuple[int, float]]
    total: int


def reply(
    following: Following,
    distribution: SubwordDistribution,
    prompt: Sequence[str],
    mentions: Iterable[LinkedMention],
    *,
    top: int,
) -> Reply:
    """The reply to a question, from what can follow it."""
    tables = following.reading.reader.tables
    graph, relations = tables.graph, tables.relations
    listed = [each for each in distribution.missing if each.p >= LEAST_MISSING][:MAX_MISSING]
    missing = tuple(Missing.of(graph, each, relations) for each in listed)
    asked = _asked_relations(following, graph)
    answers = tuple(Answer.of(graph, each) for each in _ranked(graph, asked)[:top])
    lacking = says_missing(distribution)
    text, note = None, None
    if not following.reading.linked.links:
        note = NO_ENTITY
    elif lacking is not None:
        asks_for = Missing.of(graph, lacking, relations)
        note = str(next((each for each in missing if each.relation == asks_for.relation), asks_for))
    elif not asked or asked[0].p < LEAST_ASKED:
        note = NO_FACT
    else:
        text = _sentence(graph, asked[0])
    return Reply(tuple(prompt), text, note, answers, missing, lacking is not None, tuple(mentions))


def _asked_relations(following: Following, graph: KnowledgeGraph) -> list[_Asked]:
    """The relations of the linked entities, the most probable first, without that of an entity to itself."""
    facts = following.facts
    groups: dict[tuple[int, int], dict[int, float]] = {}
    for p, parent, relation, tail in zip(*(column.tolist() for column in facts), strict=True):
        if relation:
            groups.setdefault((parent, relation), {})[tail] = p
    found = []
    for (parent, relation), p_of in groups.items():
        values = sorted(p_of.items(), key=lambda item: -item[1])
        found.append(_Asked(sum(p_of.values()), parent, relation, values, len(values)))
    for each in following.large:
        tails = graph.tails(each.parent, each.relation)
        known = tails[np.argsort(-graph.degrees(tails), kind="stable")[:MOST]]
        found.append(
            _Asked(each.p, each.parent, each.relation, [(int(e), each.p / len(tails)) for e in known], len(tails))
        )
    return sorted(found, key=lambda each: -each.p)


def _ranked(graph: KnowledgeGraph, asked: Sequence[_Asked]) -> list[RankedAnswer]:
    """The values of all relations, each with the facts that lead to it."""
    reasons: dict[int, list[Derivation]] = {}
    for each in asked:
        for node, p in each.values:
            reasons.setdefault(node, []).append(
                Derivation(p, Type.RELATED, node, each.parent, each.relation, copied=None)
            )
    mass = {node: sum(reason.p for reason in found) for node, found in reasons.items()}
    best = sorted(mass, key=lambda node: -mass[node])[: MOST * 4]
    return [
        RankedAnswer(mass[node], graph.label(node), node, tuple(sorted(reasons[node], key=lambda each: -each.p)))
        for node in best
    ]


def _sentence(graph: KnowledgeGraph, asked: _Asked) -> str:
    reverse = bool(asked.relation & 1)
    values, total = asked.values, asked.total
    if total > 1 and values[0][1] >= SURE * asked.p:
        values, total = values[:1], 1
    labels = [graph.label(node) for node, _ in values[:MOST]]
    if total == 1:
        period = graph.statement(asked.parent, asked.relation, values[0][0]).period
        labels = [f"{labels[0]} ({period})"] if period else labels
    label = graph.relation_label(asked.relation).removeprefix(REVERSE_LABEL)
    return fact_sentence(graph.label(asked.parent), label, labels, reverse=reverse, total=total)
