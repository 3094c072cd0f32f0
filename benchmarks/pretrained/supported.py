"""Which names, dates and numbers of a text the graph supports, and which facts it states by fixed patterns.

This is an examiner of its own: it reads nothing of how a text was made. A name is supported if it stands in the prompt,
or is a name of the subject, of an entity that the text has named before (if the graph supports that), or of an entity
that is joined to one of these by a fact. Dates and numbers are supported in the same way, by the facts of these
entities: a year by any date in it, a full date by the same day. Adjectives of nations and words that are no names are
not counted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.dates import DAY, MONTH, Date
from kglm.kg.literals.literal import is_date, is_literal
from kglm.kg.literals.quantities import Quantity
from kglm.text.common_words import is_common

MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
_MONTH = "|".join(MONTHS)
DATE = re.compile(
    rf"\b(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<m1>{_MONTH}),? (?P<y1>\d{{3,4}})"
    rf"|(?P<m2>{_MONTH}) (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y2>\d{{3,4}})"
    rf"|(?P<m3>{_MONTH}),? (?P<y3>\d{{4}})|(?P<y4>1\d{{3}}|20\d{{2}})(?![\d,.]*\d))"
)
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?!\w)")
_CAPITAL = r"(?:(?:[A-Z](?:\.[A-Z])*|St|Dr|Mr|Mrs|Jr|Sr|Mt)\.(?= )|[A-ZÀ-ÖØ-Þ][\w'’\-]*)"
_SMALL = "of|the|de|la|du|von|van|der|den|and|di|da|del|al|bin|for|in|on"
NAME = re.compile(rf"{_CAPITAL}(?:(?: (?:{_SMALL}))* {_CAPITAL})*")
_PARTS = re.compile(r" (?:and|of|in|for|on) (?:the )?")
MOST_FACTS = 3000
"""Facts of an entity that are looked at."""
_NATIONS = """
american british english french german italian spanish portuguese dutch belgian swiss austrian polish russian ukrainian
czech slovak hungarian romanian bulgarian greek turkish swedish norwegian danish finnish icelandic irish scottish welsh
canadian australian mexican brazilian argentine chilean peruvian colombian cuban indian pakistani chinese japanese
korean vietnamese thai indonesian filipino iranian iraqi israeli egyptian nigerian african european asian arab jewish
christian catholic muslim islamic roman latin soviet serbian croatian estonian latvian lithuanian
"""
_TITLES = "mr mrs ms dr sir lady lord prof i"
NO_NAMES = frozenset([*_NATIONS.split(), *_TITLES.split(), *map(str.casefold, MONTHS)])
"""Capitalised words that are not counted as names: adjectives of nations, titles, months."""
_AGAIN = re.compile(r"(?:He|She|It|His|Her|Its|They|The (?:film|book|novel|city|country|album))\b")
"""Beginnings of sentences that go on about the subject."""


class Item(NamedTuple):
    """A name, date or number of a text."""

    start: int
    end: int
    kind: str
    supported: bool


class Statement(NamedTuple):
    """A fact that a text states: relation of the subject, the words for its object; `right` is None without facts."""

    relation: str
    text: str
    right: bool | None


def _date(match: re.Match[str]) -> tuple[int, int, int]:
    """Year, month and day of a match of `DATE`; 0 for what is not said."""
    groups = match.groupdict()
    year = next(int(groups[key]) for key in ("y1", "y2", "y3", "y4") if groups[key])
    month = next((MONTHS.index(groups[key]) + 1 for key in ("m1", "m2", "m3") if groups[key]), 0)
    day = next((int(groups[key]) for key in ("d1", "d2") if groups[key]), 0)
    return year, month, day


def same_date(said: tuple[int, int, int], date: Date) -> bool:
    """True if a date in words agrees with a date of the graph, and says no more than it."""
    year, month, day = said
    return (
        year == date.year
        and (not month or (date.precision >= MONTH and month == date.month))
        and (not day or (date.precision >= DAY and day == date.day))
    )


def _key(name: str) -> str:
    return re.sub(r"^the ", "", name.casefold()).strip(" .,'’\"").removesuffix("'s").removesuffix("’s")


class Known:
    """Names, dates and numbers that the graph supports for the entities named so far."""

    def __init__(self, graph: KnowledgeGraph, prompt: str) -> None:
        self.graph = graph
        self.prompt = f" {_key(prompt)} "
        self.nodes: set[int] = set()
        self.names: dict[str, set[int]] = defaultdict(set)
        self.dates: list[Date] = []
        self.numbers: set[float] = set()

    def add(self, node: int) -> None:
        """Add an entity, and the names and values that its facts lead to."""
        if node in self.nodes or is_literal(self.graph.id(node)):
            return
        self.nodes.add(node)
        for each in (node, *dict.fromkeys(self.graph.edges(node).tail[:MOST_FACTS].tolist())):
            id = self.graph.id(each)
            if is_date(id):
                self.dates.append(Date.parse_id(id))
            elif id.startswith("V"):
                self.numbers.add(float(Quantity.parse_id(id).amount))
            else:
                for name in self.graph.aliases(each):
                    self.names[_key(name)].add(each)

    def said(self, name: str) -> bool:
        """True if the prompt has these words."""
        return f" {_key(name)} " in self.prompt

    def supports_date(self, match: re.Match[str]) -> bool:
        return any(same_date(_date(match), date) for date in self.dates)

    def supports_number(self, text: str) -> bool:
        return float(text.replace(",", "")) in self.numbers

    def supports_name(self, text: str) -> bool:
        """True for a known name; its entities count as named then. A last name counts for an entity named before."""
        key = _key(text)
        nodes = self.names.get(key) or {
            node for node in self.nodes for name in self.graph.names(node) if key in _key(name).split()
        }
        for node in list(nodes)[:5]:
            self.add(node)
        return bool(nodes)


def items(graph: KnowledgeGraph, subject: int, prompt: str, text: str) -> Iterator[Item]:
    """Names, dates and numbers of a text that goes on after a prompt about the subject."""
    known = Known(graph, prompt)
    known.add(subject)
    found = [(match, "date") for match in DATE.finditer(text)]
    taken = [match.span() for match, _ in found]
    found += [(match, "number") for match in NUMBER.finditer(text) if not _inside(match, taken)]
    found += [(match, "name") for match in NAME.finditer(text) if not _inside(match, taken)]
    for match, kind in sorted(found, key=lambda pair: pair[0].start()):
        words = match[0]
        if kind == "date":
            yield Item(*match.span(), kind, words in prompt or known.supports_date(match))
        elif kind == "number":
            yield Item(*match.span(), kind, words in prompt or known.supports_number(words))
        elif (name := proper(text, match)) is not None:
            start, words = name
            supported = known.said(words) or known.supports_name(words)
            if not supported and len(parts := _PARTS.split(words)) > 1:
                supported = all(known.said(part) or known.supports_name(part) for part in parts if part)
            yield Item(start, start + len(words), kind, supported)


def proper(text: str, match: re.Match[str]) -> tuple[int, str] | None:
    """The name of a match without a common word that begins a sentence; None if no name is left."""
    start, words = match.start(), match[0]
    before = text[:start].rstrip(" \"'“(")
    if not before or before[-1] in ".!?\n:":
        first, _, rest = words.partition(" ")
        while _opens(first):
            start, words = start + len(first) + 1, rest
            first, _, rest = words.partition(" ")
            if not words or not words[0].isupper():
                return None
    words = words.rstrip(".")
    small = re.sub(r"['’]s$", "", words.casefold())
    adjective = small.partition("-")[0] in NO_NAMES and not words.partition("-")[2].istitle()
    return None if adjective or is_common(words) or len(small) < 2 else (start, words)


def _opens(word: str) -> bool:
    """True for a word that may begin a sentence without being a name: "It", "It's", "Later"."""
    small = re.sub(r"['’].*", "", word.casefold()).strip(".,")
    return is_common(small) or small in ("he", "she", "it", "they", "his", "her", "its", "i", "we")


def _inside(match: re.Match[str], spans: list[tuple[int, int]]) -> bool:
    return any(start < match.end() and match.start() < end for start, end in spans)


# Facts by patterns

_OBJECT = rf"(?P<name>{NAME.pattern})"
PATTERNS = (
    ("P569", rf"\bborn (?:[^.;]{{0,40}}?\b(?:on|in) )?(?P<date>{DATE.pattern})"),
    ("P19", rf"\bborn (?:[^.;]{{0,40}}?\b)?(?:in|at) (?:the )?(?:\w+ of )?{_OBJECT}"),
    ("P570", rf"\b(?:died|passed away) (?:[^.;]{{0,40}}?\b(?:on|in) )?(?P<date>{DATE.pattern})"),
    ("P20", rf"\b(?:died|passed away) (?:[^.;]{{0,40}}?\b)?(?:in|at) (?:the )?(?:\w+ of )?{_OBJECT}"),
    ("P36", rf"(?:[Ii]ts|[Tt]he|whose) capital(?: city)?(?: of [\w ]{{1,30}})?(?: and largest city)? is (?:the )?"
            rf"(?:city of )?{_OBJECT}"),
    ("P50", rf"written by (?:the )?(?:[a-z]+ ){{0,4}}{_OBJECT}"),
    ("P57", rf"directed by (?:the )?(?:[a-z]+ ){{0,4}}{_OBJECT}"),
    ("P26", rf"(?:married(?: to)?|his wife,?|her husband,?) (?:the )?(?:[a-z]+ ){{0,3}}{_OBJECT}"),
)  # fmt: skip
_WIDER = ("P131", "P17", "P30")
"""Relations by which a place lies in another one: a place of birth may be named by either."""


def statements(graph: KnowledgeGraph, subject: int, prompt: str, text: str) -> Iterator[Statement]:
    """Facts about the subject that the text states in sentences that begin with it or with a pronoun."""
    names = {_key(name) for name in graph.names(subject)}
    for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z\"“])", f"{prompt} {text}".replace("  ", " ")):
        opening = _key(sentence[:80])
        about = any(opening.startswith(name) or f" {name} " in f" {opening} " for name in names if name)
        if not about and not _AGAIN.match(sentence):
            continue
        for relation, pattern in PATTERNS:
            for match in re.finditer(pattern, sentence):
                yield Statement(relation, match[0], _right(graph, subject, relation, match))


def _right(graph: KnowledgeGraph, subject: int, relation: str, match: re.Match[str]) -> bool | None:
    number = graph.find_relation(relation)
    tails = [] if number is None else graph.tails(subject, number).tolist()
    if not tails:
        return None
    groups = match.groupdict()
    if groups.get("date"):
        said = DATE.search(groups["date"])
        dates = [Date.parse_id(graph.id(tail)) for tail in tails if is_date(graph.id(tail))]
        return any(same_date(_date(said), date) for date in dates) if said and dates else None
    if relation in ("P19", "P20"):
        tails += [wide for tail in tails for wide in _wider(graph, tail)]
    said_name = _key(groups["name"])
    names = {_key(name) for tail in tails for name in graph.names(tail)}
    return any(
        said_name == name or said_name.startswith(f"{name} ") or name.endswith(f" {said_name}") for name in names
    )


def _wider(graph: KnowledgeGraph, place: int, depth: int = 3) -> set[int]:
    found, new = set[int](), {place}
    relations = [number for id in _WIDER if (number := graph.find_relation(id)) is not None]
    for _ in range(depth):
        new = {tail for node in new for relation in relations for tail in graph.tails(node, relation).tolist()} - found
        found |= new
    return found
