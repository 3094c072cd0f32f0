"""The generative story of a text: explain each mention by facts about earlier entities, or mark it as new.

From left to right, a mention of entity e is explained by all facts (parent, relation, e) of the local graph whose
parent was mentioned within `cutoff` words; a repeated entity is its own parent. A mention without an explanation is
new. The facts of e then join the local graph, and later words that match a name in it become mentions too (source KG).
Such a match never introduces a new entity, except the article's subject.

    distance = start of the child − end of the parent's last mention, `@@END@@` not counted,   at most `cutoff`
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType

from kglm.annotate.local_graph import FactFrom, LocalGraph, Matcher, literal_starts
from kglm.errors import ConfigError
from kglm.kg.ids import NEW
from kglm.kg.literals.literal import is_literal
from kglm.linking.spans import LinkedSpan, without_overlaps
from kglm.text.document import END, Mention


@dataclass(frozen=True)
class StoryConfig:
    """Limits on the explanations of mentions."""

    cutoff: int = 30
    """Most words between a mention and its parent's last mention."""
    max_parents: int = 10
    """Most explanations of a mention; those with the nearest parents are kept."""
    match: bool = True
    """Also mark unlinked names, dates and quantities of the local graph."""

    def __post_init__(self) -> None:
        if self.cutoff < 1 or self.max_parents < 1:
            raise ConfigError(
                f"cutoff {self.cutoff}, max_parents {self.max_parents}", remedy="give at least 1 for both"
            )


class Story:
    """Explains the mentions of texts by the facts of one graph."""

    def __init__(self, matcher: Matcher, config: StoryConfig | None = None) -> None:
        self.matcher = matcher
        self.graph = matcher.graph
        self.config = config or StoryConfig()

    def explained_mentions(
        self,
        tokens: Sequence[str],
        spans: Iterable[LinkedSpan],
        subject: int | None = None,
        outside_ids: Mapping[int, str] = MappingProxyType({}),
        unknown: Iterable[tuple[int, int]] = (),
    ) -> list[Mention]:
        """All mentions of a text with their explanations, given the linked spans.

        `subject`: entity of the article. `outside_ids`: ids of entities outside the graph, by their negative nodes.
        `unknown`: names that the graph does not have; no shorter name inside them is matched ("Berlin" in "Irving
        Berlin").
        """
        spans = without_overlaps(tokens, spans)
        return _MentionExplainer(self, tokens, spans, subject, outside_ids, unknown).mentions()


def word_positions(tokens: Sequence[str]) -> list[int]:
    """Position of each token, and of the end of the text, with `@@END@@` not counted; the unit of distances."""
    return [0, *accumulate(token != END for token in tokens)]


class _MentionExplainer:
    """Explains the mentions of one text from left to right."""

    def __init__(
        self,
        story: Story,
        tokens: Sequence[str],
        spans: list[LinkedSpan],
        subject: int | None,
        outside_ids: Mapping[int, str],
        unknown: Iterable[tuple[int, int]],
    ) -> None:
        self._tokens = tokens
        self._unknown = {place: (start, end) for start, end in unknown for place in range(start, end)}
        """The unknown name that each position is in."""
        self._outside_ids = outside_ids
        self._spans = spans
        self._subject = subject
        self._config = story.config
        self._graph = story.graph
        self._matcher = story.matcher
        self._local: LocalGraph = story.matcher.local()
        self._position = word_positions(tokens)
        self._last: dict[int, int] = {}
        """Position where the last mention of each entity ends."""
        self._latest = -1
        """Position where the last mention of any entity ends."""
        self._order: dict[int, int] = {}
        """Rank of each entity by first mention."""
        self._result: list[Mention] = []

    def mentions(self) -> list[Mention]:
        """All mentions, in order."""
        names = self._matcher.spans(self._tokens) if self._config.match else {}
        literals = literal_starts(self._tokens) if self._config.match else []
        starts = sorted({*names, *literals})
        may_be_literal = frozenset(literals)
        at = 0
        for span in [*self._spans, None]:
            limit = len(self._tokens) if span is None else span.start
            for start in starts[bisect_left(starts, at) : bisect_left(starts, limit)]:
                if start >= at:
                    at = self._match(start, limit, names.get(start, ()), start in may_be_literal) or at
            if span is not None:
                self._add(span.start, span.end, span.node, span.source, self._explain(span.node, span.start))
                at = span.end
        return self._result

    def _match(self, start: int, limit: int, names: Sequence[tuple[int, int]], literal: bool) -> int | None:
        """Add the longest match within words [start, limit) that begins at `start`; return its end, or None."""
        near = self._latest >= 0 and self._position[start] - self._latest <= self._config.cutoff
        if not near and self._subject is None:
            return None
        literals: list[tuple[int, int]] = []
        if near and literal:
            literals = list(self._matcher.literals(self._tokens, start, limit, self._local))
        if whole := self._unknown.get(start):
            names = [(end, name) for end, name in names if (start, end) == whole or end > whole[1]]
        ends = sorted({end for end, _ in [*names, *literals] if end <= limit}, reverse=True)
        for end in ends:
            nodes = [each for stop, name in names if stop == end for each in self._matcher.named(name, self._local)]
            nodes += [(node, False) for stop, node in literals if stop == end]
            best = self._best(start, nodes)
            if best is not None:
                self._add(start, end, best, "KG", self._explain(best, start))
                return end
        return None

    def _best(self, start: int, nodes: Sequence[tuple[int, bool]]) -> int | None:
        """Choose among entities of one name: the article's subject, else one that has it as label, else the one whose
        parent was mentioned first. None if no parent of any is near."""
        chosen, first = None, (True, len(self._order) + 1)
        for node, is_label in nodes:
            if node == self._subject:
                return node
            orders = [self._order[parent] for _, parent in self._near(node, start)]
            if orders and (not is_label, min(orders)) < first:
                chosen, first = node, (not is_label, min(orders))
        return chosen

    def _near(self, node: int, start: int) -> list[FactFrom]:
        """(relation, parent) of facts that lead to an entity from parents mentioned within the cutoff."""
        here, last, cutoff = self._position[start], self._last, self._config.cutoff
        if node < 0:  # outside the graph: only an earlier mention of itself explains it
            return [(0, node)] if node in last and here - last[node] <= cutoff else []
        hubs = [hub for hub in self._local.hubs if here - last[hub] <= cutoff]
        facts = self._local.facts_to(node, hubs)
        return [(relation, parent) for relation, parent in facts if parent in last and here - last[parent] <= cutoff]

    def _explain(self, node: int, start: int) -> list[FactFrom]:
        """(relation, parent) of the facts that explain a mention, nearest parents first, without duplicates."""
        near = sorted(dict.fromkeys(self._near(node, start)), key=lambda fact: -self._last[fact[1]])
        return near[: self._config.max_parents]

    def _add(self, start: int, end: int, node: int, source: str, facts: list[FactFrom]) -> None:
        """Record a mention with its explanations, and add the entity's facts to the local graph."""
        id = self._id(node)
        literal = is_literal(id)
        if facts:
            relations = tuple(self._graph.relation_id(relation) for relation, _ in facts)
            parents = tuple(self._id(parent) for _, parent in facts)
            self._result.append(Mention(start, end, id, source, relations, parents))
        elif literal:  # no fact leads to it, and a literal is never introduced as new
            return
        else:
            self._result.append(Mention(start, end, id, source, (NEW,), (id,)))
        if not literal:
            self._last[node] = self._latest = self._position[end]
            self._order.setdefault(node, len(self._order))
            if node >= 0:
                self._local.expand(node)

    def _id(self, node: int) -> str:
        return self._outside_ids[node] if node < 0 else self._graph.id(node)
