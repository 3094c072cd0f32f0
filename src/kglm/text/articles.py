"""Read articles from files of any supported format: `read_articles` takes a file or folder and detects the format.

wikitext dumps   `pages-articles` of any wiki, compressed or not
HTML             pages as rendered by Wikipedia, one per file
JSON lines       user texts with links, HTML dumps, linked documents: see `records`
wikitext         one page per file (`.wiki`, `.wikitext`, `.mediawiki`)
plain text       one text per file
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import msgspec

from kglm.errors import DataError
from kglm.files import read_lines, reading
from kglm.packed import open_binary
from kglm.text.article import (
    NO_TEXT,
    NOT_AN_ARTICLE,
    REDIRECT,
    Article,
    Link,
    ReadingReport,
    article_from,
)
from kglm.text.marked import Passage, masked, read_marks
from kglm.text.records import article_from_json, redirects_from_json
from kglm.text.wiki.dumps import Dump
from kglm.text.wiki.dumps import read_redirects as read_dump_redirects
from kglm.text.wiki.rendered import html_title, read_html
from kglm.text.wiki.titles import ENGLISH, Namespaces, follow_redirects
from kglm.text.wiki.wikitext import read_wikitext

__all__ = [
    "Article",
    "Link",
    "RawArticle",
    "ReadingReport",
    "article_files",
    "follow_redirects",
    "raw_articles",
    "read_articles",
    "read_redirects",
]

LONGEST_TEXT = 256 << 20
"""Maximum bytes of a file that is one article or one JSON value, because it is read into memory."""
_PACKED = (".gz", ".bz2", ".zst")
_KINDS = {
    ".xml": "dump", ".html": "html", ".htm": "html", ".xhtml": "html", ".jsonl": "lines", ".ndjson": "lines",
    ".json": "json", ".txt": "text", ".text": "text", ".md": "markdown", ".markdown": "markdown",
    ".wiki": "wikitext", ".wikitext": "wikitext", ".mediawiki": "wikitext",
}  # fmt: skip
_HEAD = 4096


def read_articles(
    path: str | PathLike[str], *, report: ReadingReport | None = None, lists: bool = False
) -> Iterator[Article]:
    """Articles of a file, or of all files in a folder in order of their names.

    An unreadable record is skipped and counted in `report`. It is an error if no article can be read or a file is
    damaged. Lists in wiki pages are removed, as in the linked corpus, unless `lists`.
    """
    report = ReadingReport() if report is None else report
    before = report.articles
    problems = len(report.problems)
    for file in article_files(path, report):
        for raw in raw_articles(file, report):
            if (article := raw.read(report, lists=lists)) is not None:
                report.articles += 1
                yield article
    if report.articles == before and len(report.problems) > problems:
        raise DataError("no article could be read", place=path, remedy=f"first problem: {report.problems[problems]}")


@dataclass(frozen=True, slots=True)
class RawArticle:
    """An unparsed article, cheap to send to a worker process that parses it with `read`."""

    kind: str
    """Format of the data: dump, wikitext, html, lines, json, markdown or text."""
    data: str | bytes
    title: str
    place: str
    namespaces: Namespaces = ENGLISH

    def read(self, report: ReadingReport, *, lists: bool = False) -> Article | None:
        """Parse the article; None, counted in `report`, if it is unreadable, not an article or without words."""
        article = None
        with report.record(self.place):
            if self.kind in ("lines", "json"):
                assert isinstance(self.data, bytes)
                return article_from_json(self.data, self.place, report, lists=lists)
            title, passage = self._passage(lists)
            article = article_from(title, passage, self.place)
            if article is None:
                report.skip(NO_TEXT)
        return article

    def _passage(self, lists: bool) -> tuple[str, Passage]:
        """Title and plain text with links."""
        text, title = self.data if isinstance(self.data, str) else _decoded(self.data, self.place), self.title
        if self.kind in ("dump", "wikitext"):
            return title, read_marks(read_wikitext(text, title, namespaces=self.namespaces, lists=lists), title)
        if self.kind == "html":
            title = html_title(text) or title
            return title, read_marks(read_html(text, title, lists=lists), title)
        heading, text = _split_heading(text)
        if self.kind == "markdown":
            text = _MARKDOWN_HEADING.sub("\n", text)
        return heading or title, Passage(masked(text))


def raw_articles(file: Path, report: ReadingReport) -> Iterator[RawArticle]:
    """Unparsed articles of a file; other records are counted in `report`."""
    if _is_empty(file):
        report.problem(DataError("is empty", place=file, remedy="give a file that contains text"), "empty file")
        return
    kind = _kind(file)
    if kind == "dump":
        yield from _raw_pages(file, report)
    elif kind in ("lines", "json"):
        for line, place in _json_values(file, kind, report):
            yield RawArticle(kind, line, "", place)
    else:
        raw = None
        with report.record(str(file)):
            raw = RawArticle(kind, _bytes(file), _stem(file), str(file))
        if raw is not None:
            yield raw


def _raw_pages(path: Path, report: ReadingReport) -> Iterator[RawArticle]:
    dump = Dump(path, report)
    for page in dump.pages():
        if page.namespace != 0:
            report.skip(NOT_AN_ARTICLE)
        elif page.redirect is not None:
            report.skip(REDIRECT)
        else:
            yield RawArticle("dump", page.text, page.title, f"{path}, page {page.title!r}", dump.namespaces)


def read_redirects(path: str | PathLike[str], *, report: ReadingReport | None = None) -> Iterator[tuple[str, str]]:
    """Redirects in dumps as (title, target), both normalised; see `follow_redirects`."""
    report = ReadingReport() if report is None else report
    for file in article_files(path, report):
        kind = _kind(file)
        if kind == "dump":
            yield from read_dump_redirects(file, report)
        elif kind in ("lines", "json"):
            for line, place in _json_values(file, kind, report):
                if b'"redirects"' not in line:
                    continue
                found = list[tuple[str, str]]()
                with report.record(place):
                    found += redirects_from_json(line, place)
                yield from found


def article_files(path: str | PathLike[str], report: ReadingReport | None = None) -> list[Path]:
    """The file itself, or all readable files of a folder and its subfolders, without hidden files."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    with reading(path):
        found = sorted(file for file in path.rglob("*") if file.is_file())
    files = []
    for file in found:
        if any(part.startswith(".") for part in file.relative_to(path).parts):
            continue
        if _named_kind(file) or _kind_of_content(file):
            files.append(file)
        elif report is not None:
            report.skip("not a kind of file that holds articles")
    if not files:
        formats = f"{', '.join(_KINDS)}, also compressed ({', '.join(_PACKED)})"
        raise DataError("contains no readable file", place=path, remedy=f"supported suffixes: {formats}")
    return files


# --- detection of the format ----------------------------------------------------------------------------------


def _kind(path: Path) -> str:
    kind = _named_kind(path) or _kind_of_content(path)
    if kind is None:
        raise DataError("is not a text", place=path, remedy="give a wikitext dump, HTML, JSON lines or plain text")
    return kind


def _is_empty(path: Path) -> bool:
    with reading(path), open_binary(path) as stream:
        return not stream.read(1)


def _named_kind(path: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _PACKED]
    return _KINDS.get(suffixes[-1]) if suffixes else None


def _kind_of_content(path: Path) -> str | None:
    """Detect the format from the first bytes, for files without a known suffix; None if it is not text."""
    with reading(path), open_binary(path) as stream:
        head = stream.read(_HEAD)
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if b"\0" in head:
        return "text" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None
    if b"<mediawiki" in text or text.startswith(b"<page>"):
        return "dump"
    if text.startswith(b"{"):
        return "lines"
    if re.match(rb"<!doctype html|<(?:html|head|body|section|div|p|meta)\b", text, re.IGNORECASE):
        return "html"
    return "text"


# --- whole files ----------------------------------------------------------------------------------------

_CHARSET = re.compile(rb"<meta[^<>]{0,200}charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_MARKDOWN_HEADING = re.compile(r"^#{1,6}[ \t].*$", re.MULTILINE)
_HEADING = re.compile(r"#{1,6}\s+(?P<hash>\S.*?)[\s#]*|=+\s*(?P<wiki>[^=\s](?:.*[^=\s])?)\s*=+")
_UNDERLINE = re.compile(r"={3,}|-{3,}")
_LONGEST_HEADING = 100


def _json_values(path: Path, kind: str, report: ReadingReport) -> Iterator[tuple[bytes, str]]:
    """JSON objects of a file, each with its place: one per line, one per file, or an array."""
    if kind == "json":
        data = _bytes(path)
        try:
            if data.startswith(b"["):
                for number, value in enumerate(msgspec.json.decode(data, type=list[msgspec.Raw]), 1):
                    yield bytes(value), f"{path}, record {number}"
            else:
                msgspec.json.decode(data, type=dict[str, msgspec.Raw])
                yield data, str(path)
            return
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # read it line by line instead, so that errors name the line

    def consumed(count: int) -> None:
        report.consumed = count

    for number, line in read_lines(path, consumed):
        yield line, f"{path}, line {number}"


def _bytes(path: Path) -> bytes:
    with reading(path), open_binary(path) as stream:
        data = stream.read(LONGEST_TEXT + 1)
    if len(data) > LONGEST_TEXT:
        what = f"is longer than {LONGEST_TEXT >> 20} MiB"
        raise DataError(what, place=path, remedy="split it, or convert it to JSON lines with one text per line")
    return data.removeprefix(codecs.BOM_UTF8).strip()


def _decoded(data: bytes, place: str) -> str:
    """Decode a file as UTF-8, or as its byte order mark or HTML charset says."""
    encoding = "utf-8"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif match := _CHARSET.search(data, 0, _HEAD):
        encoding = match[1].decode("ascii")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        what = f"invalid {encoding.upper()} at byte {error.start}"
        raise DataError(what, place=place, remedy="convert the file to UTF-8") from error
    except (LookupError, UnicodeError) as error:  # some codecs refuse every text
        raise DataError(f"unknown encoding {encoding!r}", place=place, remedy="convert the file to UTF-8") from error


def _stem(path: Path) -> str:
    """Title from a file name: `Some_page.txt.gz` gives "Some page"."""
    name = path.name
    while (suffix := Path(name).suffix.lower()) in _PACKED or suffix in _KINDS:
        name = name[: -len(suffix)]
    return " ".join(name.replace("_", " ").split()) or path.name


def _split_heading(text: str) -> tuple[str | None, str]:
    """Split off the first line of a text if it is a heading.

    A heading has markup (`# Title`, `= Title =`, underlined), or is short, without a full stop, before a blank line.
    """
    first, _, rest = text.lstrip().partition("\n")
    first = first.strip()
    following = rest.partition("\n")[0].strip()
    if len(first) > _LONGEST_HEADING:
        return None, text
    if match := _HEADING.fullmatch(first):
        return match["hash"] or match["wiki"], rest
    if first and _UNDERLINE.fullmatch(following):
        return first, rest.partition("\n")[2]
    if first and rest.strip() and not following and first[-1] not in ".!?…:;,":
        return first, rest
    return None, text
