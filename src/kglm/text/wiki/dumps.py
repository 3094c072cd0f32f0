"""Wikitext dumps (`pages-articles`): pages and redirects of a MediaWiki export, one page at a time.

Pages are cut out of the stream and parsed one by one, so memory does not depend on the size of the dump. Any version of
the export schema is accepted. A page that is not well-formed is skipped and reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from io import BufferedReader
from os import PathLike
from xml.etree import ElementTree

from kglm.errors import DataError
from kglm.files import reading
from kglm.kg.ids import normalise_title
from kglm.packed import open_binary, position
from kglm.text.article import ReadingReport
from kglm.text.wiki.titles import ENGLISH, Namespaces

CHUNK = 1 << 20
LONGEST_PAGE = 64 << 20
"""Maximum bytes of XML per page. A wiki page has at most 2 MiB, but a dump may contain all its versions."""

_OPEN, _CLOSE = b"<page>", b"</page>"
_NAMESPACE = re.compile(r'<namespace\s[^>]*key="(-?\d+)"[^>]*>([^<]*)</namespace>')
_REDIRECT = re.compile(r"\s*#redirect(?:ion)?\s*:?\s*\[\[([^\[\]|\n]+)", re.IGNORECASE)
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Page:
    """The last version of a page."""

    title: str
    namespace: int
    redirect: str | None
    """Target if the page is a redirect, not normalised; else None."""
    text: str


@dataclass(slots=True)
class Dump:
    """A dump to read; `namespaces` are read from its head, before the first page."""

    path: str | PathLike[str]
    report: ReadingReport
    namespaces: Namespaces = ENGLISH

    def pages(self) -> Iterator[Page]:
        """Yield all readable pages in order; the others are reported."""
        last = "the head of the dump"
        with reading(self.path), open_binary(self.path) as stream:
            for data in self._cut(stream):
                page = self._page(data, last)
                if page is not None:
                    last = f"page {page.title!r}"
                    yield page

    def _cut(self, stream: BufferedReader) -> Iterator[bytes]:
        """Yield the bytes of each page, from `<page>` to `</page>`."""
        buffer, searched, head, dropping = bytearray(), 0, False, False
        while chunk := stream.read(CHUNK):
            buffer += chunk
            self.report.consumed = position(stream)
            start = 0
            while (end := buffer.find(_CLOSE, max(start, searched))) >= 0:
                if not head:
                    self._read_head(bytes(buffer[: max(buffer.find(_OPEN), 0)]))
                    head = True
                begin = buffer.rfind(_OPEN, start, end)
                if not dropping and (begin < 0 or buffer.find(_OPEN, start, begin) >= 0):
                    self.report.problem(f"{self.path}: <page> and </page> do not match", "unmatched page tags")
                end += len(_CLOSE)
                if begin >= 0:
                    yield bytes(buffer[begin:end])
                start, searched, dropping = end, end, False
            del buffer[:start]
            searched = max(0, len(buffer) - len(_CLOSE))
            if len(buffer) > LONGEST_PAGE:
                if not dropping:
                    what = f"{self.path}: a page of more than {LONGEST_PAGE >> 20} MiB"
                    self.report.problem(what, "page too long")
                del buffer[:searched]
                searched, dropping = 0, True
        if not head and not self._read_head(bytes(buffer[:CHUNK])):
            raise DataError(
                "contains no page of a wiki",
                place=self.path,
                remedy="give a MediaWiki export (pages-articles) with <page> elements",
            )
        if _OPEN in buffer:
            truncated = DataError("ends in the middle of a page", place=self.path, remedy="fetch the file again")
            self.report.problem(truncated, "cut off")

    def _read_head(self, head: bytes) -> bool:
        """Read the names of namespaces; False if this is not the head of an export."""
        text = head.decode("utf-8", "replace")
        names = [(int(key), unescape(name)) for key, name in _NAMESPACE.findall(text)]
        self.namespaces = Namespaces.named(names) if names else ENGLISH
        return bool(names) or "<mediawiki" in text or _OPEN.decode() in text

    def _page(self, data: bytes, last: str) -> Page | None:
        element = self._element(data, last)
        if element is None:
            return None
        title = " ".join((element.findtext("title") or "").split())
        if not title:
            self.report.problem(f"{self.path}, after {last}: a page without a title", "page without a title")
            return None
        namespace = (element.findtext("ns") or "0").strip()
        revisions = element.findall("revision")
        text = (revisions[-1].findtext("text") if revisions else None) or ""
        redirect_tag = element.find("redirect")
        redirect = redirect_tag.get("title") if redirect_tag is not None else None
        if redirect is None and (match := _REDIRECT.match(text)):
            redirect = match[1]
        return Page(title, int(namespace) if re.fullmatch(r"-?\d{1,9}", namespace) else -1, redirect, text)

    def _element(self, data: bytes, last: str) -> ElementTree.Element | None:
        """Parse the XML of a page; control characters and bytes that are not UTF-8 are replaced and reported."""
        try:
            return ElementTree.fromstring(data)
        except ElementTree.ParseError as error:
            problem = str(error)
        text = data.decode("utf-8", "replace")
        cleaned = _CONTROLS.sub("\ufffd", text)
        try:
            element = ElementTree.fromstring(cleaned)
        except (ElementTree.ParseError, ValueError):
            what = DataError(
                f"not well-formed XML ({problem})", place=f"{self.path}, the page after {last}", remedy="it is skipped"
            )
            self.report.problem(what, "not well-formed XML")
            return None
        title = element.findtext("title")
        kind = "bytes that are not UTF-8" if text.encode("utf-8") != data else "control characters"
        self.report.note(f"{self.path}, page {title!r}: {kind}; they are replaced")
        return element


def read_redirects(path: str | PathLike[str], report: ReadingReport | None = None) -> Iterator[tuple[str, str]]:
    """Redirects of a dump from articles to articles: (title, target), both normalised."""
    dump = Dump(path, report or ReadingReport())
    for page in dump.pages():
        if page.namespace == 0 and page.redirect is not None:
            target = dump.namespaces.target(page.redirect)
            if target is not None:
                yield normalise_title(page.title), target
