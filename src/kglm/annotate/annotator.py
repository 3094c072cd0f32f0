"""Annotate one article: article links, entity linker, coreference, then facts of the local graph.

annotator = Annotator.open("world.kg")
document = annotator.annotate(article)

Each step marks only words that earlier steps left unmarked: the article's links, names that the linker is confident
of, coreferent expressions, and names and values that facts lead to. Mentions given with a text are kept; their
explanations are computed again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kglm.annotate.local_graph import Matcher
from kglm.annotate.story import Story, StoryConfig
from kglm.errors import ConfigError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.linking.anchors import Anchors
from kglm.linking.clusters import external_resolver
from kglm.linking.coreference import CoreferenceConfig, GraphResolver, Resolver
from kglm.linking.detection import NameDetector
from kglm.linking.linker import Linker
from kglm.linking.links import LinkResolver
from kglm.linking.name_index import NameIndex
from kglm.linking.ner import SpacyNames
from kglm.linking.redirects import Redirects
from kglm.linking.spans import LinkedSpan, covered_positions, without_overlaps
from kglm.linking.traits import TraitReader
from kglm.text.article import Article
from kglm.text.document import Document
from kglm.text.wiki.titles import RedirectTable


@dataclass(frozen=True)
class AnnotateConfig:
    """Which steps run, and their settings."""

    linker: bool = True
    """Link names that no article link marks."""
    min_p: float = 0.4
    """Least probability of the linker's best candidate."""
    ner: str | None = None
    """spaCy pipeline that detects names; without one, capital letters do."""
    coreference: str = "graph"
    """Coreference resolver: graph (built in), none, a CoreNLP server (corenlp=ADDRESS) or fastcoref."""
    story: StoryConfig = field(default_factory=StoryConfig)
    resolver: CoreferenceConfig = field(default_factory=CoreferenceConfig)

    def __post_init__(self) -> None:
        if not 0 <= self.min_p <= 1:
            raise ConfigError(f"min_p = {self.min_p} is not a probability", remedy="give a number from 0 to 1")


class Annotator:
    """Annotates articles with one graph."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        config: AnnotateConfig | None = None,
        *,
        anchors: Anchors | None = None,
        redirects: RedirectTable | None = None,
        resolver: Resolver | None = None,
    ) -> None:
        self.graph = graph = graph.fork()  # a snapshot, because caches below assume that it does not change
        self.config = config = config or AnnotateConfig()
        self.names = NameIndex.for_graph(graph)
        self._links = LinkResolver(graph, self.names, redirects)
        traits = TraitReader(graph)
        self.linker = Linker(graph, self.names, anchors=anchors, traits=traits) if config.linker else None
        self._detector: NameDetector | None = None
        if self.linker is not None:
            names = None if config.ner is None else SpacyNames(config.ner)
            self._detector = NameDetector(self.linker, min_p=config.min_p, names=names)
        self._resolver = resolver
        if resolver is None and config.coreference == "graph":
            self._resolver = GraphResolver(graph, config.resolver, traits)
        elif resolver is None and config.coreference != "none":
            self._resolver = external_resolver(config.coreference)
        self.matcher = Matcher(graph, self.names)
        self._story = Story(self.matcher, config.story)
        self.counts: Counter[str] = Counter()
        """Counts over all articles so far: links, mentions by source, skipped mentions."""

    @classmethod
    def open(
        cls,
        kg: str | Path,
        config: AnnotateConfig | None = None,
        *,
        anchors: Path | None = None,
        redirects: Path | None = None,
    ) -> Annotator:
        """Open a graph file, with optional tables of anchor counts and redirects."""
        graph = KnowledgeGraph.open(kg, whole=True)
        return cls(
            graph,
            config,
            anchors=None if anchors is None else Anchors.load(anchors, graph),
            redirects=None if redirects is None else Redirects(redirects),
        )

    def links(self, article: Article) -> list[LinkedSpan]:
        """Links of the article that lead to an entity."""
        return self._links.resolve(article, self.counts)

    def annotate(self, article: Article) -> Document:
        """Find and explain all mentions of an article."""
        tokens = article.tokens
        spans, outside_ids = self._given_spans(article)
        covered = covered_positions(spans)
        links = [each for each in self.links(article) if covered.isdisjoint(range(each.start, each.end))]
        spans = without_overlaps(tokens, [*spans, *links])
        subject = self._links.entity(article.title)
        unknown: list[tuple[int, int]] = []
        if self._detector is not None:
            names = self._detector.find(tokens, spans)
            spans, unknown = without_overlaps(tokens, [*spans, *names.linked]), names.unknown
        if self._resolver is not None:
            spans = without_overlaps(tokens, [*spans, *self._resolver.resolve(tokens, spans, subject)])
        mentions = self._story.explained_mentions(tokens, spans, subject, outside_ids, unknown)
        for mention in mentions:
            self.counts[f"source {mention.source}"] += 1
        return Document(article.title, tokens, mentions, extra=article.extra)

    def _given_spans(self, article: Article) -> tuple[list[LinkedSpan], dict[int, str]]:
        """Mentions given with the text; entities outside the graph get negative nodes, returned with their ids."""
        spans, outside_nodes = [], dict[str, int]()
        for mention in article.mentions:
            node = self.graph.find(mention.id)
            if node is None and is_literal(mention.id):
                self.counts["given dates and quantities that the graph does not have"] += 1
                continue
            if node is None:
                node = outside_nodes.setdefault(mention.id, -1 - len(outside_nodes))
            spans.append(LinkedSpan(mention.start, mention.end, node, mention.source))
        accepted = without_overlaps(article.tokens, spans)
        self.counts["given mentions over the end of a sentence"] += len(spans) - len(accepted)
        self.counts["given mentions of entities outside the graph"] += sum(each.node < 0 for each in accepted)
        return accepted, {node: id for id, node in outside_nodes.items()}
