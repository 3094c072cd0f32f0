"""Statistics of a linked corpus: the paper's corpus table, and counts of irregular annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kglm.kg.ids import is_entity_id
from kglm.text.document import END, SOURCES, START, Document
from kglm.text.repair import repair


@dataclass(slots=True)
class CorpusStatistics:
    """Counts over documents. `paper_tokens` is the paper's "Tokens": words plus two per document."""

    documents: int = 0
    annotated_documents: int = 0
    tokens: int = 0
    end_tokens: int = 0
    paper_tokens: int = 0
    mention_spans: int = 0
    mention_tokens: int = 0
    """Tokens inside mentions, `@@END@@` not counted."""
    unique_entities: int = 0
    unique_relations: int = 0
    sources: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SOURCES, 0))
    new: int = 0
    related: int = 0
    duplicate_parent: int = 0
    """Related mentions that list a parent more than once."""
    adjacent_same_id: int = 0
    spans_with_end: int = 0
    longest_document: int = 0
    unknown_prefix: int = 0
    """Mentions whose id is no item, property, date or quantity."""
    kinds: dict[str, int] = field(default_factory=dict)
    """Mentions by kind of id: Q, P, T (date), V (quantity)."""
    repairs: dict[str, int] = field(default_factory=dict)
    """Number of repairs that `repair` would make, by kind."""


def corpus_statistics(documents: Iterable[Document]) -> CorpusStatistics:
    """Count everything in one pass; memory grows with the number of distinct ids only."""
    result = CorpusStatistics()
    entities: set[str] = set()
    relations: set[str] = set()
    kinds: Counter[str] = Counter()
    repairs: Counter[str] = Counter()
    for document in documents:
        ends, starts = document.tokens.count(END), document.tokens.count(START)
        result.documents += 1
        result.annotated_documents += document.annotated
        result.tokens += len(document.tokens)
        result.end_tokens += ends
        result.paper_tokens += len(document.tokens) - ends - starts + 2
        result.longest_document = max(result.longest_document, len(document.tokens))
        last = None
        for mention in document.mentions:
            span = document.tokens[mention.start : mention.end]
            ends_inside = span.count(END)
            result.mention_spans += 1
            result.mention_tokens += len(span) - ends_inside
            result.spans_with_end += ends_inside > 0
            result.sources[mention.source] += 1
            result.new += mention.is_new
            result.related += not mention.is_new
            result.duplicate_parent += len(set(mention.parents)) < len(mention.parents)
            result.adjacent_same_id += last is not None and last.id == mention.id and last.end == mention.start
            known = is_entity_id(mention.id)
            result.unknown_prefix += not known
            kinds[mention.id[0] if known else "other"] += 1
            entities.add(mention.id)
            relations.update(mention.relations)
            last = mention
        repairs += repair(document)[1]
    result.unique_entities, result.unique_relations = len(entities), len(relations)
    result.kinds, result.repairs = dict(sorted(kinds.items())), dict(sorted(repairs.items()))
    return result
