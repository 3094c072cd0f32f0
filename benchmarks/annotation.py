"""python benchmarks/annotation.py --kg KG [--linked DOCS] [--redocred dev_revised.json.gz] [--json FILE]

Measure the quality of annotation against Linked WikiText-2 and against human annotation (Re-DocRED).

Linked WikiText-2: annotate the documents again from their article links, and compare with the published annotation:
mentions (span and entity), mention types (new or related), and the facts (parent, relation) of mentions found by both,
for facts in the graph. There are three settings: `story` gets the published links of all sources and adds only the
local graph; `links` gets article links only; `pipeline` adds our linker and coreference.

Re-DocRED: annotate passages without links, and compare names by span (without pronouns, dates and numbers), clusters of
mentions by B³ (ours: mentions of one entity), and relations: of the human relations that are in the graph, the share
that our annotation has as parent and relation of a mention, in either direction. `mentions or NIL` also counts the
names that the linker gives to no entity of the graph: how well names are found, whatever they refer to. `names` is the
baseline: the longest names of the graph, each linked to the entity with the most facts.
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
from kglm.linking.unknown import with_unknown_names
from kglm.progress import progress
from kglm.text.article import Article, Link
from kglm.text.document import END, START, Document, Mention, read_documents
from kglm.text.function_words import is_content
from kglm.text.repair import repair
from table import print_table


def f1(right: float, found: float, expected: float) -> dict[str, float]:
    """Precision, recall and F1 from counts."""
    precision, recall = right / max(found, 1), right / max(expected, 1)
    return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / max(precision + recall, 1e-12)}


# Linked WikiText-2


def annotate_again(annotator: Annotator, document: Document, setting: str) -> list[Mention]:
    """Annotate a document again, from the published links that the setting allows."""
    graph = annotator.graph
    in_graph = [mention for mention in document.mentions if mention.id in graph and not is_literal(mention.id)]
    links = [mention for mention in in_graph if mention.source == "WIKI"]
    if setting == "pipeline":
        article = Article(document.title, document.tokens, [Link(each.start, each.end, each.id) for each in links])
        return annotator.annotate(article).mentions
    given = in_graph if setting == "story" else links
    found = [
        LinkedSpan(each.start, each.end, graph.number(each.id), each.source) for each in given if each.source != "KG"
    ]
    id = graph.store.by_title(document.title)
    return Story(annotator.matcher).explained_mentions(document.tokens, found, None if id is None else graph.find(id))


def has_fact(graph: KnowledgeGraph, parent: str, relation: str, id: str) -> bool:
    """True if the graph has the fact."""
    head, index, tail = graph.find(parent), graph.find_relation(relation), graph.find(id)
    if head is None or tail is None:
        return False
    return relation == REFLEXIVE or (index is not None and tail in graph.tails(head, index).tolist())


def compare(annotator: Annotator, documents: list[Document], setting: str) -> dict[str, Any]:
    """Compare our annotation of documents with the published one."""
    spans: Counter[str] = Counter()
    types: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for document in documents:
        ours = {(each.start, each.end, each.id): each for each in annotate_again(annotator, document, setting)}
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
            facts = {pair for pair in real.explanations if has_fact(annotator.graph, *pair, real.id)}
            pairs["right"] += len(facts & set(mine.explanations))
            pairs["ours"] += len(mine.explanations)
            pairs["theirs"] += len(facts)
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
"""An article, its clusters (names by span), and relations (head cluster, tail cluster, relation)."""


def passages(path: Path) -> Iterator[Passage]:
    """Read the passages of Re-DocRED."""
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
    """The baseline: link the longest names to the entity with the most facts, and add the local graph."""
    linker = annotator.linker
    assert linker is not None
    graph = annotator.graph
    found = [
        LinkedSpan(start, end, max(nodes, key=lambda node: (len(graph.edges(node).tail), -node)), "NEL")
        for start, end, nodes in linker.mentions(article.tokens)
    ]
    return Story(annotator.matcher).explained_mentions(article.tokens, found)


def names_of_no_entity(annotator: Annotator, article: Article, ours: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Names that the linker finds and gives to no entity of the graph, beside our mentions."""
    assert annotator.linker is not None
    covered = {position for start, end in ours for position in range(start, end)}
    names = with_unknown_names(article.tokens, annotator.linker.link(article.tokens))
    return {
        (each.start, each.end)
        for each in names
        if is_name(article.tokens[each.start : each.end]) and covered.isdisjoint(range(each.start, each.end))
    }


def is_name(words: Sequence[str]) -> bool:
    """True for a name, as Re-DocRED marks them: no pronouns, common nouns or dates."""
    names = [word for word in words if word[:1].isupper() and is_content(word)]
    return bool(names) and not all(word.casefold() in date_words() for word in names)


def b_cubed(
    ours: Iterable[set[tuple[int, int]]], theirs: Iterable[set[tuple[int, int]]]
) -> tuple[float, int, float, int]:
    """B³: sum over our mentions of the right share of their cluster, and their number; the same for theirs."""
    mine = {span: cluster for cluster in ours for span in cluster}
    real = {span: cluster for cluster in theirs for span in cluster}
    precision = sum(len(cluster & real.get(span, set())) / len(cluster) for span, cluster in mine.items())
    recall = sum(len(cluster & mine.get(span, set())) / len(cluster) for span, cluster in real.items())
    return precision, len(mine), recall, len(real)


def compare_with_people(annotator: Annotator, path: Path, setting: str) -> dict[str, Any]:
    """Compare our annotation of Re-DocRED with the human one."""
    spans: Counter[str] = Counter()
    found_spans: Counter[str] = Counter()
    cubes = [0.0, 0, 0.0, 0]
    relations: Counter[str] = Counter()
    graph, linker = annotator.graph, annotator.linker
    assert linker is not None
    found = list(passages(path))
    with progress(f"Re-DocRED, {setting}", len(found), "passages") as advance:
        for article, clusters, labels in found:
            mentions = by_names(annotator, article) if setting == "names" else annotator.annotate(article).mentions
            mentions = [each for each in mentions if is_name(article.tokens[each.start : each.end])]
            ours = {(each.start, each.end) for each in mentions}
            theirs = {span for cluster in clusters for span in cluster}
            spans.update({"right": len(ours & theirs), "ours": len(ours), "theirs": len(theirs)})
            found_names = ours | names_of_no_entity(annotator, article, ours)
            found_spans.update({"right": len(found_names & theirs), "ours": len(found_names), "theirs": len(theirs)})
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
            facts: set[tuple[int, int, str]] = set()
            clusters_of: dict[str, set[int]] = defaultdict(set)
            for each in mentions:
                number = cluster_of.get((each.start, each.end))
                if number is None:
                    continue
                clusters_of[each.id].add(number)
                for parent, relation in each.explanations:
                    for head in clusters_of[parent]:
                        facts.add(
                            (number, head, relation[2:]) if relation.startswith(REVERSE) else (head, number, relation)
                        )
            for head, tail, relation in set(labels):
                index = graph.find_relation(relation)
                if index is None:
                    continue
                if any(nodes[tail] & set(graph.tails(node, index).tolist()) for node in nodes[head]):
                    relations["held"] += 1
                    relations["found"] += (head, tail, relation) in facts
            advance()
    precision, recall = cubes[0] / max(cubes[1], 1), cubes[2] / max(cubes[3], 1)
    return {
        "mentions": f1(spans["right"], spans["ours"], spans["theirs"]) | dict(spans),
        "mentions or NIL": f1(found_spans["right"], found_spans["ours"], found_spans["theirs"]) | dict(found_spans),
        "b3": {
            "precision": precision,
            "recall": recall,
            "f1": 2 * precision * recall / max(precision + recall, 1e-12),
        },
        "relations": dict(relations) | {"share": relations["found"] / max(relations["held"], 1)},
    }


def print_results(result: dict[str, Any]) -> None:
    """Print the measures of all settings."""
    rows = []
    for setting, measures in result.items():
        for measure, values in measures.items():
            if "f1" in values:
                rows.append((setting, measure, *(values[key] for key in ("precision", "recall", "f1")), None))
            elif measure == "types":
                rows.append((setting, measure, None, None, None, values["accuracy"]))
            elif measure == "relations":
                rows.append((setting, measure, None, values["share"], None, None))
    print_table(("data, setting", "measure", "precision", "recall", "F1", "accuracy"), rows)
    for setting, measures in result.items():
        if sources := measures.get("by source"):
            counts = [(source, *each.values()) for source, each in sources.items()]
            columns = ("source", "published", "found by us", "ours", "right")
            print_table(columns, counts, title=f"mentions by source: {setting}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path, required=True)
    parser.add_argument("--linked", type=Path, help="documents of Linked WikiText-2")
    parser.add_argument("--redocred", type=Path, help="gzipped JSON of Re-DocRED")
    parser.add_argument("--anchors", type=Path, help="link texts for the linker (kglm annotate --anchors-to)")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    annotator = Annotator.open(options.kg, AnnotateConfig(), anchors=options.anchors)
    result: dict[str, Any] = {}
    if options.linked:
        documents = [repair(document)[0] for document in read_documents(options.linked)]
        for setting in ("story", "links", "pipeline"):
            result[f"linked, {setting}"] = compare(annotator, documents, setting)
    if options.redocred:
        for setting in ("names", "pipeline"):
            result[f"redocred, {setting}"] = compare_with_people(annotator, options.redocred, setting)
    print_results(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
