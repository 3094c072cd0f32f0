"""Resolve the links of an article to entities: by title and redirects, by id, or by an unambiguous label."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import is_item_id
from kglm.linking.name_index import NameIndex
from kglm.linking.spans import LinkedSpan
from kglm.text.article import Article
from kglm.text.tokenizer import tokenizer
from kglm.text.wiki.titles import RedirectTable, follow_redirects


class LinkResolver:
    """Maps link targets to the nodes of one graph."""

    def __init__(self, graph: KnowledgeGraph, names: NameIndex, redirects: RedirectTable | None = None) -> None:
        """`redirects`: redirects that are not in the graph file."""
        self._graph = graph
        self._names = names
        self._redirects: RedirectTable = {} if redirects is None else redirects
        self.entity = lru_cache(1 << 17)(self._find)

    def _find(self, target: str) -> int | None:
        """Entity of a title, or of the first of its redirects that has one."""
        nodes = map(self._find_title, follow_redirects(target, self._redirects))
        return next((node for node in nodes if node is not None), None)

    def _find_title(self, target: str) -> int | None:
        """Entity with this title, else with this id, else the only one with this label.

        Aliases are not used: the title "Lightning" is not that of an ice-hockey team.
        """
        id = self._graph.store.by_title(target)
        if id is not None:
            return self._graph.find(id)
        if is_item_id(target) and (node := self._graph.find(target)) is not None:
            return node
        title = target.replace("_", " ")
        labels = (title, title[:1].lower() + title[1:])
        namesakes = {node for label in labels for node in self._names[tokenizer().words(label)]}
        labelled = [
            node
            for node in sorted(namesakes)
            if self._graph.names(node)[0] in labels and not self._graph.id(node).startswith("P")
        ]
        return labelled[0] if len(labelled) == 1 else None

    def resolve(self, article: Article, counts: Counter[str]) -> list[LinkedSpan]:
        """Links that lead to an entity; adds the numbers of links with and without one to `counts`."""
        spans = []
        for link in article.links:
            node = self.entity(link.target)
            counts["links" if node is not None else "links to no entity"] += 1
            if node is not None:
                spans.append(LinkedSpan(link.start, link.end, node, "WIKI"))
        return spans
