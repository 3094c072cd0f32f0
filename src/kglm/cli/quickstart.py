"""`kglm quickstart`: what there is, on the bundled world, in seconds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from kglm import bundled
from kglm.cli import documents, graph
from kglm.cli.output import say
from kglm.files import writing


def quickstart(
    to: Annotated[Path | None, typer.Option("--to", help="Keep the graph in this directory.")] = None,
) -> None:
    """Build the bundled graph, look at it, edit a fact, take it back, and count a linked corpus."""
    if to is None:
        with tempfile.TemporaryDirectory(prefix="kglm-quickstart-") as directory:
            _tour(Path(directory))
    else:
        with writing(to):
            to.mkdir(parents=True, exist_ok=True)
        _tour(to)


def _tour(home: Path) -> None:
    kg = home / "world.kg"
    say("1. a knowledge graph from TSV and JSONL")
    graph.import_([bundled.FACTS], kg, entities=[bundled.ENTITIES], relations=[bundled.RELATIONS], replace=True)
    say("\n2. an entity in it: kglm kg show world.kg Q647249")
    graph.show(kg, "Q647249")
    say('\n3. an edit by names: kglm kg edit world.kg --set "Barack Obama date of birth 21 March 2013"')
    graph.edit(kg, set_=["Barack Obama date of birth 21 March 2013"])
    say("\n4. and back: kglm kg edit world.kg --undo")
    graph.edit(kg, undo=True)
    say("\n5. linked documents: kglm stats documents.jsonl")
    documents.stats([bundled.DOCUMENTS])
    say("\n6. the graph is sound: kglm doctor world.kg")
    documents.doctor(kg)
