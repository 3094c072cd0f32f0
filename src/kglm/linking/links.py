"""Links of an article to entities: by title and redirects, by id, or by a label that only one entity has."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import is_item_id
from kglm.linking.name_index import NameIndex
from kglm.linking.spans import Found
from kglm.text.article import Article
from kglm.text.tokenizer import tokenizer
from kglm.text.wiki.titles import RedirectTable, follow_redirects


class LinkResolver:
    """From link targets to nodes, for one graph."""

    def __init__(self, graph: KnowledgeGraph, names: NameIndex, redirects: RedirectTable | None = None) -> None:
        """`redirects` are those that the graph does not know."""
        self._graph = graph
        self._names = names
        self._redirects: RedirectTable = {} if redirects is None else redirects
        self.entity = lru_cache(1 << 17)(self._find)

    def _find(self, target: str) -> int | None:
        """The entity that a title, or the first one that it leads to, means."""
        meant = map(self._meant, follow_redirects(target, self._redirects))
        return next((node for node in meant if node is not None), None)

    def _meant(self, target: str) -> int | None:
        """The entity of a title; without one, whoever has it as an id, or alone has it as a label. An alias is not
        enough: "Lightning" is no ice-hockey team."""
        id = self._graph.store.by_title(target)
        if id is not None:
            return self._graph.find(id)
        if is_item_id(target) and (node := self._graph.find(target)) is not None:
            return node
        title = target.replace("_", " ")
        labels = (title, title[:1].lower() + title[1:])
        namesakes = {node for label in labels for node in self._names[tokenizer().words(label)]}
        called = [
            node
            for node in sorted(namesakes)
            if self._graph.names(node)[0] in labels and not self._graph.id(node).startswith("P")
        ]
        return called[0] if len(called) == 1 else None

    def resolve(self, article: Article, counts: Counter[str]) -> list[Found]:
        """The links that lead to an entity; how many do and do not is counted."""
        found = []
        for link in article.links:
            node = self.entity(link.target)
            counts["links" if node is not None else "links to nobody"] += 1
            if node is not None:
                found.append(Found(link.start, link.end, node, "WIKI"))
        return found
