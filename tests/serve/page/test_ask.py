"""A prompt, what comes next and why, and the local graph."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs

import pytest

from support.browsing import BORN, Open, answers, at, complete, open_word, query, words
from support.serving import PROMPT, Client


def test_typing_shows_next_words_with_reasons(visit: Open) -> None:
    page = visit("#/complete?text=Michelle+Obama")
    page.get_by_label("A text to continue").fill("Barack Obama was born")
    page.get_by_label("A text to continue").press_sequentially(" on")
    page.wait_for_url(re.compile(r"born\+on"))
    assert "August" in words(page)
    assert page.locator(".gloss").inner_text().split("\n") == ["Barack Obama", "place of birth: Honolulu 100 %"]
    other = page.locator(".words button.bar[aria-expanded=false]").nth(3).get_attribute("data-word")
    open_word(page, other)
    assert page.locator("button.bar[aria-expanded=true]").get_attribute("data-word") == other
    open_word(page, "August")
    assert page.locator(".why:not([hidden]) .reason").first.inner_text().startswith(f"{BORN}, copied")
    assert page.locator(".words").get_by_text("The rest:").is_visible()


def test_answers_come_first(visit: Open) -> None:
    """A date is one answer; the next words are folded."""
    page = visit(complete())
    found = answers(page)
    assert next(iter(found)) == "August 4, 1961" and "August" not in found
    assert page.locator(".words").is_hidden()
    assert page.locator(".answers .why:not([hidden]) .chain").first.inner_text() == BORN
    assert page.locator("svg .fact.lit").count() == 1 and page.locator("svg .next-word text").count() == 2
    assert page.locator(".missing").count() == 0
    page.locator(".answers").get_by_role("button", name="Add “August 4, 1961” to the text").click()
    page.wait_for_url(re.compile(r"on\+August\+4%2C\+1961$"))


def test_the_rest_of_an_answer_is_added(visit: Open) -> None:
    page = visit(complete(f"{PROMPT} August 4"))
    assert next(iter(answers(page))) == "August 4, 1961"
    assert page.locator(".answers .why:not([hidden]) .chain").first.inner_text() == BORN
    page.get_by_role("button", name="Add “August 4, 1961” to the text").click()
    page.wait_for_url(re.compile(r"on\+August\+4%2C\+1961$"))


def test_a_missing_fact_is_shown_and_added(visit: Open, server: Client) -> None:
    page = visit()
    found = server.post("/api/complete", {"text": PROMPT, "top": 25, "reasons": 8}).json
    missing = {"p": 0.999, "parent": "Q76", "parent_label": "Barack Obama", "relation": "P26",
               "relation_label": "spouse", "text": "the text asks for the spouse of Barack Obama"}  # fmt: skip
    page.route("**/api/complete", lambda route: route.fulfill(json=found | {"missing": [missing]}))
    for p, first in ((0.999, True), (0.1, False)):
        missing |= {"p": p, "text": f"the text asks for the spouse of Barack Obama ({p})"}
        at(page, complete(f"{PROMPT} {p}"))
        line = page.locator(".missing", has_text=f"({p})")  # that of the prompt before is still there for a moment
        line.wait_for()
        page.wait_for_selector(".split:not([aria-busy])")
        assert line.inner_text().startswith(f"The text asks for the spouse of Barack Obama ({p}).")
        before = "e => e.nextElementSibling === document.querySelector('.answers .bars')"
        assert line.evaluate(before) == first
    page.unroute("**/api/complete")
    line.get_by_role("button", name="Add the fact").click()
    assert page.locator("dialog .the-fact").inner_text().split("\n") == ["Barack Obama", "—spouse→", "…"]
    page.get_by_label("New value").fill("Honolulu")
    page.locator("dialog").get_by_role("button", name="Add the fact").click()
    page.wait_for_selector(".split:not([aria-busy]) .compared")
    assert "Barack Obama —spouse→ Honolulu" in page.locator(".edit-list li").inner_text()


def test_the_path_of_the_opened_word_is_highlighted(visit: Open, server: Client) -> None:
    page = visit(complete())
    words(page)
    open_word(page, "August")
    assert page.locator("svg .fact.lit").count() == 1
    assert BORN in str(page.locator("svg .fact.lit").get_attribute("aria-label"))
    assert page.locator("svg .parent.lit text").first.text_content() == "Barack Obama"
    assert page.locator("svg .next-word text").first.text_content() == "August"
    plain = next(
        word["word"]
        for word in server.post("/api/complete", {"text": PROMPT, "top": 10}).json["words"]
        if word["reasons"][0]["type"] == "none" and word["reasons"][0]["p"] > 0.99 * word["p"]
    )
    open_word(page, plain)
    assert page.locator("svg .fact.lit").count() == 0
    assert page.locator("svg .route.t-none").count() == 1


def test_a_chosen_entity_stays(visit: Open) -> None:
    page = visit(complete("Obama is married to"))
    words(page)
    page.locator(".gloss").click()
    page.get_by_label("Another entity", exact=True).press_sequentially("michelle")
    page.get_by_role("option", name="Michelle Obama").click()
    page.wait_for_selector(".gloss.chosen")
    assert query(page)["entity"] == ["0:1=Q13133"]
    page.wait_for_selector("svg .parent[aria-label^='Michelle Obama']")
    page.go_back()
    page.wait_for_url(re.compile("^(?!.*entity)"))
    page.wait_for_selector(".gloss:not(.chosen)")
    page.go_forward()
    page.wait_for_selector("svg .parent[aria-label^='Michelle Obama']")
    page.reload()
    page.wait_for_selector("svg .parent[aria-label^='Michelle Obama']")
    assert page.locator(".gloss.chosen .linked-entity").inner_text() == "Michelle Obama ✓"
    page.get_by_label("A text to continue").press_sequentially(" the")
    page.wait_for_url(re.compile(r"\+the&"))
    assert query(page)["entity"] == ["0:1=Q13133"]
    page.get_by_label("A text to continue").fill("The Obama is married to")
    page.wait_for_url(re.compile("^(?!.*entity)"))


def test_a_word_is_added_and_an_example_taken(visit: Open, server: Client) -> None:
    page = visit(complete())
    words(page)
    open_word(page, "August")
    page.get_by_role("button", name="Add “August” to the text").click()
    page.wait_for_url(re.compile(r"on\+August$"))
    page.go_back()
    page.wait_for_url(re.compile(r"born\+on$"))
    assert page.get_by_label("A text to continue").input_value() == PROMPT
    page.go_forward()
    page.wait_for_url(re.compile(r"on\+August$"))
    example = server.get("/api/health").json["examples"][0]
    page.get_by_role("group", name="Examples").get_by_text(example).click()
    page.wait_for_url(lambda url: parse_qs(url.partition("?")[2])["text"] == [example])
    page.go_back()
    page.wait_for_url(re.compile(r"on\+August$"))


def test_the_last_request_is_shown(visit: Open) -> None:
    page = visit(complete())
    words(page)
    slow: list[Any] = []
    page.route(
        "**/api/complete",
        lambda route: slow.append(route) if "Michelle" in route.request.post_data else route.continue_(),
    )
    area = page.get_by_label("A text to continue")
    steps = page.evaluate("history.length")
    area.fill("Michelle Obama is married to")
    page.wait_for_url(re.compile("Michelle"))
    area.fill("Barack Obama is married to")
    page.wait_for_url(re.compile("Barack"))
    page.wait_for_selector(".split:not([aria-busy])")
    assert len(slow) == 1
    assert page.evaluate("history.length") == steps, "what is typed is no step to go back to"
    assert page.locator("svg .parent").first.get_attribute("aria-label").startswith("Barack Obama")


def test_a_bar_is_as_long_as_its_answer_is_probable(visit: Open) -> None:
    page = visit("#/complete?text=it+was+the")
    page.emulate_media(reduced_motion="reduce")
    answers(page)
    assert "No entity of the graph is mentioned yet" in page.locator(".picture").inner_text()
    assert page.get_by_text("Choose a fact to change it").is_hidden() and page.locator("svg.graph").count() == 0
    for text in ("it was the", PROMPT):
        at(page, complete(text))
        page.wait_for_selector(".picture > .muted" if text != PROMPT else "svg.graph")
        bar = page.locator("button.bar").first
        end = bar.evaluate("e => e.querySelector('.fill').lastChild.getBoundingClientRect().right")
        track = bar.locator(".track").bounding_box()
        percent = float(answers(page)[bar.locator(".word").inner_text()].rstrip(" %"))
        assert 100 * (end - track["x"]) / track["width"] == pytest.approx(percent, abs=1)
    assert page.get_by_text("Choose a fact to change it").is_visible()


def test_less_probable_facts_unfold_and_fold(visit: Open, server: Client) -> None:
    page = visit()
    graph = server.post("/api/graph", {"text": PROMPT}).json
    born, *others = sorted(graph["edges"], key=lambda edge: -edge["p"])
    many = [born | {"p": 0.9}, *(edge | {"p": 1e-6} for edge in others * 4)]
    page.route("**/api/graph", lambda route: route.fulfill(json=graph | {"edges": many}))
    at(page, complete(f"{PROMPT} the"))
    fold = page.locator("svg .fold")
    fold.wait_for()
    few = page.locator("svg .fact").count()
    assert re.fullmatch(r"\+ \d+ less probable", fold.text_content())
    fold.click()
    assert page.locator("svg .fact").count() == len(many) > few
    assert fold.text_content() == page.locator(":focus text").text_content() == "Show fewer"
    page.set_viewport_size({"width": 1280, "height": 500})
    page.wait_for_selector("[aria-labelledby=graph-title][tabindex='0']")
    page.keyboard.press("Enter")
    assert page.locator("svg .fact").count() == few
