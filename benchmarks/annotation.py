"""How good the annotation is: against the real Linked WikiText-2, and against people (Re-DocRED).

python benchmarks/annotation.py --kg world.kg --linked valid.jsonl.gz --redocred dev_revised.json.gz [--json out.json]

Linked WikiText-2: all annotations are taken away but for the article links, and made again. What both have is compared:
(span, id) by source, new or related, and (parent, relation) pairs on mentions that both have, of facts that the graph
holds. `story` is given the corpus's links, linker and coreference; `links` only its links; `pipeline` adds ours.

Re-DocRED: passages without links. Names by span (people marked no pronouns; dates and numbers are left out); clusters
of mentions by B³ (ours are mentions of one id); and of the relations that people marked and the graph holds of entities
of these names, the share that is found as the parent and relation of a mention, either way round. `names` is the plain
baseline: the longest names of the graph, each of whoever has the most facts.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kglm.annotate.annotator import AnnotateConfig, Annotator
from kglm.annotate.story import LinkedSpan, Story
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REFLEXIVE, REVERSE
from kglm.kg.literals.dates import date_words
from kglm.kg.literals.literal import is_literal
from kglm.progress import progress
from kglm.text.article import Article, Link
from kglm.text.document import END, START, Document, Mention, read_documents
from kglm.text.function_words import is_content
from kglm.text.repair import repair


def f1(right: int, found: int, wanted: int) -> dict[str, float]:
    precision, recall = right / max(found, 1), right / max(wanted, 1)
    return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / max(precision + recall, 1e-12)}


# Linked WikiText-2


def again(annotator: Annotator, document: Document, way: str) -> list[Mention]:
    """The mentions of a document, made again."""
    graph = annotator.graph
    known = [mention for mention in document.mentions if mention.id in graph and not is_literal(mention.id)]
    links = [mention for mention in known if mention.source == "WIKI"]
    if way == "pipeline":
        article = Article(document.title, document.tokens, [Link(each.start, each.end, each.id) for each in links])
        return annotator.annotate(article).mentions
    given = known if way == "story" else links
    found = [
        LinkedSpan(each.start, each.end, graph.number(each.id), each.source) for each in given if each.source != "KG"
    ]
    id = graph.store.by_title(document.title)
    return Story(annotator.matcher).explained_mentions(document.tokens, found, None if id is None else graph.find(id))


def holds(graph: KnowledgeGraph, parent: str, relation: str, id: str) -> bool:
    head, index, tail = graph.find(parent), graph.find_relation(relation), graph.find(id)
    if head is None or tail is None:
        return False
    return relation == REFLEXIVE or (index is not None and tail in graph.tails(head, index).tolist())


def compare(annotator: Annotator, documents: list[Document], way: str) -> dict[str, Any]:
    spans: Counter[str] = Counter()
    types: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for document in documents:
        ours = {(each.start, each.end, each.id): each for each in again(annotator, document, way)}
        theirs = {(each.start, each.end, each.id): each for each in document.mentions if each.id in annotator.graph}
        for key, mention in theirs.items():
            spans[f"theirs {mention.source}"] += 1
            spans[f"theirs found {mention.source}"] += key in ours
        for key, mention in ours.items():
            spans[f"ours {mention.source}"] += 1
            spans[f"ours right {mention.source}"] += key in theirs
        for key in ours.keys() & theirs.keys():
            mine, real = ours[key], theirs[key]
            types[f"{'new' if real.is_new else 'related'} as {'new' if mine.is_new else 'related'}"] += 1
            known = {pair for pair in real.explanations if holds(annotator.graph, *pair, real.id)}
            pairs["right"] += len(known & set(mine.explanations))
            pairs["ours"] += len(mine.explanations)
            pairs["theirs"] += len(known)
    both = sum(types.values())
    return {
        "spans": f1(both, sum(spans[f"ours {source}"] for source in SOURCES), sum_of(spans, "theirs ")),
        "by source": {
            source: {
                "theirs": spans[f"theirs {source}"],
                "found": spans[f"theirs found {source}"],
                "ours": spans[f"ours {source}"],
                "right": spans[f"ours right {source}"],
            }
            for source in SOURCES
        },
        "types": dict(types) | {"accuracy": (types["new as new"] + types["related as related"]) / max(both, 1)},
        "pairs": f1(pairs["right"], pairs["ours"], pairs["theirs"]) | dict(pairs),
    }


SOURCES = ("WIKI", "NEL", "COREF", "KG")


def sum_of(counts: Counter[str], prefix: str) -> int:
    return sum(counts[f"{prefix}{source}"] for source in SOURCES)


# Re-DocRED

Passage = tuple[Article, list[dict[tuple[int, int], str]], list[tuple[int, int, str]]]
"""An article, its clusters (spans with their names), and relations (head cluster, tail cluster, relation)."""


def passages(path: Path) -> Iterator[Passage]:
    with gzip.open(path) as stream:
        records = json.load(stream)
    for record in records:
        tokens, first = [START], []
        for sentence in record["sents"]:
            first.append(len(tokens))
            tokens += [*sentence, END]
        clusters = [
            {
                (first[each["sent_id"]] + each["pos"][0], first[each["sent_id"]] + each["pos"][1]): each["name"]
                for each in cluster
                if each["type"] not in ("TIME", "NUM")
            }
            for cluster in record["vertexSet"]
        ]
        relations = [(each["h"], each["t"], each["r"]) for each in record["labels"]]
        yield Article(record["title"], tokens), clusters, relations


def by_names(annotator: Annotator, article: Article) -> list[Mention]:
    """The baseline: the longest names, each of whoever has the most facts, and the story of these."""
    linker = annotator.linker
    assert linker is not None
    graph = annotator.graph
    found = [
        LinkedSpan(start, end, max(nodes, key=lambda node: (len(graph.edges(node).tail), -node)), "NEL")
        for start, end, nodes in linker.mentions(article.tokens)
    ]
    return Story(annotator.matcher).explained_mentions(article.tokens, found)


def says_name(words: Sequence[str]) -> bool:
    """Whether words name someone: people marked names, and neither pronouns nor kinds; dates are another matter."""
    names = [word for word in words if word[:1].isupper() and is_content(word)]
    return bool(names) and not all(word.casefold() in date_words() for word in names)


def b_cubed(
    ours: Iterable[set[tuple[int, int]]], theirs: Iterable[set[tuple[int, int]]]
) -> tuple[float, int, float, int]:
    """Sums over mentions of the share of their cluster that is right: ours, how many, theirs, how many."""
    mine = {span: cluster for cluster in ours for span in cluster}
    real = {span: cluster for cluster in theirs for span in cluster}
    precision = sum(len(cluster & real.get(span, set())) / len(cluster) for span, cluster in mine.items())
    recall = sum(len(cluster & mine.get(span, set())) / len(cluster) for span, cluster in real.items())
    return precision, len(mine), recall, len(real)


def against_people(annotator: Annotator, path: Path, way: str) -> dict[str, Any]:
    spans: Counter[str] = Counter()
    cubes = [0.0, 0, 0.0, 0]
    relations: Counter[str] = Counter()
    graph, linker = annotator.graph, annotator.linker
    assert linker is not None
    found = list(passages(path))
    with progress(f"Re-DocRED, {way}", len(found), "passages") as advance:
        for article, clusters, labels in found:
            mentions = by_names(annotator, article) if way == "names" else annotator.annotate(article).mentions
            mentions = [each for each in mentions if says_name(article.tokens[each.start : each.end])]
            ours = {(each.start, each.end) for each in mentions}
            theirs = {span for cluster in clusters for span in cluster}
            spans.update({"right": len(ours & theirs), "ours": len(ours), "theirs": len(theirs)})
            groups: dict[str, set[tuple[int, int]]] = defaultdict(set)
            for each in mentions:
                groups[each.id].add((each.start, each.end))
            for place, amount in enumerate(b_cubed(groups.values(), [set(cluster) for cluster in clusters])):
                cubes[place] += amount
            nodes = [
                {node for name in set(cluster.values()) for node in linker.candidates(name.split())}
                for cluster in clusters
            ]
            cluster_of = {span: number for number, cluster in enumerate(clusters) for span in cluster}
            said: set[tuple[int, int, str]] = set()
            where: dict[str, set[int]] = defaultdict(set)
            for each in mentions:
                number = cluster_of.get((each.start, each.end))
                if number is None:
                    continue
                where[each.id].add(number)
                for parent, relation in each.explanations:
                    for head in where[parent]:
                        said.add(
                            (number, head, relation[2:]) if relation.startswith(REVERSE) else (head, number, relation)
                        )
            for head, tail, relation in set(labels):
                index = graph.find_relation(relation)
                if index is None:
                    continue
                if any(nodes[tail] & set(graph.tails(node, index).tolist()) for node in nodes[head]):
                    relations["held"] += 1
                    relations["found"] += (head, tail, relation) in said
            advance()
    precision, mine, recall, real = cubes
    return {
        "mentions": f1(spans["right"], spans["ours"], spans["theirs"]) | dict(spans),
        "b3": {
            "precision": precision / max(mine, 1),
            "recall": recall / max(real, 1),
            "f1": 2
            * (precision / max(mine, 1))
            * (recall / max(real, 1))
            / max(precision / max(mine, 1) + recall / max(real, 1), 1e-12),
        },
        "relations": dict(relations) | {"share": relations["found"] / max(relations["held"], 1)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path, required=True)
    parser.add_argument("--linked", type=Path)
    parser.add_argument("--redocred", type=Path)
    parser.add_argument("--anchors", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    annotator = Annotator.open(options.kg, AnnotateConfig(), anchors=options.anchors)
    result: dict[str, Any] = {}
    if options.linked:
        documents = [repair(document)[0] for document in read_documents(options.linked)]
        for way in ("story", "links", "pipeline"):
            result[f"linked, {way}"] = compare(annotator, documents, way)
    if options.redocred:
        for way in ("names", "pipeline"):
            result[f"redocred, {way}"] = against_people(annotator, options.redocred, way)
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
