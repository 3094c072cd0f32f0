"""What a person does with the page, and what they see: steps that the tests of its views share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlencode

from support.serving import PROMPT

BORN = "Barack Obama —date of birth→ August 4, 1961"
ARABIC = "باراك أوباما"
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
Open = Callable[..., Any]


def complete(text: str = PROMPT, **more: str) -> str:
    return f"#/complete?{urlencode({'text': text, **more})}"


def answers(page: Any) -> dict[str, str]:
    """The bars of the answers: their texts and what stands beside them."""
    return _bars(page, ".answers")


def words(page: Any) -> dict[str, str]:
    """The bars of the next words, which are unfolded if they are not."""
    page.wait_for_selector(".split:not([aria-busy]) .answers .bar")
    if page.locator(".next-words").get_attribute("open") is None:
        page.locator(".next-words > summary").click()
    return _bars(page, ".words")


def _bars(page: Any, where: str) -> dict[str, str]:
    page.wait_for_selector(f".split:not([aria-busy]) {where} .bar")
    rows = page.locator(f"{where} button.bar").all()
    return {row.locator(".word").inner_text(): row.locator(".p").inner_text() for row in rows}


def open_word(page: Any, word: str) -> None:
    """Show the reasons of a next word."""
    bar = page.locator(f'.words button.bar[data-word="{word}"]')
    if bar.get_attribute("aria-expanded") == "false":
        bar.click()
    page.wait_for_selector(f'.words button.bar[data-word="{word}"][aria-expanded=true]')


def query(page: Any) -> dict[str, list[str]]:
    return parse_qs(page.url.partition("?")[2])


def edit(page: Any, fact: str, value: str) -> None:
    page.get_by_role("button", name=fact).first.click()
    page.get_by_label("New value").fill(value)
    page.get_by_role("button", name="Change the fact").click()
    page.wait_for_selector(".split:not([aria-busy]) .compared")


def at(page: Any, address: str) -> None:
    """Another address of the same page."""
    page.goto(page.url.partition("#")[0] + address)
