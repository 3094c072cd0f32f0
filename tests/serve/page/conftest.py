"""The page in a real browser on a real server: what a person does with mouse, keyboard or thumb, and what they see.

All tests of the page are one package, so that a browser is started once for them, and is gone for those that follow.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kglm.answer.model import FactAwareLM
from kglm.kg.ids import NEW, REFLEXIVE
from kglm.text.document import END, START, Document, Mention, read_documents, write_documents
from support.browsing import ARABIC, DESK, Open
from support.serving import SCRIPT, Client, serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def obama() -> Document:
    """Every source once, and a name that is written from right to left."""
    first = ["Barack", "Obama", "was", "born", "in", "Honolulu", "."]
    second = ["He", "married", "Michelle", "Obama", ",", *ARABIC.split(), "."]
    mentions = [
        Mention(1, 3, "Q76", "WIKI", (NEW,), ("Q76",)),
        Mention(6, 7, "Q18094", "KG", ("P19",), ("Q76",)),
        Mention(9, 10, "Q76", "COREF", (REFLEXIVE,), ("Q76",)),
        Mention(11, 13, "Q13133", "NEL", ("P26",), ("Q76",)),
    ]
    return Document("Barack Obama", [START, *first, END, *second, END], mentions)


def script() -> Document:
    return Document(SCRIPT, [START, SCRIPT, "meets", "Obama", END], [Mention(1, 2, "Q666", "WIKI", (NEW,), ("Q666",))])


@pytest.fixture(scope="package")
def documents(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "documents.jsonl"
    documents = list(read_documents(run.parent / "said.jsonl"))
    write_documents(path, [obama(), script(), *documents[:28]])
    return path


@pytest.fixture(scope="package")
def server(model: FactAwareLM, documents: Path) -> Iterator[Client]:
    with serving(model, documents, allow_edit=True) as client:
        yield client


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright: pip install -e .[dev]")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def desk(browser: Any) -> Any:
    """Where most pages are opened: a visitor of its own for each would take a second more. What a page keeps (token,
    session) belongs to its tab."""
    return browser.new_context(viewport=DESK)


@pytest.fixture
def visit(browser: Any, desk: Any, server: Client) -> Iterator[Open]:
    """A page at an address. A warning or error in the console fails the test, unless it is `allowed`."""
    opened: list[Any] = []
    complaints: list[str] = []

    def visit(address: str = "", *, at: Client = server, allowed: str = "(?!)", **visitor: Any) -> Any:
        page = (browser.new_context(**visitor) if visitor else desk).new_page()
        opened.append(page)
        page.set_default_timeout(15_000)
        page.on("console", lambda m: m.type in ("error", "warning") and keep(m.text, allowed))
        page.on("pageerror", lambda error: keep(str(error), allowed))
        page.on("dialog", lambda dialog: (keep(f"a dialog: {dialog.message}", allowed), dialog.dismiss()))
        page.goto(f"http://127.0.0.1:{at.port}/{address}")
        return page

    def keep(text: str, allowed: str) -> None:
        if not re.search(allowed, text):
            complaints.append(text)

    yield visit
    for page in opened:
        page.close() if page.context is desk else page.context.close()
    assert complaints == []
