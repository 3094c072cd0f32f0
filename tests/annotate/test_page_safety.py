"""Safety of pages: hostile text is escaped, nothing is loaded from outside, work grows linearly."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys

import pytest

from kglm.annotate.page import SCRIPT, STYLE, PageEntry, document_page, index_page, page_entry
from kglm.errors import DataError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REFLEXIVE
from kglm.text.document import END, START, Document, Mention, read_documents
from support.pages import BOY, EVIL, FACTS, LAND, NAMES, NINTENDO, PLAYER, mario_land, new, read, text_of
from support.steps import steps
from support.tiny import DOCUMENTS
from support.worlds import make_store


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg"), FACTS, NAMES))


@pytest.fixture
def mario() -> Document:
    return mario_land()


def evil_document() -> Document:
    tokens = [START, EVIL, "a", "<b>", "&lt;", END, "{{x}}", "${x}", END]
    mentions = [
        new(1, 2, "Q_odd"),
        Mention(2, 4, "Q2", "KG", ("P_odd", "R:P_odd", REFLEXIVE), ("Q_odd", 'Q_"><u>', "Q_odd")),
        Mention(4, 5, f"Q_{EVIL}", "KG", ("P_<s>", EVIL), ("Q_odd", "Q_odd")),
        Mention(6, 7, 'T::"><u>', EVIL, ("P1",), ("Q2",)),
    ]
    return Document(EVIL, tokens, mentions, extra={"evil": EVIL})


@pytest.mark.parametrize("with_graph", [True, False])
def test_markup_in_the_data_is_escaped(graph: KnowledgeGraph, mario: Document, with_graph: bool) -> None:
    harmless = read(document_page(mario, graph, index="i.html"))
    page = read(document_page(evil_document(), graph if with_graph else None))
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in harmless.tags}
    assert {name for _, pairs in page.tags for name in pairs} <= {name for _, pairs in harmless.tags for name in pairs}
    assert set(page.code) == {"style", "script"} and page.code == harmless.code
    assert page.boxes["m1"] == EVIL and page.boxes["m2"] == "a <b>" and EVIL in page.words
    assert page.of("m4")["data-source"] == EVIL
    if with_graph:
        label = " ".join(EVIL.split())
        assert page.cards["c2"].startswith("Nintendo Q2") and f"{label} —{label}→ Nintendo" in page.cards["c2"]


def test_lone_surrogates_and_controls_are_replaced(graph: KnowledgeGraph) -> None:
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


def test_page_is_self_contained(mario: Document, graph: KnowledgeGraph) -> None:
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


def test_policy_admits_only_this_style_and_script(mario: Document) -> None:
    for html in (document_page(mario), index_page([])):
        page = read(html)
        policy = next(pairs["content"] for _, pairs in page.tags if "http-equiv" in pairs)
        assert policy.startswith("default-src 'none';") and "unsafe" not in policy
        for kind in ("style", "script"):
            digest = hashlib.sha256(page.code.get(kind, "").encode()).digest()
            assert f"{kind}-src 'sha256-{base64.b64encode(digest).decode()}';" in policy


def test_page_is_deterministic() -> None:
    """Also in other processes, where sets have another order."""
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
def test_invalid_spans_are_an_error(spans: list[tuple[int, int]]) -> None:
    document = Document("t", text_of("a b c d"), [new(start, end, "Q1") for start, end in spans])
    with pytest.raises(DataError, match=r"t, annotation \d: span"):
        document_page(document)


def test_empty_documents() -> None:
    assert "not annotated" in document_page(Document("t", [START, "a", END], annotated=False))
    html = document_page(Document("", []))
    assert "Nothing in this text is linked." in html and "<title>Untitled</title>" in html
    assert "filters" not in {pairs.get("class") for _, pairs in read(html).tags}
    assert read(document_page(Document("t", ["a", "", " ", "b"]))).text.split() == ["a", "b"]
    assert read(document_page(Document("t", ["(", " b", "c"]))).text == "( b c"


def long_document(length: int) -> Document:
    words = [END if n % 25 == 24 else f"word{n % 700}" for n in range(length)]
    ids = [LAND, NINTENDO, BOY, PLAYER, *(f"Q{n}" for n in range(100, 700))]
    mentions = [
        Mention(n, n + 2, ids[n % len(ids)], "KG", ("P123", "R:P123", "P400", REFLEXIVE), (LAND, NINTENDO, BOY, PLAYER))
        for n in range(1, length - 800, 10)
    ]
    return Document("t", [START, *words], mentions)


def test_work_and_size_grow_linearly_with_the_document(graph: KnowledgeGraph) -> None:
    short, long = (long_document(length) for length in (5_200, 20_800))
    work = [steps(lambda document=document: document_page(document, graph)) for document in (short, long)]
    assert work[1] < 5 * work[0], "four times the length"
    assert len(document_page(long, graph).encode()) < 5_000_000
