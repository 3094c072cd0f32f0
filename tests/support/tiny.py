"""A world of 19 entities and two linked documents: the neighbourhood of the paper's examples, enough to train on."""

from __future__ import annotations

from pathlib import Path

HOME = Path(__file__).parent / "tiny_world"
FACTS, ENTITIES, RELATIONS = HOME / "facts.tsv", HOME / "entities.jsonl", HOME / "relations.tsv"
DOCUMENTS = HOME / "documents.jsonl"
