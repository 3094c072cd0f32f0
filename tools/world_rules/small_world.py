"""Merge the small hand-written world of the quickstart: its names and values win."""

from __future__ import annotations

import json

from kglm import bundled
from world_rules.source import Graph, Names

REPLACING = frozenset(
    "P17 P19 P20 P21 P22 P25 P26 P30 P36 P37 P38 P50 P57 P131 P569 P570 P571 P576 P577 P1082 P2046 P155 P156".split()
)
"""Relations of which the small world has all values; of others it has some."""


def merge_small_world(graph: Graph) -> int:
    """Add its entities and facts; return the number of facts that are new or replace others."""
    for line in bundled.ENTITIES.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        names = graph.names.setdefault(record["id"], Names(record["label"]))
        if names.label != record["label"]:
            names.aliases.insert(0, names.label)
        names.label, names.description = record["label"], record.get("description")
        names.title = names.title or record.get("title")
        known = {name.casefold() for name in (names.label, *record["aliases"])}
        others = [alias for alias in names.aliases if alias.casefold() not in known]
        names.aliases = [*record["aliases"], *others]
    for line in bundled.RELATIONS.read_text(encoding="utf-8").splitlines():
        id, _, label = line.partition("\t")
        graph.relations.setdefault(id, label)
    for line in bundled.RELATION_NAMES.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        names = graph.names.setdefault(record["id"], Names(record["label"]))
        names.aliases = list(dict.fromkeys([*record["aliases"], *names.aliases]))
    lines = bundled.FACTS.read_text(encoding="utf-8").splitlines()
    rows = dict.fromkeys((h, r, t) for h, r, t in (line.split("\t")[:3] for line in lines))
    for head, relation in sorted({(head, relation) for head, relation, _ in rows if relation in REPLACING}):
        for tail in graph.tails(head, relation):
            if (head, relation, tail) not in rows:
                graph.remove(head, relation, tail, "replaced by the small world")
    new = 0
    for head, relation, tail in rows:
        if not graph.has(head, relation, tail):
            graph.add(head, relation, tail)
            new += 1
    return new
