"""A real dump: every page is read, no markup is left, no link is lost, and reading is fast."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest

from kglm.kg.ids import normalise_title
from kglm.text.articles import Article, ReadingReport, read_articles, read_redirects
from kglm.text.document import END
from kglm.text.marked import read_marks
from kglm.text.tokenizer import Tokenizer, detokenize, tokenizer
from kglm.text.wiki.dumps import Dump, Page
from kglm.text.wiki.wikitext import read_wikitext

MARKUP = re.compile(r"\[\[|\]\]|\{\{|\}\}|''|<ref|</|\{\||\|\}|&nbsp;|&amp;|==|http|<!--|__|[\ufdd0-\ufdef]")


@dataclass(frozen=True)
class Sample:
    path: Path
    pages: dict[str, Page]
    articles: dict[str, Article]
    report: ReadingReport
    slowdown: float
    """CPU time of reading the dump, divided by that of tokenizing the texts of its articles."""


@pytest.fixture(scope="module")
def sample(shared_data: Path) -> Sample:
    path = shared_data / "dumps" / "enwiki-pages-articles-sample.xml.bz2"
    if not path.is_file():
        pytest.skip("the sample dump (../shared/data/dumps) is not on this machine")
    tokenizer().words("Load the tokenizer before the measurement.")
    report, started = ReadingReport(), time.process_time()
    articles = {article.title: article for article in read_articles(path, report=report)}
    seconds = time.process_time() - started
    fresh, texts = Tokenizer(), [detokenize(article.tokens) for article in articles.values()]
    fresh.words("Load its rules too.")
    started = time.process_time()
    for text in texts:
        fresh.words(text)
    slowdown = seconds / (time.process_time() - started)
    pages = {page.title: page for page in Dump(path, ReadingReport()).pages()}
    articles_only = {title: page for title, page in pages.items() if page.namespace == 0 and page.redirect is None}
    return Sample(path, articles_only, articles, report, slowdown)


def test_every_page_is_read_fast(sample: Sample) -> None:
    assert len(sample.pages) == 106 and not sample.report.problems
    # one page contains only a list
    assert set(sample.pages) - set(sample.articles) == {"List of anthropologists"}
    assert sample.report.skipped == {"redirect": 99, "page about the wiki": 1, "no text": 1}
    assert sample.slowdown < 10  # measured: 2.2
    assert 450_000 < sum(len(article.tokens) for article in sample.articles.values()) < 550_000


def test_no_markup_is_left(sample: Sample) -> None:
    left = Counter(token for article in sample.articles.values() for token in article.tokens if MARKUP.search(token))
    assert not left


def test_removed_templates_leave_no_stray_punctuation(sample: Sample) -> None:
    """No comma after an opening bracket, no two commas in a row, no empty brackets."""
    odd = re.compile(r"\( [,;:] |[,;] [,;] |\( \) (?!–)|, \. (?!\.)|@@END@@ [,;:)] ")
    found = [
        f"{article.title}: {text[max(0, match.start() - 40) : match.end() + 40]}"
        for article in sample.articles.values()
        for text in [" ".join(article.tokens)]
        for match in odd.finditer(text)
    ]
    assert not found


def test_sentences_have_a_usual_length(sample: Sample) -> None:
    ends = sum(article.tokens.count(END) for article in sample.articles.values())
    words = sum(len(article.tokens) for article in sample.articles.values())
    assert 20 < words / ends < 30  # 26.5 in the linked corpus


def test_most_articles_link_their_subject(sample: Sample) -> None:
    named = [
        article.title
        for article in sample.articles.values()
        if article.links and any(link.target == normalise_title(article.title) for link in article.links[:3])
    ]
    assert len(named) > 0.85 * len(sample.articles)


def test_redirects_of_the_sample(sample: Sample) -> None:
    redirects = dict(read_redirects(sample.path))
    assert len(redirects) == 99 and redirects["AfghanistanHistory"] == "History_of_Afghanistan"


# --- links: counted a second time by regular expressions -----------------------------------------------------

DROPPED = "ref|gallery|nowiki|math|source|timeline|imagemap|pre|syntaxhighlight|score"
END_SECTION = re.compile(
    "see also|references|external links|notes|further reading|(?:selected )?bibliography|footnotes|sources|citations"
    "|notes and references|references and notes|works cited|literature",
    re.IGNORECASE,
)
ELSEWHERE = re.compile(
    r":|(?:wikipedia|wp|help|user|template|portal|special|talk|image|file|category|wiktionary|wikisource|wikispecies"
    r"|species|commons|meta|simple|wikt|[a-z]{1,3})\s*:",
    re.IGNORECASE,
)


def plain_links(text: str) -> tuple[Counter[str], Counter[str]]:
    """Targets of the links in prose and in lists, without templates, tables, notes, images and end sections."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(rf"<(?:{DROPPED})\b[^<>]*/>", "", text, flags=re.IGNORECASE)
    text = re.sub(rf"<({DROPPED})\b[^<>]*>.*?</\1\s*>", "", text, flags=re.DOTALL | re.IGNORECASE)
    for nested in (r"\{\{[^{}]*\}\}", r"\{\|(?:(?!\{\||\n\s*\|\}).)*\n\s*\|\}"):
        before = ""
        while before != text:
            before, text = text, re.sub(nested, "", text, flags=re.DOTALL)
    image = r"\[\[(?:File|Image|Category)\s*:(?:[^\[\]]|\[\[[^\[\]]*\]\]|\[[^\[\]]*\])*\]\]"
    text = re.sub(image, "", text, flags=re.IGNORECASE)
    prose, lists, left_out = list[str](), list[str](), 0
    for line in text.split("\n"):
        if heading := re.match(r"(=+)\s*(.*?)\s*\1\s*$", line):
            level = len(heading[1])
            if not left_out or level <= left_out:
                left_out = level if END_SECTION.fullmatch(heading[2]) else 0
        elif not left_out:
            (lists if line[:1] in tuple("*#:;") else prose).append(line)
    return targets("\n".join(prose)), targets("\n".join(lists))


def targets(text: str) -> Counter[str]:
    addresses = re.findall(r"\[\[([^\[\]|\n]+)(?:\|[^\[\]]*)?\]\]", text)
    titles = [unescape(address).partition("#")[0].strip() for address in addresses]
    return Counter(normalise_title(title) for title in titles if title and not ELSEWHERE.match(title))


def test_no_link_is_lost(sample: Sample) -> None:
    """In prose, and with `lists=True` in lists."""
    expected, expected_in_lists = 0, 0
    for title, page in sample.pages.items():
        prose, lists = plain_links(page.text)
        links = sample.articles[title].links if title in sample.articles else []
        assert not prose - Counter(link.target for link in links), title
        spans = read_marks(read_wikitext(page.text, title, lists=True), title).spans
        assert not prose + lists - Counter(target for _, _, target in spans), title
        expected += prose.total()
        expected_in_lists += lists.total()
    assert expected > 18_000 and expected_in_lists > 2_500
