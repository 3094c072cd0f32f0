"""python benchmarks/links.py --kg KG --docs lw2/valid.jsonl.gz:10:20 --docs simplewiki/valid.jsonl.gz:60:120

Measure the links that heads on a pretrained model get, against the annotation of documents: by the text so far, and by
the linker that sees the whole text. An argument is FILE or FILE:FIRST:LAST of its documents.

Recall: annotated mentions of entities with exactly this span and entity. Known: annotated mentions after which the
entity is linked in the text, by whatever words. Precision: links that overlap with an annotated mention and have its
entity; links of words without annotation are not counted, as the annotation leaves out many. Parents: mentions with an
annotated fact of which some parent is known when the mention begins, so that the fact can be said. A link counts from
p = 0.5 on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from kglm.heads.links import LEAST, MOST, links_of, text_linker
from kglm.heads.local import Link, LocalEntities
from kglm.heads.passage import Passage, passage
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.prompts import PromptLinker
from kglm.pretrained.base import BaseModel
from kglm.text.document import Document, read_documents
from table import print_table

SURE = 0.5
Links = Callable[[Passage, Document], list[Link]]


def documents(argument: str) -> list[Document]:
    """The documents of FILE or FILE:FIRST:LAST."""
    path, *bounds = argument.split(":")
    first, last = (int(bound) if bound else None for bound in bounds or ("", ""))
    return list(islice(read_documents(path), first, last))


def whole_text_links(linker: PromptLinker) -> Links:
    """Links by a linker that sees the whole text."""

    def links(found: Passage, document: Document) -> list[Link]:
        first, end = {}, {}
        for t, word in enumerate(found.word_T.tolist()):
            first.setdefault(word, t)
            end[word] = t + 1
        return [
            Link(first[name.start], end[name.end - 1], candidate.node, candidate.p)
            for name in linker.link(document.tokens)
            for candidate in name.candidates[:MOST]
            if candidate.p >= LEAST and name.start in first and name.end - 1 in end
        ]

    return links


def measure(graph: KnowledgeGraph, texts: Sequence[tuple[Passage, Document]], links_of: Links) -> list[str]:
    """Recall, known, precision, parents in %, and words per second."""
    exact, known, right, parents = [], [], [], []
    seconds = 0.0
    for found, document in texts:
        started = time.process_time()
        links = links_of(found, document)
        seconds += time.process_time() - started
        local, count = LocalEntities(graph, links), len(found.ids)
        p_TP = np.exp(local.places(count + 1, np.zeros(count + 1, np.int64)).log_p_TP)
        final: dict[tuple[int, int], list[tuple[float, int]]] = {}
        for link in links:
            if link.until > count:
                final.setdefault((link.start, link.end), []).append((link.p, link.node))
        entities = [
            mention
            for mention, literal in zip(
                found.mentions, graph.are_literals([each.node for each in found.mentions]).tolist(), strict=True
            )
            if not literal
        ]
        node_of = {t: mention.node for mention in entities for t in range(mention.start, mention.end)}
        for mention in entities:
            best = max(final.get((mention.start, mention.end), [(0.0, -1)]))
            exact.append(best[0] >= SURE and best[1] == mention.node)
            slot = local.slot_of.get(mention.node)
            known.append(slot is not None and p_TP[mention.end, slot] >= SURE)
        for (start, end), candidates in final.items():
            p, node = max(candidates)
            nodes = {node_of[t] for t in range(start, end) if t in node_of}
            if p >= SURE and nodes:
                right.append(node in nodes)
        for mention in found.mentions:
            slots = [local.slot_of[parent] for parent, _ in mention.facts if parent in local.slot_of]
            if mention.facts:
                parents.append(any(p_TP[mention.start, slot] >= SURE for slot in slots))
    words = sum(found.words for found, _ in texts)
    return [*(f"{100 * np.mean(each):.1f}" for each in (exact, known, right, parents)), f"{words / seconds:,.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--kg", type=Path, required=True)
    parser.add_argument("--docs", action="append", required=True)
    parser.add_argument("--base", default="smollm2", help="only its subwords are used")
    args = parser.parse_args()
    base = BaseModel.open(args.base)
    with KnowledgeGraph.open(args.kg) as graph:
        linker = text_linker(graph)
        ways: dict[str, Links] = {
            "the text so far": lambda found, _: links_of(found, linker),
            "the whole text": whole_text_links(PromptLinker(linker)),
        }
        rows = []
        for argument in args.docs:
            texts = [(passage(document, base.subwords, graph), document) for document in documents(argument)]
            measure(graph, texts[:1], ways["the text so far"])  # opens what is opened once
            for name, way in ways.items():
                label = "/".join(Path(argument).parts[-2:])
                rows.append([label, name, *measure(graph, texts, way)])
    print_table(["documents", "links by", "recall", "known", "precision", "parents", "words/s"], rows)


if __name__ == "__main__":
    main()
