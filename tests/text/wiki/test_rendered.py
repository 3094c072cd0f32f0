"""Rendered pages: kept and removed elements, links, titles."""

from __future__ import annotations

import pytest

from kglm.text.article import Article, article_from
from kglm.text.marked import read_marks
from kglm.text.wiki.rendered import html_title, read_html


def read(html: str, title: str = "Bo Li (man)", *, host: str | None = None, lists: bool = False) -> Article:
    article = article_from(title, read_marks(read_html(html, title, host=host, lists=lists), title))
    assert article is not None
    return article


def tokens_of(html: str, *, lists: bool = False) -> str:
    return " ".join(read(html, lists=lists).tokens[1:-1])


def links(html: str, host: str | None = None) -> list[tuple[str, str]]:
    article = read(html, host=host)
    return [(article.text(link), link.target) for link in article.links]


RENDERED = """<div id="mw-content-text"><div class="mw-content-ltr mw-parser-output" lang="en">
<div class="shortdescription nomobile noexcerpt noprint" style="display:none">Man</div>
<style data-mw-deduplicate="a">.b{}</style><div role="note" class="hatnote">Not to be confused with Bo.</div>
<table class="infobox"><tbody><tr><td><b>Bo</b> <a href="/wiki/Box">box</a></td></tr></tbody></table>
<p class="mw-empty-elt">
</p>
<p><b>Bo Li</b> (<span class="rt-commentedText"><span class="IPA nopopups"><a href="/wiki/Help:IPA">/b/</a></span></span
>; born 1961)<sup id="cite_ref-1" class="reference"><a href="#cite_note-1">[1]</a></sup> is a <a href="/wiki/Bus_driver"
title="Bus driver">bus driver</a> in <a href="/wiki/Elm_(town)" class="mw-redirect">Elm</a>.<sup
class="noprint Inline-Template Template-Fact">[<i>citation needed</i>]</sup></p>
<div class="thumb tright"><div class="thumbinner">A <a href="/wiki/Boat">boat</a></div></div>
<div id="toc" class="toc"><h2>Contents</h2><ul><li>Life</li></ul></div>
<div class="mw-heading mw-heading2"><h2 id="Life">Life</h2><span class="mw-editsection">[edit]</span></div>
<p>He drove:</p><ul><li>a <a href="/wiki/Bus">bus</a></li></ul>
<dl><dd>He said so.</dd></dl>
<blockquote><p>I drive.</p></blockquote>
<h2><span class="mw-headline">References</span><span class="mw-editsection">[edit]</span></h2>
<div class="reflist"><ol class="references"><li>x</li></ol></div><p>Gone.</p>
<h3>Books</h3><p>Gone.</p>
<h2>Death</h2><p>He died.</p>
<div class="navbox"><p>Gone.</p></div>
</div></div><div id="catlinks">Categories</div>"""

PARSOID = """<!DOCTYPE html><html prefix="mw: x"><head><title>Bo Li (man)</title>
<base href="//en.wikipedia.org/wiki/"/><link rel="dc:isVersionOf" href="//en.wikipedia.org/wiki/Bo_Li"/></head>
<body class="mw-body"><section data-mw-section-id="0"><figure typeof="mw:File/Thumb"><img><figcaption>A boat
</figcaption></figure><p id="mwAg"><b>Bo Li</b> is a <a rel="mw:WikiLink" href="./Bus_driver#Pay">bus driver</a>
<sup typeof="mw:Extension/ref" class="mw-ref"><a href="./Bo_Li#cite_note-1">[1]</a></sup> of <span
class="mwe-math-element"><math><mi>x</mi><mspace/></math><img></span> years.</p></section>
<section data-mw-section-id="1"><h2 id="See_also">See also</h2><p>Gone.</p></section></body></html>"""


def test_page_of_the_parse_api() -> None:
    assert tokens_of(RENDERED) == (
        "Bo Li ( born 1961 ) is a bus driver in Elm . @@END@@ He drove : @@END@@ I drive . @@END@@ He died ."
    )
    assert links(RENDERED) == [("Bo Li", "Bo_Li_(man)"), ("bus driver", "Bus_driver"), ("Elm", "Elm_(town)")]
    assert "a bus @@END@@ He said so ." in tokens_of(RENDERED, lists=True)


def test_page_of_the_rest_api() -> None:
    assert tokens_of(PARSOID) == "Bo Li is a bus driver of <formula> years ."
    assert links(PARSOID) == [("Bo Li", "Bo_Li_(man)"), ("bus driver", "Bus_driver")]


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ('href="./A_b"', "A_b"), ('href="/wiki/A_b#C"', "A_b"), ('href="./Caf%C3%A9"', "Café"), ('href="/wiki/a"', "A"),
        ('href="https://en.wikipedia.org/wiki/A%3F"', "A?"), ('href="//en.m.wikipedia.org/wiki/A"', "A"),
        ('href="/wiki/A?oldid=3"', "A"), ('href="./A:_b"', "A:_b"), ('class="mw-selflink selflink"', "Bo_Li_(man)"),
        ('href="https://fr.wikipedia.org/wiki/A"', None), ('href="https://example.org/wiki/A"', None),
        ('href="/wiki/Help:A"', None), ('href="./File:A.png"', None), ('href="#A"', None), ("", None),
        ('href="/w/index.php?title=A&amp;action=edit&amp;redlink=1" class="new"', None), ('href="mailto:a@b"', None),
        ('href="./A?action=edit&amp;redlink=1"', None), ('class="new" href="./A"', None), ('href="http://[a"', None),
        ('class="extiw" href="https://en.wikipedia.org/wiki/A"', None), ('href="javascript:x()"', None),
        ('rel="mw:WikiLink/Interwiki" href="https://en.wikipedia.org/wiki/A"', None), ('href="/wiki/A%5Bb"', None),
    ],
)  # fmt: skip
def test_targets_of_addresses(address: str, target: str | None) -> None:
    html = f"<p>See <a {address}>it</a>.</p>"
    assert tokens_of(html) == "See it ."
    assert links(html, "en.wikipedia.org") == ([("it", target)] if target else [])


def test_links_to_any_wikipedia_if_the_page_names_no_host() -> None:
    html = "<p><a href='https://fr.wikipedia.org/wiki/A'>a</a> <a href='https://fr.example.org/wiki/A'>b</a></p>"
    assert links(html) == [("a", "A")]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>km<sup>2</sup>, H<sub>2</sub>O, 1<sup>st</sup></p>", "km 2 , H 2 O , 1st"),
        ("<p>a <span class='frac'>3<span class='sr-only'>+</span><sup>1</sup>⁄<sub>2</sub></span> b</p>", "a 3 1/2 b"),
        ("<p>a <span class='texhtml'><i>x</i></span> <span class='texhtml mvar'>y</span></p>", "a <formula> y"),
        ("<p>one<br>two</p><p>three</p><hr>four<div>five</div>", "one two @@END@@ three @@END@@ four @@END@@ five"),
        ("<p>a\n\n\nb &amp; c &#x110000; d</p>", "a b & c � d"),
        ("<p>a <span style='display: none'>b</span><script>c</script><!-- d -->e</p>", "a e"),
        ("<p>a<p>b<table><tr><td>c<table><td>d</table></table>e", "a @@END@@ b @@END@@ e"),
        ("<nav>a</nav><p>b <span id='coordinates'>c</span></p><footer>d</footer>", "b"),
        ("<p><b>a</b> <i>b <b>c</i> d</b> e", "a b c d e"),
        ("<p>a <a href='./B'>b <a href='./C'>c</a></p>", "a b c"),
        ("plain", "plain"),
    ],
)
def test_removed_and_kept_elements(html: str, expected: str) -> None:
    assert tokens_of(html) == expected


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title>Bo Li - Wikipedia</title>", "Bo Li"), ("<title>Bo – Wikipedia, the free encyclopedia</title>", "Bo"),
        ("<title>Bo - Li</title>", "Bo - Li"), ("<h1 id=firstHeading><i>Bo</i> Li</h1><title>x</title>", "Bo Li"),
        ("<h1>Bo</h1>", "Bo"), ("<p>Bo</p>", None), ("", None),
    ],
)  # fmt: skip
def test_title_of_a_page(html: str, title: str | None) -> None:
    assert html_title(html) == title
