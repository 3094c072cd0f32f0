"""A graph of 19 entities around the examples of the paper, and two linked documents: enough to train on."""

from __future__ import annotations

from pathlib import Path

HOME = Path(__file__).parent / "tiny_world"
FACTS, ENTITIES, RELATIONS = HOME / "facts.tsv", HOME / "entities.jsonl", HOME / "relations.tsv"
DOCUMENTS = HOME / "documents.jsonl"
