"""`kglm stats` and `kglm doctor`."""

from __future__ import annotations

from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kglm.cli.output import Json, print_json, print_line, print_table
from kglm.errors import KglmError

if TYPE_CHECKING:
    from kglm.annotate.statistics import CorpusStatistics

ROWS = {
    "documents": "Documents",
    "paper_tokens": "Tokens (words + 2 per document, as in the paper)",
    "tokens": "Tokens in the file",
    "end_tokens": "… of them sentence ends",
    "longest_document": "Longest document",
    "mention_tokens": "Mention tokens",
    "mention_spans": "Mention spans",
    "unique_entities": "Unique entities",
    "unique_relations": "Unique relations",
    "new": "New mentions",
    "related": "Related mentions",
    "duplicate_parent": "Related mentions that list a parent twice",
    "adjacent_same_id": "Adjacent mentions of one entity",
    "spans_with_end": "Mentions that contain a sentence end",
    "unknown_prefix": "Mentions with an unknown kind of id",
}


def stats(
    files: Annotated[list[Path], typer.Argument(metavar="DOCS.jsonl", help="Linked documents.")],
    json: Json = False,
) -> None:
    """Count documents, tokens, mentions and entities of a linked corpus, and irregular annotations."""
    from kglm.annotate.statistics import corpus_statistics
    from kglm.text.document import read_documents

    result = corpus_statistics(chain.from_iterable(read_documents(path) for path in files))
    if json:
        print_json(asdict(result))
        return
    _print(result, ", ".join(path.name for path in files))


def _print(result: CorpusStatistics, title: str) -> None:
    rows: list[tuple[str, int]] = [(text, getattr(result, name)) for name, text in ROWS.items()]
    rows += [(f"Mentions from {source}", count) for source, count in result.sources.items()]
    kinds = {"Q": "items", "P": "properties", "T": "dates", "V": "quantities"}
    rows += [(f"Mentions of {kinds.get(kind, kind)}", count) for kind, count in result.kinds.items()]
    rows += [(f"To repair: {quirk.replace('_', ' ')}", count) for quirk, count in result.repairs.items()]
    print_table(title, ("", "count"), rows, right=(1,))


def doctor(
    path: Annotated[Path, typer.Argument(metavar="KG|DOCS|RUN", help="A graph, a file of documents or a run.")],
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild what can be derived, and add missing checksums.")
    ] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Record the files as they are now: for a change on purpose.")
    ] = False,
    json: Json = False,
) -> None:
    """Check every byte of a graph, documents or a run and list the problems; exit code 2 if it cannot be used."""
    from kglm import doctor

    if repair and accept:
        raise KglmError("--repair and --accept exclude each other", remedy="see kglm doctor --help")
    findings = (doctor.repair if repair else doctor.accept if accept else doctor.examine)(path)
    errors = sum(finding.level == "error" for finding in findings)
    if json:
        print_json({"healthy": not errors, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            remedy = f" ({finding.remedy})" if finding.remedy else ""
            print_line(f"{finding.level:7}  {finding.place}: {finding.what}{remedy}")
        print_line(f"{path}: {'healthy' if not errors else '1 error' if errors == 1 else f'{errors} errors'}")
    if errors:
        raise typer.Exit(2)
