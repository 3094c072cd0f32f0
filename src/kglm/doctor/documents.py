"""Check a file of documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from kglm.doctor.findings import Finding
from kglm.errors import DataError
from kglm.files import read_lines
from kglm.text.document import parse_document
from kglm.text.repair import repair


def examine_documents(path: Path) -> Iterator[Finding]:
    documents = plain = 0
    titles: dict[str, int] = {}
    try:
        for number, line in read_lines(path):
            place = f"{path}, line {number}"
            try:
                document = parse_document(line, place)
            except DataError as error:
                yield Finding("error", error.place or place, error.what, error.remedy)
                continue
            documents += 1
            plain += not document.annotated
            if document.title in titles:
                yield Finding(
                    "warning",
                    place,
                    f"the title {document.title!r} occurs on line {titles[document.title]} too",
                )
            titles.setdefault(document.title, number)
            if not document.tokens:
                yield Finding("warning", place, "no tokens", "leave the document out")
                continue
            for quirk, count in repair(document)[1].items():
                level: Literal["warning", "note"] = "warning" if quirk == "unknown_prefix" else "note"
                yield Finding(level, place, f"{count} × {quirk.replace('_', ' ')}", "mended when a model reads it")
    except DataError as error:  # the file cannot be read to its end
        yield Finding("error", error.place or str(path), error.what, error.remedy)
    if not documents:
        yield Finding("error", str(path), "no document could be read")
    elif plain:
        yield Finding("note", str(path), f"{plain} of {documents} documents are plain text", "kglm annotate links them")
