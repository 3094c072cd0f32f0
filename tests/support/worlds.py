"""Toy graphs, made by the real importer."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import import_graph

BORN = "T::11::+1961-08-04T00:00:00Z"
FAMILY = (
    ("Q76", "P569", BORN),
    ("Q76", "P26", "Q13133"),
    ("Q76", "P31", "Q5"),
    ("Q13133", "P31", "Q5"),
    ("Q13133", "P569", "T::11::+1964-01-17T00:00:00Z"),
)
NAMES = {
    "Q76": ("Barack Obama", "Obama"),
    "Q13133": ("Michelle Obama",),
    "Q5": ("human",),
    "P26": ("spouse", "married to"),
    "P569": ("date of birth", "born on"),
    "P31": ("instance of",),
}


def write_facts(path: Path, facts: Iterable[tuple[str, ...]]) -> Path:
    path.write_text("".join("\t".join(fact) + "\n" for fact in facts))
    return path


def write_entities(path: Path, names: dict[str, tuple[str, ...]]) -> Path:
    lines = [json.dumps({"id": id, "label": first, "aliases": rest}) for id, (first, *rest) in names.items()]
    path.write_text("".join(line + "\n" for line in lines))
    return path


def write_statements(path: Path, statements: Iterable[tuple[tuple[str, str, str], dict[str, object]]]) -> Path:
    """Facts with their rank and qualifiers, as JSONL."""
    lines = [
        json.dumps({"head": head, "relation": relation, "tail": tail, **data})
        for (head, relation, tail), data in statements
    ]
    path.write_text("".join(line + "\n" for line in lines))
    return path


def make_store(
    home: Path,
    facts: Iterable[tuple[str, ...]] = FAMILY,
    names: dict[str, tuple[str, ...]] | None = None,
    statements: Iterable[tuple[tuple[str, str, str], dict[str, object]]] = (),
) -> Path:
    """A graph file with these facts and names, and with further facts that have a rank and qualifiers."""
    home.mkdir(parents=True, exist_ok=True)
    sources = [write_facts(home / "facts.tsv", facts)]
    if statements:
        sources.append(write_statements(home / "statements.jsonl", statements))
    entities = [write_entities(home / "entities.jsonl", NAMES if names is None else names)]
    import_graph(sources, home / "toy.kg", entities=entities, workers=1, replace=True)
    return home / "toy.kg"


def facts_of(graph: KnowledgeGraph) -> set[tuple[str, str, str]]:
    """All edges of a graph by ids, including reverse and reflexive ones."""
    return {
        (graph.id(head), graph.relation_id(int(r)), graph.id(int(tail)))
        for head in range(len(graph))
        for r, tail in zip(*graph.edges(head), strict=True)
    }


def content(path: Path) -> list[str]:
    """All rows of a graph file, and its arrays."""
    connection = sqlite3.connect(path)
    rows = list(connection.iterdump())
    connection.close()
    [directory] = path.with_name(path.name + ".arrays").iterdir()
    return rows + [f"{file.name} {file.read_bytes()!r}" for file in sorted(directory.iterdir())]


def leftovers(folder: Path) -> set[str]:
    return {
        path.name for path in folder.rglob("*") if any(w in path.name for w in (".partial", ".new", ".tmp", ".gone"))
    }
