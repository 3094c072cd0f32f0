"""Short descriptions made from facts: "country in Europe", "American singer", "2001 film directed by Steven Spielberg"."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kglm.kg.literals.dates import YEAR
from world_rules.kinds import HUMAN, kind
from world_rules.literals import parse_dates
from world_rules.source import Graph

_SIGNS = (
    ({"P102", "P39"}, r"politician|lawyer|statesperson|diplomat|president|activist"),
    (
        {"P413", "P54", "P2094", "P641"},
        r"player|athlete|footballer|boxer|cyclist|swimmer|skier|driver|sportsperson|wrestler|coach",
    ),
    (
        {"P264", "P1303", "P412"},
        r"singer|musician|composer|guitarist|pianist|drummer|rapper|songwriter|conductor|bassist",
    ),
    ({"P410", "P241", "P607"}, r"officer|military|soldier|general|admiral"),
)
"""Relations that show which of several occupations a person is known for."""
_GENERAL = frozenset("author artist person writer human performer entertainer statesperson celebrity producer".split())
_DULL = re.compile(
    r"big city|border town|city with millions|second-order|metaclass|landlocked|mediterranean country|"
    r"colonial power|geographic|administrative territorial|port settlement|specialty|film$|^human$|^concept$|^position$|"
    r"human settlement|abbreviat|3d film|land-grant|open-access|academic publisher|space-grant|sea grant"
)
_WORKS = {"films": "film", "television series": "television series", "games": "video game"}
_PLACES = frozenset(
    [
        "cities and towns",
        "regions",
        "buildings and places",
        "rivers, lakes and seas",
        "mountains, islands and landscapes",
    ]
)


class Descriptions:
    """Describes the entities of a graph; `demonyms` has the adjective of each country."""

    def __init__(self, graph: Graph, demonyms: Mapping[str, str]) -> None:
        self.graph, self.demonyms = graph, demonyms
        self._frequency = {id: len(heads.get("P106", ())) for id, heads in graph.to.items()}

    def of(self, id: str) -> str | None:
        """The description of an entity; None if its facts say too little."""
        name = kind(self.graph, id)
        if HUMAN in self.graph.tails(id, "P31"):
            return self._person(id)
        if name in _WORKS or name in ("books and writings", "music", "works of art"):
            return self._work(id, _WORKS.get(name))
        what = self._class(id)
        if name == "countries":
            return self._country(id, what)
        if what is None:
            where = self._where(id)
            return f"place in {where}" if where and name in _PLACES else None
        if name == "people":
            return what
        where = self._where(id)
        return f"{what} in {where}" if where and f" {where}" not in f" {what}" and name != "languages" else what

    def _person(self, id: str) -> str | None:
        job, adjective = self._occupation(id), self._adjective(id)
        if job:
            return f"{adjective} {job}" if adjective else job
        for relation, text in (
            ("P410", None),
            ("P413", None),
            ("P97", None),
            ("P54", "sportsperson"),
            ("P102", "politician"),
        ):
            if tails := self.graph.tails(id, relation):
                label = text or self.graph.label(tails[0])
                return f"{adjective} {label}" if adjective else label
        for relation, text in (("P26", "spouse of"), ("P40", "parent of"), ("P25", "child of"), ("P22", "child of")):
            if tails := self.graph.tails(id, relation):
                return f"{text} {self.graph.label(tails[0])}"
        return f"{adjective} person" if adjective else self._years(id)

    def _years(self, id: str) -> str | None:
        births = [
            date for date in parse_dates(self.graph.tails(id, "P569")) if date.precision >= YEAR and date.year > 0
        ]
        return f"person born in {births[0].year}" if births else None

    def _occupation(self, id: str) -> str | None:
        jobs = {job: self.graph.label(job) for job in self.graph.tails(id, "P106")}
        if not jobs:
            return None
        relations = self.graph.of[id].keys()
        if "socialite" in jobs.values():
            return "socialite"
        fitting = [
            job for signs, pattern in _SIGNS for job in jobs if signs & relations and re.search(pattern, jobs[job])
        ]
        chosen = fitting or [job for job in jobs if jobs[job] not in _GENERAL] or list(jobs)
        return jobs[max(chosen, key=lambda job: (self._frequency.get(job, 0), job))]

    def _adjective(self, id: str) -> str | None:
        countries = [country for country in self.graph.tails(id, "P27") if country in self.demonyms]
        return self.demonyms[countries[0]] if len(countries) == 1 else None

    def _country(self, id: str, what: str | None) -> str:
        continents = [self.graph.label(each) for each in self.graph.tails(id, "P30")][:2]
        where = f" in {' and '.join(continents)}" if continents else ""
        return f"{'country' if id in self.demonyms else what or 'former country'}{where}"

    def _work(self, id: str, what: str | None) -> str | None:
        what = self._class(id) or what
        if what is None:
            return None
        years = [date.year for date in parse_dates(self.graph.tails(id, "P577") + self.graph.tails(id, "P580"))]
        for relation, text in (("P57", "directed by"), ("P50", "by"), ("P175", "by"), ("P170", "by"), ("P178", "by")):
            if tails := self.graph.tails(id, relation):
                what = f"{what} {text} {self.graph.label(tails[0])}"
                break
        else:
            countries = [each for each in self.graph.tails(id, "P495") if each in self.demonyms]
            adjective = self.demonyms[countries[0]] if len(countries) == 1 else ""
            what = what if not adjective or adjective in what else f"{adjective} {what}"
        return f"{min(years)} {what}" if years and min(years) > 0 else what

    def _class(self, id: str) -> str | None:
        labels = [self.graph.label(each) for each in self.graph.tails(id, "P31")]
        telling = [label for label in labels if not _DULL.search(label.casefold())]
        if telling:
            return min(telling, key=lambda label: (len(label) > 40, labels.index(label)))
        return (
            "city"
            if "big city" in labels
            else "film"
            if any("film" in label for label in labels)
            else (labels or [None])[0]
        )

    def _where(self, id: str) -> str | None:
        graph = self.graph
        countries = graph.of.get(id, {}).get("P17", {})
        preferred = [country for country, statement in countries.items() if statement.rank] or list(countries)
        country = preferred[0] if len(preferred) == 1 else None
        regions = graph.tails(id, "P131")
        place = regions[0] if len(regions) == 1 and regions[0] != country else None
        parts = [graph.label(each) for each in (place, country) if each is not None]
        return ", ".join(part.replace("United States of America", "United States") for part in parts) or None
