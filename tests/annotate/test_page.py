"""Pages of linked documents: the text, boxes of mentions, cards with facts, links."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import given

from kglm.annotate.page import KINDS, SOURCE_NAMES, document_fragment, document_page, mention_kind
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REFLEXIVE
from kglm.text.document import END, START, Document, Mention, read_documents
from kglm.text.tokenizer import detokenize
from support.pages import (
    BOY,
    FACTS,
    LAND,
    LENGTH,
    NAMES,
    NINTENDO,
    PLAYER,
    RELEASED,
    Read,
    check_links,
    mario_land,
    new,
    read,
    text_of,
)
from support.strategies import documents
from support.worlds import make_store


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg"), FACTS, NAMES))


@pytest.fixture
def mario() -> Document:
    return mario_land()


# The text


def shown(text: str) -> str:
    """A text as a page shows it, without white space."""

    def unfit(letter: str) -> bool:
        kind = unicodedata.category(letter)
        turns = letter in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufffe\uffff"
        return kind == "Cs" or (kind == "Cc" and letter not in "\t\n\f\r") or turns

    return "".join("".join("\ufffd" if unfit(letter) else letter for letter in text).split())


def check_boxes(document: Document, page: Read) -> None:
    """Check that each box contains the words of its mention, and that all other words are between boxes."""
    ends = [0, *(place for mention in document.mentions for place in (mention.start, mention.end)), None]
    words = [
        "".join(token for token in document.tokens[start:end] if token not in (START, END))
        for start, end in pairwise(ends)
    ]
    found = [("", "")]
    for id, text in page.pieces:
        found += [(id, text), ("", "")] if id else [("", found.pop()[1] + text)]
    assert [shown(text) for _, text in found] == [shown(text) for text in words]
    assert [id for id, _ in found if id] == [f"m{number}" for number in range(1, len(document.mentions) + 1)]


@given(documents())
def test_every_word_occurs_once_in_the_right_box(document: Document) -> None:
    page = read(document_page(document))
    check_boxes(document, page)
    plain = [token for token in document.tokens if token.isprintable() and " " not in token]
    if len(plain) == len(document.tokens):
        assert " ".join(page.text.split()) == detokenize(plain), "with the blanks of detokenized text"


def test_text_is_detokenized_and_blanks_stay_outside_boxes(mario: Document, graph: KnowledgeGraph) -> None:
    page = read(document_page(mario, graph))
    assert page.text == (
        "Super Mario Land is a side-scrolling game, published by Nintendo for the Game Boy on April 21, 1989. "
        "It isn't 12 metres long."
    )
    assert list(page.boxes.values()) == [
        "Super Mario Land",
        "Nintendo",
        "Game Boy",
        "April 21, 1989",
        "It",
        "12 metres",
    ]


def test_words_without_blanks_are_split_at_the_edge_of_a_box() -> None:
    tokens = [START, "a", "side", "-", "scrolling", "(", "game", ")", END]
    page = read(document_page(Document("t", tokens, [new(2, 3, "Q1"), new(6, 7, "Q2")])))
    assert page.pieces == [("", "a "), ("m1", "side"), ("", "-scrolling ("), ("m2", "game"), ("", ")")]


def test_mention_across_sentences_is_one_box() -> None:
    words = ["w"] * 200
    document = Document(
        "t", [START, *words, "Yahoo", END, "Inc", ".", END, "x", END], [new(201, 204, "Q1"), new(206, 207, "Q2")]
    )
    page = read(document_page(document))
    assert page.boxes == {"m1": "Yahoo Inc", "m2": "x"}
    assert [tag for tag, _ in page.tags].count("p") == 2, "a paragraph ends with a sentence, not inside a mention"


def test_mention_without_words_is_an_empty_box() -> None:
    document = Document("t", [START, "a", END, "b", END], [new(0, 1, "Q1"), new(2, 3, "Q2"), new(3, 5, "Q3")])
    assert read(document_page(document)).boxes == {"m1": "", "m2": "", "m3": "b"}


def test_real_documents_are_shown_completely(shared_data: Path) -> None:
    for document in islice(read_documents(shared_data / "lw2" / "valid.jsonl.gz"), 6):
        page = read(document_page(document))
        check_boxes(document, page)
        assert " ".join(page.text.split()) == " ".join(detokenize(document.tokens).split())
        check_links(page)


# Kinds, sources, numbers


def test_kinds_and_sources_of_mentions(mario: Document) -> None:
    page = read(document_page(mario))
    marked = [page.of(id) for id in page.boxes]
    assert [each["data-kind"] for each in marked] == ["new", "related", "related", "date", "again", "quantity"]
    assert [each["data-source"] for each in marked] == [mention.source for mention in mario.mentions]
    assert set(SOURCE_NAMES) == {"WIKI", "NEL", "COREF", "KG"}
    assert mention_kind(Mention(0, 1, "Q1", "KG", (REFLEXIVE, "P1"), ("Q1", "Q2"))) == "related"
    assert mention_kind(new(0, 1, RELEASED)) == "date"


def test_legend_has_counts_and_filters(mario: Document, graph: KnowledgeGraph) -> None:
    html = document_page(mario, graph)
    boxes = {each["value"] for each in (pairs for tag, pairs in read(html).tags if tag == "input") if "value" in each}
    assert boxes == {*KINDS, *SOURCE_NAMES}
    counts = dict(re.findall(r'<input type="checkbox" value="(\w+)".*?class="n">(\d+)<', html))
    kinds = Counter(map(mention_kind, mario.mentions))
    sources = Counter(mention.source for mention in mario.mentions)
    assert counts == {name: str((kinds | sources)[name]) for name in (*KINDS, *SOURCE_NAMES)}
    numbers = dict(re.findall(r"<dt>(\w+)</dt><dd>([\d,]+)</dd>", html))
    assert numbers == {"words": "30", "sentences": "2", "mentions": "6", "entities": "5", "facts": "5"}


def test_fact_and_its_reverse_count_once() -> None:
    mentions = [
        Mention(1, 2, NINTENDO, "KG", ("P123",), (LAND,)),
        Mention(2, 3, LAND, "KG", ("R:P123", REFLEXIVE), (NINTENDO, LAND)),
    ]
    assert "<dt>facts</dt><dd>1</dd>" in document_page(Document("t", text_of("a b"), mentions))


def test_table_of_entities(mario: Document, graph: KnowledgeGraph) -> None:
    html = document_page(mario, graph)
    rows = re.findall(r'<tr><td><a href="#(m\d+)"><bdi>(.*?)</bdi></a>.*?</td><td>(\d+)</td><td>(\d+)</td>', html)
    assert rows == [
        ("m1", "Super Mario Land", "2", "0"),
        ("m2", "Nintendo", "1", "1"),
        ("m3", "Game Boy", "1", "2"),
        ("m4", "April 21, 1989", "1", "1"),
        ("m6", "12 metre", "1", "1"),
    ]


# Facts in words


@pytest.mark.parametrize(
    ("relation", "parent", "id", "words"),
    [
        ("P123", LAND, NINTENDO, "Super Mario Land —publisher→ Nintendo"),
        ("R:P123", NINTENDO, LAND, "Nintendo ←publisher— Super Mario Land"),
        ("P54:P413", PLAYER, NINTENDO, "A Player —member of sports team: position→ Nintendo"),
        ("R:P54:P413", NINTENDO, PLAYER, "Nintendo ←member of sports team: position— A Player"),
        ("P577", LAND, RELEASED, "Super Mario Land —publication date→ April 21, 1989"),
        ("P2043", LAND, LENGTH, "Super Mario Land —length→ 12 metre"),
        ("P123", BOY, NINTENDO, "Game Boy —publisher→ Nintendo (not in this graph)"),
        ("P99", LAND, "Q99", "Super Mario Land —P99→ Q99"),
        (REFLEXIVE, LAND, NINTENDO, "mentioned before as Super Mario Land"),
    ],
)
def test_facts_in_words(graph: KnowledgeGraph, relation: str, parent: str, id: str, words: str) -> None:
    document = Document("t", text_of("a b c d"), [new(1, 2, parent), Mention(3, 4, id, "KG", (relation,), (parent,))])
    html = document_page(document, graph)
    fact = re.findall(r'<span class="fact">(.*?)</span>', html)
    assert [read(each).words for each in fact] == [words]
    assert read(html).cards["c2"].endswith(f"{words}↑ “a”, 1 word before#2")


def test_cards_explain_mentions(mario: Document, graph: KnowledgeGraph) -> None:
    cards = read(document_page(mario, graph)).cards
    assert cards["c1"] == "Super Mario Land Q1first mention · article link (WIKI)#1"
    assert cards["c3"] == (
        "Game Boy Q3related by a fact · article link (WIKI)"
        "Super Mario Land —platform→ Game Boy↑ “Super Mario Land”, 12 words before"
        "Nintendo ←publisher— Game Boy (not in this graph)↑ “Nintendo”, 2 words before#3"
    )
    assert (
        cards["c5"]
        == "Super Mario Land Q1mentioned before · coreference (COREF)↑ “Super Mario Land”, 20 words before#5"
    )
    assert cards["c6"].count("—length→") == 1, "a duplicate fact is shown once"


def test_cards_of_repeated_new_mentions_and_missing_parents(graph: KnowledgeGraph) -> None:
    mentions = [new(1, 2, LAND), new(2, 3, LAND), Mention(3, 4, BOY, "KG", ("P400", REFLEXIVE), ("Q5", BOY))]
    page = read(document_page(Document("t", text_of("a b c d"), mentions), graph))
    assert "first mention" in page.cards["c1"]
    assert "new again, as if not mentioned before" in page.cards["c2"] and "↑ “a”, just before" in page.cards["c2"]
    assert page.cards["c3"].count("no earlier mention in this text") == 2
    assert "Q5 —platform→ Game Boy" in page.cards["c3"] and "mentioned before" in page.cards["c3"]
    assert "data-parents" not in page.of("m2") and "data-parents" not in page.of("m3")


def test_ids_are_shown_without_a_graph(mario: Document) -> None:
    page = read(document_page(mario))
    assert "Q1 —P400→ Q3" in page.cards["c3"] and "not in this graph" not in page.words
    assert page.cards["c4"].startswith("April 21, 1989 T::11::"), "a date needs no graph"
    assert page.cards["c6"].startswith("12 Q11573 V::12.0000")


def test_wikidata_ids_are_links() -> None:
    ids = ["Q76", "P31", "Q_own", "Q0", "Q١", 'Q1"onclick="x', "T::x::y", "V::::", ""]
    document = Document("t", [START, *"abcdefghi"], [new(n, n + 1, id) for n, id in enumerate(ids, 1)])
    links = [link for link in read(document_fragment(document)).values("href") if not link.startswith("#")]
    assert links == ["https://www.wikidata.org/wiki/Q76", "https://www.wikidata.org/wiki/Property:P31"]


# Links inside the page


@given(documents())
def test_anchors_exist_and_parents_are_their_last_mentions(document: Document) -> None:
    page = read(document_page(document))
    check_links(page)
    for number, mention in enumerate(document.mentions, 1):
        parents = {parent for parent, _ in mention.explanations}
        places = {
            max((k for k in range(1, number) if document.mentions[k - 1].id == parent), default=0) for parent in parents
        }
        expected = " ".join(f"m{place}" for place in sorted(places - {0}))
        assert page.of(f"m{number}").get("data-parents", "") == expected
        assert f'href="#m{number}"' in document_fragment(document), "a card links to its mention"


def test_parents_of_each_mention(mario: Document) -> None:
    page = read(document_page(mario))
    assert [page.of(id).get("data-parents") for id in page.boxes] == [None, "m1", "m1 m2", "m1", "m1", "m5"]


def test_two_fragments_in_one_page(mario: Document, graph: KnowledgeGraph) -> None:
    page = read(document_fragment(mario, graph, prefix="a-") + document_fragment(mario, graph, prefix="b-"))
    check_links(page)
    assert {"a-m1", "b-m1", "a-c6"} <= set(page.values("id"))
    assert not {tag for tag, _ in page.tags} & {"html", "body", "style", "script"}
