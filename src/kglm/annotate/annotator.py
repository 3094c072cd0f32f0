"""One article to one linked document: links, linker, coreference, story.

annotator = Annotator.open("world.kg")
document = annotator.annotate(article)

Each step marks what the ones before have left: an article's links, then names that the linker is sure of, then words
that stand for whoever was named, then what facts lead to. Mentions that a text came with are kept, and explained anew.
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
    """What is marked in a text."""

    linker: bool = True
    """Look for names that no link marks."""
    min_p: float = 0.7
    """How sure the linker must be of an entity."""
    ner: str | None = None
    """A spaCy pipeline that says where names are; otherwise capitals do."""
    coreference: str = "graph"
    """Who looks for pronouns, kinds and parts of names that stand for whoever was named: graph (built in), none, a
    CoreNLP server (corenlp=ADDRESS) or fastcoref."""
    story: StoryConfig = field(default_factory=StoryConfig)
    resolver: CoreferenceConfig = field(default_factory=CoreferenceConfig)

    def __post_init__(self) -> None:
        if not 0 <= self.min_p <= 1:
            raise ConfigError(f"min_p = {self.min_p}", remedy="give 0 to 1")


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
        self.graph = graph = graph.fork()  # as it is now: what is read of it once is kept
        self.config = config = config or AnnotateConfig()
        self.names = NameIndex.for_graph(graph)
        self._links = LinkResolver(graph, self.names, redirects)
        traits = TraitReader(graph)
        self.linker = Linker(graph, self.names, anchors=anchors) if config.linker else None
        self._detector: NameDetector | None = None
        if self.linker is not None:
            names = None if config.ner is None else SpacyNames(config.ner)
            self._detector = NameDetector(self.linker, traits, min_p=config.min_p, names=names)
        self._resolver = resolver
        if resolver is None and config.coreference == "graph":
            self._resolver = GraphResolver(graph, config.resolver, traits)
        elif resolver is None and config.coreference != "none":
            self._resolver = external_resolver(config.coreference)
        self.matcher = Matcher(graph, self.names)
        self._story = Story(self.matcher, config.story)
        self.counts: Counter[str] = Counter()
        """What was found so far, and what was not."""

    @classmethod
    def open(
        cls,
        kg: str | Path,
        config: AnnotateConfig | None = None,
        *,
        anchors: Path | None = None,
        redirects: Path | None = None,
    ) -> Annotator:
        """With a graph file, and tables of link texts and redirects if there are any."""
        graph = KnowledgeGraph.open(kg)
        return cls(
            graph,
            config,
            anchors=None if anchors is None else Anchors.load(anchors, graph),
            redirects=None if redirects is None else Redirects(redirects),
        )

    def links(self, article: Article) -> list[LinkedSpan]:
        """The article's links that lead to an entity."""
        return self._links.resolve(article, self.counts)

    def annotate(self, article: Article) -> Document:
        """The article with all its mentions."""
        tokens = article.tokens
        found, strangers = self._given(article)
        taken = covered_positions(found)
        links = [each for each in self.links(article) if taken.isdisjoint(range(each.start, each.end))]
        found = without_overlaps(tokens, [*found, *links])
        subject = self._links.entity(article.title)
        if self._detector is not None:
            found = without_overlaps(tokens, [*found, *self._detector.find(tokens, found)])
        if self._resolver is not None:
            found = without_overlaps(tokens, [*found, *self._resolver.resolve(tokens, found, subject)])
        mentions = self._story.tell(tokens, found, subject, strangers)
        for mention in mentions:
            self.counts[f"source {mention.source}"] += 1
        return Document(article.title, tokens, mentions, extra=article.extra)

    def _given(self, article: Article) -> tuple[list[LinkedSpan], dict[int, str]]:
        """Mentions that the text came with, and the ids of strangers, whom the graph does not have."""
        found, strangers = [], dict[str, int]()
        for mention in article.mentions:
            node = self.graph.find(mention.id)
            if node is None and is_literal(mention.id):
                self.counts["given dates and quantities that the graph does not have"] += 1
                continue
            if node is None:
                node = strangers.setdefault(mention.id, -1 - len(strangers))
            found.append(LinkedSpan(mention.start, mention.end, node, mention.source))
        settled = without_overlaps(article.tokens, found)
        self.counts["given mentions over the end of a sentence"] += len(found) - len(settled)
        self.counts["given mentions of strangers"] += sum(each.node < 0 for each in settled)
        return settled, {node: id for id, node in strangers.items()}
