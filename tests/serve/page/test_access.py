"""For everyone: by keyboard, on a phone, in the dark, with hostile text, and when the server is in trouble."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from kglm.answer.model import FactAwareLM
from support.browsing import BORN, DESK, PHONE, Open, answers, complete, edit, words
from support.serving import SCRIPT, Client, serving

TOKEN = "a-token-of-24-characters"
LOOK = (Path(__file__).parent / "look.js").read_text()


def test_everything_works_by_keyboard(visit: Open) -> None:
    page = visit(complete())
    answers(page)
    press, focused = page.keyboard.press, lambda what: page.evaluate(f"document.activeElement.{what}")

    def tab_to(selector: str) -> None:
        for _ in range(40):
            press("Tab")
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                outline = "e => getComputedStyle(e).outlineStyle + getComputedStyle(e).outlineWidth"
                if not selector.startswith("g"):
                    assert page.locator(":focus").evaluate(outline) != "none0px"
                return
        raise AssertionError(f"Tab never comes to {selector}")

    press("Tab")
    assert focused("textContent") == "Skip to the content"
    press("Enter")
    assert focused("id") == "main"
    tab_to("textarea")
    tab_to("button.bar")
    first = focused("dataset.word")
    press("ArrowDown")
    press("ArrowRight")
    second = focused("dataset.word")
    assert second != first
    assert page.locator(".opened button.bar").get_attribute("data-word") == second
    press("ArrowLeft")
    assert page.locator(".opened").count() == 0
    assert focused("dataset.word") == second
    tab_to("g.fact")
    at = focused("getAttribute('aria-label')")
    press("ArrowDown")
    press("ArrowUp")
    assert focused("getAttribute('aria-label')") == at
    press("Enter")
    assert page.locator("dialog[open]").count() == 1
    page.locator("dialog [role=combobox]:focus").wait_for()
    press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert focused("getAttribute('aria-label')") == at
    press("Enter")
    page.locator("dialog [role=combobox]:focus").wait_for()
    page.keyboard.type("1 May 1999")
    press("Enter")
    page.wait_for_selector(".compared")
    assert focused("textContent") == "Undo the last"
    press("Enter")
    page.wait_for_selector(".bars:not(.compared)")
    page.goto(page.url.partition("#")[0] + "#/explore/1")
    page.locator("#explore .mention").first.focus()
    press("ArrowRight")
    press("Enter")
    assert "Honolulu" in page.locator(".detail h3").inner_text()


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        ("phone", "light"),
        ("desktop", "dark"),
        pytest.param("phone", "dark", marks=pytest.mark.slow),
        pytest.param("desktop", "light", marks=pytest.mark.slow),
    ],
)
def test_every_view_fits_and_can_be_read(visit: Open, size: str, scheme: str) -> None:
    """Nothing scrolls sideways at 360 pixels, and all text has the contrast that WCAG AA asks for."""
    narrow = size == "phone"
    page = visit(complete(), color_scheme=scheme, viewport=PHONE if narrow else DESK, has_touch=narrow)
    words(page)
    assert page.locator(".graph-list" if narrow else "svg.graph").count() == 1
    edit(page, BORN, "21 March 2013")
    page.locator(".gloss").click()
    looks = [page.evaluate(LOOK)]
    for address, there in [
        (
            "#/generate?text=Barack+Obama&words=12&temperature=0&seed=0&beam=0",
            "#generate .facts-used, #generate .mention",
        ),
        ("#/explore", ".documents"),
        ("#/explore/1?source=KG&q=obama", "#explore .mention"),
        ("#/api", ".routes details"),
    ]:
        page.goto(page.url.partition("#")[0] + address)
        page.wait_for_selector(there)
        if there == "#explore .mention":
            page.locator(there).nth(1).click()
        elif there == ".routes details":
            page.locator(".routes summary").first.click()
        looks.append(page.evaluate(LOOK))
    for look in looks:
        assert look["width"] <= (PHONE if narrow else DESK)["width"]
        assert look["dark"] == (scheme == "dark")
        assert look["texts"] > 15
        assert look["faint"] == []


def test_the_chosen_theme_is_stored(visit: Open) -> None:
    page = visit(complete(), color_scheme="light")
    button = page.get_by_role("button", name=re.compile("^Colours"))
    button.click()
    button.click()
    assert page.evaluate(LOOK)["dark"]
    page.reload()
    assert page.evaluate(LOOK)["dark"]
    assert page.get_by_role("button", name="Colours: dark").is_visible()


def test_reduced_motion(visit: Open) -> None:
    page = visit(complete(), reduced_motion="reduce")
    words(page)
    assert page.locator(".part").first.evaluate("e => getComputedStyle(e).transitionDuration") in ("", "0s")


class TestHostileText:
    def test_scripts_in_names_and_prompts_are_text(self, visit: Open) -> None:
        attack = f'{SCRIPT} <img src=x onerror="alert(2)"> Evil Twin\'s place of birth is'
        page = visit(complete(attack))
        words(page)
        assert '<img src=x onerror="alert(2)">' in page.locator(".echo").inner_text()
        assert SCRIPT in str(page.locator("svg .parent").first.text_content()) + page.locator(".picture").inner_text()
        page.locator(".gloss").last.click()
        assert SCRIPT in page.locator(".choices").inner_text()
        page.get_by_role("button", name=f"About {SCRIPT}").click()
        page.locator("dialog h2", has_text=SCRIPT).wait_for()
        page.goto(page.url.partition("#")[0] + "#/explore/2")
        page.locator(".doc-title", has_text=SCRIPT).wait_for()
        page.locator("#explore .mention").click()
        assert page.locator(".detail h3").inner_text() == SCRIPT
        page.goto(page.url.partition("#")[0] + f"#/generate?{urlencode({'text': attack, 'words': 8, 'seed': 1})}")
        page.wait_for_selector("#generate section:not([aria-busy]):not([hidden])")
        assert page.evaluate("document.querySelectorAll('main img, main script, [onerror]').length") == 0

    def test_addresses_are_not_trusted(self, visit: Open) -> None:
        page = visit(
            '#/explore/12"><img src=x onerror=alert(1)>?entity="><script>alert(1)</script>&relation=javascript:alert(1)'
        )
        page.get_by_text("No document matches.").wait_for()
        assert page.get_by_text('entity: "><script>alert(1)</script>').is_visible()
        page.goto(page.url.partition("#")[0] + "#/complete?text=Barack+Obama+was&entity=nonsense&entity=0:2=Q76")
        assert "August" in words(page) or words(page)


def test_the_token_dialog_stays_until_the_token_is_right(visit: Open, model: FactAwareLM) -> None:
    with serving(model, token=TOKEN) as strict:
        page = visit(complete(), at=strict, allowed="status of 401")
        assert "KGLM_TOKEN" in page.locator("dialog").inner_text()
        page.get_by_label("Token", exact=True).fill("wrong")
        page.get_by_role("button", name="Continue").click()
        page.get_by_text("That token is wrong.").wait_for()
        page.get_by_label("Token", exact=True).fill(TOKEN)
        page.get_by_role("button", name="Continue").click()
        assert "August" in words(page)
        page.reload()
        assert "August" in words(page)
        assert page.locator("dialog").count() == 0


def test_a_request_to_a_busy_server_is_retried(visit: Open) -> None:
    page = visit(allowed="status of 429")
    words(page)
    refused: list[Any] = []

    def refuse(route: Any) -> None:
        refused.append(route)
        body = '{"error": {"code": "busy", "message": "busy"}}'
        route.fulfill(status=429, body=body, headers={"Retry-After": "1"}) if len(refused) == 1 else route.continue_()

    page.route("**/api/complete", refuse)
    page.get_by_label("A text to continue").fill("Michelle Obama is married to")
    page.get_by_text("busy, trying again").wait_for()
    page.wait_for_selector("svg .parent[aria-label^='Michelle Obama']")
    assert len(refused) == 2
    assert page.locator("#banner").is_hidden()


def test_a_server_that_comes_back_is_noticed(visit: Open) -> None:
    page = visit(allowed="ERR_INTERNET_DISCONNECTED", locale="en")
    words(page)
    page.context.set_offline(True)
    page.get_by_label("A text to continue").fill("Michelle Obama is married to")
    page.get_by_text("Waiting for it to come back").wait_for()
    page.context.set_offline(False)
    page.wait_for_selector("svg .parent[aria-label^='Michelle Obama']")
    assert page.locator("#banner").is_hidden()


def test_an_unknown_address(visit: Open) -> None:
    page = visit("#/exlpore/3")
    page.get_by_role("heading", name="There is nothing at this address").wait_for()
    assert page.get_by_text("#/exlpore/3").is_visible() and page.locator("#complete").is_hidden()
    page.get_by_role("link", name="Go to the start page").click()
    words(page)
    assert page.locator("#missing").is_hidden()


def test_the_description_of_the_api(visit: Open, server: Client) -> None:
    page = visit(complete())
    page.get_by_role("link", name="API").click()
    route = page.locator(".routes details").filter(has=page.get_by_text("POST /api/complete", exact=True))
    route.locator("summary").click()
    assert "Predict how a text goes on" in route.inner_text()
    rows = [row.split("\t")[:2] for row in route.locator("table").first.inner_text().split("\n")]
    assert ["top", "integer, default 10, from 1 to 50"] in rows
    paths = server.get("/openapi.json").json["paths"]
    assert page.locator(".routes details").count() == sum(map(len, paths.values()))
