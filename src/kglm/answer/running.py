"""Unfinished names: the last words of a prompt may be the beginning of a name, as in "was born on August".

The linker finds whole names only. So where the last words begin a name that some fact of the mentioned entities leads
to, the model decides, word by word, whether it is meant:

    p(z_≤t | x_≤t) ∝ p(z_<t | x_<t) p(x_t, z_t | x_<t, z_<t)

by enumerating the next word. The most probable annotations are kept. It also decides if the last words are linked
already but begin a date or quantity that a fact leads to: the August of a birthday, not the month.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from kglm.answer.generate import steps
from kglm.answer.next_word import MAX_TAILS, Derivation, NextWordConfig, NextWords, next_words
from kglm.answer.reading import Annotation, Reading, Span, read
from kglm.kg.literals.literal import is_text
from kglm.kg.name_prefixes import nodes_named_like
from kglm.model.aliases import TEXT_WORDS
from kglm.model.histories import CONTINUE, NONE
from kglm.model.kglm import Kglm
from kglm.model.local_graph import EdgeGroups
from kglm.model.text import Components
from kglm.text.vocabulary import UNKNOWN, Vocabulary

MOST = 8
"""Annotations to keep."""
LEAST = 1e-3
"""Probability below which an annotation is dropped."""
LITERALS = 1000
"""Dates and quantities of the mentioned entities whose texts are compared with the last words."""


class _Branch(NamedTuple):
    """An annotation of the words so far, its probability, and the reading of the text with it."""

    weight: float
    reading: Reading
    spans: tuple[Span, ...]


def with_running(
    components: Components, model: Kglm, words: Sequence[str], annotations: Sequence[tuple[float, Annotation]]
) -> list[tuple[float, Annotation]]:
    """Annotations of a prompt with their probabilities, including those in which its last words begin a name.

    `words` are without `@@START@@`.
    """
    start = unfinished_name_start(components, words, [span for _, annotation in annotations for span in annotation])
    if start == len(words):
        return list(annotations)
    before = [(p, [span for span in annotation if span.end <= start]) for p, annotation in annotations]
    found = extend_annotations(components, model, words, start, before)
    return [(p, spans) for p, spans in found if p >= LEAST]


def unfinished_name_start(components: Components, words: Sequence[str], spans: Sequence[Span]) -> int:
    """Position of the first of the last words that begin a name, or the number of words if they begin none.

    They are words after all mentions, or the last words, linked or not, if these begin a date or quantity.
    """
    first = max((span.end for span in spans), default=len(words))
    if length := unfinished_name_length(components, words[first:], {span.node for span in spans}):
        return len(words) - length
    start = len(words) - unfinished_name_length(components, words, {span.node for span in spans}, only_literals=True)
    known = {span.node for span in spans if span.end <= start}
    return start if unfinished_name_length(components, words[start:], known, only_literals=True) else len(words)


def unfinished_name_length(
    components: Components, words: Sequence[str], mentioned: Collection[int], *, only_literals: bool = False
) -> int:
    """Length of the longest suffix of `words` that begins a name of a neighbour of the mentioned entities, or 0.

    Neighbours by facts that `next_words` does not enumerate are left out. Names are split into words only if they begin
    with one of the words, so a hub costs little more than other entities. `only_literals`: dates and quantities only.
    """
    graph, aliases = components.features.graph, components.features.aliases
    if not words or not mentioned:
        return 0
    groups = (EdgeGroups.of(graph, node).with_at_most(MAX_TAILS) for node in sorted(mentioned))
    reached = np.unique(np.concatenate([group.tail for group in groups])).astype(np.int64)
    literal = graph.are_literals(reached)
    texts = any(is_text(graph.id(node)) for node in reached[literal][:LITERALS].tolist())
    words = words[max(len(words) - (TEXT_WORDS if texts else aliases.shape[1]) + 1, 0) :]  # no name is longer
    likely = reached[literal][:LITERALS].tolist()
    if not only_literals:
        likely += nodes_named_like(graph, reached[~literal], set(words)).tolist()
    names = {name for tail in likely for name in aliases[tail].names if name[0] in words}
    for start in range(len(words)):
        prefix = tuple(words[start:])
        if any(len(name) > len(prefix) and name[: len(prefix)] == prefix for name in names):
            return len(prefix)
    return 0


def extend_annotations(
    components: Components,
    model: Kglm,
    words: Sequence[str],
    start: int,
    annotations: Sequence[tuple[float, Annotation]],
    *,
    limits: NextWordConfig | None = None,
    most: int = MOST,
) -> list[tuple[float, Annotation]]:
    """The most probable annotations of all words, given those of the words before `start`; they sum to 1."""
    before = read(components, model, words[:start], annotations)
    weighed = zip(before.weight_S.tolist(), annotations, strict=True)
    branches = [_Branch(weight, before.only(s), tuple(spans)) for s, (weight, (_, spans)) in enumerate(weighed)]
    for place in range(start, len(words)):
        found = [
            (branch.weight * p, branch, column, node)
            for branch in branches
            for (column, node), p in steps(
                _reasons(next_words(branch.reading, limits), words[place], components.vocabulary)
            ).items()
        ]
        kept = sorted(found, key=lambda step: -step[0])[:most]
        branches = [_extended(branch, words[place], place, column, node, p) for p, branch, column, node in kept]
    total = sum(branch.weight for branch in branches)
    return [(branch.weight / total, branch.spans) for branch in branches]


def _extended(branch: _Branch, word: str, place: int, column: int, node: int, weight: float) -> _Branch:
    """The branch with one more word, read by this step."""
    spans = branch.spans
    if column == CONTINUE:
        spans = (*spans[:-1], spans[-1]._replace(end=place + 1))
    elif column != NONE:
        spans = (*spans, Span(place, place + 1, node))
    return _Branch(weight, branch.reading.step(word, column, node), spans)


def _reasons(found: NextWords, word: str, vocabulary: Vocabulary) -> list[Derivation]:
    """Explanations of a word. One outside of the vocabulary is copied, or else it is the unknown word."""
    reasons = found.derivations(word)
    if word in vocabulary:
        return reasons
    copying = {reason.entity for reason in reasons}
    return reasons + [reason for reason in found.derivations(UNKNOWN) if reason.entity not in copying]
