"""HTML pages of linked documents: the text with its mentions marked, each with a card that explains it.

page = document_page(document, graph)                                       # one self-contained file
folder_page = index_page([page_entry(d, n) for n, d in enumerate(documents, 1)])

A page needs no network, server or build; its content security policy (CSP) admits only its own style and script. Text,
cards and links work without the script, which outlines parents, positions cards and filters mentions. All text from a
document or graph is escaped. To embed a text in another page, use `document_fragment` with `STYLE` and `SCRIPT`.
"""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from itertools import accumulate
from string import Template
from typing import Literal
from urllib.parse import quote

from kglm.errors import DataError, LiteralError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REFLEXIVE, REVERSE
from kglm.kg.literals.literal import is_date, is_literal, is_quantity, quantity_unit, render_literal
from kglm.text.document import END, SOURCES, START, Document, Mention
from kglm.text.tokenizer import blanks, detokenize

Kind = Literal["new", "related", "again", "date", "quantity"]
KINDS: dict[Kind, str] = {
    "new": "new", "related": "related by a fact", "again": "mentioned before", "date": "date", "quantity": "quantity",
}  # fmt: skip
"""Kinds of mentions, one colour each, with their names in the legend."""
SOURCE_NAMES = {"WIKI": "article link", "NEL": "entity linker", "COREF": "coreference", "KG": "match with the graph"}
assert set(SOURCE_NAMES) == set(SOURCES)

STYLE = (files("kglm.annotate") / "page.css").read_text("utf-8")
"""The stylesheet of pages and of fragments."""
SCRIPT = (files("kglm.annotate") / "page.js").read_text("utf-8")
"""Outlines parents, positions cards, filters mentions; optional for a fragment."""
_FRAME = Template((files("kglm.annotate") / "page.html").read_text("utf-8"))
PARAGRAPH = 110
"""Words after which the next end of a sentence ends a paragraph: documents mark only sentences."""
LONGEST_LABEL = 120
LONGEST_QUOTE = 40
LONGEST_NAME = 60
"""Most characters of a title in a file name."""

_ON_WIKIDATA = re.compile(r"(Q|P)[1-9][0-9]{0,17}")
# Lone surrogates, control characters except white space, and bidirectional controls, which would reorder later text.
_UNFIT = re.compile(r"[\ud800-\udfff\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


def mention_kind(mention: Mention) -> Kind:
    """Kind of a mention, by its explanations; dates and quantities are kinds of their own."""
    if is_date(mention.id):
        return "date"
    if is_quantity(mention.id):
        return "quantity"
    relations = {relation for _, relation in mention.explanations}
    if not relations:
        return "new"
    return "again" if relations == {REFLEXIVE} else "related"


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A row of the index page."""

    title: str
    file: str
    words: int
    mentions: int
    entities: int


def page_entry(document: Document, number: int) -> PageEntry:
    """Row for the document with this number; `file` is the name of its page."""
    ids = {mention.id for mention in document.mentions}
    words = sum(map(_is_word, document.tokens))
    return PageEntry(document.title, page_name(document.title, number), words, len(document.mentions), len(ids))


def page_name(title: str, number: int) -> str:
    """A portable file name, unique for each number.

    >>> page_name("Éva Gauthier / AC⚡DC", 7)
    '0007-eva-gauthier-ac-dc.html'
    """
    letters = unicodedata.normalize("NFKD", title).casefold()
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    slug = "-".join(re.findall(r"[a-z0-9]+", plain))[:LONGEST_NAME].strip("-")
    return f"{number:04d}-{slug}.html" if slug else f"{number:04d}.html"


def document_page(document: Document, graph: KnowledgeGraph | None = None, *, index: str | None = None) -> str:
    """Complete page of a document; `index` is the address of its index page."""
    view = _View(document, graph)
    back = f'<nav><a href="{_text(quote(_fit(index), safe="/?=&#"))}">All documents</a></nav>' if index else ""
    numbers = _numbers(
        words=view.words_before[-1],
        sentences=sum(1 for _ in document.sentences()),
        mentions=len(document.mentions),
        entities=len(view.places),
        facts=len(set().union(*view.facts.values())),
    )
    missing = "Nothing in this text is linked." if document.annotated else "This text is not annotated."
    note = "" if document.mentions else f'<p class="note">{missing}</p>'
    title = _text(document.title) or "Untitled"
    body = [
        f'<header>{back}<h1 dir="auto">{title}</h1>{numbers}{note}</header>',
        _filters(document) if document.mentions else "",
        f'<div class="columns"><main>{view.fragment()}</main>{view.entities()}</div>',
    ]
    return _page(title, body, SCRIPT)


def document_fragment(document: Document, graph: KnowledgeGraph | None = None, *, prefix: str = "") -> str:
    """Only the text, for a page that has `STYLE` and `SCRIPT`; `prefix` keeps anchors of several texts distinct."""
    return _View(document, graph, prefix).fragment()


def index_page(entries: Iterable[PageEntry], title: str = "Linked documents") -> str:
    """Index page that lists documents in the given order."""
    entries = list(entries)
    rows = "".join(
        f'<tr><td><a href="{_text(quote(_fit(entry.file), safe=""))}" dir="auto">{_text(entry.title) or "Untitled"}</a>'
        f"</td><td>{entry.words:,}</td><td>{entry.mentions:,}</td><td>{entry.entities:,}</td></tr>\n"
        for entry in entries
    )
    words, mentions = sum(entry.words for entry in entries), sum(entry.mentions for entry in entries)
    numbers = _numbers(documents=len(entries), words=words, mentions=mentions)
    head = f'<header><h1 dir="auto">{_text(title)}</h1>{numbers}</header>'
    table = _table(("Document", "Words", "Mentions", "Entities"), rows)
    return _page(_text(title), [head, f'<div class="columns"><main class="list">{table}</main></div>'])


class _View:
    """Renders a document: its text, cards and table of entities."""

    def __init__(self, document: Document, graph: KnowledgeGraph | None, prefix: str = "") -> None:
        _check_spans(document)
        self.document = document
        self.graph = graph
        self.prefix = _text(prefix)
        self.blanks = blanks(document.tokens)
        self.words_before = [0, *accumulate(map(_is_word, document.tokens))]
        self.label = cache(self._label)
        self.relation = cache(self._relation)
        self.places: dict[str, list[int]] = {}
        """Indices of the mentions of each entity, in order."""
        self.facts: dict[str, set[tuple[str, str, str]]] = {}
        """Facts (head, relation, tail) that explain mentions of each entity."""
        for number, mention in enumerate(document.mentions):
            self.places.setdefault(mention.id, []).append(number)
            self.facts.setdefault(mention.id, set()).update(_stored_facts(mention))

    # Text

    def fragment(self) -> str:
        """The text in paragraphs; no mention is split between two."""
        return f'<div class="linked text">\n{"".join(self._paragraphs())}</div>\n'

    def _paragraphs(self) -> Iterator[str]:
        tokens, mentions = self.document.tokens, self.document.mentions
        starts = {mention.start: number for number, mention in enumerate(mentions)}
        parts: list[str] = []
        place = words = 0
        while place < len(tokens):
            number = starts.get(place)
            if number is not None:
                parts.append(self._mention(number, mentions[number]))
            elif _is_word(tokens[place]):
                parts.append(self._word(place))
            elif self.words_before[place] - words >= PARAGRAPH:
                yield f'<p dir="auto">{"".join(parts)}</p>\n'
                parts, words = [], self.words_before[place]
            place = place + 1 if number is None else mentions[number].end
        if parts:
            yield f'<p dir="auto">{"".join(parts)}</p>\n'

    def _word(self, place: int) -> str:
        return (" " if self.blanks[place] else "") + _text(self.document.tokens[place])

    def _mention(self, number: int, mention: Mention) -> str:
        """A mention's words in a box, with its card; a blank before the first word stays outside."""
        tokens = self.document.tokens
        places = [place for place in range(mention.start, mention.end) if _is_word(tokens[place])]
        blank = " " if places and self.blanks[places[0]] else ""
        words = "".join(map(self._word, places)).removeprefix(blank)
        parents = [self._before(parent, number) for parent, _ in mention.explanations]
        above = " ".join(self._anchor(at) for at in sorted({at for at in parents if at is not None}))
        attribute = f' data-parents="{above}"' if above else ""
        source, card = _text(mention.source), self._anchor(number, "c")
        about = f'id="{self._anchor(number)}" data-kind="{mention_kind(mention)}" data-source="{source}"{attribute}'
        box = f'<mark tabindex="0" aria-describedby="{card}">{words}</mark>'
        return f'{blank}<span class="m" {about}>{box}{self._card(number, mention)}</span>'

    # Cards

    def _card(self, number: int, mention: Mention) -> str:
        """Card of a mention: its entity, its source, and its explanations by parent."""
        kind, before = mention_kind(mention), self._before(mention.id, number)
        source = f"{SOURCE_NAMES.get(mention.source, 'unknown source')} ({_text(mention.source)})"
        relations: dict[str, list[str]] = {}
        for parent, relation in mention.explanations:
            relations.setdefault(parent, []).append(relation)
        how, why = KINDS[kind], ""
        for parent, names in relations.items():
            obvious = kind == "again" and parent == mention.id  # the kind says it already
            facts = "" if obvious else "".join(self._fact(parent, name, mention.id) for name in names)
            why += f'<span class="why">{facts}{self._earlier(mention, self._before(parent, number))}</span>'
        if not relations:
            how = "first mention" if before is None else "new again, as if not mentioned before"
            why = "" if before is None else f'<span class="why">{self._earlier(mention, before)}</span>'
        return (
            f'<span class="card" id="{self._anchor(number, "c")}" dir="ltr">'
            f'<span class="name"><bdi>{self.label(mention.id)}</bdi>{self._id(mention.id)}</span>'
            f'<span class="how"><b>{how}</b> · {source}</span>{why}'
            f'<a class="self" href="#{self._anchor(number)}" title="Link to this mention">#{number + 1}</a></span>'
        )

    def _earlier(self, mention: Mention, at: int | None) -> str:
        """Link to mention `at`, the last one of a parent, with the distance in words."""
        if at is None:
            return '<span class="up">no earlier mention in this text</span>'
        earlier = self.document.mentions[at]
        distance = self.words_before[mention.start] - self.words_before[earlier.end]
        where = f"{distance:,} {'word' if distance == 1 else 'words'} before" if distance else "just before"
        quoted = _text(_cut(detokenize(self.document.tokens[earlier.start : earlier.end]), LONGEST_QUOTE))
        return f'<span class="up"><a href="#{self._anchor(at)}">↑ “<bdi>{quoted}</bdi>”</a>, {where}</span>'

    def _fact(self, parent: str, relation: str, id: str) -> str:
        """A fact in words, parent first; the arrow points from head to tail."""
        name = f"<bdi>{self.label(parent)}</bdi>"
        if relation == REFLEXIVE:
            return f'<span class="fact">mentioned before{"" if parent == id else f" as {name}"}</span>'
        before, after = ("←", "—") if relation.startswith(REVERSE) else ("—", "→")
        arrow = f"{before}<bdi>{self.relation(relation.removeprefix(REVERSE))}</bdi>{after}"
        fact = f'{name} <i title="{_text(relation)}">{arrow}</i> <bdi>{self.label(id)}</bdi>'
        return f'<span class="fact">{fact}{"" if self._holds(parent, relation, id) else " (not in this graph)"}</span>'

    def _holds(self, parent: str, relation: str, id: str) -> bool:
        """False if the graph has both entities and the relation but not the fact."""
        if self.graph is None:
            return True
        head, edge, tail = self.graph.find(_fit(parent)), self.graph.find_relation(relation), self.graph.find(_fit(id))
        return head is None or edge is None or tail is None or self.graph.overlay.has_fact(head, edge, tail)

    def _before(self, id: str, number: int) -> int | None:
        """Index of the nearest mention of an entity before mention `number`, or None."""
        places = self.places.get(id, [])
        before = bisect_left(places, number)
        return places[before - 1] if before else None

    def _anchor(self, number: int, letter: str = "m") -> str:
        return f"{self.prefix}{letter}{number + 1}"

    # Names

    def _label(self, id: str) -> str:
        """Escaped label of an entity, or its id if it has none."""
        id, name = _fit(id), ""
        number = None if self.graph is None else self.graph.find(id)
        try:
            if self.graph is not None and number is not None:
                name = self.graph.label(number)
            elif is_literal(id):
                name = f"{render_literal(id)[0]} {quantity_unit(id) or ''}".rstrip()
        except LiteralError:
            pass
        return _text(_cut(name.strip() or id, LONGEST_LABEL))

    def _relation(self, id: str) -> str:
        name = id.replace(":", ": ") if self.graph is None else self.graph.relation_name(_fit(id))
        return _text(_cut(name, LONGEST_LABEL))

    def _id(self, id: str) -> str:
        """An id in small print, linked to Wikidata if it is an id of it; omitted where the label is the id."""
        shown = _text(_cut(id, LONGEST_LABEL))
        named = shown != self.label(id)
        if match := _ON_WIKIDATA.fullmatch(id):
            address = f"https://www.wikidata.org/wiki/{'Property:' if match[1] == 'P' else ''}{id}"
            return f' <a class="id" href="{address}" rel="noreferrer">{shown if named else "Wikidata"}</a>'
        return f' <span class="id">{shown}</span>' if named else ""

    def entities(self) -> str:
        """Table of entities, the most frequently mentioned first."""
        if not self.places:
            return ""
        rows = "".join(
            f'<tr><td><a href="#{self._anchor(places[0])}"><bdi>{self.label(id)}</bdi></a>{self._id(id)}</td>'
            f"<td>{len(places):,}</td><td>{len(self.facts[id]):,}</td></tr>\n"
            for id, places in sorted(self.places.items(), key=lambda entity: (-len(entity[1]), entity[1][0]))
        )
        table = _table(("Entity", "Mentions", "Facts"), rows)
        return f'<aside tabindex="0" aria-labelledby="entities"><h2 id="entities">Entities</h2>{table}</aside>'


def _stored_facts(mention: Mention) -> Iterator[tuple[str, str, str]]:
    for parent, relation in mention.explanations:
        if relation.startswith(REVERSE):
            yield mention.id, relation.removeprefix(REVERSE), parent
        elif relation != REFLEXIVE:
            yield parent, relation, mention.id


def _filters(document: Document) -> str:
    """Legend with a checkbox and a count for every kind and source."""
    kinds = Counter(map(mention_kind, document.mentions))
    sources = Counter(mention.source for mention in document.mentions)

    def box(attribute: str, value: str, name: str, count: int) -> str:
        tick = f'<input type="checkbox" value="{value}" checked autocomplete="off">'
        return f'<label data-{attribute}="{value}">{tick}<span>{name}</span><span class="n">{count:,}</span></label>'

    why = "".join(box("kind", kind, f"<mark>{name}</mark>", kinds[kind]) for kind, name in KINDS.items())
    how = "".join(
        box("source", source, f"<mark>{source}</mark> {name}", sources[source]) for source, name in SOURCE_NAMES.items()
    )
    labels = '<label><input type="checkbox" name="labels" autocomplete="off">source labels</label>'
    return (
        '<div class="bar"><form class="filters" aria-label="Mentions to show">'
        f'<div class="set" role="group" aria-label="Why it is mentioned">{why}</div>'
        f'<div class="set" role="group" aria-label="How it was found">{how}</div>'
        f'<div class="set">{labels}<output></output></div></form></div>'
    )


def _page(title: str, body: Iterable[str], script: str = "") -> str:
    digests = {"style_digest": _digest(STYLE), "script_digest": _digest(script)}
    return _FRAME.substitute(digests, title=title, style=STYLE, body="\n".join(body), script=script)


def _table(names: Iterable[str], rows: str) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>"


def _numbers(**numbers: int) -> str:
    return f"<dl>{''.join(f'<div><dt>{name}</dt><dd>{number:,}</dd></div>' for name, number in numbers.items())}</dl>"


def _digest(code: str) -> str:
    """CSP source expression that admits exactly this style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def _is_word(token: str) -> bool:
    return token not in (START, END)


def _check_spans(document: Document) -> None:
    end = 0
    for number, mention in enumerate(document.mentions, 1):
        if not end <= mention.start < mention.end <= len(document.tokens):
            what = f"span [{mention.start}, {mention.end}) is empty, overlaps the one before or lies outside the text"
            place = f"{_fit(document.title)}, annotation {number}"
            raise DataError(what, place=place, remedy="order annotations by span, without overlaps")
        end = mention.end


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _fit(text: str) -> str:
    """Replace characters that UTF-8 or HTML cannot hold by the replacement character."""
    return _UNFIT.sub("\ufffd", text)


def _text(text: str) -> str:
    """Escape text for HTML, also inside an attribute in double quotes."""
    return escape(_fit(text))
