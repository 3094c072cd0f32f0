"""The explorer of annotated documents."""

from __future__ import annotations

import re

from kglm.answer.model import FactAwareLM
from support.browsing import ARABIC, Open, at, query
from support.serving import Client, serving


def test_a_mention_tells_all(visit: Open) -> None:
    page = visit("#/explore/1")
    text = page.locator("#explore .text")
    text.wait_for()
    assert (
        text.inner_text().split() == f"Barack Obama was born in Honolulu. He married Michelle Obama, {ARABIC}.".split()
    )
    text.get_by_text("Honolulu").click()
    detail = page.locator(".detail")
    assert "Barack Obama —place of birth→ Honolulu" in detail.inner_text()
    assert "KG" in detail.inner_text()
    outward = detail.get_by_role("link", name="Wikidata")
    assert outward.get_attribute("href") == "https://www.wikidata.org/wiki/Q18094"
    assert "noreferrer" in outward.get_attribute("rel")
    detail.get_by_role("button", name="Go to Barack Obama").click()
    assert page.evaluate("document.activeElement.textContent") == "Barack Obama"
    detail.get_by_text("Its facts and names").click()
    assert "Barack Obama" in page.locator("dialog .fact-row").first.inner_text()
    page.keyboard.press("Escape")
    text.get_by_text("Michelle Obama").click()
    detail.get_by_text("What does the model predict here?").click()
    page.wait_for_selector("#complete .bar")
    assert query(page)["text"] == ["Barack Obama was born in Honolulu. He married"]


def test_filters_narrow_the_list_and_stay_in_the_address(visit: Open, server: Client) -> None:
    page = visit("#/explore")
    page.get_by_text("30 documents, 1–20").wait_for()
    page.get_by_role("link", name="Next page of the list").click()
    page.get_by_text("30 documents, 21–30").wait_for()
    page.get_by_label("Entity", exact=True).press_sequentially("honol")
    page.get_by_role("option", name="Honolulu").click()
    fitting = server.get("/api/documents?entity=Q18094").json
    assert 1 < fitting["total"] < 30
    page.locator("#e-count", has_text=f"{fitting['total']} documents").wait_for()
    first, second = fitting["documents"][:2]
    page.locator(".doc-title", has_text=first["title"]).wait_for()
    page.get_by_role("link", name="Next document").click()
    page.wait_for_url(re.compile("explore/[2-9]"))
    page.locator(".doc-title", has_text=second["title"]).wait_for()
    assert query(page) == {"entity": ["Q18094"]}
    assert page.locator(".mention.wanted").count() >= 1
    page.reload()
    page.locator(".doc-title", has_text=second["title"]).wait_for()
    page.get_by_label("Source", exact=True).select_option("WIKI")
    page.get_by_text("No document matches.").wait_for()
    page.go_back()
    page.locator(".doc-title", has_text=second["title"]).wait_for()
    page.get_by_role("button", name="Remove the filter entity Honolulu").click()
    page.get_by_text("30 documents, 1–20").wait_for()
    page.get_by_label("Search", exact=True).fill("married")
    page.locator("mark", has_text="married").first.wait_for()
    assert page.locator(".mention.wanted").count() == 0
    page.get_by_label("Relation").press_sequentially("place")
    page.get_by_role("option", name="place of birth").first.click()
    page.wait_for_url(re.compile("relation=P19"))


def test_sources_are_hidden_and_a_text_of_ones_own_is_annotated(visit: Open) -> None:
    page = visit("#/explore/1")
    page.locator("#explore .mention.s-COREF").wait_for()
    shown = page.locator("#explore .mention.s-COREF").evaluate("e => getComputedStyle(e).backgroundColor")
    page.get_by_role("button", name="COREF").click()
    hidden = page.locator("#explore .mention.s-COREF").evaluate("e => getComputedStyle(e).backgroundColor")
    assert shown != hidden == "rgba(0, 0, 0, 0)"
    page.get_by_text("Annotate a text of your own").click()
    page.get_by_label("Text", exact=True).fill("Michelle Obama met Barack Obama.")
    page.get_by_role("button", name="Annotate").click()
    page.locator(".doc-title", has_text="Your text").wait_for()
    assert page.locator("#explore .text").inner_text().strip() == "Michelle Obama met Barack Obama."


def test_a_server_without_documents_says_so(visit: Open, model: FactAwareLM) -> None:
    with serving(model) as bare:
        page = visit("#/explore", at=bare)
        page.get_by_text("--documents").wait_for()


def test_what_was_looked_for_is_marked(visit: Open) -> None:
    page = visit("#/explore/1?q=obam+born&source=KG")
    page.locator("mark").first.wait_for()
    assert page.locator("#explore mark").all_inner_texts() == ["Obama", "born", "Obama"], "in mentions too"
    assert page.locator(".mention.wanted").all_inner_texts() == ["Honolulu"]
    at(page, "#/explore/1?source=KG&entity=Q76")
    page.locator("#explore .text:not(:has(.wanted))").wait_for()
    assert page.locator("#explore .mention").count() == 4, "none is both"


def test_a_mention_has_an_address(visit: Open) -> None:
    page = visit("#/explore/1?q=born")
    page.locator("#explore .mention", has_text="Honolulu").click()
    assert query(page) == {"q": ["born"], "mention": ["5"]}
    page.reload()
    page.wait_for_selector(".detail.open")
    assert page.locator(".detail h3").inner_text() == "Honolulu"
    assert page.locator("#explore .mention[aria-pressed=true]").inner_text() == "Honolulu"
    page.get_by_role("button", name="Close").click()
    assert query(page) == {"q": ["born"]}


def test_a_document_that_is_not_there(visit: Open) -> None:
    page = visit()
    for number, shown in (("99999", "99,999"), ("0", "0"), ("first", "first")):
        at(page, f"#/explore/{number}")
        page.get_by_text(f"There is no document {shown}; there are 30.").wait_for()


def test_a_heading_has_a_line_of_its_own(visit: Open) -> None:
    page = visit("#/explore/1")
    page.locator("#explore .text").wait_for()
    page.get_by_text("Annotate a text of your own").click()
    page.get_by_label("Text", exact=True).fill("Early years\n\nBarack Obama was born in Honolulu. He married.")
    page.get_by_role("button", name="Annotate").click()
    page.locator(".doc-title", has_text="Your text").wait_for()
    assert page.locator("#explore .text").inner_text().strip().split("\n") == [
        "Early years",
        "Barack Obama was born in Honolulu. He married.",
    ]
