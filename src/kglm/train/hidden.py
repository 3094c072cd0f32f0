"""Hide facts of training documents, so that the model learns to see that a fact is missing.

Some facts (p, r) of a document are treated as if the graph lacked them: the mention that such a fact leads to is plain
words, and at its first word the text asks for the missing fact (p, r). The types of these words are trained but not the
words themselves, or the distribution of plain words would learn the names of entities. A fact is hidden together with
all other facts that lead from p to the same entity, for the whole document. The seed and the words of the document
decide which.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kglm.kg.graph import KnowledgeGraph
from kglm.text.document import Document, Mention

Fact = tuple[int, int, int]
"""Parent, relation, number of the relation's tails."""
Pair = tuple[int, int]
"""Parent and relation."""
LinkedMention = tuple[Mention, int]
"""A mention and its entity."""


class Hiding(NamedTuple):
    """Share of the facts to hide, and a seed."""

    share: float
    seed: int = 0


@dataclass(frozen=True)
class HiddenFacts:
    """Facts of one document that are hidden."""

    relations: dict[int, frozenset[int]] = field(default_factory=dict)
    """Hidden relations of each parent."""
    asked: dict[int, list[Pair]] = field(default_factory=dict)
    """For each position where a hidden fact is asked for, the parent and relation; there may be several."""
    words: tuple[int, ...] = ()
    """Positions of the words of the mentions that hidden facts lead to."""

    def without(self, facts: Sequence[Fact]) -> list[Fact]:
        """The facts that are not hidden."""
        return [fact for fact in facts if fact[1] not in self.relations.get(fact[0], ())]


def hide_facts(
    document: Document,
    mentions: Sequence[LinkedMention],
    reached: Mapping[int, Sequence[Fact]],
    graph: KnowledgeGraph,
    given: Sequence[int],
    hiding: Hiding,
) -> tuple[list[LinkedMention], HiddenFacts]:
    """Draw the facts to hide; return the mentions that remain.

    `reached` has the facts that lead to each node, `given` are parents that need not be mentioned.

    A fact can be hidden if all mentions that it leads to are the only ones of their entities, and no other mention
    depends on these entities: then the rest of the annotation stays as it is.
    """
    before: set[int] = set(given)
    listed = []
    for mention, node in mentions:
        listed.append(_listed(mention, node, reached, graph, before))
        before.add(node)
    times = Counter(node for _, node in mentions)
    parents = {parent for pairs in listed for parent, _ in pairs}
    free = [
        bool(pairs) and times[node] == 1 and node not in parents
        for (_, node), pairs in zip(mentions, listed, strict=True)
    ]
    key = zlib.crc32(" ".join(document.tokens).encode("utf-8", "surrogatepass"))
    drawn = np.random.default_rng([hiding.seed, key]).random(len(mentions)) < hiding.share
    hidden: set[Pair] = set()
    for place in np.flatnonzero(drawn & np.array(free, np.bool_)).tolist():
        own = {parent for parent, _ in listed[place]}
        more = {(parent, relation) for parent, relation, _ in reached[mentions[place][1]] if parent in own}
        if all(free[other] for other, pairs in enumerate(listed) if not more.isdisjoint(pairs)):
            hidden |= more
    gone = [bool(pairs) and hidden.issuperset(pairs) for pairs in listed]
    relations: dict[int, frozenset[int]] = {}
    for parent, relation in hidden:
        relations[parent] = relations.get(parent, frozenset()) | {relation}
    asked = {
        mention.start - 1: sorted(pairs)
        for (mention, _), pairs, is_gone in zip(mentions, listed, gone, strict=True)
        if is_gone
    }
    words = tuple(
        target
        for (mention, _), is_gone in zip(mentions, gone, strict=True)
        if is_gone
        for target in range(mention.start - 1, mention.end - 1)
    )
    kept = [linked for linked, is_gone in zip(mentions, gone, strict=True) if not is_gone]
    return kept, HiddenFacts(relations, asked, words)


def _listed(
    mention: Mention, node: int, reached: Mapping[int, Sequence[Fact]], graph: KnowledgeGraph, before: Collection[int]
) -> frozenset[Pair]:
    """Facts of the graph that the annotation lists for a mention, of parents mentioned before.

    There are none if the mention is new or leads to itself.
    """
    if mention.is_new:
        return frozenset()
    explained = {(graph.find(parent), graph.find_relation(relation)) for parent, relation in mention.explanations}
    facts = ((parent, relation) for parent, relation, _ in reached.get(node, ()) if parent in before)
    pairs = frozenset(fact for fact in facts if fact in explained)
    return pairs if all(parent != node for parent, _ in pairs) else frozenset()
