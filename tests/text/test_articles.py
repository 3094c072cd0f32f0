"""Reading articles: all supported formats, errors, titles and redirects."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from kglm.errors import DataError
from kglm.text.articles import (
    Article,
    Link,
    ReadingReport,
    article_files,
    follow_redirects,
    read_articles,
    read_redirects,
)
from kglm.text.document import END, START, Mention
from kglm.text.wiki.dumps import Dump
from kglm.text.wiki.titles import ENGLISH, Namespaces

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}" xml:lang="de">
<siteinfo><namespaces><namespace key="0" case="first-letter" /><namespace key="6" case="x">Datei</namespace>
<namespace key="14" case="x">Kategorie</namespace><namespace key="4">Unser Wiki</namespace></namespaces></siteinfo>
"""


def page(title: str, text: str | None, namespace: int = 0, redirect: str | None = None) -> str:
    signpost = f'<redirect title="{redirect}" />' if redirect else ""
    content = "<text />" if text is None else f'<text xml:space="preserve" bytes="1">{text}</text>'
    return (
        f"<page><title>{title}</title><ns>{namespace}</ns><id>1</id>{signpost}"
        f"<revision><id>2</id><model>wikitext</model>{content}</revision></page>\n"
    )


def dump(*pages: str, version: str = "0.11") -> bytes:
    return (HEAD.format(version=version) + "".join(pages) + "</mediawiki>\n").encode()


def joined(article: Article) -> str:
    return " ".join(article.tokens)


def links(article: Article) -> list[tuple[str, str]]:
    return [(article.text(link), link.target) for link in article.links]


def written(path: Path, content: bytes | str | list[dict[str, Any]]) -> Path:
    if isinstance(content, list):
        content = "".join(json.dumps(record) + "\n" for record in content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


SMALL = dump(
    page("Lake Tarn", "'''Lake Tarn''' is a [[lake]] near [[Elm (town)|Elm]]. [[Datei:a.jpg|mini|A [[boat]].]]"),
    page("Tarn", "#REDIRECT [[Lake Tarn]]", redirect="Lake Tarn"),
    page("Unser Wiki:Rules", "Be kind.", 4),
    page("Empty", None),
    page("elm", "A town. [[Kategorie:Towns]]"),
)


# --- dumps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("wiki-pages-articles.xml", bytes),
        ("wiki.xml.bz2", bz2.compress),
        ("wiki.xml.gz", gzip.compress),
        ("wiki.xml.zst", zstandard.ZstdCompressor().compress),
        ("wiki-pages-articles1.xml-p1p99.bz2", bz2.compress),
        ("unnamed", bytes),
    ],
)
def test_articles_of_a_dump(tmp_path: Path, name: str, pack: Any) -> None:
    path = written(tmp_path / name, pack(SMALL))
    report = ReadingReport()
    first, second = read_articles(path, report=report)
    assert joined(first) == "@@START@@ Lake Tarn is a lake near Elm . @@END@@"
    assert links(first) == [("Lake Tarn", "Lake_Tarn"), ("lake", "Lake"), ("Elm", "Elm_(town)")]
    assert first.place == f"{path}, page 'Lake Tarn'"
    assert (second.title, joined(second)) == ("elm", "@@START@@ A town . @@END@@")
    assert report.skipped == {"redirect": 1, "page about the wiki": 1, "no text": 1}
    assert report.articles == 2 and not report.problems


@pytest.mark.parametrize("version", ["0.3", "0.10", "0.11", "2.0"])
def test_any_schema_version_is_accepted(tmp_path: Path, version: str) -> None:
    path = written(tmp_path / "a.xml", dump(page("A", "Text."), version=version))
    assert [article.title for article in read_articles(path)] == ["A"]


def test_last_version_of_a_page_is_read(tmp_path: Path) -> None:
    text = page("A", "Old.").replace("</page>", "<revision><text>New.</text></revision></page>")
    (article,) = read_articles(written(tmp_path / "a.xml", dump(text)))
    assert joined(article) == "@@START@@ New . @@END@@"


def test_malformed_page_is_skipped_and_reported(tmp_path: Path) -> None:
    pages = [page("A", "One."), page("B", "Two <b>open."), page("", "Three."), page("D", "Four."), page("E", "&#0;")]
    report = ReadingReport()
    path = written(tmp_path / "a.xml", dump(*pages))
    assert [article.title for article in read_articles(path, report=report)] == ["A", "D"]
    assert report.skipped == {"not well-formed XML": 2, "page without a title": 1}
    assert "a.xml, the page after page 'A': not well-formed XML" in report.problems[0]


def test_truncated_dump_is_reported(tmp_path: Path) -> None:
    report = ReadingReport()
    path = written(tmp_path / "a.xml", SMALL[: SMALL.index(b"A town")])
    assert [article.title for article in read_articles(path, report=report)] == ["Lake Tarn"]
    assert report.skipped["cut off"] == 1 and "ends in the middle of a page" in report.problems[0]


def test_truncated_compressed_data_is_an_error(tmp_path: Path) -> None:
    for name, pack in (("a.xml.bz2", bz2.compress), ("a.xml.gz", gzip.compress)):
        path = written(tmp_path / name, pack(SMALL)[:-20])
        with pytest.raises(DataError, match=f"{name}: the compressed data ends in the middle"):
            list(read_articles(path))


def test_other_xml_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "a.xml", "<rss><item>News</item></rss>")
    with pytest.raises(DataError, match="contains no page of a wiki; give a MediaWiki export"):
        list(read_articles(path))


def test_bytes_that_are_not_utf8_are_replaced_and_reported(tmp_path: Path) -> None:
    report = ReadingReport()
    path = written(tmp_path / "a.xml", dump(page("A", "Caf\u00e9 \x07 open.")).replace("é".encode(), b"\xe9"))
    (article,) = read_articles(path, report=report)
    assert joined(article) == "@@START@@ Caf � � open . @@END@@"
    assert report.problems == [f"{path}, page 'A': bytes that are not UTF-8; they are replaced"]


def test_unmatched_page_tags_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = ReadingReport()
    unclosed = page("A", "One.").replace("</page>", "")
    path = written(tmp_path / "a.xml", dump(unclosed, page("B", "Two."), "</page>", page("C", "Three.")))
    assert [article.title for article in read_articles(path, report=report)] == ["B", "C"]
    assert report.skipped == {"unmatched page tags": 2}
    monkeypatch.setattr("kglm.text.wiki.dumps.LONGEST_PAGE", 3000)
    monkeypatch.setattr("kglm.text.wiki.dumps.CHUNK", 1000)
    report = ReadingReport()
    path = written(tmp_path / "a.xml", dump(page("A", "word " * 2000), page("B", "Two.")))
    assert [article.title for article in read_articles(path, report=report)] == ["B"]
    assert report.skipped == {"page too long": 1}


def test_pages_across_chunks_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.xml", SMALL)
    expected = list(Dump(path, ReadingReport()).pages())
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr("kglm.text.wiki.dumps.CHUNK", size)
        assert list(Dump(path, ReadingReport()).pages()) == expected


# --- JSON ----------------------------------------------------------------------------------------------


def test_json_lines_of_every_format(tmp_path: Path) -> None:
    annotation = {"source": "KG", "id": "Q1", "relation": ["@@NEW@@"], "parent_id": ["Q1"], "span": [1, 2]}
    records: list[dict[str, Any]] = [
        {"title": "One", "text": "Ann-based café.", "links": [{"start": 0, "end": 3, "target": ":ann#Life"}]},
        {"title": "Two", "html": "<p>By <a href='./Bo_%28man%29'>Bo</a>.</p>"},
        {"title": "Three", "wikitext": "By [[Bo]]."},
        {"name": "Four", "url": "https://xx.wikipedia.org/wiki/Four", "namespace": {"identifier": 0},
         "article_body": {"html": "<p>See <a href='https://xx.m.wikipedia.org/wiki/Bo'>Bo</a>, "
                                  "<a href='https://yy.wikipedia.org/wiki/Bo'>Bo</a>.</p>"}},
        {"title": "Five", "tokens": [START, "Bo", "ran", END], "annotations": [annotation],
         "links": [{"start": 1, "end": 2, "target": "Bo"}]},
        {"title": "Six", "tokens": ["Bo", "ran"], "annotations": [annotation | {"span": [0, 1]}],
         "links": [{"start": 0, "end": 1, "target": "Bo"}]},
        {"parse": {"title": "Seven", "text": {"*": "<p>Text.</p>"}}},
        {"parse": {"title": "Eight", "wikitext": "Text."}},
        {"name": "Talk:Nine", "namespace": {"identifier": 1}, "article_body": {"html": "<p>Hi.</p>"}},
    ]  # fmt: skip
    report = ReadingReport()
    articles = list(read_articles(written(tmp_path / "a.jsonl", records), report=report))
    assert [article.title for article in articles] == ["One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight"]
    assert joined(articles[0]) == "@@START@@ Ann -based café . @@END@@" and links(articles[0]) == [("Ann", "Ann")]
    assert links(articles[1]) == [("Bo", "Bo_(man)")] and links(articles[2]) == [("Bo", "Bo")]
    assert links(articles[3]) == [("Bo", "Bo")]
    mention = Mention(1, 2, "Q1", "KG", ("@@NEW@@",), ("Q1",))
    for article in articles[4:6]:
        assert article.tokens == [START, "Bo", "ran", END]
        assert (article.links, article.mentions) == ([Link(1, 2, "Bo")], [mention])
    assert report.skipped == {"page about the wiki": 1} and not report.problems


@pytest.mark.parametrize(
    ("line", "problem", "reason"),
    [
        ("{", "line 2: not JSON", "not JSON"),
        ('{"title": "A"}', "line 2: has no text; give each record one of text, html", "malformed record"),
        ('{"text": "A"}', 'line 2: has no title; give each record a "title"', "malformed record"),
        ('{"title": 3, "text": "A"}', "line 2: $.title: expected `str | null`, got `int`", "malformed record"),
        ('{"title": "A", "text": "\\ud800"}', "line 2: not JSON", "not JSON"),
        ('{"title": "A", "text": "ab", "links": [{"start": 1, "end": 3, "target": "B"}]}',
         "link [1, 3) does not fit a length of 2; give 0 <= start < end <= length", "malformed record"),
        ('{"title": "A", "text": "abc", "links": [{"start": 0, "end": 2, "target": "B"}, '
         '{"start": 1, "end": 3, "target": "B"}]}', "link [1, 3) overlaps the previous link", "malformed record"),
        ('{"title": "A", "tokens": ["a"], "annotations": [{"source": "X", "id": "Q1", "relation": [], '
         '"parent_id": [], "span": [0, 1]}]}', "line 2, annotation 1: unknown source 'X'", "malformed record"),
    ],
)  # fmt: skip
def test_malformed_line_is_skipped_and_reported(tmp_path: Path, line: str, problem: str, reason: str) -> None:
    good = '{"title": "Good", "text": "Text."}\n'
    report = ReadingReport()
    path = written(tmp_path / "a.jsonl", good + line + "\n" + good)
    assert len(list(read_articles(path, report=report))) == 2
    assert report.skipped == {reason: 1}
    assert problem in report.problems[0] and "a.jsonl" in report.problems[0]
    with pytest.raises(DataError, match="no article could be read; first problem: "):
        list(read_articles(written(path, line)))


def test_line_that_is_not_utf8_is_reported(tmp_path: Path) -> None:
    report = ReadingReport()
    path = written(tmp_path / "a.ndjson", b'{"title": "A", "text": "\xe9"}\n{"title": "B", "text": "b"}\n')
    assert [article.title for article in read_articles(path, report=report)] == ["B"]
    assert report.skipped == {"wrong encoding": 1} and "convert the file to UTF-8" in report.problems[0]


def test_json_file_with_an_array_or_one_object(tmp_path: Path) -> None:
    record = {"title": "A", "text": "Text."}
    for content in (json.dumps(record, indent=1), json.dumps([record], indent=1), json.dumps(record)):
        (article,) = read_articles(written(tmp_path / "a.json", content))
        assert article.title == "A"
    assert len(list(read_articles(written(tmp_path / "a.json", [record, record])))) == 2
    assert len(list(read_articles(written(tmp_path / "WITHOUT_NAME", [record, record])))) == 2


# --- text and HTML files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "title", "expected"),
    [
        (
            "Just a text. It goes on\nhere.\n\nAnd here",
            "Some page",
            "Just a text . @@END@@ It goes on here . @@END@@ And here",
        ),
        ("# A title #\nText.", "A title", "Text ."),
        (" = A title = \n\nText.", "A title", "Text ."),
        ("A title\n=======\nText.", "A title", "Text ."),
        ("\ufeffA title\n\nText.", "A title", "Text ."),
        ("A title\n\n", "Some page", "A title"),
        ("A sentence.\n\nText.", "Some page", "A sentence . @@END@@ Text ."),
        ("A line\nthat goes on\n\nText.", "Some page", "A line that goes on @@END@@ Text ."),
        ("[[No]] {{markup}} is <b>read</b>", "Some page", None),
    ],
)
def test_plain_text_files(tmp_path: Path, content: str, title: str, expected: str | None) -> None:
    (article,) = read_articles(written(tmp_path / "Some_page.txt", content))
    assert article.title == title
    if expected is not None:
        assert joined(article) == f"{START} {expected} {END}"
    assert not article.links


def test_markdown_wikitext_and_html_files(tmp_path: Path) -> None:
    (markdown,) = read_articles(written(tmp_path / "a.md", "# Top\n\nText.\n\n## Part\n\nMore."))
    assert (markdown.title, joined(markdown)) == ("Top", "@@START@@ Text . @@END@@ More . @@END@@")
    (html,) = read_articles(written(tmp_path / "Bo.html", "<title>Bo (man) - Wikipedia</title><p><b>Bo</b> ran.</p>"))
    assert html.title == "Bo (man)" and links(html) == [("Bo", "Bo_(man)")]
    (untitled,) = read_articles(written(tmp_path / "Bo_Li.htm.gz", gzip.compress(b"<p><b>Bo</b> ran.</p>")))
    assert untitled.title == "Bo Li"
    (wiki,) = read_articles(written(tmp_path / "Bo.wiki", "'''Bo''' ran."))
    assert links(wiki) == [("Bo", "Bo")]
    for encoding in ("utf-16", "utf-8-sig"):
        (text,) = read_articles(written(tmp_path / "a.txt", "Café.".encode(encoding)))
        assert joined(text) == "@@START@@ Café . @@END@@"
    latin = "<meta charset='iso-8859-1'><p>Café.</p>".encode("latin-1")
    (declared,) = read_articles(written(tmp_path / "a.html", latin))
    assert joined(declared) == "@@START@@ Café . @@END@@"


def test_unreadable_files_are_an_error(tmp_path: Path) -> None:
    for name, content, what in (
        ("a.txt", b"Caf\xe9", "invalid UTF-8 at byte 3; convert the file to UTF-8"),
        ("a.html", b"<meta charset=klingon><p>a", "unknown encoding 'klingon'"),
        ("a.txt", b"", "is empty"),
        ("a.xml", b"", "is empty"),
        ("a.jsonl.gz", gzip.compress(b""), "is empty"),
        ("picture", b"\x89PNG\0\0", "is not a text; give a wikitext dump, HTML"),
    ):
        with pytest.raises(DataError, match=what) as error:
            list(read_articles(written(tmp_path / name, content)))
        assert name in str(error.value)
    with pytest.raises(DataError, match="no such file"):
        list(read_articles(tmp_path / "nowhere.txt"))


def test_folder_is_read_in_order_of_file_names(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "sub/c.md", "sub/.hidden.txt", "z.png", ".git/x.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        written(path, b"Text of it." if path.suffix != ".png" else b"\x89PNG\0\0")
    written(tmp_path / "wrong.txt", b"\xff")
    report = ReadingReport()
    assert [article.title for article in read_articles(tmp_path, report=report)] == ["a", "b", "c"]
    assert report.skipped == {"not a kind of file that holds articles": 1, "wrong encoding": 1}
    assert [path.name for path in article_files(tmp_path)] == ["a.txt", "b.txt", "c.md", "wrong.txt"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"contains no readable file; supported suffixes: \.xml"):
        list(read_articles(tmp_path / "empty"))


# --- titles and redirects --------------------------------------------------------------------------------


def test_redirects_of_dumps_and_json(tmp_path: Path) -> None:
    pages = [
        page("A b", "#redirect: [[c]] {{R}}"), page("C", None, redirect="D#Part"), page("D", "Text."),
        page("E", "#REDIRECT [[Unser Wiki:X]]"), page("Unser Wiki:Y", "#REDIRECT [[D]]", 4),
        page("F", "#REDIRECT [[F]]"), page("G", "#REDIRECT [[H]]"), page("H", "#REDIRECT [[G]]"),
    ]  # fmt: skip
    path = written(tmp_path / "a.xml", dump(*pages))
    redirects = dict(read_redirects(path))
    assert redirects == {"A_b": "C", "C": "D", "F": "F", "G": "H", "H": "G"}
    ways = [list(follow_redirects(title, redirects)) for title in ("A_b", "D", "F", "G")]
    assert ways == [["A_b", "C", "D"], ["D"], ["F"], ["G", "H"]]
    record = {"name": "D", "redirects": [{"name": "old d"}, {"name": "Help:D"}], "article_body": {"html": ""}}
    assert list(read_redirects(written(tmp_path / "a.jsonl", [record, {"name": "X"}]))) == [("Old_d", "D")]


def test_redirect_cycles_end() -> None:
    way = {str(k): str(k + 1) for k in range(100_000)}
    assert [*follow_redirects("0", way)][-1] == "100000"
    assert len([*follow_redirects("0", way | {"100000": "50000"})]) == 100_001


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("iPod touch", "IPod_touch"), (":Some page", "Some_page"), ("A#B", "A"), ("#B", None), ("", None),
        ("File:A.png", None), ("category: b", None), ("fr:A", None), ("wikt:a", None), ("Star Trek: A", "Star_Trek:_A"),
        ("w:A b", "A_b"), ("A%20b", "A_b"), ("100%", "100%"), ("AT&amp;T", "AT&T"), ("A\nB", "A_B"), ("A[b", None),
        ('A "b" \'c\'', "A_\"b\"_'c'"), ("x" * 300, None), ("ßa", "ßa"), ("a__b", "A_b"),
    ],
)  # fmt: skip
def test_targets_of_links(address: str, target: str | None) -> None:
    assert ENGLISH.target(address) == target


def test_namespaces_of_another_wiki() -> None:
    own = Namespaces.named([(0, ""), (6, "Datei"), (4, "Unser Wiki")])
    assert own.target("Datei:A") is None and own.target("unser_wiki:A") is None and own.target("A:B") == "A:B"
    assert own.is_unseen("Datei:A") and not own.is_unseen(":Datei:A") and not own.is_unseen("Unser Wiki:A")


def test_link_across_sentences_is_dropped(tmp_path: Path) -> None:
    links = [{"start": 1, "end": 4, "target": "X"}, {"start": 4, "end": 5, "target": "Y"}]
    record = {"title": "T", "tokens": ["@@START@@", "a", "b", "@@END@@", "c", "@@END@@"], "links": links}
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    report = ReadingReport()
    [article] = read_articles(tmp_path / "a.jsonl", report=report)
    assert article.links == [Link(4, 5, "Y")]
    assert report.skipped == {"link over the end of a sentence": 1} and not report.problems
