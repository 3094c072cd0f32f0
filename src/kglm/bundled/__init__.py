"""Paths of the data in the package: the bundled world, a small graph with wordings, and a trained model."""

from __future__ import annotations

import os
from pathlib import Path

HOME = Path(__file__).parent
WORLD = HOME / "world"
FACTS, ENTITIES, RELATIONS = WORLD / "facts.tsv", WORLD / "entities.jsonl", WORLD / "relations.tsv"
RELATION_NAMES = WORLD / "relation-names.jsonl"
"""Aliases of the relations, in the format of entities."""
WORDINGS = WORLD / "wordings.toml"
WIKIDATA = HOME / "wikidata"
"""The bundled world: a part of Wikidata, packed, with a record of what it has. `kglm.worlds` unpacks it."""
RUN = HOME / "run"
"""A KGLM trained on texts about this graph, with the graph."""
ARTICLES = RUN / "articles.jsonl.gz"
"""Annotated articles about the entities of the graph."""
HEADS = HOME / "heads"
"""Trained heads for the pretrained model that can be installed."""
HEADS_VARIABLE = "KGLM_HEADS"
QUICKSTART = Path("quickstart")
"""Default output directory of `kglm quickstart`, relative to the working directory."""
TRIAL = Path("quickstart-trial")
"""The same for a smaller one, whose model no command uses by default."""


def checked(path: Path) -> Path:
    """The path of a file in `WORLD`, after its content was compared with its checksum."""
    from kglm.files.artefact import Artefact

    Artefact.open(path.parent, "install kglm again").read(path.name)
    return path


def default_run() -> Path:
    """The run to use when none is named: that of a quickstart in the working directory, else the bundled one."""
    own = QUICKSTART / "kglm"
    return own if (own / "model.safetensors").exists() else RUN


def default_heads() -> Path | None:
    """The heads to use when no run is named: `KGLM_HEADS`, else the bundled ones; None without any, or for "none"."""
    chosen = os.environ.get(HEADS_VARIABLE)
    if chosen:
        return None if chosen == "none" else Path(chosen)
    return HEADS if (HEADS / "heads.json").exists() else None
