"""The source: entities and facts as they are, with the queries that the rules need."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


@dataclass
class Names:
    """Names of an entity while they are cleaned."""

    label: str
    aliases: list[str] = field(default_factory=list)
    title: str | None = None
    description: str | None = None


class Statement(NamedTuple):
    """Rank and times of a fact."""

    rank: int = 0
    start: str | None = None
    end: str | None = None
    point: str | None = None


PLAIN = Statement()
Fact = tuple[str, str, str]
"""Head, relation and tail."""


class Graph:
    """Entities and facts that can be changed; counts what is left out, by reason."""

    def __init__(self) -> None:
        self.names: dict[str, Names] = {}
        self.relations: dict[str, str] = {}
        self.of: dict[str, dict[str, dict[str, Statement]]] = defaultdict(dict)
        """Facts by head, relation and tail."""
        self.to: dict[str, dict[str, dict[str, None]]] = defaultdict(dict)
        """Heads by tail and relation; dates and quantities are left out."""
        self.left_out: Counter[str] = Counter()

    def add(self, head: str, relation: str, tail: str, statement: Statement = PLAIN) -> None:
        self.of[head].setdefault(relation, {})[tail] = statement
        if tail[1:3] != "::":
            self.to[tail].setdefault(relation, {})[head] = None

    def remove(self, head: str, relation: str, tail: str, reason: str | None = None) -> None:
        """Remove a fact, and count it under `reason`."""
        del self.of[head][relation][tail]
        if not self.of[head][relation]:
            del self.of[head][relation]
        if tail in self.to:
            del self.to[tail][relation][head]
            if not self.to[tail][relation]:
                del self.to[tail][relation]
        if reason:
            self.left_out[f"facts: {reason}"] += 1

    def drop(self, id: str, reason: str) -> None:
        """Remove an entity with all its facts."""
        for relation, tails in list(self.of.get(id, {}).items()):
            for tail in list(tails):
                self.remove(id, relation, tail, "of an entity that is left out")
        for relation, heads in list(self.to.get(id, {}).items()):
            for head in list(heads):
                self.remove(head, relation, id, "of an entity that is left out")
        if self.names.pop(id, None) is not None:
            self.left_out[f"entities: {reason}"] += 1

    def tails(self, head: str, relation: str) -> list[str]:
        return list(self.of.get(head, {}).get(relation, ()))

    def heads(self, tail: str, relation: str) -> list[str]:
        return list(self.to.get(tail, {}).get(relation, ()))

    def has(self, head: str, relation: str, tail: str) -> bool:
        return tail in self.of.get(head, {}).get(relation, ())

    def facts(self) -> Iterator[tuple[str, str, str, Statement]]:
        for head, relations in self.of.items():
            for relation, tails in relations.items():
                for tail, statement in tails.items():
                    yield head, relation, tail, statement

    def degree(self, id: str) -> int:
        """Number of facts with the entity as head or tail."""
        return sum(map(len, self.of.get(id, {}).values())) + sum(map(len, self.to.get(id, {}).values()))

    def label(self, id: str) -> str:
        names = self.names.get(id)
        return names.label if names else id


def read_source(folder: Path) -> Graph:
    """The graph of `entities.jsonl.gz`, `facts.tsv.gz` and `relations.tsv`."""
    graph = Graph()
    with gzip.open(folder / "entities.jsonl.gz", "rt", encoding="utf-8") as lines:
        read_entities(graph, lines)
    with gzip.open(folder / "facts.tsv.gz", "rt", encoding="utf-8") as lines:
        read_facts(graph, lines)
    read_relations(graph, folder / "relations.tsv")
    return graph


def read_entities(graph: Graph, lines: Iterable[str]) -> None:
    for line in lines:
        record = json.loads(line)
        graph.names[record["id"]] = Names(record["label"], list(record.get("aliases") or ()), record.get("title"))


def read_facts(graph: Graph, lines: Iterable[str]) -> None:
    for line in lines:
        head, relation, tail = line.rstrip("\n").split("\t")[:3]
        graph.add(head, relation, tail)


def read_relations(graph: Graph, path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        id, _, label = line.partition("\t")
        if label:
            graph.relations.setdefault(id, label)
