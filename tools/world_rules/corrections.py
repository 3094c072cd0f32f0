"""Corrections by hand: what is wrong or missing in the source, each with its reason.

A line of `corrections.tsv` has seven columns: action, head, relation, tail, start, end, reason.

    set       the facts of this head and relation are those of the lines with `set`, and no others; the tail "-" is none
    current   as `set`, but the other facts stay; this one is the present value and gets the rank `preferred`
    add       add a fact, with its times
    remove    remove a fact; the tail "-" stands for all
    label, alias, no-alias, drop    names of an entity (the tail is the name), or the entity itself
    new       an entity that the source lacks: its label; the id is a Wikidata number, or begins with Q_

Entities are given by Q-id or by label: of several with one label, the one with the most facts is meant. A tail that
begins with + is added, with an id of our own, if the source lacks it. Relations are
given by label. Dates are written as in 1990-05-03, 1990-05 or 1990; quantities as "123", or "123 Q11573" with a unit.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from world_rules.source import Graph, Names, Statement

_DATE = re.compile(r"(-?\d{1,4})(?:-(\d\d))?(?:-(\d\d))?")
_DATED = "P569 P570 P571 P576 P577 P580 P582 P585 P1619 P2031 P2032 P575".split()
_AT_ONE_TIME = frozenset(["P166", "P1411", "P1346"])
"""Relations whose facts have one date, which is written in the column of the start."""
COUNTRY_COLUMNS = ("P36", "P38", "P30", "P37")
COUNTRY_REASON = "read over: what people ask of a country"


class Correction(NamedTuple):
    """One line."""

    action: str
    head: str
    relation: str = ""
    tail: str = ""
    start: str = ""
    end: str = ""
    reason: str = ""
    place: str = ""


def read_corrections(path: Path) -> list[Correction]:
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            cells = [cell.strip() for cell in line.split("\t")]
            cells += [""] * (7 - len(cells))
            if len(cells) != 7 or not cells[6]:
                raise ValueError(f"{path.name}, line {number}: 7 columns are needed, the last with a reason: {line!r}")
            found.append(Correction(*cells, place=f"{path.name}, line {number}"))
    return found


class Resolver:
    """Finds entities and relations by label."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._by_label: dict[str, list[str]] = defaultdict(list)
        self._relations = {label: id for id, label in graph.relations.items()}
        for id, entity in graph.names.items():
            if not id.startswith("P"):
                self._by_label[entity.label].append(id)

    def entity(self, term: str, place: str) -> str:
        """The id of an entity; raises ValueError with the place if there is none."""
        if re.fullmatch(r"Q\d+|Q_\w+", term):
            if term not in self.graph.names:
                raise ValueError(f"{place}: {term} is not in the graph")
            return term
        found = self._by_label.get(term) or self._by_alias.get(term) or self._by_folded.get(term.casefold()) or []
        found = [id for id in found if id in self.graph.names]
        if not found:
            raise ValueError(f"{place}: no entity has the label {term!r}")
        return max(found, key=lambda id: (self.graph.degree(id), id))

    @cached_property
    def _by_alias(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for id, entity in self.graph.names.items():
            for alias in entity.aliases:
                found[alias].append(id)
        return found

    @cached_property
    def _by_folded(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for label, ids in self._by_label.items():
            found[label.casefold()] += ids
        return found

    def new(self, id: str, label: str) -> None:
        self.graph.names[id] = Names(label)
        self.add_label(id, label)

    def add_label(self, id: str, label: str) -> None:
        self._by_label[label].append(id)

    def relation(self, term: str, place: str) -> str:
        if term in self.graph.relations:
            return term
        if term not in self._relations:
            raise ValueError(f"{place}: no relation has the label {term!r}")
        return self._relations[term]

    def tail(self, term: str, relation: str, place: str) -> str:
        """An entity, or a date or quantity where the relation has such values."""
        if relation in _DATED:
            return date(term)
        if match := re.fullmatch(r"([\d.]+)(?: (Q\d+))?", term):
            unit = f"http://www.wikidata.org/entity/{match[2]}" if match[2] else "1"
            return f"V::{float(match[1]):.4f}::{unit}"
        return self.entity(term, place) if not term.startswith("+") else self.known_or_new(term[1:])

    def known_or_new(self, label: str, kind: str | None = None) -> str:
        """The entity with this label, added with an id of our own and this class if there is none."""
        try:
            return self.entity(label, "")
        except ValueError:
            ascii_label = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
            id = "Q_" + re.sub(r"\W+", "_", ascii_label).strip("_")
            self.new(id, label)
            if kind:
                self.graph.add(id, "P31", kind)
            return id


def date(text: str) -> str:
    """The id of a date such as 1990-05-03, 1990-05, 1990 or -44."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a date")
    year, month, day = match.groups()
    sign, digits = ("-", year[1:]) if year.startswith("-") else ("+", year)
    precision = 11 if day else 10 if month else 9
    return f"T::{precision}::{sign}{int(digits):04d}-{month or '00'}-{day or '00'}T00:00:00Z"


def apply_names(resolver: Resolver, corrections: Iterable[Correction]) -> Counter[str]:
    """Apply the corrections of names and entities; return their number by action."""
    return _each(resolver, corrections, ("new", "label", "alias", "no-alias", "drop"), _apply_name)


def _apply_name(resolver: Resolver, each: Correction) -> None:
    graph = resolver.graph
    if each.action == "new":
        resolver.new(each.head, each.tail)
        return
    id = resolver.entity(each.head, each.place)
    if each.action == "drop":
        graph.drop(id, "dropped by hand")
    elif each.action == "label":
        graph.names[id].label = each.tail
        resolver.add_label(id, each.tail)
    elif each.action == "alias":
        graph.names[id].aliases.insert(0, each.tail)
    else:
        graph.names[id].aliases.remove(each.tail)


def _each(
    resolver: Resolver,
    corrections: Iterable[Correction],
    actions: Sequence[str],
    apply: Callable[[Resolver, Correction], None],
) -> Counter[str]:
    """Apply the corrections of these actions; raise one ValueError that lists all that cannot be applied."""
    done, problems = Counter[str](), []
    for each in corrections:
        if each.action in actions:
            try:
                apply(resolver, each)
                done[each.action] += 1
            except ValueError as error:
                problems.append(str(error))
    if problems:
        raise ValueError("\n".join(problems))
    return done


def apply_facts(resolver: Resolver, corrections: Iterable[Correction]) -> Counter[str]:
    """Apply the corrections of facts; return their number by action."""
    begun: set[tuple[str, str]] = set()
    return _each(resolver, corrections, ("set", "current", "add", "remove"), partial(_apply_fact, begun=begun))


def _apply_fact(resolver: Resolver, each: Correction, begun: set[tuple[str, str]]) -> None:
    graph, place = resolver.graph, each.place
    head, relation = resolver.entity(each.head, place), resolver.relation(each.relation, place)
    tail = None if each.tail == "-" else resolver.tail(each.tail, relation, place)
    if each.action == "remove":
        if tail is None:
            _remove_all(graph, head, relation)
        else:
            graph.remove(head, relation, tail, "removed by hand")
        return
    if each.action == "set" and (head, relation) not in begun:
        begun.add((head, relation))
        _remove_all(graph, head, relation)
    if tail is not None:
        start, end = (date(text) if text else None for text in (each.start, each.end))
        rank = int(each.action == "current")
        moment = relation in _AT_ONE_TIME
        graph.add(head, relation, tail, Statement(rank, None, None, start) if moment else Statement(rank, start, end))


def _remove_all(graph: Graph, head: str, relation: str) -> None:
    for tail in graph.tails(head, relation):
        graph.remove(head, relation, tail, "replaced by hand")


def read_rows(path: Path) -> list[list[str]]:
    """Cells of a table with tabs; lines that start with # are comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line.strip() and not line.startswith("#")]


def apply_countries(resolver: Resolver, rows: Iterable[list[str]], place: str) -> tuple[int, dict[str, str]]:
    """Set capital, currency, continent, languages and population; return their number and the demonyms by country."""
    graph, done, demonyms = resolver.graph, 0, dict[str, str]()
    for label, demonym, *values, population, year in rows:
        country = resolver.entity(label, place)
        demonyms[country] = demonym
        for relation, cell in zip(COUNTRY_COLUMNS, values, strict=True):
            if cell:
                done += 1
                _set_current(resolver, country, relation, [term.strip() for term in cell.split(";")], place)
        _set_population(graph, country, population, year)
        done += 1
    return done, demonyms


def apply_populations(resolver: Resolver, rows: Iterable[list[str]], place: str) -> int:
    """Set the populations of places, with their year; return their number."""
    done = 0
    for label, population, year in rows:
        _set_population(resolver.graph, resolver.entity(label, place), population, year)
        done += 1
    return done


def _set_population(graph: Graph, id: str, population: str, year: str) -> None:
    _remove_all(graph, id, "P1082")
    graph.add(id, "P1082", f"V::{float(population):.4f}::1", Statement(1, None, None, date(year)))


def _set_current(resolver: Resolver, country: str, relation: str, terms: list[str], place: str) -> None:
    """Make these the values; of several capitals, the first is preferred."""
    graph = resolver.graph
    before = graph.tails(country, relation)
    tails = []
    for term in terms:
        same = [tail for tail in before if graph.label(tail) == term]
        if relation == "P36":
            same += [id for id in graph.heads(country, "P1376") if graph.label(id) == term]
        tails.append(same[0] if same else resolver.entity(term, f"{place}, {graph.label(country)}"))
    _remove_all(graph, country, relation)
    for tail in tails:
        graph.add(country, relation, tail, Statement(int(relation == "P36" and len(tails) > 1 and tail == tails[0])))
    if relation == "P36":
        for city in graph.heads(country, "P1376"):
            if city not in tails:
                graph.remove(city, "P1376", country, "a capital of former times, without dates")
