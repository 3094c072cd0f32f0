"""Repair of known annotation errors."""

from __future__ import annotations

from collections import Counter

from hypothesis import given

from kglm.kg.ids import NEW
from kglm.text.document import END, START, Document, Mention
from kglm.text.repair import is_split, repair
from support.strategies import documents

TOKENS = [START, "the", "Tuckahoe", "River", ".", END, "It", "flows", ".", END]


def new(start: int, end: int, id: str = "Q1", source: str = "WIKI") -> Mention:
    return Mention(start, end, id, source, (NEW,), (id,))


def related(start: int, end: int, *pairs: tuple[str, str], id: str = "Q1", source: str = "KG") -> Mention:
    return Mention(start, end, id, source, tuple(r for _, r in pairs), tuple(p for p, _ in pairs))


def repaired(*mentions: Mention, tokens: list[str] | None = None) -> tuple[list[Mention], Counter[str]]:
    document, done = repair(Document("t", tokens or TOKENS, list(mentions)))
    return document.mentions, done


def test_trailing_sentence_end_is_trimmed() -> None:
    assert repaired(new(2, 6)) == ([new(2, 5)], {"trimmed_end": 1})


def test_mention_of_only_a_sentence_end_is_dropped() -> None:
    assert repaired(new(5, 6)) == ([], {"trimmed_end": 1})


def test_inner_sentence_end_is_kept() -> None:
    assert repaired(new(2, 7)) == ([new(2, 7)], {"inner_end": 1})


def test_mention_split_by_source_is_merged() -> None:
    mentions, done = repaired(new(1, 2, source="COREF"), new(2, 4, source="WIKI"))
    assert mentions == [new(1, 4, source="WIKI")] and done == {"merged": 1}


def test_first_half_gives_the_explanations() -> None:
    first = related(1, 2, ("Q9", "P1"), source="COREF")
    assert repaired(first, new(2, 4))[0] == [related(1, 4, ("Q9", "P1"), source="WIKI")]


def test_only_halves_of_one_mention_are_merged() -> None:
    assert not is_split(new(1, 2), new(3, 4)), "a gap"
    assert not is_split(new(1, 2), new(2, 3, id="Q2")), "another entity"
    assert not is_split(related(1, 2, ("Q9", "P1")), related(2, 3, ("Q8", "P1"))), "different explanations"
    assert is_split(related(1, 2, ("Q9", "P1")), related(2, 3, ("Q9", "P1"), source="NEL")), "only the source differs"


def test_three_pieces_are_merged() -> None:
    assert repaired(new(1, 2), new(2, 3), new(3, 4))[0] == [new(1, 4)]


def test_mention_with_an_unknown_prefix_is_dropped() -> None:
    mentions, done = repaired(new(1, 2, id="X77"), new(2, 4))
    assert mentions == [new(2, 4)] and done == {"unknown_prefix": 1}


def test_properties_dates_and_quantities_are_valid_ids() -> None:
    ids = ("P31", "T::9::+1964-00-00T00:00:00Z", "V::0.8000::http://www.wikidata.org/entity/Q11229", "Q_mine")
    mentions = [related(k, k + 1, ("Q9", "P1"), id=id) for k, id in enumerate(ids, 1)]
    assert repaired(*mentions) == (mentions, {})


def test_repeated_pair_is_removed() -> None:
    mention = related(1, 2, ("Q9", "P1"), ("Q9", "P1"), ("Q9", "P2"))
    assert repaired(mention) == ([related(1, 2, ("Q9", "P1"), ("Q9", "P2"))], {"repeated_pair": 1})


def test_missing_markers_are_added_and_spans_follow() -> None:
    document, done = repair(Document("t", ["a", "b"], [new(0, 1)]))
    assert document.tokens == [START, "a", "b", END]
    assert document.mentions == [new(1, 2)] and done == {"missing_start": 1, "missing_end": 1}


def test_empty_document_gets_markers() -> None:
    assert repair(Document("t", []))[0].tokens == [START, END]


@given(documents())
def test_repair_is_idempotent_and_does_not_change_the_original(document: Document) -> None:
    before = list(document.mentions), list(document.tokens)
    once, _ = repair(document)
    twice, done = repair(once)
    assert (document.mentions, document.tokens) == before
    assert twice == once and set(done) <= {"inner_end"}
    for mention in once.mentions:
        assert once.tokens[mention.end - 1] != END
