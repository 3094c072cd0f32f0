"""Names of a text and their entities, for users: by ids and labels, with descriptions and the probability of NIL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kglm.kg.graph import KnowledgeGraph
from kglm.linking.descriptions import Describer
from kglm.linking.linker import LinkedName


@dataclass(frozen=True)
class LinkedMention:
    """Words [start, end) of a text refer to this entity with probability p; an ambiguous name has several of these.

    Where no entity of the graph (NIL) is the most probable, `id` is None in the first of them, and p that of NIL.
    """

    start: int
    end: int
    text: str
    id: str | None
    label: str | None
    p: float
    description: str | None = None
    """What tells the entity from others of its name."""
    p_nil: float = 0.0
    """Probability that the name refers to no entity of the graph; with p of all entities of the name it sums to 1."""

    def __str__(self) -> str:
        if self.id is None:
            return f"{self.text} = no entity of the graph, {self.p:.1%}"
        described = f" – {self.description}" if self.description else ""
        return f"{self.text} = {self.label} ({self.id}){described}, {self.p:.1%}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def linked_mentions(graph: KnowledgeGraph, words: Sequence[str], linked: Iterable[LinkedName]) -> list[LinkedMention]:
    """One entry for each candidate of each name, in the order of the text; first NIL where it is most probable."""
    describer = Describer(graph)
    found = []
    for name in linked:
        text, p_nil = " ".join(words[name.start : name.end]), name.p_nil
        if name.node is None:
            found.append(LinkedMention(name.start, name.end, text, None, None, p_nil, None, p_nil))
        found += [
            LinkedMention(name.start, name.end, text, graph.id(node), graph.label(node), p, describer.of(node), p_nil)
            for node, p in name.candidates
        ]
    return found
