"""The generative story of a text: which mentions follow from facts about earlier ones, and which are new.

From left to right, at each mention of an entity e all facts (parent, relation, e) of the local graph explain it whose
parent was mentioned not long ago; the same entity again is explained by itself. Where nothing does, it is new. Then the
facts of e join the local graph, and what they lead to is found in the text from here on by its names, whoever did not
mark it before. A name alone never makes an entity new, but for the article's subject.

    distance = start of the child − end of the parent's last mention, `@@END@@` not counted,   at most `cutoff`
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType

from kglm.annotate.local_graph import LocalGraph, Matcher, literal_starts
from kglm.errors import ConfigError
from kglm.kg.ids import NEW
from kglm.kg.literals.literal import is_literal
from kglm.linking.spans import LinkedSpan, without_overlaps
from kglm.text.document import END, Mention


@dataclass(frozen=True)
class StoryConfig:
    """How facts are put to mentions."""

    cutoff: int = 30
    """A parent is forgotten when its last mention is more words away."""
    max_parents: int = 10
    """So many explanations of a mention are kept, those with the nearest parents."""
    match: bool = True
    """Look for names, dates and quantities of the local graph."""

    def __post_init__(self) -> None:
        if self.cutoff < 1 or self.max_parents < 1:
            raise ConfigError(
                f"cutoff {self.cutoff}, at most {self.max_parents} parents", remedy="give at least 1 of each"
            )


class Story:
    """Tells the stories of texts, for one graph."""

    def __init__(self, matcher: Matcher, config: StoryConfig | None = None) -> None:
        self.matcher = matcher
        self.graph = matcher.graph
        self.config = config or StoryConfig()

    def tell(
        self,
        tokens: Sequence[str],
        found: Iterable[LinkedSpan],
        subject: int | None = None,
        strangers: Mapping[int, str] = MappingProxyType({}),
    ) -> list[Mention]:
        """All mentions of a text with their explanations, given those that were found before; `strangers` have ids."""
        return _MentionExplainer(self, tokens, without_overlaps(tokens, found), subject, strangers).mentions()


def word_places(tokens: Sequence[str]) -> list[int]:
    """The place of each token, and of the end, ends of sentences not counted: what distances are measured in."""
    return [0, *accumulate(token != END for token in tokens)]


class _MentionExplainer:
    """One text on its way from left to right."""

    def __init__(
        self,
        story: Story,
        tokens: Sequence[str],
        found: list[LinkedSpan],
        subject: int | None,
        strangers: Mapping[int, str],
    ) -> None:
        self._tokens = tokens
        self._strangers = strangers
        self._found = found
        self._subject = subject
        self._config = story.config
        self._graph = story.graph
        self._matcher = story.matcher
        self._local: LocalGraph = story.matcher.local()
        self._place = word_places(tokens)
        self._last: dict[int, int] = {}
        """Where the last mention of each entity ends."""
        self._latest = -1
        self._order: dict[int, int] = {}
        """When each entity was first mentioned."""
        self._result: list[Mention] = []

    def mentions(self) -> list[Mention]:
        """Walk through the text."""
        names = self._matcher.spans(self._tokens) if self._config.match else {}
        literals = literal_starts(self._tokens) if self._config.match else []
        places = sorted({*names, *literals})
        may_be_literal = frozenset(literals)
        at = 0
        for each in [*self._found, None]:
            limit = len(self._tokens) if each is None else each.start
            for start in places[bisect_left(places, at) : bisect_left(places, limit)]:
                if start >= at:
                    at = self._match(start, limit, names.get(start, ()), start in may_be_literal) or at
            if each is not None:
                self._add(each.start, each.end, each.node, each.source, self._explain(each.node, each.start))
                at = each.end
        return self._result

    def _match(self, start: int, limit: int, names: Sequence[tuple[int, int]], literal: bool) -> int | None:
        """Take the longest match of words [start, limit) that begins at the first; where it ends, if there is one."""
        near = self._latest >= 0 and self._place[start] - self._latest <= self._config.cutoff
        if not near and self._subject is None:
            return None
        literals: list[tuple[int, int]] = []
        if near and literal:
            literals = list(self._matcher.literals(self._tokens, start, limit, self._local))
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
        """Of entities of one name, the one whose label it is, then the one that came into the local graph first; None
        if none is in it now."""
        chosen, first = None, (True, len(self._order) + 1)
        for node, is_label in nodes:
            if node == self._subject:
                return node
            orders = [self._order[parent] for _, parent in self._near(node, start)]
            if orders and (not is_label, min(orders)) < first:
                chosen, first = node, (not is_label, min(orders))
        return chosen

    def _near(self, node: int, start: int) -> list[tuple[int, int]]:
        """The facts that lead to an entity from one that was mentioned within the cutoff."""
        here, last, cutoff = self._place[start], self._last, self._config.cutoff
        if node < 0:  # of a stranger nothing is known but that it was mentioned
            return [(0, node)] if node in last and here - last[node] <= cutoff else []
        hubs = [hub for hub in self._local.hubs if here - last[hub] <= cutoff]
        return [way for way in self._local.ways(node, hubs) if way[1] in last and here - last[way[1]] <= cutoff]

    def _explain(self, node: int, start: int) -> list[tuple[int, int]]:
        """(relation, parent) of the facts that explain a mention, the nearest parents first, each once."""
        near = sorted(dict.fromkeys(self._near(node, start)), key=lambda way: -self._last[way[1]])
        return near[: self._config.max_parents]

    def _add(self, start: int, end: int, node: int, source: str, ways: list[tuple[int, int]]) -> None:
        id = self._id(node)
        literal = is_literal(id)
        if ways:
            relations = tuple(self._graph.relation_id(relation) for relation, _ in ways)
            parents = tuple(self._id(parent) for _, parent in ways)
            self._result.append(Mention(start, end, id, source, relations, parents))
        elif literal:  # nobody leads to it: it would be new, and a date never is
            return
        else:
            self._result.append(Mention(start, end, id, source, (NEW,), (id,)))
        if not literal:
            self._last[node] = self._latest = self._place[end]
            self._order.setdefault(node, len(self._order))
            if node >= 0:
                self._local.expand(node)

    def _id(self, node: int) -> str:
        return self._strangers[node] if node < 0 else self._graph.id(node)
