"""Take the pictures of the web page in the docs from a running server.

kglm serve RUN --documents DOCS.jsonl --allow-edit &
python docs/screenshots.py http://127.0.0.1:8391 docs page-edit page-generate page-explore page-phone
kglm serve --allow-edit &                                           the bundled world
python docs/screenshots.py http://127.0.0.1:8391 docs page-world

Needs the package playwright and Chromium, like the tests of the page.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

DESK, PHONE = {"width": 1200, "height": 860}, {"width": 390, "height": 844}
TALL = {"width": 1200, "height": 1180}
ANSWERED = ".split:not([aria-busy]) .bar"
GENERATE = "#/generate?text=Barack+Obama+was+born+on&words=40&temperature=0.5&seed=1&beam=0"


def edited(page: Any) -> None:
    """The paper's edit, before and after."""
    page.wait_for_selector(ANSWERED)
    page.get_by_role("button", name="date of birth").first.click()
    page.get_by_label("New value").fill("21 March 2013")
    page.get_by_role("button", name="Change the fact").click()
    page.wait_for_selector(".split:not([aria-busy]) .compared")


def asked(page: Any) -> None:
    """A question whose answer the bundled world lacks, and an answer before and after an edit."""
    page.wait_for_selector(ANSWERED, timeout=60_000)
    page.get_by_label("A question").fill("Who is Angela Merkel married to?")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_timeout(4000)
    page.get_by_role("button", name="author").first.click()
    page.get_by_label("New value").fill("Jane Austen")
    page.get_by_role("button", name="Change the fact").click()
    page.wait_for_selector(".split:not([aria-busy]) .compared", timeout=60_000)


def generated(page: Any) -> None:
    """A text, and the fact behind one of its mentions."""
    page.wait_for_selector("#generate section:not([aria-busy]):not([hidden])", timeout=60_000)
    page.locator("#generate .mention.t-related").first.hover()


def explored(page: Any) -> None:
    """A document, and the facts that lead to one of its mentions."""
    page.wait_for_selector("#explore .mention")
    for mention in page.locator("#explore .mention").all():
        mention.click()
        if page.locator(".detail .leading-facts").count():
            return


PICTURES: dict[str, tuple[str, dict[str, int], str, Callable[[Any], None]]] = {
    "page-edit": ("#/complete?text=Barack+Obama+was+born+on", DESK, "light", edited),
    "page-world": ("#/complete?text=Ulysses+is+a+book+that+was+written+by", TALL, "light", asked),
    "page-generate": (GENERATE, DESK, "dark", generated),
    "page-explore": ("#/explore/1", DESK, "light", explored),
    "page-phone": ("#/complete?text=Barack+Obama+was+born+on", PHONE, "dark", edited),
}


def take(server: str, folder: Path, names: Sequence[str]) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in names:
            address, size, scheme, act = PICTURES[name]
            page = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce").new_page()
            page.goto(f"{server}/{address}")
            act(page)
            page.wait_for_timeout(300)
            page.screenshot(path=folder / f"{name}.png", full_page=size is PHONE)
            page.context.close()
        browser.close()


if __name__ == "__main__":
    take(sys.argv[1].rstrip("/"), Path(sys.argv[2]), sys.argv[3:])
