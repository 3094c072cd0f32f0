"""Offices by hand: who led which country, and when (`offices.tsv`)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from world_rules.corrections import Resolver, date
from world_rules.kinds import HUMAN
from world_rules.source import Statement

POSITION_HELD, OCCUPATION, OFFICE, POLITICIAN = "P39", "P106", "Q4164871", "Q82955"
HEADS = ("P35", "P6")
_CROWNED = re.compile(r"Monarch|King|Emperor|Emir|Prince|Pope")


def apply_offices(resolver: Resolver, rows: Iterable[list[str]], countries: Iterable[str], place: str) -> int:
    """Set the heads of countries and the offices of people; return the number of facts.

    The heads that the source has without times are left out: most are former ones. People and offices that the source
    lacks are added, with an id of our own.
    """
    graph, done = resolver.graph, 0
    for country in countries:
        for relation in HEADS:
            for tail in graph.tails(country, relation):
                graph.remove(country, relation, tail, "a head of a country without times")
    for country_label, relation, office_label, person_label, start, end in rows:
        country = resolver.entity(country_label, place)
        office, person = resolver.known_or_new(office_label, OFFICE), resolver.known_or_new(person_label, HUMAN)
        graph.add(country, relation, person, Statement(int(not end), date(start), date(end) if end else None))
        graph.add(person, POSITION_HELD, office, Statement(int(not end), date(start), date(end) if end else None))
        done += 2
        if HUMAN not in graph.tails(person, "P31"):
            graph.add(person, "P31", HUMAN)
        if not graph.tails(person, OCCUPATION) and not _CROWNED.search(office_label):
            graph.add(person, OCCUPATION, POLITICIAN)
    return done
