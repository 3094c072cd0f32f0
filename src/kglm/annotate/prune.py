"""Remove uninformative relations from a finished corpus (optional, as in the paper).

Removed are relations that end in `point in time` (P585) or `diplomatic relation` (P530), relations that lead from one
parent to many entities on average, relations used only a few times in the corpus, and mentions without a letter or
digit. A mention that loses its last explanation becomes new; if it is a literal or only a match with the graph, it is
removed and no longer explains others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kglm.annotate.story import StoryConfig, word_positions
from kglm.kg.ids import NEW, REFLEXIVE
from kglm.kg.literals.literal import is_literal
from kglm.text.document import Document, Mention, read_documents, write_documents

ENDINGS = ("P585", "P530")


@dataclass(frozen=True)
class PruneConfig:
    """Thresholds for removing relations."""

    max_fan_out: float = 15.0
    """Relations with at least this mean number of distinct entities per parent and document are removed."""
    min_uses: int = 5
    """Relations that explain fewer mentions of the corpus are removed."""


def prune_file(path: Path, config: PruneConfig | None = None, *, cutoff: int = StoryConfig.cutoff) -> Counter[str]:
    """Prune a file of documents in place, atomically; return counts of what was removed and of what is left."""
    counts: Counter[str] = Counter()
    unwanted = unwanted_relations(read_documents(path), config or PruneConfig())
    write_documents(path, pruned(read_documents(path), unwanted, counts, cutoff=cutoff))
    counts["pruned relations"] = len(unwanted)
    return counts


def unwanted_relations(documents: Iterable[Document], config: PruneConfig) -> set[str]:
    """Relations to remove, by counts over all documents."""
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
    """The documents without the unwanted relations."""
    for document in documents:
        mentions: list[Mention] = []
        position = word_positions(document.tokens)
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
                or (relation not in unwanted and _is_near(ended.get(parent), position[mention.start], cutoff))
            ]
            counts["pruned explanations"] += len(mention.relations) - len(pairs)
            left = _with_explanations(mention, pairs)
            counts["pruned mentions"] += left is None
            if left is not None:
                counts[f"source {left.source}"] += 1
                mentions.append(left)
                ended[left.id] = position[left.end]
        yield Document(document.title, document.tokens, mentions, document.annotated, document.extra)


def _is_near(end: int | None, start: int, cutoff: int) -> bool:
    """True if a parent has an earlier mention left, at most `cutoff` words away."""
    return end is not None and start - end <= cutoff


def _with_explanations(mention: Mention, pairs: list[tuple[str, str]]) -> Mention | None:
    """The mention with only these (relation, parent) pairs; without any, a new mention or None."""
    if not pairs:
        if mention.source == "KG" or is_literal(mention.id):
            return None
        pairs = [(NEW, mention.id)]
    relations, parents = zip(*pairs, strict=True)
    return Mention(mention.start, mention.end, mention.id, mention.source, relations, parents)
