"""Build the bundled world from the source data, the rules and the corrections.

    python tools/build_world.py ../shared/data/kg                         writes src/kglm/bundled/wikidata
    python tools/build_world.py ../shared/data/kg --to /tmp/world --report /tmp/report.json

The source folder has `entities.jsonl.gz`, `facts.tsv.gz` and `relations.tsv`. The steps are those of `build`; the rules
are in `tools/world_rules`, the corrections by hand in its `.tsv` files. The same source, rules and corrections give the
same bytes. It takes about a minute.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from kglm import bundled
from kglm.files.artefact import new_artefact
from kglm.files.atomic import remove_directory
from kglm.kg.ids import normalise_title
from kglm.worlds.columns import PackedWorld, pack
from kglm.worlds.records import About, Kind, World, WorldEntity, WorldFact
from kglm.worlds.world import ABOUT, PACKED
from world_rules import cleaning
from world_rules.corrections import (
    Resolver,
    apply_countries,
    apply_facts,
    apply_names,
    apply_populations,
    read_corrections,
    read_rows,
)
from world_rules.descriptions import Descriptions
from world_rules.kinds import add_classes, kind
from world_rules.offices import apply_offices
from world_rules.small_world import merge_small_world
from world_rules.source import Graph, read_source

RULES = Path(__file__).parent / "world_rules"
EXAMPLES = 5
SOURCES = (
    "Wikidata (CC0): subsets published under the MIT and BSD licences, gathered between 2019 and 2021",
    "the small world of kglm, written by its authors",
    "corrections by hand, in tools/world_rules",
)
LICENCE = "CC0 1.0"
DATE = "2026-11-19"
KNOWLEDGE = "most facts hold as of 2021; those that were read over and corrected, as of 2025"


class Report(NamedTuple):
    """What the build did."""

    world: World
    about: About
    left_out: dict[str, int]


def build(source: Path) -> Report:
    """The world of the source folder."""
    graph = read_source(source)
    corrections = Counter[str]({"classes inferred from facts": add_classes(graph)})
    cleaning.clean_names(graph)
    cleaning.clean_facts(graph)
    corrections["facts of the small world"] = merge_small_world(graph)
    resolver = Resolver(graph)
    lines = [each for path in sorted(RULES.glob("corrections*.tsv")) for each in read_corrections(path)]
    corrections.update({f"by hand: {name}": count for name, count in apply_names(resolver, lines).items()})
    countries = RULES / "countries.tsv"
    corrections["by hand: values of countries"], demonyms = apply_countries(
        resolver, read_rows(countries), countries.name
    )
    offices = RULES / "offices.tsv"
    corrections["by hand: heads of countries"] = apply_offices(resolver, read_rows(offices), demonyms, offices.name)
    populations = RULES / "populations.tsv"
    corrections["by hand: populations"] = apply_populations(resolver, read_rows(populations), populations.name)
    corrections.update({f"by hand: {name}": count for name, count in apply_facts(resolver, lines).items()})
    corrections["facts known in the other direction only"] = cleaning.add_reverse(graph).total()
    corrections["the country of today marked"] = cleaning.mark_current(graph)
    describe = Descriptions(graph, demonyms)
    for id, names in graph.names.items():
        if names.description is None and not id.startswith("P"):
            names.description = describe.of(id)
    world = _world(graph)
    return Report(world, _about(graph, world, corrections), dict(sorted(graph.left_out.items())))


def _world(graph: Graph) -> World:
    facts = [WorldFact(h, r, t, *statement) for h, r, t, statement in graph.facts()]
    used = {fact.relation for fact in facts}
    used_ids = {fact.head for fact in facts} | {fact.tail for fact in facts}
    entities = [
        WorldEntity(
            id, each.label, tuple(each.aliases), normalise_title(each.title) if each.title else None, each.description
        )
        for id, each in sorted(graph.names.items())
        if id in used or (not id.startswith("P") and (id in used_ids or each.title))
    ]
    return World(
        entities, sorted((id, label) for id, label in graph.relations.items() if id in used), sorted(facts, key=str)
    )


def _about(graph: Graph, world: World, corrections: Counter[str]) -> About:
    kinds: dict[str, list[str]] = {}
    for entity in world.entities:
        if not entity.id.startswith("P"):
            kinds.setdefault(kind(graph, entity.id), []).append(entity.id)
    facts = Counter(fact.head for fact in world.facts)
    rows = [
        Kind(name, len(ids), sum(facts[id] for id in ids), tuple(graph.label(id) for id in _best_known(graph, ids)))
        for name, ids in sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    return About(
        name="the bundled world",
        date=DATE,
        knowledge=KNOWLEDGE,
        entities=sum(row.entities for row in rows),
        facts=len(world.facts),
        aliases=sum(len(entity.aliases) for entity in world.entities),
        relations=len({fact.relation for fact in world.facts}),
        literals=len({fact.tail for fact in world.facts if fact.tail[1:3] == "::"}),
        kinds=tuple(rows),
        sources=SOURCES,
        licence=LICENCE,
        corrections=dict(sorted(corrections.items())),
        left_out=dict(sorted(graph.left_out.items())),
    )


def _best_known(graph: Graph, ids: list[str]) -> list[str]:
    """The entities with most facts."""
    return sorted(ids, key=lambda id: (-graph.degree(id), id))[:EXAMPLES]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder with the source data")
    parser.add_argument("--to", type=Path, default=bundled.WIKIDATA, help="folder to write")
    parser.add_argument("--report", type=Path, help="write the counts to this file")
    options = parser.parse_args(arguments)
    report = build(options.source)
    content = pack(report.world)
    if set(PackedWorld(content).facts()) != set(report.world.facts):
        raise AssertionError("the packed file does not give the facts back")
    if options.to.exists():
        remove_directory(options.to)
    with new_artefact(options.to) as writer:
        writer.bytes(PACKED, content)
        writer.json(ABOUT, report.about)
    about = report.about
    print(f"{about.entities:,} entities, {about.facts:,} facts, {about.aliases:,} aliases; {len(content):,} bytes")
    if options.report:
        options.report.write_text(json.dumps({"corrections": about.corrections, "left_out": about.left_out}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
