"""Text as the model says it, with the fact behind each mention."""

from __future__ import annotations

import re

from support.browsing import PHONE, Open, query


def test_words_stream_with_the_fact_on_focus(visit: Open) -> None:
    page = visit("#/generate?text=Barack+Obama&words=40&temperature=1&seed=23&beam=0")
    page.wait_for_selector("#generate section:not([aria-busy]) .facts-used")
    assert "40 words" in page.locator("#generate .card").last.inner_text()
    assert page.locator(".given").inner_text() == "Barack Obama"
    text = page.locator("#generate .text").inner_text()
    page.locator("#generate .mention.t-related").first.focus()
    assert re.search(r"[—←].+[→—] .+, copied", page.get_by_role("tooltip").inner_text())
    page.keyboard.press("Escape")
    assert page.get_by_role("tooltip").is_hidden()
    page.locator("#generate .mention").first.hover()
    assert page.get_by_role("tooltip").is_visible()
    page.reload()
    page.wait_for_selector("#generate section:not([aria-busy]) .facts-used")
    assert page.locator("#generate .text").inner_text() == text


def test_it_stops(visit: Open) -> None:
    page = visit("#/generate?text=Barack+Obama&words=200&temperature=1&seed=1&beam=0")
    page.get_by_role("button", name="Stop").click()  # as soon as it is there: the text takes a second
    status = page.get_by_text(re.compile(r"Stopped after \d+ words?")).inner_text()
    assert int(status.split()[2]) < 200
    assert page.get_by_role("button", name="Stop").is_hidden()


def test_settings_are_sent(visit: Open) -> None:
    page = visit("#/generate")
    page.get_by_label("Start of the text").fill("Michelle Obama")
    page.get_by_label("Words").fill("5")
    page.get_by_label("Beam").fill("2")
    page.get_by_role("button", name="Generate").click()
    page.get_by_text(re.compile(r"^5 words")).wait_for()
    assert query(page) == {
        "text": ["Michelle Obama"],
        "words": ["5"],
        "temperature": ["0.7"],
        "seed": ["0"],
        "beam": ["2"],
    }
    page.get_by_label("Words").fill("3")
    page.get_by_role("button", name="Generate").click()
    page.get_by_text(re.compile(r"^3 words")).wait_for()
    page.go_back()
    page.get_by_text(re.compile(r"^5 words")).wait_for()
    page.get_by_label("Words").fill("500")
    page.get_by_role("button", name="Generate").click()
    assert page.evaluate("document.activeElement.name") == "words"


def test_names_of_the_prompt_are_coloured_and_the_legend_has_what_occurs(visit: Open) -> None:
    page = visit("#/generate?text=Barack+Obama&words=1&temperature=0&seed=0&beam=0")
    page.wait_for_selector("#generate section:not([aria-busy]) .legend")
    given = page.locator(".given .mention")
    assert given.inner_text() == "Barack Obama"
    given.hover()
    assert "linked to Barack Obama 100 %" in page.get_by_role("tooltip").inner_text()
    shown = {name for each in page.locator("#generate .mention").all() for name in each.get_attribute("class").split()}
    legend = {each.get_attribute("class").split()[1] for each in page.locator("#generate .legend .swatch").all()}
    assert legend == shown - {"mention"} and "t-given" in legend
    assert len(legend) < 4


def test_on_a_phone_the_text_comes_into_sight(visit: Open) -> None:
    page = visit("#/generate")
    page.set_viewport_size(PHONE)
    page.get_by_label("Words").fill("30")
    page.get_by_role("button", name="Generate").click()
    page.get_by_text(re.compile("^30 words")).wait_for()
    box = page.locator("#generate .text").bounding_box()
    assert 0 < box["y"] < PHONE["height"] / 2
    assert page.get_by_text(re.compile("^Tap or point at")).count() == 1
