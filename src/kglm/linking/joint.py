"""Joint assignments of entities to all names of a text, and their marginals. A name that is NIL has no span."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kglm.linking.linker import Candidate, LinkedName

NO_NIL = 1e-9
"""A smaller probability of NIL is rounding."""


def joint_links(
    linked: Sequence[LinkedName], *, limit: int = 8, per_name: int = 4
) -> list[tuple[float, list[tuple[int, int, int]]]]:
    """The `limit` most probable joint assignments of an entity or NIL to every name, each as (probability, spans).

    Names are independent given the text. An assignment in which a name is NIL has no span for it. Only the first
    `per_name` candidates of a name are used, so the probabilities may sum to less than 1.
    """
    joint: list[tuple[float, list[tuple[int, int, int]]]] = [(1.0, [])]
    for name in linked:
        likely = [(p, [(name.start, name.end, node)]) for node, p in name.candidates[:per_name]]
        if name.p_nil > NO_NIL or not likely:
            likely.append((name.p_nil, []))
        grown = [(p * p_name, [*spans, *span]) for p, spans in joint for p_name, span in likely]
        joint = sorted(grown, key=lambda pair: -pair[0])[:limit]
    return joint


def marginal_links(joint: Iterable[tuple[float, Iterable[tuple[int, int, int]]]]) -> list[LinkedName]:
    """Marginal probability of each (start, end, node) over weighted joint assignments of a text.

    The candidates of a span sum to less than 1 if some assignments do not contain the span.
    """
    mass: dict[tuple[int, int], dict[int, float]] = {}
    for p, spans in joint:
        for start, end, node in spans:
            nodes = mass.setdefault((start, end), {})
            nodes[node] = nodes.get(node, 0.0) + p
    return [
        LinkedName(*span, tuple(Candidate(node, p) for node, p in sorted(nodes.items(), key=lambda item: -item[1])))
        for span, nodes in sorted(mass.items())
    ]


def most_probable_spans(links: Iterable[LinkedName]) -> list[LinkedName]:
    """Of names that overlap, the one that is most probably a mention; in order."""
    kept: list[LinkedName] = []
    for each in sorted(links, key=lambda link: link.p_nil):
        if all(each.end <= other.start or other.end <= each.start for other in kept):
            kept.append(each)
    return sorted(kept, key=lambda link: link.start)
