"""Names, pronouns and other mentions of a prompt: the linker, then coreference on its most probable links, then the
names that are not in the graph.

A pronoun, "the band" or a surname refers to whom its antecedent refers to, if the resolver is right:

    p(mention = e) = p(antecedent = e) · p(resolver is right)
"""

from __future__ import annotations

from collections.abc import Sequence

from kglm.linking.coreference import PRONOUNS, GraphResolver
from kglm.linking.linker import Candidate, LinkedName, Linker
from kglm.linking.spans import LinkedSpan
from kglm.linking.unknown import with_unknown_names

NIL_BIAS = -0.75
"""Prompts name entities of the graph more often than articles do: added to the score of NIL."""
PROMPT_SHARPNESS = 1.5
"""β in prompts, which are short and name what they ask about: the linker is right more often than in articles. Fitted
by maximum likelihood on the development half of `benchmarks/linking.py`."""
P_PRONOUN = 0.9
P_SHORT_NAME = 0.95
"""Probability that the resolver is right about a pronoun or nominal, and about a part of a name."""


class PromptLinker:
    """Links names and resolves coreference in the texts of users."""

    def __init__(self, linker: Linker) -> None:
        self.linker = linker
        self._resolver = GraphResolver(linker.graph, traits=linker.traits)

    def link(self, words: Sequence[str], given: Sequence[tuple[int, int, int]] = ()) -> list[LinkedName]:
        """All mentions of a text in order. Spans `given` as (start, end, node) stay."""
        linked = self.linker.link(words, given)
        nodes = [(name, name.node) for name in linked]
        spans = [LinkedSpan(name.start, name.end, node, "NEL") for name, node in nodes if node is not None]
        p_of: dict[int, float] = {}
        for name, node in nodes:
            if node is not None:
                p_of[node] = max(p_of.get(node, 0.0), name.candidates[0].p)
        taken = {position for name in linked for position in range(name.start, name.end)}
        resolved = [
            LinkedName(span.start, span.end, (Candidate(span.node, p_of[span.node] * reliability(words, span)),))
            for span in self._resolver.resolve(words, spans)
            if taken.isdisjoint(range(span.start, span.end))
        ]
        return with_unknown_names(words, sorted([*linked, *resolved]))


def reliability(words: Sequence[str], span: LinkedSpan) -> float:
    is_name = words[span.start][:1].isupper() and words[span.start].casefold() not in PRONOUNS
    return P_SHORT_NAME if is_name and span.end == span.start + 1 else P_PRONOUN
