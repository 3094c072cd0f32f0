"""Articles as JSON: user texts with links, pages of the Wikipedia APIs and HTML dumps, linked documents.

An object has a `title` (or `name`) and one of

    text               with `links`: [{"start": 0, "end": 5, "target": "Some page"}, …] by character
    html, wikitext     from a wiki; also inside `article_body` (Wikimedia Enterprise) or `parse` (the API)
    tokens             with `links` by token, and `annotations` as in Linked WikiText-2, which stay unchanged
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kglm.errors import DataError
from kglm.kg.ids import normalise_title
from kglm.text.article import NO_TEXT, NOT_AN_ARTICLE, Article, Link, ReadingReport, article_from
from kglm.text.document import END, START, decoding, other_keys, parse_document
from kglm.text.marked import Passage, masked, read_marks
from kglm.text.wiki.rendered import host_of, read_html
from kglm.text.wiki.titles import ENGLISH
from kglm.text.wiki.wikitext import read_wikitext

FORMS = ("text", "html", "wikitext", "tokens")


class _Link(msgspec.Struct):
    start: int
    end: int
    target: str


class _Body(msgspec.Struct):
    html: str | None = None
    wikitext: str | None = None


class _Namespace(msgspec.Struct):
    identifier: int | None = None


class _Named(msgspec.Struct):
    name: str | None = None


class _Record(msgspec.Struct):
    title: str | None = None
    name: str | None = None
    text: str | None = None
    html: str | None = None
    wikitext: str | None = None
    tokens: list[Any] | None = None
    links: list[_Link] | None = None
    url: str | None = None
    article_body: _Body | None = None
    namespace: _Namespace | int | None = None
    redirects: list[_Named] | None = None


class _Star(msgspec.Struct):
    """A text in the older format of the parse API."""

    star: str = msgspec.field(name="*")


class _Parsed(msgspec.Struct):
    title: str
    text: str | _Star | None = None
    wikitext: str | _Star | None = None


class _ParseResponse(msgspec.Struct):
    """Response of the parse API; `parse` is None for other records."""

    parse: _Parsed | None = None


_RECORD = msgspec.json.Decoder(_Record)
_PARSE_RESPONSE = msgspec.json.Decoder(_ParseResponse)
_KNOWN_KEYS = frozenset((*_Record.__struct_fields__, "annotations"))


def article_from_json(line: bytes, place: str, report: ReadingReport, *, lists: bool = False) -> Article | None:
    """Parse the article of a JSON object; None, counted in `report`, if it is not an article or has no words."""
    record = _read(line, place)
    title = _title(record, place)
    namespace = record.namespace.identifier if isinstance(record.namespace, _Namespace) else record.namespace
    if namespace:
        report.skip(NOT_AN_ARTICLE)
        return None
    if record.tokens is not None:
        return _linked_document(line, record.links or [], place, report)
    host = host_of(record.url or "")
    body = record.article_body or _Body()
    html = body.html if record.html is None else record.html
    wikitext = body.wikitext if record.wikitext is None else record.wikitext
    if record.text is not None:
        passage = Passage(masked(record.text), _spans(record.links or [], len(record.text), place))
    elif html is not None:
        passage = read_marks(read_html(html, title, host=host, lists=lists), title)
    elif wikitext is not None:
        passage = read_marks(read_wikitext(wikitext, title, lists=lists), title)
    else:
        raise DataError("has no text", place=place, remedy=f"give each record one of {', '.join(FORMS)}")
    article = article_from(title, passage, place)
    if article is None:
        report.skip(NO_TEXT)
    elif record.text is not None:  # a user's record; the many other keys of wiki records are dropped
        article.extra = other_keys(line, _KNOWN_KEYS, place)
    return article


def redirects_from_json(line: bytes, place: str) -> Iterator[tuple[str, str]]:
    """Redirects to the article of an HTML dump record, as (title, target)."""
    record = _read(line, place)
    for redirect in record.redirects or ():
        title = ENGLISH.target(redirect.name or "")
        if title is not None:
            yield title, normalise_title(_title(record, place))


def _read(line: bytes, place: str) -> _Record:
    with decoding(line, place, "see docs/formats.md for the form of a text"):
        record = _RECORD.decode(line)
        if record.title is None and record.name is None and (page := _PARSE_RESPONSE.decode(line).parse):
            record = _Record(title=page.title, html=_plain(page.text), wikitext=_plain(page.wikitext))
    return record


def _plain(text: str | _Star | None) -> str | None:
    return text.star if isinstance(text, _Star) else text


def _title(record: _Record, place: str) -> str:
    title = " ".join((record.title or record.name or "").split())
    if not title:
        raise DataError("has no title", place=place, remedy='give each record a "title"')
    return title


def _spans(links: list[_Link], length: int, place: str) -> list[tuple[int, int, str]]:
    """Sorted links with normalised targets, without links to pages that are not articles."""
    spans, last = [], 0
    for link in sorted(links, key=lambda link: (link.start, link.end)):
        if not 0 <= link.start < link.end <= length:
            what, remedy = f"does not fit a length of {length}", "give 0 <= start < end <= length"
        elif link.start < last:
            what, remedy = f"overlaps the previous link, which ends at {last}", "give links that do not overlap"
        else:
            last = link.end
            if target := ENGLISH.target(link.target):
                spans.append((link.start, link.end, target))
            continue
        raise DataError(f"link [{link.start}, {link.end}) {what}", place=place, remedy=remedy)
    return spans


def _linked_document(line: bytes, links: list[_Link], place: str, report: ReadingReport) -> Article:
    """Article of a tokenized document: its annotations stay, missing start and end markers are added."""
    document = parse_document(line, place)
    tokens, mentions = document.tokens, document.mentions
    found = []
    for start, end, target in _spans(links, len(tokens), place):
        if START in tokens[start:end] or END in tokens[start:end]:
            report.skip("link over the end of a sentence")
        else:
            found.append(Link(start, end, target))
    if tokens[:1] != [START]:
        tokens = [START, *tokens]
        mentions = [mention.moved(mention.start + 1, mention.end + 1) for mention in mentions]
        found = [Link(link.start + 1, link.end + 1, link.target) for link in found]
    if tokens[-1] != END:
        tokens = [*tokens, END]
    extra = {key: value for key, value in document.extra.items() if key not in _KNOWN_KEYS}
    return Article(document.title, tokens, found, mentions, place, extra)
