"""Write the HTML pages of a file of linked documents: one for each document, and an index."""

from __future__ import annotations

from pathlib import Path

from kglm.annotate.page import document_page, index_page, page_entry
from kglm.files import atomic_file, writing
from kglm.kg.graph import KnowledgeGraph
from kglm.progress import progress
from kglm.text.document import read_documents


def write_pages(documents: Path, kg: Path, folder: Path) -> int:
    """Write an HTML page for each document of a file, and an index page; return the number of documents."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    entries = []
    with KnowledgeGraph.open(kg, whole=True) as graph, progress("writing pages", None, "pages") as advance:
        for number, document in enumerate(read_documents(documents)):
            entry = page_entry(document, number)
            with atomic_file(folder / entry.file) as stream:
                stream.write(document_page(document, graph, index="index.html").encode())
            entries.append(entry)
            advance()
        with atomic_file(folder / "index.html") as stream:
            stream.write(index_page(entries).encode())
    return len(entries)
