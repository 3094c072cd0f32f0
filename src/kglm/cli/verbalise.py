"""`kglm kg verbalise`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kglm.cli.output import Json, print_json, say
from kglm.errors import ConfigError
from kglm.kg.graph import KnowledgeGraph


def verbalise(
    kg: Annotated[Path, typer.Argument(metavar="KG", help="A graph file.")],
    to: Annotated[Path, typer.Option("--to", metavar="DOCS.jsonl", help="Where to write the documents.")],
    documents: Annotated[int, typer.Option("--documents", help="How many short texts.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Decides which facts, and how they are said.")] = 0,
    without: Annotated[
        list[str] | None, typer.Option("--without", metavar="P…", help="A relation to leave out; may be given again.")
    ] = None,
    json: Json = False,
) -> None:
    """Write short annotated texts that state facts, to train on beside articles."""
    from kglm.progress import progress
    from kglm.text.document import write_documents
    from kglm.writing.verbalise import VerbaliseConfig
    from kglm.writing.verbalise import verbalise as put_into_words

    if documents < 1:
        raise ConfigError(f"--documents {documents}", remedy="give at least 1")
    with KnowledgeGraph.open(kg) as graph:
        for relation in without or ():
            if graph.find_relation(relation) is None:
                raise ConfigError(f"--without {relation}: the graph has no such relation", remedy="give the id of one")
        config = VerbaliseConfig(hold_out_relations=frozenset(without or ()))
        found = []
        with progress("putting facts into words", documents, "documents") as advance:
            for document in put_into_words(graph, documents, seed=seed, config=config):
                found.append(document)
                advance()
    write_documents(to, found)
    words = sum(len(document.tokens) for document in found)
    mentions = sum(len(document.mentions) for document in found)
    if json:
        print_json({"documents": len(found), "tokens": words, "mentions": mentions})
    else:
        say(f"{to}: {len(found):,} documents, {words:,} tokens, {mentions:,} mentions")
