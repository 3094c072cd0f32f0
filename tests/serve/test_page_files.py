"""The files of the page, read: what no browser test could show to be absent."""

from __future__ import annotations

import re

import pytest

from kglm.serve.page import load

FILES = {name: file.content.decode() for name, file in load().items()}
MARKUP_FROM_DATA = r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|srcdoc"
INLINE = r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=\""


def test_the_page_is_there() -> None:
    assert {"index.html", "app.css", "app.js", "dom.js"} <= FILES.keys()


@pytest.mark.parametrize("name", FILES)
def test_data_is_never_markup_and_nothing_comes_from_elsewhere(name: str) -> None:
    assert not re.search(MARKUP_FROM_DATA, FILES[name])
    assert not re.search(INLINE, FILES[name])
    assert set(re.findall(r"https?://[\w.]+", FILES[name])) <= {"http://www.w3.org", "https://www.wikidata.org"}


@pytest.mark.parametrize("name", FILES)
def test_every_file_that_is_referenced_is_served(name: str) -> None:
    assert set(re.findall(r"/page/([\w.]+)", FILES[name])) <= FILES.keys()
