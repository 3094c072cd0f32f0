"""Inputs of a model that depend on the graph: names to copy, cues, vectors.

After an edit, `features.on(graph)` returns the updated features. The weights of the model stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from kglm.kg.embedding.vectors import Vectors
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.tail_features import TailFeatureReader
from kglm.model.aliases import AliasTable
from kglm.model.cues import Cues, TextCues
from kglm.model.entities import EntityTable
from kglm.text.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class GraphFeatures:
    """Names, cues, entity and relation vectors of one graph."""

    graph: KnowledgeGraph
    aliases: AliasTable
    cues: Cues | None = None
    """None if the model reads none."""
    entities: EntityTable | None = None
    """None if the model has no entity vectors."""
    vectors: Vectors | None = None
    """The file that the entity vectors come from."""
    tails: TailFeatureReader | None = None
    """None if the model reads no features of tails."""

    @classmethod
    def of(
        cls,
        graph: KnowledgeGraph,
        vocabulary: Vocabulary,
        words_of: Callable[[str], list[str]],
        *,
        max_aliases: int,
        max_alias_tokens: int,
        uses_cues: bool = False,
        uses_tail_facts: bool = False,
        vectors: Vectors | None = None,
        introductions: Mapping[int, int] | None = None,
    ) -> GraphFeatures:
        """The features of a graph; `words_of` splits a name into words."""
        aliases = AliasTable(graph, vocabulary, words_of, max_aliases=max_aliases, max_alias_tokens=max_alias_tokens)
        entities = None
        if vectors is not None:
            entities = EntityTable.of(graph, vectors.for_graph(graph), vocabulary, words_of, introductions or {})
        cues = Cues(graph, words_of) if uses_cues else None
        tails = TailFeatureReader(graph) if uses_tail_facts else None
        return cls(graph, aliases, cues, entities, vectors, tails)

    def on(self, graph: KnowledgeGraph) -> GraphFeatures:
        """The features of a graph that was edited since: what the edits do not touch is shared."""
        entities = self.entities
        if entities is not None:
            if self.vectors is None:
                raise ValueError("entities of an edited graph need the vectors that the features were made from")
            vocabulary, words_of = self.aliases.vocabulary, self.aliases.words_of
            entities = entities.on(graph, self.vectors.for_graph(graph), vocabulary, words_of)
        cues = None if self.cues is None else self.cues.on(graph)
        tails = None if self.tails is None else TailFeatureReader(graph)
        aliases = self.aliases.on(graph, len(self.graph))
        return replace(self, graph=graph, aliases=aliases, cues=cues, entities=entities, tails=tails)

    def __deepcopy__(self, memo: dict[int, object]) -> GraphFeatures:
        """Features never change, so a copy of a model shares them."""
        return self

    def map(self, function: Callable[[Tensor], Tensor]) -> GraphFeatures:
        """The features with a function applied to all tensors, to move them or to change their type."""
        return self if self.entities is None else replace(self, entities=self.entities.map(function))

    def text_cues(self, surface: Sequence[str], first: int, count: int) -> TextCues | None:
        """Cues at the positions [first, first + count) of a text; None if the model reads none."""
        return None if self.cues is None else TextCues(self.cues, surface, first, count)
