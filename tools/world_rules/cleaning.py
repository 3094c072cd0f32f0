"""Clean the entities and facts of a graph by general rules."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher

from kglm.kg.literals.dates import YEAR
from world_rules import names as naming
from world_rules.kinds import HUMAN, is_named
from world_rules.literals import choose_dates, choose_quantities, parse_dates
from world_rules.source import Graph

META_RELATIONS = frozenset(
    "P5008 P972 P1343 P1889 P1963 P5869 P460 P1151 P910 P6104 P2959 P3729 P3730 P6379 P8687".split()
)
"""Relations about the encyclopedia and its sources, not about the world."""
_META_CLASS = re.compile(
    r"Wikimedia .*(?:category|page|template|article|portal|module|outline)|WikiProject|Wikidata .*"
)
_META_ENTITY = re.compile(r"Wikimedia .*(?:category|page|template|article|portal|module|outline)|WikiProject")
GIVEN_NAMES = 12
"""A first name of this many people identifies nobody."""
OLDEST = 125
SYMMETRIC = ("P26", "P3373", "P47", "P190", "P530", "P451", "P1327", "P461")
INVERSE = {
    "P36": "P1376", "P1376": "P36", "P155": "P156", "P156": "P155", "P749": "P355", "P355": "P749", "P1365": "P1366",
    "P1366": "P1365", "P127": "P1830", "P1830": "P127", "P674": "P1441", "P1441": "P674", "P1066": "P802",
    "P802": "P1066",
}  # fmt: skip
ONE_VALUED = frozenset(["P36", "P155", "P156"])
"""Relations to which the reverse adds no second value."""
MALE, FEMALE = "Q6581097", "Q6581072"


def clean_names(graph: Graph) -> None:
    """Clean all labels and aliases; drop the entities without a name."""
    first_names: Counter[str] = Counter()
    for id, entity in graph.names.items():
        entity.label = naming.clean(entity.label)
        entity.aliases = [name for name in map(naming.clean, entity.aliases) if name]
        if HUMAN in graph.tails(id, "P31"):
            first_names[entity.label.split(" ")[0].casefold()] += 1
    for id in list(graph.names):
        entity = graph.names[id]
        if reason := _no_entity(graph, id, first_names):
            graph.drop(id, reason)
            continue
        named = is_named(graph, id)
        entity.label = _label(graph, id, named)
        _clean_aliases(graph, id, named)


def _no_entity(graph: Graph, id: str, first_names: Counter[str]) -> str | None:
    """Why an entity is left out; None if it stays."""
    label = graph.names[id].label
    if id.startswith("P"):
        return None if id in graph.relations else "a property that no fact uses"
    classes = [graph.label(each) for each in graph.tails(id, "P31")]
    if naming.is_meta(label) or (classes and all(_META_ENTITY.fullmatch(each) for each in classes)):
        return "a page about the encyclopedia"
    if not naming.is_name(label) or (not classes and naming.is_generic(label)):
        return "a label that names nothing"
    if label.isdecimal() and not graph.tails(id, "P31") and not graph.names[id].title:
        return "a label that names nothing"
    if label.islower():
        if not graph.degree(id):
            return "no facts, and a name of no certain case"
        if " " not in label and first_names[label] >= GIVEN_NAMES and HUMAN in graph.tails(id, "P31"):
            return "a person with a first name only"
    return None


def _label(graph: Graph, id: str, named: bool) -> str:
    """The label with capitals, if it is a name: those of the title or of an alias, else by rule."""
    entity = graph.names[id]
    label = entity.label
    title = entity.title.replace("_", " ").partition(" (")[0] if entity.title else ""
    for other in [title, *entity.aliases]:
        if (
            named
            and other.casefold() == label.casefold()
            and other != label
            and label.islower()
            and not other[1:].islower()
        ):
            return other
    if named and _is_misspelt(label, title):
        graph.left_out["names: a label that misspells the title of the article"] += 1
        return title
    if label.islower() and label.endswith(")") and " (" in label:
        label = label.partition(" (")[0]
    if named and "/" in label and label.islower() and not any(map(str.isdigit, label)):
        label = label.partition("/")[0].strip()
    if named and label.islower():
        graph.left_out["names: capitals given by rule"] += 1
        return naming.with_capitals(label)
    return label


def _is_misspelt(label: str, title: str) -> bool:
    """True if a label differs from the title of the article by a few letters: "Merryl Streep"."""
    if not title or not label.isascii() or label[0].islower() or label.startswith(title) or title.startswith(label):
        return False
    letters = SequenceMatcher(None, label.casefold(), title.casefold())
    return letters.real_quick_ratio() > 0.9 and letters.quick_ratio() > 0.9 and 0.9 < letters.ratio() < 1


def _clean_aliases(graph: Graph, id: str, named: bool) -> None:
    entity = graph.names[id]
    kept = []
    for alias in entity.aliases:
        reason = naming.junk_alias(alias, entity.label, named=named)
        if reason is None:
            kept.append(naming.with_capitals(alias) if named and alias.islower() and " " in alias else alias)
        else:
            graph.left_out[f"aliases: {reason}"] += 1
    title = entity.title.replace("_", " ").partition(" (")[0] if entity.title else ""
    if title and title != entity.label and not entity.label.islower():
        kept.append(title)
    entity.aliases = [
        name for name in naming.distinct([entity.label, *kept]) if name.casefold() != entity.label.casefold()
    ]


def clean_facts(graph: Graph) -> None:
    """Drop facts that say nothing, repeat another, or contradict each other."""
    _drop_meta_facts(graph)
    for head in list(graph.of):
        for relation in list(graph.of[head]):
            _clean_values(graph, head, relation)
        _drop_impossible_life(graph, head)
    _drop_old_borders(graph)
    _specific_places(graph)


def _drop_meta_facts(graph: Graph) -> None:
    for head, relation, tail, _ in list(graph.facts()):
        if relation in META_RELATIONS or (relation in ("P31", "P279") and _META_CLASS.fullmatch(graph.label(tail))):
            graph.remove(head, relation, tail, "about the encyclopedia, or a catalogue")
        elif ":" in relation:
            graph.remove(head, relation, tail, "a qualifier without its statement")
        elif relation not in graph.relations:
            graph.remove(head, relation, tail, "of a relation without an English name")
        elif head.startswith("P") or tail.startswith("P"):
            graph.remove(head, relation, tail, "about a property")
        elif head not in graph.names or (tail[1:3] != "::" and tail not in graph.names):
            graph.remove(head, relation, tail, "of an entity without an English name")
        elif head == tail:
            graph.remove(head, relation, tail, "of a thing with itself")


def _clean_values(graph: Graph, head: str, relation: str) -> None:
    """Choose among the dates, and among the quantities, of a head and relation."""
    tails = graph.tails(head, relation)
    for prefix, choose in (("T::", choose_dates), ("V::", choose_quantities)):
        values = [tail for tail in tails if tail.startswith(prefix)]
        if not values:
            continue
        kept, reason = choose(relation, values)
        for value in values:
            if value not in kept:
                graph.remove(head, relation, value, reason if len(values) > len(kept) else None)
        for value in kept:
            if value not in values:
                graph.add(head, relation, value)


def _drop_impossible_life(graph: Graph, head: str) -> None:
    """Drop birth and death if the death is before the birth, or if they are more than a life apart."""
    if HUMAN not in graph.tails(head, "P31"):
        return
    births, deaths = (parse_dates(graph.tails(head, relation)) for relation in ("P569", "P570"))
    if len(births) != 1 or len(deaths) != 1 or min(births[0].precision, deaths[0].precision) < YEAR:
        return
    if not 0 <= deaths[0].year - births[0].year <= OLDEST:
        for relation in ("P569", "P570"):
            for tail in graph.tails(head, relation):
                graph.remove(head, relation, tail, "a life that cannot be")


def _is_historical(graph: Graph, id: str) -> bool:
    """True for a state that is no more."""
    return "P576" in graph.of.get(id, {}) or any(
        graph.label(each) in ("historical country", "former country", "colony") for each in graph.tails(id, "P31")
    )


def _drop_old_borders(graph: Graph) -> None:
    """Drop borders of places of today with states that are no more."""
    for head in list(graph.of):
        tails = graph.tails(head, "P47")
        if tails and not _is_historical(graph, head):
            for tail in tails:
                if _is_historical(graph, tail):
                    graph.remove(head, "P47", tail, "a border with a state that is no more")


def _specific_places(graph: Graph) -> None:
    """Of two birthplaces of which one is in the other, keep the smaller."""
    for head in list(graph.of):
        for relation in ("P19", "P20", "P119"):
            tails = graph.tails(head, relation)
            for tail in tails if len(tails) > 1 else ():
                if any(tail in graph.tails(other, place) for other in tails for place in ("P131", "P17")):
                    graph.remove(head, relation, tail, "a place that contains the one that is kept")


def mark_current(graph: Graph) -> int:
    """Mark the country of today among the countries of a place, if there is just one."""
    marked = 0
    for head in list(graph.of):
        tails = graph.tails(head, "P17")
        today = [tail for tail in tails if not _is_historical(graph, tail)]
        if len(tails) > 1 and len(today) == 1:
            graph.of[head]["P17"][today[0]] = graph.of[head]["P17"][today[0]]._replace(rank=1)
            marked += 1
    return marked


def add_reverse(graph: Graph) -> Counter[str]:
    """Add facts that are known in the other direction only, with their times; return their number by relation."""
    added: Counter[str] = Counter()
    for head, relation, tail, statement in list(graph.facts()):
        other = None if tail[1:3] == "::" else _reverse(graph, head, relation, tail)
        if other is None or other not in graph.relations or graph.has(tail, other, head):
            continue
        if other in ONE_VALUED and (graph.tails(tail, other) or len(graph.heads(tail, relation)) > 1):
            continue  # of several capitals in turn, none is known to be the present one
        graph.add(tail, other, head, statement)
        added[other] += 1
    return added


def _reverse(graph: Graph, head: str, relation: str, tail: str) -> str | None:
    """The relation in which the tail of a fact is to its head."""
    if relation in SYMMETRIC:
        return relation
    if relation in ("P22", "P25"):
        return "P40"
    if relation == "P40" and (sexes := graph.tails(head, "P21")) in ([MALE], [FEMALE]):
        parent = "P22" if sexes == [MALE] else "P25"
        return None if graph.tails(tail, parent) else parent
    return INVERSE.get(relation)
