"""Pages of linked documents: every word once, every box exact, every fact said right, nothing let in."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kglm.annotate.page import (
    KINDS,
    SCRIPT,
    SOURCE_NAMES,
    STYLE,
    PageEntry,
    document_fragment,
    document_page,
    index_page,
    mention_kind,
    page_entry,
    page_name,
)
from kglm.bundled import DOCUMENTS
from kglm.errors import DataError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import NEW, REFLEXIVE
from kglm.text.document import END, START, Document, Mention, read_documents
from kglm.text.tokenizer import detokenize
from strategies import documents
from worlds import make_store

LAND, NINTENDO, BOY, PLAYER = "Q1", "Q2", "Q3", "Q4"
RELEASED = "T::11::+1989-04-21T00:00:00Z"
LENGTH = "V::12.0000::http://www.wikidata.org/entity/Q11573"
FACTS = (
    (LAND, "P123", NINTENDO),
    (LAND, "P400", BOY),
    (LAND, "P577", RELEASED),
    (LAND, "P2043", LENGTH),
    (PLAYER, "P54:P413", NINTENDO),
    ("Q_odd", "P_odd", "Q2"),
)
EVIL = """</span></mark><script>alert('x')</script><img src=x onerror="alert(1)"> " ' & &amp; \u2028 -->"""
NAMES = {
    LAND: ("Super Mario Land",),
    NINTENDO: ("Nintendo",),
    BOY: ("Game Boy",),
    PLAYER: ("A Player",),
    "Q11573": ("metre",),
    "Q_odd": (EVIL,),
    "P_odd": (EVIL,),
    "P123": ("publisher",),
    "P400": ("platform",),
    "P577": ("publication date",),
    "P2043": ("length",),
    "P54": ("member of sports team",),
    "P413": ("position",),
}
VOID = {"meta", "input", "br", "img", "link"}


@dataclass
class Read(HTMLParser):
    """A page read back: what stands in boxes, between them and on cards."""

    pieces: list[tuple[str, str]] = field(default_factory=list)
    """(id of the mention, or "" between mentions; text), in the order of the text."""
    cards: dict[str, str] = field(default_factory=dict)
    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    code: dict[str, str] = field(default_factory=dict)
    words: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pairs = {name: value or "" for name, value in attrs}
        assert len(pairs) == len(attrs)
        self.tags.append((tag, pairs))
        if tag not in VOID:
            self.open.append((tag, pairs))
        if pairs.get("class") == "m":
            self.pieces.append((pairs["id"], ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag, "tags are closed in order"

    def handle_data(self, data: str) -> None:
        classes = [pairs.get("class") for _, pairs in self.open]
        self.words += data
        if self.open and self.open[-1][0] in ("style", "script"):
            self.code[self.open[-1][0]] = data
        elif "card" in classes:
            card = next(pairs["id"] for _, pairs in self.open if pairs.get("class") == "card")
            self.cards[card] = self.cards.get(card, "") + data
        elif "linked text" in classes and any(tag == "p" for tag, _ in self.open):
            mention = next((pairs["id"] for _, pairs in self.open if pairs.get("class") == "m"), "")
            if mention:
                assert self.pieces[-1][0] == mention
                self.pieces[-1] = mention, self.pieces[-1][1] + data
            else:
                self.pieces.append(("", data))

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.pieces)

    @property
    def boxes(self) -> dict[str, str]:
        return {id: text for id, text in self.pieces if id}

    def values(self, attribute: str) -> list[str]:
        return [pairs[attribute] for _, pairs in self.tags if attribute in pairs]

    def of(self, id: str) -> dict[str, str]:
        return next(pairs for _, pairs in self.tags if pairs.get("id") == id)


def read(page: str) -> Read:
    page.encode("utf-8")
    reader = Read()
    reader.feed(page)
    reader.close()
    assert not reader.open, "every tag is closed"
    return reader


def new(start: int, end: int, id: str, source: str = "WIKI") -> Mention:
    return Mention(start, end, id, source, (NEW,), (id,))


def text_of(sentences: str) -> list[str]:
    return [START, *sentences.split()]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg"), FACTS, NAMES))


@pytest.fixture
def mario() -> Document:
    tokens = text_of(
        "Super Mario Land is a side - scrolling game , published by Nintendo for the Game Boy "
        "on April 21 , 1989 . @@END@@ It is n't 12 metres long . @@END@@"
    )
    place = tokens.index
    return Document(
        "Super Mario Land",
        tokens,
        [
            new(1, 4, LAND),
            Mention(place("Nintendo"), place("Nintendo") + 1, NINTENDO, "NEL", ("P123",), (LAND,)),
            Mention(place("Game"), place("Boy") + 1, BOY, "WIKI", ("P400", "R:P123"), (LAND, NINTENDO)),
            Mention(place("April"), place("1989") + 1, RELEASED, "KG", ("P577",), (LAND,)),
            Mention(place("It"), place("It") + 1, LAND, "COREF", (REFLEXIVE,), (LAND,)),
            Mention(place("12"), place("metres") + 1, LENGTH, "KG", ("P2043", "P2043"), (LAND, LAND)),
        ],
    )


# The text


def shown(text: str) -> str:
    """A text without white space, as a page can show it."""

    def unfit(letter: str) -> bool:
        kind = unicodedata.category(letter)
        turns = letter in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufffe\uffff"
        return kind == "Cs" or (kind == "Cc" and letter not in "\t\n\f\r") or turns

    return "".join("".join("\ufffd" if unfit(letter) else letter for letter in text).split())


def check_boxes(document: Document, page: Read) -> None:
    """A box holds the words of its mention and no others, and between boxes stand all the other words."""
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
def test_every_word_stands_once_and_in_its_box(document: Document) -> None:
    page = read(document_page(document))
    check_boxes(document, page)
    plain = [token for token in document.tokens if token.isprintable() and " " not in token]
    if len(plain) == len(document.tokens):
        assert " ".join(page.text.split()) == detokenize(plain), "with the blanks of text for people"


def test_the_text_is_prose_and_blanks_stay_outside_boxes(mario: Document, graph: KnowledgeGraph) -> None:
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


def test_glued_words_are_parted_at_the_edge_of_a_box() -> None:
    tokens = [START, "a", "side", "-", "scrolling", "(", "game", ")", END]
    page = read(document_page(Document("t", tokens, [new(2, 3, "Q1"), new(6, 7, "Q2")])))
    assert page.pieces == [("", "a "), ("m1", "side"), ("", "-scrolling ("), ("m2", "game"), ("", ")")]


def test_a_mention_across_sentences_is_one_box() -> None:
    words = ["w"] * 200
    document = Document(
        "t", [START, *words, "Yahoo", END, "Inc", ".", END, "x", END], [new(201, 204, "Q1"), new(206, 207, "Q2")]
    )
    page = read(document_page(document))
    assert page.boxes == {"m1": "Yahoo Inc", "m2": "x"}
    assert [tag for tag, _ in page.tags].count("p") == 2, "a paragraph ends with a sentence, not inside a mention"


def test_a_mention_of_markers_alone_is_an_empty_box() -> None:
    document = Document("t", [START, "a", END, "b", END], [new(0, 1, "Q1"), new(2, 3, "Q2"), new(3, 5, "Q3")])
    assert read(document_page(document)).boxes == {"m1": "", "m2": "", "m3": "b"}


def test_real_documents_are_covered_exactly(shared_data: Path) -> None:
    for document in islice(read_documents(shared_data / "lw2" / "valid.jsonl.gz"), 12):
        page = read(document_page(document))
        check_boxes(document, page)
        assert " ".join(page.text.split()) == " ".join(detokenize(document.tokens).split())
        check_links(page)


# Kinds, sources, numbers


def test_kinds_and_sources(mario: Document) -> None:
    page = read(document_page(mario))
    marked = [page.of(id) for id in page.boxes]
    assert [each["data-kind"] for each in marked] == ["new", "related", "related", "date", "again", "quantity"]
    assert [each["data-source"] for each in marked] == [mention.source for mention in mario.mentions]
    assert set(SOURCE_NAMES) == {"WIKI", "NEL", "COREF", "KG"}
    assert mention_kind(Mention(0, 1, "Q1", "KG", (REFLEXIVE, "P1"), ("Q1", "Q2"))) == "related"
    assert mention_kind(new(0, 1, RELEASED)) == "date"


def test_the_legend_counts_and_filters(mario: Document, graph: KnowledgeGraph) -> None:
    html = document_page(mario, graph)
    boxes = {each["value"] for each in (pairs for tag, pairs in read(html).tags if tag == "input") if "value" in each}
    assert boxes == {*KINDS, *SOURCE_NAMES}
    counts = dict(re.findall(r'<input type="checkbox" value="(\w+)".*?class="n">(\d+)<', html))
    kinds = Counter(map(mention_kind, mario.mentions))
    sources = Counter(mention.source for mention in mario.mentions)
    assert counts == {name: str((kinds | sources)[name]) for name in (*KINDS, *SOURCE_NAMES)}
    numbers = dict(re.findall(r"<dt>(\w+)</dt><dd>([\d,]+)</dd>", html))
    assert numbers == {"words": "30", "sentences": "2", "mentions": "6", "entities": "5", "facts": "5"}


def test_a_fact_read_from_both_ends_is_one_fact() -> None:
    mentions = [
        Mention(1, 2, NINTENDO, "KG", ("P123",), (LAND,)),
        Mention(2, 3, LAND, "KG", ("R:P123", REFLEXIVE), (NINTENDO, LAND)),
    ]
    assert "<dt>facts</dt><dd>1</dd>" in document_page(Document("t", text_of("a b"), mentions))


def test_the_table_of_entities(mario: Document, graph: KnowledgeGraph) -> None:
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
    ("relation", "parent", "id", "said"),
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
def test_facts_in_words(graph: KnowledgeGraph, relation: str, parent: str, id: str, said: str) -> None:
    document = Document("t", text_of("a b c d"), [new(1, 2, parent), Mention(3, 4, id, "KG", (relation,), (parent,))])
    html = document_page(document, graph)
    fact = re.findall(r'<span class="fact">(.*?)</span>', html)
    assert [read(each).words for each in fact] == [said]
    assert read(html).cards["c2"].endswith(f"{said}↑ “a”, 1 word before#2")


def test_cards(mario: Document, graph: KnowledgeGraph) -> None:
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
    assert cards["c6"].count("—length→") == 1, "a fact that is listed twice is said once"


def test_new_again_and_parents_that_are_not_in_the_text(graph: KnowledgeGraph) -> None:
    mentions = [new(1, 2, LAND), new(2, 3, LAND), Mention(3, 4, BOY, "KG", ("P400", REFLEXIVE), ("Q5", BOY))]
    page = read(document_page(Document("t", text_of("a b c d"), mentions), graph))
    assert "first mention" in page.cards["c1"]
    assert "new again, as if not mentioned before" in page.cards["c2"] and "↑ “a”, just before" in page.cards["c2"]
    assert page.cards["c3"].count("no earlier mention in this text") == 2
    assert "Q5 —platform→ Game Boy" in page.cards["c3"] and "mentioned before" in page.cards["c3"]
    assert "data-parents" not in page.of("m2") and "data-parents" not in page.of("m3")


def test_without_a_graph_ids_stand_for_names(mario: Document) -> None:
    page = read(document_page(mario))
    assert "Q1 —P400→ Q3" in page.cards["c3"] and "not in this graph" not in page.words
    assert page.cards["c4"].startswith("April 21, 1989 T::11::"), "a date says itself"
    assert page.cards["c6"].startswith("12 Q11573 V::12.0000")


def test_ids_lead_to_wikidata_where_it_knows_them() -> None:
    ids = ["Q76", "P31", "Q_own", "Q0", "Q١", 'Q1"onclick="x', "T::x::y", "V::::", ""]
    document = Document("t", [START, *"abcdefghi"], [new(n, n + 1, id) for n, id in enumerate(ids, 1)])
    links = [link for link in read(document_fragment(document)).values("href") if not link.startswith("#")]
    assert links == ["https://www.wikidata.org/wiki/Q76", "https://www.wikidata.org/wiki/Property:P31"]


# Links inside the page


def check_links(page: Read) -> None:
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    inner = {link[1:] for link in page.values("href") if link.startswith("#")}
    inner |= set(page.values("aria-describedby")) | set(page.values("aria-labelledby"))
    inner |= {id for ids in page.values("data-parents") for id in ids.split()}
    assert inner <= set(ids)


@given(documents())
def test_anchors_exist_and_parents_are_the_nearest_before(document: Document) -> None:
    page = read(document_page(document))
    check_links(page)
    for number, mention in enumerate(document.mentions, 1):
        parents = {parent for parent, _ in mention.explanations}
        places = {
            max((k for k in range(1, number) if document.mentions[k - 1].id == parent), default=0) for parent in parents
        }
        expected = " ".join(f"m{place}" for place in sorted(places - {0}))
        assert page.of(f"m{number}").get("data-parents", "") == expected
        assert f'href="#m{number}"' in document_fragment(document), "a card has the address of its mention"


def test_what_hangs_on_what(mario: Document) -> None:
    page = read(document_page(mario))
    assert [page.of(id).get("data-parents") for id in page.boxes] == [None, "m1", "m1 m2", "m1", "m1", "m5"]


def test_two_fragments_in_one_page(mario: Document, graph: KnowledgeGraph) -> None:
    page = read(document_fragment(mario, graph, prefix="a-") + document_fragment(mario, graph, prefix="b-"))
    check_links(page)
    assert {"a-m1", "b-m1", "a-c6"} <= set(page.values("id"))
    assert not {tag for tag, _ in page.tags} & {"html", "body", "style", "script"}


# Nothing gets in, nothing gets out


def evil_document() -> Document:
    tokens = [START, EVIL, "a", "<b>", "&lt;", END, "{{x}}", "${x}", END]
    mentions = [
        new(1, 2, "Q_odd"),
        Mention(2, 4, "Q2", "KG", ("P_odd", "R:P_odd", REFLEXIVE), ("Q_odd", 'Q_"><u>', "Q_odd")),
        Mention(4, 5, f"Q_{EVIL}", "KG", ("P_<s>", EVIL), ("Q_odd", "Q_odd")),
        Mention(6, 7, 'T::"><u>', EVIL, ("P1",), ("Q2",)),
    ]
    return Document(EVIL, tokens, mentions, extra={"evil": EVIL})


@pytest.mark.parametrize("known", [True, False])
def test_markup_in_the_data_is_text(graph: KnowledgeGraph, mario: Document, known: bool) -> None:
    harmless = read(document_page(mario, graph, index="i.html"))
    page = read(document_page(evil_document(), graph if known else None))
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in harmless.tags}
    assert {name for _, pairs in page.tags for name in pairs} <= {name for _, pairs in harmless.tags for name in pairs}
    assert set(page.code) == {"style", "script"} and page.code == harmless.code
    assert page.boxes["m1"] == EVIL and page.boxes["m2"] == "a <b>" and EVIL in page.words
    assert page.of("m4")["data-source"] == EVIL
    if known:
        label = " ".join(EVIL.split())
        assert page.cards["c2"].startswith("Nintendo Q2") and f"{label} —{label}→ Nintendo" in page.cards["c2"]


def test_half_characters_and_controls_can_be_written(graph: KnowledgeGraph) -> None:
    bad = "x\ud800\x00\x1b\u202ey\udfff"
    document = Document(bad, [START, bad, "ok", END], [Mention(1, 2, bad, bad, (bad,), (bad,)), new(2, 3, f"T::{bad}")])
    for html in (
        document_page(document, graph, index=bad),
        document_page(document),
        index_page([page_entry(document, 1)], bad),
    ):
        assert not re.search("[\ud800-\udfff\x00\x1b\u202e]", html)
        assert "x\ufffd\ufffd\ufffd\ufffdy\ufffd" in read(html).words
    html = index_page([PageEntry("t", f"{bad}.html", 1, 1, 1)])
    assert html.encode()


def test_a_page_is_complete_in_itself(mario: Document, graph: KnowledgeGraph) -> None:
    html = document_page(mario, graph, index="../index.html")
    page = read(html)
    assert html.startswith("<!doctype html>") and '<meta charset="utf-8">' in html[:100]
    assert not {tag for tag, _ in page.tags} & {"link", "img", "iframe", "object", "embed", "base", "svg"}
    names = {name for _, pairs in page.tags for name in pairs}
    assert not [name for name in names if name in ("src", "srcset", "style", "action") or name.startswith("on")]
    outside = {link for link in page.values("href") if not link.startswith(("#", "https://www.wikidata.org/wiki/"))}
    assert outside == {"../index.html"}
    assert not re.search(r"@import|url\(|https?:|//\w", STYLE) and not re.search(
        r"fetch|XMLHttp|https?:|innerHTML", SCRIPT
    )


def test_the_policy_lets_in_this_style_and_this_script_only(mario: Document) -> None:
    for html in (document_page(mario), index_page([])):
        page = read(html)
        policy = next(pairs["content"] for _, pairs in page.tags if "http-equiv" in pairs)
        assert policy.startswith("default-src 'none';") and "unsafe" not in policy
        for kind in ("style", "script"):
            digest = hashlib.sha256(page.code.get(kind, "").encode()).digest()
            assert f"{kind}-src 'sha256-{base64.b64encode(digest).decode()}';" in policy


def test_the_same_document_gives_the_same_page() -> None:
    """Also in another process, where sets have another order."""
    code = "import sys; from kglm.annotate.page import *; from kglm.text.document import read_documents as r;"
    code += "sys.stdout.buffer.write(''.join(map(document_page, r(sys.argv[1]))).encode())"
    pages = [
        subprocess.run(
            [sys.executable, "-c", code, str(DOCUMENTS)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert pages[0] == pages[1] == "".join(map(document_page, read_documents(DOCUMENTS))).encode()


@pytest.mark.parametrize("spans", [[(1, 3), (2, 4)], [(3, 4), (1, 2)], [(1, 1)], [(2, 9)], [(-1, 2)]])
def test_spans_that_cannot_be(spans: list[tuple[int, int]]) -> None:
    document = Document("t", text_of("a b c d"), [new(start, end, "Q1") for start, end in spans])
    with pytest.raises(DataError, match=r"t, annotation \d: span"):
        document_page(document)


def test_documents_with_nothing_in_them() -> None:
    assert "not annotated" in document_page(Document("t", [START, "a", END], annotated=False))
    html = document_page(Document("", []))
    assert "Nothing in this text is linked." in html and "<title>Untitled</title>" in html
    assert "filters" not in {pairs.get("class") for _, pairs in read(html).tags}
    assert read(document_page(Document("t", ["a", "", " ", "b"]))).text.split() == ["a", "b"]
    assert read(document_page(Document("t", ["(", " b", "c"]))).text == "( b c"


def test_a_long_document_is_quick_and_small(graph: KnowledgeGraph) -> None:
    words = [END if n % 25 == 24 else f"word{n % 700}" for n in range(20_800)]
    ids = [LAND, NINTENDO, BOY, PLAYER, *(f"Q{n}" for n in range(100, 700))]
    mentions = [
        Mention(n, n + 2, ids[n % len(ids)], "KG", ("P123", "R:P123", "P400", REFLEXIVE), (LAND, NINTENDO, BOY, PLAYER))
        for n in range(1, 20_000, 10)
    ]
    start = time.perf_counter()
    html = document_page(Document("t", [START, *words], mentions), graph)
    assert time.perf_counter() - start < 5, "seconds; 0.2 when nothing else runs"
    assert len(html.encode()) < 5_000_000


# Colours

PALETTES = re.findall(r"\.linked \{\s*((?:\s*--.*?;)+)", STYLE)


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark"])
def test_contrast(palette: str) -> None:
    """WCAG 2.2, AA: 4.5 for text, 3 for outlines."""
    colour = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", palette))
    for kind in KINDS:
        assert contrast(colour["ink"], colour[kind]) >= 7
        assert contrast(colour[f"{kind}-ink"], colour[kind]) >= 4.5, "signs and labels in a box"
        assert contrast(colour[f"{kind}-ink"], colour["raised"]) >= 4.5, "relations on a card"
        assert contrast(colour[f"{kind}-ink"], colour["paper"]) >= 3, "underlines"
        assert contrast(colour[f"{kind}-ink"], colour["target"]) >= 4.5
        assert contrast(colour["parent"], colour[kind]) >= 3
    for ground in ("paper", "raised"):
        assert all(contrast(colour[ink], colour[ground]) >= 4.5 for ink in ("ink", "soft", "link", "parent"))


def test_there_are_two_palettes_with_the_same_names() -> None:
    light, dark = ([*re.findall(r"--(\w[\w-]*): #", palette)] for palette in PALETTES)
    assert light == dark and len(light) > 10


# File names and lists

HOSTILE_TITLES = [
    "", ".", "..", "../../etc/passwd", "a/b\\c", "CON", "nul.txt", "x" * 300, "É" * 300, "日本", "-rf", " ", "a\x00b",
    "\ud800", "index", "Tikal", "tikal", "TIKAL", "ﬁ", "a:b*c?<>|\"'", "%2e%2e", "~", "$HOME", "\n", "💥",
]  # fmt: skip


def test_file_names_are_safe_and_unique() -> None:
    names = [page_name(title, number) for number, title in enumerate(HOSTILE_TITLES, 1)]
    assert all(re.fullmatch(r"[0-9]{4}(-[a-z0-9]+)*\.html", name) and len(name) <= 80 for name in names)
    assert len({name.casefold() for name in names}) == len(names)
    assert page_name("Éva Gauthier", 40) == "0040-eva-gauthier.html" and page_name("日本", 12345) == "12345.html"
    assert page_name("...Thirteen Years Later", 50) == "0050-thirteen-years-later.html"


@given(st.text(), st.text(), st.integers(0, 10**6), st.integers(0, 10**6))
def test_no_two_numbers_share_a_name(one: str, other: str, m: int, n: int) -> None:
    assert page_name(one, m) == page_name(one, m)
    assert m == n or page_name(one, m).casefold() != page_name(other, n).casefold()


def test_the_list_of_documents(mario: Document) -> None:
    titles = [mario.title, EVIL, ""]
    entries = [page_entry(Document(t, mario.tokens, mario.mentions), n) for n, t in enumerate(titles, 1)]
    assert entries[0] == PageEntry("Super Mario Land", "0001-super-mario-land.html", 30, 6, 5)
    page = read(index_page(entries, "My <texts>"))
    assert page.values("href") == [entry.file for entry in entries]
    assert EVIL in page.words and "Untitled" in page.words and "My <texts>" in page.words
    assert {tag for tag, _ in page.tags}.isdisjoint({"img", "u"}) and "script" not in page.code
    odd = read(index_page([PageEntry("t", 'javascript:alert(1)//"', 1, 1, 1)]))
    assert odd.values("href") == ["javascript%3Aalert%281%29%2F%2F%22"], "the name of a file, never a command"
