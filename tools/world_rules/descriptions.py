"""Short descriptions made from facts: "country in Europe", "American singer", "1995 film directed by Michael Mann"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from kglm.kg.literals.dates import YEAR
from world_rules.kinds import HUMAN, kind
from world_rules.literals import parse_dates
from world_rules.source import Graph

_WORK = {"P161": "actor", "P725": "actor", "P57": "director", "P86": "composer", "P50": "writer", "P58": "writer"}
"""What the relations by which works name people say about them."""
_AWARDS = (
    ("actor", re.compile(r"Actor|Actress|Cast|Acting|Stage|Theat")),
    ("director", re.compile(r"Director|Directing|Palme")),
    ("musician", re.compile(r"Grammy|Music|Song|Album|MTV|Vocal|Record|Rock|Singer|Brit Award")),
    ("writer", re.compile(r"Literature|Novel|Fiction|Book|Hugo|Nebula|Locus|Pulitzer|Fantasy|Poet")),
    ("scientist", re.compile(r"Physics|Chemistry|Medicine|Science|Mathemat|Medal of the|Royal Society|Turing|Fields")),
)
"""What awards and nominations say about people, by the words in their names."""
_JOBS = {
    "actor": r"actor|actress|comedian",
    "director": r"film director|theat\w+ director|director",
    "musician": r"singer|musician|rapper|guitarist|pianist|drummer|songwriter|conductor|bassist|violinist|composer",
    "composer": r"composer",
    "writer": r"novelist|poet|playwright|\bwriter\b|science fiction writer|author|journalist|essayist|screenwriter",
    "scientist": r"mathematician|physicist|chemist|astronomer|biologist|economist|naturalist|scientist|inventor",
    "thinker": r"philosopher|theologian|historian|psycholog|sociologist|linguist",
    "artist": r"painter|sculptor|architect|photographer|designer|cartoonist|artist",
    "athlete": r"player|athlete|footballer|boxer|cyclist|swimmer|skier|driver|wrestler|coach|sprinter",
    "politician": r"politician|statesperson|diplomat|revolutionary|activist|lawyer",
    "soldier": r"officer|soldier|general|admiral|military",
}
"""Fields and the occupations in them, the telling ones first."""
_FIELDS = {
    "P264": ("musician", 4.0), "P39": ("politician", 4.0), "P102": ("politician", 2.0), "P413": ("athlete", 6.0),
    "P54": ("athlete", 6.0), "P2094": ("athlete", 6.0), "P410": ("soldier", 1.0), "P135": ("artist", 3.0),
    "P184": ("scientist", 3.0), "P2021": ("scientist", 3.0),
}  # fmt: skip
"""Relations of people, their fields, and how much they weigh, where a work or an award weighs 1."""
_GENERAL = frozenset("author artist person writer human performer entertainer statesperson celebrity producer".split())
_DULL = re.compile(
    r"big city|border town|city with millions|second-order|metaclass|landlocked|mediterranean country|"
    r"colonial power|geographic|administrative territorial|port settlement|specialty|film$|^human$|^concept$|"
    r"^position$|human settlement|abbreviat|3d film|land-grant|open-access|academic publisher|space-grant|sea grant"
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


def _rank(pattern: str, job: str) -> int:
    """Place of the part of a pattern that fits an occupation."""
    return next(k for k, part in enumerate(pattern.split("|")) if re.search(part, job))


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
        where = None if name in ("languages", "currencies and units", "concepts") else self._where(id)
        return f"{what} in {where}" if where and f" {where}" not in f" {what}" else what

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
        if "socialite" in jobs.values():
            return "socialite"
        scores = self._fields(id)
        best = max(_JOBS, key=lambda field: (scores[field], -list(_JOBS).index(field)))
        order = [best] if scores[best] else ["thinker", "scientist", "artist", "writer", "musician", "actor"]
        for field in order:
            if fitting := [job for job in jobs if re.search(_JOBS[field], jobs[job])]:
                return jobs[
                    min(fitting, key=lambda job: (_rank(_JOBS[field], jobs[job]), -self._frequency.get(job, 0)))
                ]
        chosen = [job for job in jobs if jobs[job] not in _GENERAL] or list(jobs)
        return jobs[max(chosen, key=lambda job: (self._frequency.get(job, 0), job))]

    def _fields(self, id: str) -> Counter[str]:
        """How much the works, awards and offices of a person speak for each field."""
        graph, scores = self.graph, Counter[str]()
        for relation, field in _WORK.items():
            scores[field] += len(graph.to.get(id, {}).get(relation, ()))
        for award in {*graph.tails(id, "P166"), *graph.tails(id, "P1411")}:
            for field, pattern in _AWARDS:
                if pattern.search(graph.label(award)):
                    scores[field] += 1
                    break
        for relation, (field, weight) in _FIELDS.items():
            if relation in graph.of[id]:
                scores[field] += weight
        jobs = " ".join(map(graph.label, graph.tails(id, "P106")))
        return Counter({field: score for field, score in scores.items() if re.search(_JOBS[field], jobs)})

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
        regions = [region for region in graph.tails(id, "P131") if "P576" not in graph.of.get(region, {})]
        place = regions[0] if len(regions) == 1 and regions[0] != country else None
        parts = [graph.label(each) for each in (place, country) if each is not None]
        return ", ".join(part.replace("United States of America", "United States") for part in parts) or None
