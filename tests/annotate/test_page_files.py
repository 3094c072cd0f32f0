"""Files of pages: safe and unique names, and an index page."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from kglm.annotate.page import PageEntry, index_page, page_entry, page_name
from kglm.text.document import Document
from support.pages import EVIL, mario_land, read

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
def test_different_numbers_give_different_names(one: str, other: str, m: int, n: int) -> None:
    assert page_name(one, m) == page_name(one, m)
    assert m == n or page_name(one, m).casefold() != page_name(other, n).casefold()


def test_index_page() -> None:
    mario = mario_land()
    titles = [mario.title, EVIL, ""]
    entries = [page_entry(Document(t, mario.tokens, mario.mentions), n) for n, t in enumerate(titles, 1)]
    assert entries[0] == PageEntry("Super Mario Land", "0001-super-mario-land.html", 30, 6, 5)
    page = read(index_page(entries, "My <texts>"))
    assert page.values("href") == [entry.file for entry in entries]
    assert EVIL in page.words and "Untitled" in page.words and "My <texts>" in page.words
    assert {tag for tag, _ in page.tags}.isdisjoint({"img", "u"}) and "script" not in page.code
    odd = read(index_page([PageEntry("t", 'javascript:alert(1)//"', 1, 1, 1)]))
    assert odd.values("href") == ["javascript%3Aalert%281%29%2F%2F%22"], "always a file name, never a script"
