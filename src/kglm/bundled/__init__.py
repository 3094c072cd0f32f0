"""A small world that comes with the package: the neighbourhood of the paper's examples, written for this project."""

from __future__ import annotations

from pathlib import Path

HOME = Path(__file__).parent
FACTS, ENTITIES, RELATIONS = HOME / "facts.tsv", HOME / "entities.jsonl", HOME / "relations.tsv"
DOCUMENTS = HOME / "documents.jsonl"
