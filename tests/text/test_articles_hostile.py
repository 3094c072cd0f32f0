"""Hostile wikitext and HTML: reading takes linear time, does not crash and leaves no markup in the tokens."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kglm.text.article import Article, article_from
from kglm.text.document import END, START
from kglm.text.marked import Passage, read_marks, without_marks
from kglm.text.wiki.rendered import BLOCKS as HTML_BLOCKS
from kglm.text.wiki.rendered import read_html
from kglm.text.wiki.wikitext import read_wikitext

MARKUP = re.compile(r"\[\[|\]\]|\{\{|\}\}|''|<ref|</|\{\||\|\}|&nbsp;|http|<!--|[\ufdd0-\ufdef]")
"""Not `==`: in the middle of a line it is text."""
LONG = 100_000
"""Characters of a long text."""


def from_wikitext(text: str, *, lists: bool = False) -> Article | None:
    return article_from("Title", read_marks(read_wikitext(text, "Title", lists=lists), "Title"))


def from_html(text: str) -> Article | None:
    return article_from("Title", read_marks(read_html(text, "Title"), "Title"))


def check(article: Article | None) -> None:
    """Check properties of every article."""
    if article is None:
        return
    tokens, links = article.tokens, article.links
    assert tokens[0] == START and tokens[-1] == END and START not in tokens[1:]
    assert all(pair != (END, END) and pair != (START, END) for pair in pairwise(tokens))
    assert all(token and not any(character.isspace() for character in token) for token in tokens)
    assert all(first.end <= second.start for first, second in pairwise(links))
    for link in links:
        assert 0 < link.start < link.end < len(tokens)
        assert END not in tokens[link.start : link.end]
        assert link.target and not re.search(r"[\s\[\]{}|<>#]", link.target)


def read_in_linear_time(read: Callable[[str, str], str], unit: str, length: int = LONG, end: str = "") -> Passage:
    """Passage of a text of `length` characters, a repeated unit; a quarter of the text must take about a quarter of the
    time.

    Times are CPU times of this process, because most work is done in C functions, whose steps cannot be counted. Linear
    growth gives a ratio of 4, quadratic growth 16. Very short times are not compared.
    """

    def measured(count: int) -> tuple[Passage, float]:
        started = time.process_time()
        passage = read_marks(read(unit * count + end, "Title"), "Title")
        return passage, time.process_time() - started

    for _ in range(3):
        quarter = measured(length // len(unit) // 4)[1]
        passage, whole = measured(length // len(unit))
        if whole < 8 * quarter + 0.03:
            return passage
    pytest.fail(f"four times the text takes {whole / quarter:.1f} times as long: {quarter:.3f} s and {whole:.3f} s")


# --- long hostile texts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["[[", "{{"])
def test_five_megabytes_of_opening_brackets(unit: str) -> None:
    read_in_linear_time(read_wikitext, unit, 5_000_000)


@pytest.mark.parametrize(
    "unit",
    [
        "[[a|", "[[File:x|", "<ref>", "<ref ", "<ref>a</ref>", "<!--", "<!-- -->\n", "''", "'''''a ", "{|\n", "\n|}",
        "{|\n|}\n", "[http://", "[http://a ", "http://", "&", "&#x110000;", "<table>", "<table></table>", "<div>",
        "==\n", "== See also ==\n", "({{a}}", "{{a}})", "({{a}}, ", "{{{", "}}", "]]", "[[a]]b", "{{convert|",
        "<nowiki>", "<math>", "* a\n", "__A", "\u200b", "\u202e", "\ufdd1a\ufdd2", "[[a|{{b|", "<ref>{{a|[[b|", "<sup>",
        "(", ".", "'", "pronounced {{a}} ", "<span style='display:none'><span", "[[%41", "{{lang-fr|", "{{a|",
    ],
)  # fmt: skip
def test_repeated_markup_in_wikitext(unit: str) -> None:
    read_in_linear_time(read_wikitext, unit)
    check(from_wikitext(unit * 500))


def test_megabyte_of_nested_elements() -> None:
    assert read_in_linear_time(read_html, "<div>", 1_000_000, "deep").text == "deep"


@pytest.mark.parametrize(
    "unit",
    ["<b></p>", "<ul><li>", "<a ", "<a<a", "<table>", "<table><tr><td>", "<p>", "<math>", "<svg", "<div/>", "<x/></y>",
     "<!--", "<", "&", "<a href='./b'>c", "<p><b>", "<select><option>", "<i><p>", "<h2>", "<sup>", "<template>"],
)  # fmt: skip
def test_repeated_markup_in_html(unit: str) -> None:
    read_in_linear_time(read_html, unit)
    check(from_html(unit * 500))


def test_text_inside_very_deep_elements_is_kept() -> None:
    deep = "<div>" * 600 + "<p>far <b>in</b> <a href='./A'>here</a></p>" + "</div>" * 600 + "<p>after</p>"
    article = from_html(deep)
    assert article is not None and article.tokens[1:-1] == ["far", "in", "here", END, "after"]
    unclosed = from_html("<p>one <a href='./A'>link</a>" * 2000)
    assert unclosed is not None and len(unclosed.links) == 2000


# --- odd characters ----------------------------------------------------------------------------------------


def test_invisible_and_control_characters() -> None:
    text = "\ufeffA\u200bb \u202eעברית [[ערבית|\u200fعربي]]\x00\x0b\ufdd0 c\ufffe &#xFDD1; &#0; \u2028dog."
    article = from_wikitext(text)
    check(article)
    assert article is not None
    assert article.tokens[1:-1] == ["A", "b", "עברית", "عربي", "c\ufffe", "�", "dog", "."]
    assert [(article.text(link), link.target) for link in article.links] == [("عربي", "ערבית")]


def test_sentence_marks_of_the_corpus_are_removed_from_texts() -> None:
    article = from_wikitext(f"One {END} [[a|two{START}three]] {END}{END}.")
    check(article)
    assert article is not None and article.tokens == [START, "One", "two", "three", ".", END]


def test_hostile_titles() -> None:
    for title in ('A "b"\nc', "", "[[a]]", "\ufdd1", "x" * 10_000):
        article = article_from(title, read_marks(read_wikitext("'''A''' {{PAGENAME}}.", title), title))
        assert article is not None and article.tokens[1] == "A"


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    check(from_wikitext(text))
    check(from_html(text))
    assert not re.search("[\ufdd0-\ufdef]", without_marks(text))


# --- random nestings ---------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        "[[", "]]", "{{", "}}", "{{{", "}}}", "|", "'''", "''", "<ref>", "</ref>", "<ref/>", "<!--", "-->", "{|\n",
        "\n|}", "\n==", "==\n", "\n* ", "\n\n", "[http://a.b ", "]", "[", "{", "}", "<table>", "</table>", "<b>",
        "</b>", "<div>", "</div>", "{{nowrap|", "{{convert|5|km}}", "{{IPA|x}}", "{{lang-fr|", "File:a.png|",
        "Category:b", " http://c.d", "&nbsp;", "(", ")", ",", ".", ";", "#", ":", "=", "!", "word", "Two", "3", "<br>",
        "<sup>", "</sup>", "<math>", "</math>", "<nowiki>", "</nowiki>", "[[a|b]]", "[[c]]s", "__NOTOC__",
        "<ul><li>", "</ul>",
    ]
)  # fmt: skip
FRAMES = st.sampled_from(
    [
        "[[%s]]", "[[a|%s]]", "{{b|%s}}", "{{nowrap|%s}}", "<ref>%s</ref>", "''%s''", "'''%s'''", "{|\n| %s\n|}\n",
        "<div>%s</div>", "\n* %s\n", "\n== %s ==\n", "(%s)",
    ]
)  # fmt: skip
NESTED = st.recursive(
    PIECES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6).map(" ".join),
        st.lists(inner, max_size=6).map("".join),
        st.tuples(FRAMES, inner).map(lambda pair: pair[0] % pair[1]),
    ),
    max_leaves=30,
)


@given(NESTED, st.booleans())
def test_random_nesting_leaves_no_markup(text: str, lists: bool) -> None:
    article = from_wikitext(text, lists=lists)
    check(article)
    if article is not None and "<nowiki>" not in text:
        assert not [token for token in article.tokens if MARKUP.search(token)]


TAGS = st.sampled_from(sorted(HTML_BLOCKS | {"b", "i", "span", "a", "sup", "sub", "math", "style", "script", "br"}))
ELEMENT = st.recursive(
    st.sampled_from(["word", "Two.", "3", " ", "&lt;", "<", ">", "&amp;", "é", "(", ")"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5).map("".join),
        st.tuples(TAGS, inner).map(lambda pair: f"<{pair[0]} href='./X'>{pair[1]}</{pair[0]}>"),
        st.tuples(TAGS, inner).map(lambda pair: f"<{pair[0]} class='reference'>{pair[1]}"),
    ),
    max_leaves=30,
)


@given(ELEMENT)
def test_random_nesting_of_elements_is_read(html: str) -> None:
    check(from_html(html))


@given(
    st.text(alphabet="abZ9 .!?-'\"(),\n—é\u200b", max_size=60),
    st.lists(st.integers(0, 60), max_size=8, unique=True).map(sorted),
)
def test_links_keep_their_text(text: str, edges: list[int]) -> None:
    """The tokens of a link are its text without blanks; links without a word are dropped."""
    edges = [edge for edge in edges if edge <= len(text)]
    spans = [(start, end, f"T{start}") for start, end in list(pairwise(edges))[::2] if start < end]
    article = article_from("Title", Passage(text, spans))
    check(article)
    letters = {target: re.sub(r"[\s\u200b]", "", text[start:end]) for start, end, target in spans}
    found = {link.target: "".join(article.tokens[link.start : link.end]) for link in article.links} if article else {}
    assert found == {target: letters for target, letters in letters.items() if letters}
