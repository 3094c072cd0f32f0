"""The last words of a prompt may be the beginning of a name, of which the rest is to come: "was born on August".

Who links a text looks for whole names. So where the last words begin a name that some fact of the mentioned entities
leads to, whether it is meant is asked of the model, word by word:

    p(z_≤t | x_≤t) ∝ p(z_<t | x_<t) p(x_t, z_t | x_<t, z_<t)

by the enumeration of the next word, of which the most probable annotations are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import NamedTuple

from kglm.answer.generate import steps
from kglm.answer.next_word import Derivation, NextWordConfig, NextWords, next_words
from kglm.answer.reading import Annotation, Reading, Span, read
from kglm.marginal.prepared_text import Parts
from kglm.model.histories import CONTINUE, NONE
from kglm.model.kglm import Kglm
from kglm.text.vocabulary import UNKNOWN, Vocabulary

MOST = 8
"""Annotations that are kept."""
LEAST = 1e-3
"""Less probable ones are left out."""
FACTS = 5000
"""Facts of the mentioned ones that are looked through."""


class _Branch(NamedTuple):
    """An annotation of the words so far, and the reading that it gives."""

    weight: float
    reading: Reading
    spans: tuple[Span, ...]


def with_running(
    parts: Parts, model: Kglm, words: Sequence[str], annotations: Sequence[tuple[float, Annotation]]
) -> list[tuple[float, Annotation]]:
    """The annotations of a prompt, also those in which its last words begin a name, each with its probability.

    `words` are without `@@START@@`.
    """
    spans = [span for _, annotation in annotations for span in annotation]
    first = max((span.end for span in spans), default=len(words))
    begun = beginning(parts, words[first:], {span.node for span in spans})
    if not begun:
        return list(annotations)
    found = read_on(parts, model, words, len(words) - begun, annotations)
    return [(p, spans) for p, spans in found if p >= LEAST]


def beginning(parts: Parts, words: Sequence[str], mentioned: Collection[int]) -> int:
    """How many of the last words begin a name of someone whom a fact of the mentioned leads to; 0 if none do."""
    tails = (tail for node in sorted(mentioned) for tail in parts.graph.edges(node).tail.tolist())
    reached = set(islice(tails, FACTS))
    names = {name for tail in reached for name in parts.aliases[tail].names if name[0] in words}
    for start in range(len(words)):
        said = tuple(words[start:])
        if any(len(name) > len(said) and name[: len(said)] == said for name in names):
            return len(said)
    return 0


def read_on(
    parts: Parts,
    model: Kglm,
    words: Sequence[str],
    start: int,
    annotations: Sequence[tuple[float, Annotation]],
    *,
    limits: NextWordConfig | None = None,
    most: int = MOST,
) -> list[tuple[float, Annotation]]:
    """Annotations of all words, given those of the words before `start`: the most probable, as if these were all."""
    before = read(parts, model, words[:start], annotations)
    weighed = zip(before.weight_K.tolist(), annotations, strict=True)
    branches = [_Branch(weight, before.only(k), tuple(spans)) for k, (weight, (_, spans)) in enumerate(weighed)]
    for place in range(start, len(words)):
        found = [
            (branch.weight * p, branch, column, node)
            for branch in branches
            for (column, node), p in steps(
                _reasons(next_words(branch.reading, limits), words[place], parts.vocabulary)
            ).items()
        ]
        kept = sorted(found, key=lambda way: -way[0])[:most]
        branches = [_longer(branch, words[place], place, column, node, p) for p, branch, column, node in kept]
    total = sum(branch.weight for branch in branches)
    return [(branch.weight / total, branch.spans) for branch in branches]


def _longer(branch: _Branch, word: str, place: int, column: int, node: int, weight: float) -> _Branch:
    """The branch with one more word, which came by this step."""
    spans = branch.spans
    if column == CONTINUE:
        spans = (*spans[:-1], spans[-1]._replace(end=place + 1))
    elif column != NONE:
        spans = (*spans, Span(place, place + 1, node))
    return _Branch(weight, branch.reading.step(word, column, node), spans)


def _reasons(found: NextWords, word: str, vocabulary: Vocabulary) -> list[Derivation]:
    """The ways to a word. One that is not in the vocabulary is copied, or else said as the unknown word."""
    reasons = found.derivations(word)
    if word in vocabulary:
        return reasons
    copying = {reason.entity for reason in reasons}
    return reasons + [reason for reason in found.derivations(UNKNOWN) if reason.entity not in copying]
