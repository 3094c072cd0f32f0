"""What is kept out of the texts to train on, so that there is something to measure with.

Nothing is said of an entity that is kept: none of its facts, whichever way they are stored, so that it is never
mentioned (others may share its name: "Barack Obama Sr."). It is asked about afterwards, in wordings that are held out
as well. Who has read the rest, and knows what relations are called, has met the words of most such wordings said of the
same relation; an idiom that is met nowhere else ("first saw the light of day") can only be guessed at.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kglm.kg.graph import KnowledgeGraph
from kglm.text.function_words import is_content
from kglm.text.tokenizer import tokenizer
from kglm.writing.english import verb
from kglm.writing.wordings import Slot, Wording, Wordings

HUB = 40
"""Whoever has more facts is not kept: too many others could not be written about."""


class HoldOut(NamedTuple):
    """Entities to write about, those that are kept, and the facts of these by ids: (head, relation, tail)."""

    written: list[int]
    held: list[int]
    facts: list[tuple[str, str, str]]
    """All that the held ones are part of, seen from them: relations may be reversed."""

    def facts_of(self, relations: Collection[str]) -> list[tuple[str, str, str]]:
        """Facts to ask for."""
        return [fact for fact in self.facts if fact[1] in relations]


def hold_out(
    graph: KnowledgeGraph, topics: Iterable[int], count: int, *, always: Iterable[str] = (), seed: int = 0
) -> HoldOut:
    """Keep so many of the topics, drawn by the seed; `always` are ids that are kept whatever is drawn."""
    topics = list(topics)
    few = [node for node in topics if len(graph.edges(node).tail) <= HUB]
    drawn = random.Random(seed).sample(few, min(count, len(few)))
    held = {*drawn, *map(graph.number, always)}
    return HoldOut(
        [node for node in topics if node not in held],
        sorted(held),
        [fact for node in sorted(held) for fact in _facts(graph, node)],
    )


def redraw_held_wordings(wordings: Wordings, seed: int) -> Wordings:
    """The same wordings, of which others are held out: of every group as many as before, drawn by the seed."""
    rng = random.Random(seed)
    return replace(
        wordings,
        sentences={relation: _redrawn(said, rng) for relation, said in wordings.sentences.items()},
        asides={relation: _redrawn(said, rng) for relation, said in wordings.asides.items()},
        openings=_redrawn(wordings.openings, rng),
        together=_redrawn(wordings.together, rng),
    )


def _redrawn(wordings: Sequence[Wording], rng: random.Random) -> tuple[Wording, ...]:
    groups: dict[Any, list[Wording]] = defaultdict(list)
    for wording in wordings:
        groups[wording.of, wording.to, wording.alive, wording.proper, wording.objects, wording.ends_in_object].append(
            wording
        )
    held = {
        wording.text
        for group in groups.values()
        for wording in rng.sample(group, sum(wording.held for wording in group))
    }
    return tuple(replace(wording, held=wording.text in held) for wording in wordings)


def training_words(wordings: Wordings, graph: KnowledgeGraph) -> dict[str, frozenset[str]]:
    """By relation, the words of its names, and of wordings to train on that say it."""
    found = {relation: _words(*graph.relation_names(relation)) for relation in wordings.sentences}
    kinds = [kind for names in wordings.kinds.values() for kind in names]
    for wording in wordings.all():
        if not wording.held:
            words = _words(*(text for piece in wording.pieces for text in _texts(piece, kinds)))
            for relation in wording.relations:
                found[relation] = found.get(relation, frozenset()) | words
    return found


def has_unseen_word(row: dict[str, Any], said: dict[str, frozenset[str]]) -> bool:
    """Whether a question has a word, of those that say something, that is nowhere said of its relation."""
    start, end = row["entity_indices"]
    words = {word.casefold() for word in (*row["prefix"][:start], *row["prefix"][end:]) if is_content(word)}
    return not words <= said.get(row["relation_id"], frozenset())


def _words(*texts: str) -> frozenset[str]:
    return frozenset(word.casefold() for text in texts for word in tokenizer().words(text))


def _texts(piece: str | Slot, kinds: Sequence[str]) -> Sequence[str]:
    """What may stand there, but for names."""
    if isinstance(piece, str):
        return (piece,)
    if piece.kind == "verb":
        return [verb(piece.form, plural=plural, past=past) for plural in (True, False) for past in (True, False)]
    return kinds if piece.kind == "kind" else piece.options


def _facts(graph: KnowledgeGraph, node: int) -> list[tuple[str, str, str]]:
    relations, tails = graph.edges(node)
    id = graph.id(node)
    return [
        (id, graph.relation_id(relation), graph.id(tail))
        for relation, tail in zip(relations.tolist(), tails.tolist(), strict=True)
        if tail != node
    ]
