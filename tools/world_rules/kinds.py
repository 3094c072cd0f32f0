"""Kinds of entities, by their classes; what has no class gets one from its facts."""

from __future__ import annotations

import re
from functools import lru_cache

from world_rules.source import Graph

HUMAN, FILM, SERIES, CITY = "Q5", "Q11424", "Q5398426", "Q515"
OTHER, CONCEPTS, CITIES, COUNTRIES = "other", "concepts", "cities and towns", "countries"
_COUNTRY = re.compile(r"sovereign state|country|historical country|former country|empire|island nation")
_CITY = re.compile(
    r"(?:big |college |port |million |global )?city|city (?:of|in|with|or|municipality).*|capital|.*\bcapital (?:in|of).*"
    r"|town.*|.*municipality.*|commune of France|comune of Italy|village|human settlement|county seat|metropolis"
)
_BY_CLASS: tuple[tuple[str, str], ...] = (
    ("fictional characters", r"character\b|fictional|superhero|mythical|deity|goddess|\bgod\b|legendary"),
    ("people", r"^human$|^person$|twins|sibling duo"),
    ("languages", r"\blanguages?\b|dialect|writing system|alphabet"),
    ("relations between countries", r"bilateral relation|\bborder$|boundary|embassy"),
    ("awards", r"\baward|prize|medal|\border\b|grade of an order|decoration|honou?r"),
    ("events", r"election|war\b|battle|season|ceremony|outbreak|olympic|championship|tournament|festival|event|"
     r"legislative term|revolution|treaty|accident|attack|disaster|conference|eclipse|crusade|campaign|siege|cup\b"),
    ("films", r"\bfilm$|^film\b(?! (?:production|studio|festival|genre|character))|movie"),
    ("television series", r"television (?:series|program|show)|miniseries|sitcom|soap opera|anime|telenovela"),
    ("games", r"video game$|^game$|board game|card game|expansion pack"),
    ("music", r"\balbum|\bsong|\bsingle\b|musical work|composition|opera\b|symphony|anthem"),
    ("books and writings", r"\bbook|\bnovel|literary work|poem|play\b|newspaper|magazine|comic|manga|written work|journal|"
     r"periodical|encyclop|dictionary|short story|legislation|\blaw$|version, edition"),
    ("works of art", r"painting|sculpture|statue|work of art|photograph"),
    ("sports teams", r"sports? (?:team|club)|football (?:club|team)|national .* team|basketball team|baseball team|hockey"
     r" team|association football team"),
    ("schools and universities", r"universit|college|school|faculty|academ(?:y|ic institution)|institute|educational"
     r" institution|campus"),
    ("bands", r"musical (?:group|ensemble|duo)|\bband\b|orchestra|choir|boy band|girl group"),
    ("political bodies and offices", r"political party|legislature|parliament|^government|ministry|cabinet|senate|court\b|"
     r"^position$|office$|lower house|upper house|agency|executive branch|council$|assembly"),
    ("companies", r"enterprise|business|company|corporation|bank\b|publisher|developer|airline|record label|brand|"
     r"manufacturer|broadcaster|television (?:station|channel|network)|radio station|studio|retail|conglomerate"),
    ("organisations", r"organi[sz]ation|association|foundation|society|military|army|navy|church\b|diocese|religious|union|"
     r"federation|league|alliance|party|archives|institution"),
    (COUNTRIES, r"constituent country|^republic$|kingdom$|princely state|colony"),
    ("stars, planets and constellations", r"star\b|galax|planet|constellation|nebula|asteroid|moon\b|astronomical|comet"),
    ("rivers, lakes and seas", r"river|stream|watercourse|lake|\bsea\b|ocean|strait|\bbay\b|reservoir|canal|gulf|creek"),
    ("mountains, islands and landscapes", r"mountain|\bisland|peninsula|desert|valley|volcano|\bhill|plain|cape\b|glacier|"
     r"continent|park\b|forest|archipelago|atoll|geographic region|landform|beach|cave"),
    ("cities and towns", r"\bcit(?:y|ies)\b|town|village|settlement|municipalit|capital|commune|comune|census-designated|"
     r"neighbo|borough|suburb|metropol|urban|hamlet|community"),
    ("regions", r"count(?:y|ies) |county|district|province|region|state\b|prefecture|oblast|canton|parish|territor|"
     r"department|subdivision|division|governorate|voivodeship|emirate|island group|area|autonomous|constituenc"),
    ("buildings and places", r"building|museum|church|castle|palace|stadium|airport|bridge|station|theat|hotel|tower|house|"
     r"cathedral|temple|mosque|monument|street|road|railway|tunnel|dam\b|prison|hospital|cemetery|library|skyscraper|"
     r"arena|line\b|port\b|lighthouse|square|venue|fort|gallery|monastery|abbey|garden|zoo|highway|mine\b|facility"),
    ("animals and plants", r"taxon|species|breed|animal|plant\b|organism|genus|fruit|tree\b"),
    ("chemistry and medicine", r"chemical|disease|drug|medication|medic|protein|gene\b|element|compound|anatom|mineral|"
     r"syndrome|hormone|symptom|vitamin|acid|biological|infection|disorder|cancer"),
    ("software and technology", r"software|programming|operating system|website|file format|protocol|computer|console|"
     r"vehicle|aircraft|ship|weapon|automobile|engine|technology|device|missile|tank|train|class of|locomotive|rocket|"
     r"spacecraft|satellite|model"),
    ("occupations", r"occupation|profession|rank|title|metier|position$"),
    ("currencies and units", r"currency|unit of (?:measure|mass|length|area|volume|time|energy|density|speed)|\bcoin$|banknote"),
)  # fmt: skip
_NAMES = tuple(kind for kind, _ in _BY_CLASS)
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _BY_CLASS)
_STRONG = frozenset("P569 P570 P19 P20 P106 P27 P69 P735 P734 P39 P102 P509 P1196 P119 P1412 P103".split())
"""Relations that only people have."""
_BY_RELATION: tuple[tuple[str, frozenset[str]], ...] = (
    ("people", _STRONG | {"P26", "P22", "P25", "P40", "P3373", "P413", "P410", "P412", "P2094", "P451"}),
    ("films", frozenset("P1040 P2142 P1657 P915 P840 P750 P344".split())),
    ("television series", frozenset("P449 P1113 P2437".split())),
    ("bands", frozenset(["P264"])),
    ("companies", frozenset("P452 P414 P749 P355 P1454 P2139".split())),
    ("schools and universities", frozenset("P2196 P2643".split())),
    ("stars, planets and constellations", frozenset("P59".split())),
    ("rivers, lakes and seas", frozenset("P2053 P2225 P974 P403".split())),
    ("buildings and places", frozenset("P177 P1619 P84 P149".split())),
    ("cities and towns", frozenset("P190 P1376 P2044".split())),
    ("sports teams", frozenset("P115 P286".split())),
    ("organisations", frozenset("P159 P112 P488".split())),
)
"""Kinds of what has no class."""
CONCEPT_TAILS = frozenset("P31 P279 P106 P136 P101 P641 P452 P1303 P412 P413 P509 P1050 P1196 P425 P462 P2094".split())
"""Relations whose values are concepts, not things with a name of their own."""
_SITUATED = frozenset(["P17", "P131", "P159", "P569", "P570", "P577", "P57", "P50", "P740"])
"""Relations that no concept has."""
NAMED_TAILS = frozenset(
    "P19 P20 P26 P40 P25 P22 P3373 P161 P57 P50 P58 P86 P131 P276 P159 P47 P190 P206 P36 P54 P162 P463 P177 P155 P156"
    " P205 P974 P175 P361 P108 P69 P800 P737 P451 P1038 P1346 P6 P35 P112 P127 P710 P119 P551 P706 P725 P488 P172".split()
)
"""Relations whose values have a name of their own."""
OF_CONCEPTS = frozenset(
    "P921 P361 P179 P105 P138 P1056 P527 P2670 P2283 P780 P2176 P1995 P2578 P2579 P366 P1269 P461".split()
)
"""Relations that concepts have."""


def kind(graph: Graph, id: str) -> str:
    """The kind of an entity: by its classes, else by its facts, else by the facts that lead to it."""
    classes = graph.tails(id, "P31")
    if HUMAN in classes:
        return "people"
    labels = [graph.label(each) for each in classes]
    if any(_COUNTRY.fullmatch(label) for label in labels):
        return COUNTRIES
    if any(_CITY.fullmatch(label) for label in labels):
        return CITIES
    if graph.to.get(id, {}).keys() & CONCEPT_TAILS and not graph.of.get(id, {}).keys() & _SITUATED:
        return CONCEPTS
    if classes:
        first = min(_class_kind(graph.label(each).casefold()) for each in classes)
        return _NAMES[first] if first < len(_NAMES) else OTHER
    relations = graph.of.get(id, {}).keys()
    for name, found in _BY_RELATION:
        if not found.isdisjoint(relations):
            return name
    pointing = graph.to.get(id, {})
    for relation, name in (("P106", "occupations"), ("P136", "music"), ("P19", "cities and towns"), ("P161", "people")):
        if relation in pointing and relation != "P136":
            return name
    return OTHER


@lru_cache(1 << 14)
def _class_kind(label: str) -> int:
    """Index of the first kind whose pattern is in the label of a class."""
    return next((k for k, (_, pattern) in enumerate(_PATTERNS) if pattern.search(label)), len(_PATTERNS))


def is_named(graph: Graph, id: str) -> bool:
    """True if the entity has a name of its own, which begins with a capital; False for a concept such as "bridge".

    It decides about labels in lower case. Those with a class are Wikidata's, and concepts. Those without one come from
    texts: they are names if their facts are those of a person, a place, a work or a group.
    """
    if not graph.label(id).islower():
        return True
    heads, tails = graph.to.get(id, {}).keys(), graph.of.get(id, {}).keys()
    if heads & CONCEPT_TAILS or "P279" in tails:
        return False
    if "P31" in tails:
        return kind(graph, id) in ("people", "fictional characters")
    if tails & {"P361", "P179"} and not graph.names[id].aliases:
        return True
    return bool(tails - OF_CONCEPTS or heads & NAMED_TAILS)


def add_classes(graph: Graph) -> int:
    """Say that what has a birth, an occupation, … and no class is a human, and what earned at the box office is a film."""
    added = 0
    for id in [id for id in graph.names if "P31" not in graph.of.get(id, {})]:
        relations = graph.of.get(id, {}).keys()
        if relations & _STRONG and not relations & {"P571", "P577", "P1113", "P449", "P159"}:
            graph.add(id, "P31", HUMAN)
            added += 1
        elif relations & {"P2142", "P1657"} and not relations & {"P449", "P1113", "P2437", "P569"}:
            graph.add(id, "P31", FILM)
            added += 1
    return added
