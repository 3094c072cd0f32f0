"""python tools/invented_world.py --wordings tools/wordings/own.jsonl --relations relations.tsv --to invented

Make a graph of invented entities with relations as people have them in tables of their own, and the ways to say them:

    tables/*.csv      one table for each kind of entity; numbers with units, dates, codes, e-mail addresses among them
    invented.tsv      the graph, as `kglm kg export` writes it
    wordings.json     {kind of entity: {relation id: {"statements": […], "questions": […]}}}
    entities.json     {entity id: kind}
    names.jsonl       aliases of the relations

A relation with the label of one of Wikidata (`--relations`) gets its id. Relations whose label or alias is in a file of
labels (`--without`, one a line) are left out: those of the graphs that are kept for measurements.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kglm
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import mint
from kglm.kg.literals.units import currency_of, unit_of

ENTITIES = 14
"""Entities of each kind."""
KNOWN = 0.85
"""Share of the relations of its kind that an entity has."""
POOL = 10
"""Different values of a relation whose values are invented entities."""

_GIVEN, _BEGIN, _MIDDLE, _END, _PLACE, _FIRM, _ADJECTIVE, _NOUN = (
    tuple(line.split())
    for line in (
        "Ada Amir Anouk Asha Bela Bruno Carla Cem Dario Dina Edda Elif Emil Esra Farid Femi Finn Greta Hana Ida "
        "Igor Ines Iva Jonas Jun Kofi Kira Lars Leila Luca Malik Mara Marta Milo Mina Nils Noor Nora Oleg Olga Omar "
        "Oskar Petra Priya Rana Rosa Ruth Sami Sven Tara Teo Tilda Tomas Uma Vera Yusuf Zoe",
        "B Br D Dr F Fl G Gr H J K Kl L M N P Pr R S Sch St T Tr V W Z Al An Ar El Er In Or Ul",
        "a e i o u au ei ie oo ar er in on el ay",
        "ber den dt ff go k ka ld len lin mann mer n nd ner nk r ra rg ri s sen sk ss sta t tti va x z",
        "ville ford ham dorf bury field mouth port haven wick stad burg by ton vale",
        "Works Ltd Group Partners Systems Guild Union House Labs Trading Society",
        "red dark small golden silent late northern hidden green dry broken wild old smoked sweet heavy soft long",
        "river lantern garden bridge winter harbour mirror orchard signal letter valve lentil pepper bolt hinge clay "
        "oat bean kettle ribbon button plum walnut gasket herring turnip copper anchor basil candle",
    )
)


class Names:
    """Names that no text has, each given once."""

    KINDS = frozenset(("person", "place", "organisation", "product", "animal", "work", "event", "common", "code"))

    def __init__(self, rng: random.Random) -> None:
        self._rng, self._taken = rng, set[str]()

    def new(self, kind: str, noun: str) -> str:
        """A name of a kind; `noun` says what it is: "server" makes "server db-07"."""
        while True:
            name = self._draw(kind, noun)
            if name.casefold() not in self._taken:
                self._taken.add(name.casefold())
                return name

    def _word(self) -> str:
        draw = self._rng.choice
        return draw(_BEGIN) + draw(_MIDDLE) + draw(("", draw("bdfglmnprstvz") + draw(_MIDDLE))) + draw(_END)

    def _draw(self, kind: str, noun: str) -> str:
        draw, word = self._rng.choice, self._word()
        number = self._rng.randrange(10, 999)
        match kind:
            case "person":
                return f"{draw(_GIVEN)} {word}"
            case "place":
                return word + draw(("", draw(_PLACE)))
            case "organisation":
                return f"{word} {draw(_FIRM)}"
            case "product":
                return draw((f"{word} {number}", f"{word} {noun}"))
            case "work":
                title = f"{draw(_ADJECTIVE)} {draw(_NOUN)}".title()
                return draw((f"The {title}", title, f"{title}s of {word}", f"The {draw(_NOUN).title()} of {word}"))
            case "event":
                return draw((f"{word} {noun.title()}", f"{word} Days {1500 + number}"))
            case "common":
                adjective, thing = draw(_ADJECTIVE), draw(_NOUN)
                return draw((f"{adjective} {thing}s", f"{adjective} {thing}", f"{draw(_NOUN)} {thing}"))
            case "code":
                letters = "".join(self._rng.choices("abcdefghkmnprstvwx", k=draw((1, 2, 2, 3))))
                return draw(
                    (f"{noun} {letters}-{number:02}", f"{letters.upper()}-{number}", f"{noun} {number}{letters[0]}")
                )
        return word


def values(relation: dict[str, Any], count: int, names: Names, rng: random.Random) -> list[str]:
    """Cells of a column, in the form that people write."""
    kind, about = relation["tail_kind"], relation["tail"]
    if kind in Names.KINDS:
        pool = [names.new(kind, about.get("noun", "thing")) for _ in range(POOL)]
        return [rng.choice(pool) for _ in range(count)]
    if kind == "choice":
        return [rng.choice(about["values"]) for _ in range(count)]
    if kind == "text":
        return [rng.choice(about["like"]) for _ in range(count)]
    if kind == "quantity":
        low, high, decimals = about["from"], about["to"], about.get("decimals", 0)
        return [f"{rng.uniform(low, high):.{decimals}f} {about['unit']}".strip() for _ in range(count)]
    years = [rng.randint(about["from"], about["to"]) for _ in range(count)]
    if kind == "year":
        return [str(year) for year in years]
    return [f"{year}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}" for year in years]


def column_type(relation: dict[str, Any]) -> str:
    """The type of a relation's values, as `kglm kg import --type` takes it."""
    kind = relation["tail_kind"]
    if kind == "quantity":
        unit = relation["tail"]["unit"]
        if unit and unit != "%" and unit_of(unit) is None and currency_of(unit) is None:
            return "text"  # "402 gold pieces"
        return "percent:point" if unit == "%" else "money:point" if currency_of(unit) else "quantity:point"
    return kind if kind in ("date", "year", "text") else "entity"


def kept_relations(lines: Sequence[str], without: set[str]) -> list[dict[str, Any]]:
    """The relations of a file whose label and aliases are not left out."""
    found: list[dict[str, Any]] = [json.loads(line) for line in lines]
    types: dict[str, str] = {}
    kept = []
    for each in found:
        label = each["label"] = each["label"].casefold()
        if not without.isdisjoint(name.casefold() for name in (label, *each["aliases"])):
            continue
        if types.setdefault(label, column_type(each)) == column_type(each):  # one type for each relation
            kept.append(each)
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--wordings", type=Path, required=True)
    parser.add_argument("--relations", type=Path, required=True, help="ids and labels of Wikidata's relations")
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--without", type=Path, help="labels of relations to leave out, one a line")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    names = Names(rng)
    without = {line.strip().casefold() for line in args.without.read_text().splitlines()} if args.without else set()
    relations = kept_relations(args.wordings.read_text(encoding="utf-8").splitlines(), without - {""})
    wikidata = dict(reversed(line.rstrip("\n").split("\t")[:2]) for line in args.relations.open(encoding="utf-8"))
    ids = {each["label"]: wikidata.get(each["label"], mint(each["label"], "P")) for each in relations}
    of_kind: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in relations:
        of_kind[each["domain"], each["head"]].append(each)
    tables = args.to / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    kind_of: dict[str, str] = {}
    for n, ((domain, noun), columns) in enumerate(of_kind.items()):
        heads = [names.new(columns[0]["head_kind"], noun) for _ in range(ENTITIES)]
        kind_of.update(dict.fromkeys(heads, f"{domain}: {noun}"))
        cells = [values(each, ENTITIES, names, rng) for each in columns]
        with (tables / f"{n:03}.csv").open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["name", *(each["label"] for each in columns)])
            for head, *row in zip(heads, *cells, strict=True):
                writer.writerow([head, *(cell if rng.random() < KNOWN else "" for cell in row)])
    aliases: dict[str, set[str]] = defaultdict(set)
    worded: dict[str, dict[str, Any]] = defaultdict(dict)
    for each in relations:
        aliases[each["label"]] |= {alias.casefold() for alias in each["aliases"]} - {each["label"]}
        worded[f"{each['domain']}: {each['head']}"][ids[each["label"]]] = {
            key: each[key] for key in ("statements", "questions")
        }
    with (args.to / "names.jsonl").open("w", encoding="utf-8") as stream:
        for label, further in aliases.items():
            stream.write(json.dumps({"id": ids[label], "label": label, "aliases": sorted(further)}) + "\n")
    kg = args.to / "invented.kg"
    types = {each["label"]: column_type(each) for each in relations}
    kglm.import_graph(sorted(tables.iterdir()), kg, types=types, replace=True)
    kglm.export_graph(kg, args.to / "invented.tsv")
    lines = (args.to / "invented.tsv").read_text(encoding="utf-8").splitlines()
    renamed = {mint(label, "P"): id for label, id in ids.items()}
    with (args.to / "invented.tsv").open("w", encoding="utf-8") as stream:
        for head, relation, tail in (line.split("\t")[:3] for line in lines):
            if not head.startswith("P"):
                stream.write(f"{head}\t{renamed.get(relation, relation)}\t{tail}\n")
    with KnowledgeGraph.open(kg) as graph:
        entities = {
            graph.id(node): kind_of[graph.label(node)] for node in range(len(graph)) if graph.label(node) in kind_of
        }
    (args.to / "wordings.json").write_text(json.dumps(worded), encoding="utf-8")
    (args.to / "entities.json").write_text(json.dumps(entities), encoding="utf-8")
    print(f"{len(entities)} entities of {len(of_kind)} kinds, {len(ids)} relations")


if __name__ == "__main__":
    main()
