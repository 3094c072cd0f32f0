"""`kglm kg verbalise`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kglm.cli.output import Json, print_json, print_line
from kglm.cli.overwrite import Force, check_output
from kglm.errors import ConfigError
from kglm.kg.graph import KnowledgeGraph


def verbalise(
    kg: Annotated[Path, typer.Argument(metavar="KG", help="A graph file made by kglm kg import.")],
    to: Annotated[Path, typer.Option("--to", metavar="DOCS.jsonl", help="File to write the documents to.")],
    documents: Annotated[int, typer.Option("--documents", help="Number of texts.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Random seed.")] = 0,
    without: Annotated[list[str] | None, typer.Option("--without", metavar="P…", help="Relation to leave out.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write short annotated texts that state facts of the graph, as additional training data."""
    from kglm.progress import progress
    from kglm.text.document import write_documents
    from kglm.writing.verbalise import VerbaliseConfig
    from kglm.writing.verbalise import verbalise as verbalise_facts

    if documents < 1:
        raise ConfigError(f"--documents {documents}", remedy="give at least 1")
    check_output(to, force)
    with KnowledgeGraph.open(kg, whole=True) as graph:
        for relation in without or ():
            if graph.find_relation(relation) is None:
                raise ConfigError(
                    f"--without {relation}: the graph has no such relation",
                    remedy="give the id of a relation",
                )
        config = VerbaliseConfig(hold_out_relations=frozenset(without or ()))
        texts = []
        with progress("verbalising facts", documents, "documents") as advance:
            for document in verbalise_facts(graph, documents, seed=seed, config=config):
                texts.append(document)
                advance()
    write_documents(to, texts)
    words = sum(len(document.tokens) for document in texts)
    mentions = sum(len(document.mentions) for document in texts)
    if json:
        print_json({"documents": len(texts), "tokens": words, "mentions": mentions})
    else:
        print_line(f"{to}: {len(texts):,} documents, {words:,} tokens, {mentions:,} mentions")
