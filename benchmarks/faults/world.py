"""The artefacts that the attacks damage: a small graph with vectors, a run with a checkpoint, and answers from them."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

from kglm import bundled

PROMPTS = (
    "Barack Obama was born on",
    "The capital of France is",
    "Angela Merkel was born in",
    "Albert Einstein",
)
ENTITIES = ("Q76", "Q142", "Q567")
SETTINGS = ("train.epochs=1", "train.rows=20", "train.length=20", "train.threads=1", "encoder.hidden=32")


def make_world(home: Path, documents: int = 60) -> tuple[Path, Path]:
    """A graph and a run trained on a few articles about it; returns (graph, run)."""
    from kglm.runs.settings import load_config
    from kglm.text.document import read_documents, write_documents
    from kglm.train.start import train

    home.mkdir(parents=True, exist_ok=True)
    kg, run, data = home / "world.kg", home / "run", home / "train.jsonl"
    if not run.exists():
        for path in bundled.RUN.glob("world.kg*"):
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, home / path.name)
        write_documents(data, list(read_documents(bundled.ARTICLES))[:documents])
        with contextlib.redirect_stderr(io.StringIO()):
            train(load_config("tiny", "kglm", SETTINGS), [data], [data], kg, run)
    return kg, run


def answers(run: Path) -> str:
    """Everything that a user sees of a run and its graph, as one text."""
    from kglm.answer.model import load
    from kglm.kg.graph import KnowledgeGraph

    seen: list[Any] = []
    model = load(run)
    for prompt in PROMPTS:
        seen.append(model.complete(prompt).to_json())
    seen.append([str(word) for word in model.generate("Barack Obama", words=8, seed=1)])
    path = model.graph.store.path
    with KnowledgeGraph.open(path, whole=True) as graph:
        for entity in ENTITIES:
            number = graph.number(entity)
            edges = [(graph.relation_id(int(r)), graph.id(int(t))) for r, t in zip(*graph.edges(number), strict=True)]
            seen.append([graph.label(number), list(graph.names(number)), edges])
            seen.append([list(fact) for fact in graph.store.facts_of(entity)])
            seen.append(graph.store.description(entity))
        seen.append([list(found) for found in graph.search("Paris")])
        seen.append([list(found) for found in graph.search("Bar")])
    return json.dumps(seen, sort_keys=True, default=str)
