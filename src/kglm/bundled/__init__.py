"""What comes with the package: a small, real world of facts, wordings to write about it, and a model of it."""

from __future__ import annotations

from pathlib import Path

HOME = Path(__file__).parent
WORLD = HOME / "world"
FACTS, ENTITIES, RELATIONS = WORLD / "facts.tsv", WORLD / "entities.jsonl", WORLD / "relations.tsv"
RELATION_NAMES = WORLD / "relation-names.jsonl"
"""Further names of the relations, in the form of entities."""
WORDINGS = WORLD / "wordings.toml"
RUN = HOME / "run"
"""A KGLM that is trained on texts about this world, with its graph."""
ARTICLES = RUN / "articles.jsonl.gz"
"""Annotated articles about it."""
QUICKSTART = Path("quickstart")
"""Where a quickstart leaves its runs, from where it is called."""


def default_run() -> Path:
    """The run to take when none is named: that of a quickstart here, else the one that comes with the package."""
    own = QUICKSTART / "kglm"
    return own if (own / "model.safetensors").exists() else RUN
