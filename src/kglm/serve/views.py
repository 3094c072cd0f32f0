"""Convert entities, facts, documents and local graphs to response bodies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kglm.answer.next_word import Distribution
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REVERSE
from kglm.kg.literals.literal import is_literal, render_literal
from kglm.linking.linker import LinkedName
from kglm.serve import bodies
from kglm.text.document import END, START, Document

MAX_ALIASES = 5
MAX_EDGES = 40
"""Facts of a local graph, the most probable ones."""
MIN_CANDIDATE_P = 0.005
"""Less probable candidates of a name are left out, unless one of their facts is listed."""


def entity(graph: KnowledgeGraph, node: int) -> bodies.Entity:
    id = graph.id(node)
    return bodies.Entity(id=id, label=graph.label(node), literal=is_literal(id))


def entity_of(graph: KnowledgeGraph, id: str) -> bodies.Entity:
    """An entity by id; the label of an unknown id is the id."""
    node = graph.find(id)
    if node is not None:
        return entity(graph, node)
    names = render_literal(id, graph.unit_names) if is_literal(id) else ()
    return bodies.Entity(id=id, label=names[0] if names else id, literal=is_literal(id))


def relation(graph: KnowledgeGraph, index: int) -> bodies.Relation:
    return bodies.Relation(id=graph.relation_id(index), label=graph.relation_label(index))


def relation_of(graph: KnowledgeGraph, id: str) -> bodies.Relation:
    index = graph.find_relation(id)
    return bodies.Relation(id=id, label=id) if index is None else relation(graph, index)


def local_graph(
    graph: KnowledgeGraph, linked: Sequence[LinkedName], distribution: Distribution
) -> bodies.GraphResponse:
    """Facts of the mentioned entities, each with the probability that the next word comes from it."""
    facts = distribution.facts()
    listed = facts[:MAX_EDGES]
    named: dict[int, float] = {}
    for _, _, candidates in linked:
        for node, p in candidates:
            named[node] = max(named.get(node, 0.0), p)
    parents = {fact.parent for fact in listed}
    shown = {node: p for node, p in named.items() if p >= MIN_CANDIDATE_P or node in parents}
    for parent in parents - shown.keys():
        shown[parent] = 1.0
    reached: dict[int, float] = {}
    edges = []
    for fact in listed:
        if fact.entity not in shown:
            reached[fact.entity] = reached.get(fact.entity, 0.0) + fact.p
        edges.append(
            bodies.Edge(
                parent=graph.id(fact.parent),
                relation=relation(graph, fact.relation),
                entity=graph.id(fact.entity),
                p=fact.p,
            )
        )
    nodes = [_node(graph, node, "mentioned", p) for node, p in shown.items()]
    nodes += [_node(graph, node, "candidate", p) for node, p in reached.items()]
    return bodies.GraphResponse(nodes=nodes, edges=edges, left_out=len(facts) - len(listed))


def _node(graph: KnowledgeGraph, node: int, kind: str, p: float) -> bodies.Node:
    id = graph.id(node)
    return bodies.Node(id=id, label=graph.label(node), literal=is_literal(id), kind=kind, p=p)  # type: ignore[arg-type]


def entity_summary(graph: KnowledgeGraph, node: int) -> bodies.EntitySummary:
    aliases = list(graph.aliases(node))[1 : 1 + MAX_ALIASES]
    relation = graph.edges(node).relation
    facts = len(relation) - int(np.searchsorted(relation, 1))  # sorted: reflexive edges come first
    return bodies.EntitySummary(id=graph.id(node), label=graph.label(node), aliases=aliases, facts=facts)


def entity_response(graph: KnowledgeGraph, node: int, offset: int, limit: int) -> bodies.EntityResponse:
    """An entity with a page of its facts: first those it is the head of, then those it is the tail of."""
    edges = graph.edges(node)
    places = np.flatnonzero(edges.relation != 0)
    reverse = edges.relation[places] % 2 == 1
    places = np.concatenate([places[~reverse], places[reverse]])
    facts = [
        bodies.Fact(
            relation=relation_of(graph, graph.relation_id(index).removeprefix(REVERSE)),
            tail=entity(graph, tail),
            reverse=bool(index & 1),
        )
        for index, tail in (
            (int(edges.relation[place]), int(edges.tail[place])) for place in places[offset : offset + limit]
        )
    ]
    shown = entity(graph, node)
    return bodies.EntityResponse(
        id=shown.id,
        label=shown.label,
        aliases=list(graph.aliases(node))[1:],
        literal=shown.literal,
        facts=facts,
        total=len(places),
    )


def document(
    graph: KnowledgeGraph,
    shown: Document,
    number: int | None = None,
    previous: int | None = None,
    following: int | None = None,
) -> bodies.DocumentResponse:
    """A linked document; positions count words, not sentence markers."""
    word_at = np.cumsum([token not in (START, END) for token in shown.tokens])
    at = np.concatenate([[0], word_at]).tolist()
    return bodies.DocumentResponse(
        number=number,
        title=shown.title,
        sentences=list(shown.sentences()),
        mentions=[
            bodies.DocumentMention(
                start=at[mention.start],
                end=at[mention.end],
                entity=entity_of(graph, mention.id),
                source=mention.source,
                reasons=[
                    bodies.Explanation(parent=entity_of(graph, parent), relation=relation_of(graph, by))
                    for parent, by in mention.explanations
                ],
            )
            for mention in shown.mentions
        ],
        previous=previous,
        next=following,
    )
