"""Statistics of a corpus."""

from __future__ import annotations

from kglm.annotate.statistics import corpus_statistics
from kglm.kg.ids import NEW
from kglm.text.document import END, START, Document, Mention, read_documents
from support.tiny import DOCUMENTS


def test_every_count() -> None:
    mentions = [
        Mention(1, 2, "Q1", "WIKI", (NEW,), ("Q1",)),
        Mention(2, 3, "Q1", "COREF", (NEW,), ("Q1",)),
        Mention(3, 6, "Q2", "KG", ("P1", "P2", "P1"), ("Q1", "Q1", "Q3")),
        Mention(6, 7, "X5", "NEL", ("P1",), ("Q1",)),
    ]
    plain = Document("plain", [START, "x", END], annotated=False)
    result = corpus_statistics([Document("t", [START, "a", "b", "c", END, "d", "e", END], mentions), plain])
    assert (result.documents, result.annotated_documents) == (2, 1)
    assert (result.tokens, result.end_tokens, result.longest_document) == (11, 3, 8)
    assert result.paper_tokens == 5 + 2 + 1 + 2, "words plus two per document"
    assert (result.mention_spans, result.mention_tokens, result.spans_with_end) == (4, 5, 1)
    assert (result.unique_entities, result.unique_relations) == (3, 3)
    assert result.sources == {"WIKI": 1, "NEL": 1, "KG": 1, "COREF": 1}
    assert (result.new, result.related, result.duplicate_parent, result.adjacent_same_id) == (2, 2, 1, 1)
    assert result.unknown_prefix == 1 and result.kinds == {"Q": 3, "other": 1}
    assert result.repairs == {"merged": 1, "unknown_prefix": 1, "inner_end": 1}


def test_empty_corpus() -> None:
    assert corpus_statistics([]).documents == 0


def test_documents_of_the_tests_need_no_repairs() -> None:
    result = corpus_statistics(read_documents(DOCUMENTS))
    assert result.documents == 2 and result.repairs == {}
