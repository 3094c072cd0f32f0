"""Parse pages of linked documents, and a small graph and document for tests of pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from kglm.kg.ids import NEW, REFLEXIVE
from kglm.text.document import START, Document, Mention

LAND, NINTENDO, BOY, PLAYER = "Q1", "Q2", "Q3", "Q4"
RELEASED = "T::11::+1989-04-21T00:00:00Z"
LENGTH = "V::12.0000::http://www.wikidata.org/entity/Q11573"
FACTS = (
    (LAND, "P123", NINTENDO),
    (LAND, "P400", BOY),
    (LAND, "P577", RELEASED),
    (LAND, "P2043", LENGTH),
    (PLAYER, "P54:P413", NINTENDO),
    ("Q_odd", "P_odd", "Q2"),
)
EVIL = """</span></mark><script>alert('x')</script><img src=x onerror="alert(1)"> " ' & &amp; \u2028 -->"""
NAMES = {
    LAND: ("Super Mario Land",),
    NINTENDO: ("Nintendo",),
    BOY: ("Game Boy",),
    PLAYER: ("A Player",),
    "Q11573": ("metre",),
    "Q_odd": (EVIL,),
    "P_odd": (EVIL,),
    "P123": ("publisher",),
    "P400": ("platform",),
    "P577": ("publication date",),
    "P2043": ("length",),
    "P54": ("member of sports team",),
    "P413": ("position",),
}
VOID = {"meta", "input", "br", "img", "link"}


@dataclass
class Read(HTMLParser):
    """A parsed page: texts of boxes, between boxes and on cards."""

    pieces: list[tuple[str, str]] = field(default_factory=list)
    """(id of the mention, or "" between mentions; text), in the order of the text."""
    cards: dict[str, str] = field(default_factory=dict)
    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    code: dict[str, str] = field(default_factory=dict)
    words: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pairs = {name: value or "" for name, value in attrs}
        assert len(pairs) == len(attrs)
        self.tags.append((tag, pairs))
        if tag not in VOID:
            self.open.append((tag, pairs))
        if pairs.get("class") == "m":
            self.pieces.append((pairs["id"], ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag, "tags are closed in order"

    def handle_data(self, data: str) -> None:
        classes = [pairs.get("class") for _, pairs in self.open]
        self.words += data
        if self.open and self.open[-1][0] in ("style", "script"):
            self.code[self.open[-1][0]] = data
        elif "card" in classes:
            card = next(pairs["id"] for _, pairs in self.open if pairs.get("class") == "card")
            self.cards[card] = self.cards.get(card, "") + data
        elif "linked text" in classes and any(tag == "p" for tag, _ in self.open):
            mention = next((pairs["id"] for _, pairs in self.open if pairs.get("class") == "m"), "")
            if mention:
                assert self.pieces[-1][0] == mention
                self.pieces[-1] = mention, self.pieces[-1][1] + data
            else:
                self.pieces.append(("", data))

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.pieces)

    @property
    def boxes(self) -> dict[str, str]:
        return {id: text for id, text in self.pieces if id}

    def values(self, attribute: str) -> list[str]:
        return [pairs[attribute] for _, pairs in self.tags if attribute in pairs]

    def of(self, id: str) -> dict[str, str]:
        return next(pairs for _, pairs in self.tags if pairs.get("id") == id)


def read(page: str) -> Read:
    page.encode("utf-8")
    reader = Read()
    reader.feed(page)
    reader.close()
    assert not reader.open, "every tag is closed"
    return reader


def new(start: int, end: int, id: str, source: str = "WIKI") -> Mention:
    return Mention(start, end, id, source, (NEW,), (id,))


def text_of(sentences: str) -> list[str]:
    return [START, *sentences.split()]


def mario_land() -> Document:
    tokens = text_of(
        "Super Mario Land is a side - scrolling game , published by Nintendo for the Game Boy "
        "on April 21 , 1989 . @@END@@ It is n't 12 metres long . @@END@@"
    )
    place = tokens.index
    return Document(
        "Super Mario Land",
        tokens,
        [
            new(1, 4, LAND),
            Mention(place("Nintendo"), place("Nintendo") + 1, NINTENDO, "NEL", ("P123",), (LAND,)),
            Mention(place("Game"), place("Boy") + 1, BOY, "WIKI", ("P400", "R:P123"), (LAND, NINTENDO)),
            Mention(place("April"), place("1989") + 1, RELEASED, "KG", ("P577",), (LAND,)),
            Mention(place("It"), place("It") + 1, LAND, "COREF", (REFLEXIVE,), (LAND,)),
            Mention(place("12"), place("metres") + 1, LENGTH, "KG", ("P2043", "P2043"), (LAND, LAND)),
        ],
    )


def check_links(page: Read) -> None:
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    inner = {link[1:] for link in page.values("href") if link.startswith("#")}
    inner |= set(page.values("aria-describedby")) | set(page.values("aria-labelledby"))
    inner |= {id for ids in page.values("data-parents") for id in ids.split()}
    assert inner <= set(ids)
