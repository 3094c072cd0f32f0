"""Relations that explain too much or too little, taken out of a finished corpus (an option, as in the paper).

Out go relations that end in `point in time` (P585) or `diplomatic relation` (P530), relations whose parents lead to
many entities on average, and relations that the whole corpus uses only a few times; then mentions of signs alone. A
mention that loses its last explanation is new, unless only a match with the graph found it, or it is a date: then it
goes, and no longer explains others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kglm.annotate.story import StoryConfig, word_places
from kglm.kg.ids import NEW, REFLEXIVE
from kglm.kg.literals.literal import is_literal
from kglm.text.document import Document, Mention, read_documents, write_documents

ENDINGS = ("P585", "P530")


@dataclass(frozen=True)
class PruneConfig:
    """What is too much and too little."""

    max_fan_out: float = 15.0
    """Distinct entities that a relation leads to from one parent of a document, on average."""
    min_uses: int = 5
    """Mentions of the corpus that a relation explains."""


def prune_file(path: Path, config: PruneConfig | None = None, *, cutoff: int = StoryConfig.cutoff) -> Counter[str]:
    """Prune a file of documents in place; the file is whole at any time. Returns how much went, and what is left."""
    counts: Counter[str] = Counter()
    unwanted = unwanted_relations(read_documents(path), config or PruneConfig())
    write_documents(path, pruned(read_documents(path), unwanted, counts, cutoff=cutoff))
    counts["pruned relations"] = len(unwanted)
    return counts


def unwanted_relations(documents: Iterable[Document], config: PruneConfig) -> set[str]:
    """The relations that go, counted over all documents."""
    uses: Counter[str] = Counter()
    parents: Counter[str] = Counter()
    tails: Counter[str] = Counter()
    for document in documents:
        reached: dict[tuple[str, str], set[str]] = defaultdict(set)
        for mention in document.mentions:
            uses.update(set(mention.relations))
            for parent, relation in mention.explanations:
                reached[parent, relation].add(mention.id)
        for (_, relation), found in reached.items():
            parents[relation] += 1
            tails[relation] += len(found)
    rare = {relation for relation, times in uses.items() if times < config.min_uses}
    broad = {relation for relation, times in parents.items() if tails[relation] / times >= config.max_fan_out}
    marked = {relation for relation in uses if relation.split(":")[-1] in ENDINGS}
    return (rare | broad | marked) - {NEW, REFLEXIVE}


def pruned(
    documents: Iterable[Document], unwanted: set[str], counts: Counter[str], *, cutoff: int = StoryConfig.cutoff
) -> Iterator[Document]:
    """The documents without these relations."""
    for document in documents:
        kept: list[Mention] = []
        place = word_places(document.tokens)
        ended: dict[str, int] = {}
        for mention in document.mentions:
            words = document.tokens[mention.start : mention.end]
            if not any(char.isalnum() for word in words for char in word):
                counts["pruned signs"] += 1
                continue
            pairs = [
                (relation, parent)
                for relation, parent in zip(mention.relations, mention.parents, strict=True)
                if relation == NEW
                or (relation not in unwanted and _is_near(ended.get(parent), place[mention.start], cutoff))
            ]
            counts["pruned explanations"] += len(mention.relations) - len(pairs)
            left = _with(mention, pairs)
            counts["pruned mentions"] += left is None
            if left is not None:
                counts[f"source {left.source}"] += 1
                kept.append(left)
                ended[left.id] = place[left.end]
        yield Document(document.title, document.tokens, kept, document.annotated, document.extra)


def _is_near(end: int | None, start: int, cutoff: int) -> bool:
    """Whether the last mention of a parent that is still there is near enough."""
    return end is not None and start - end <= cutoff


def _with(mention: Mention, pairs: list[tuple[str, str]]) -> Mention | None:
    """The mention with these explanations; without any it is new, or nothing."""
    if not pairs:
        if mention.source == "KG" or is_literal(mention.id):
            return None
        pairs = [(NEW, mention.id)]
    relations, parents = zip(*pairs, strict=True)
    return Mention(mention.start, mention.end, mention.id, mention.source, relations, parents)
