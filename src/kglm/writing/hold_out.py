"""Hold entities and wordings out of the training texts, to measure with them.

The training texts state no fact of a held-out entity, in either direction, so they never mention it (other entities may
share its name: "Barack Obama Sr."). Questions ask about it in held-out wordings. Most words of these wordings occur in
training wordings of the same relation or in its names; an idiom that occurs nowhere else ("first saw the light of day")
can only be guessed.
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
"""An entity with more facts is never drawn: too many facts of other entities would be held out with it."""


class HoldOut(NamedTuple):
    """Entities to write about, held-out entities, and the facts of the latter by ids: (head, relation, tail)."""

    written: list[int]
    held: list[int]
    facts: list[tuple[str, str, str]]
    """All facts of the held-out entities, with the entity as head: relations may be reversed."""

    def facts_of(self, relations: Collection[str]) -> list[tuple[str, str, str]]:
        """Held-out facts of some relations."""
        return [fact for fact in self.facts if fact[1] in relations]


def hold_out(
    graph: KnowledgeGraph, topics: Iterable[int], count: int, *, always: Iterable[str] = (), seed: int = 0
) -> HoldOut:
    """Draw `count` topics to hold out; `always` are ids that are held out with every seed."""
    topics = list(topics)
    eligible = [node for node in topics if len(graph.edges(node).tail) <= HUB]
    drawn = random.Random(seed).sample(eligible, min(count, len(eligible)))
    held = {*drawn, *map(graph.number, always)}
    return HoldOut(
        [node for node in topics if node not in held],
        sorted(held),
        [fact for node in sorted(held) for fact in _facts(graph, node)],
    )


def redraw_held_wordings(wordings: Wordings, seed: int) -> Wordings:
    """The same wordings with another draw of the held-out ones, as many of every group as before."""
    rng = random.Random(seed)
    return replace(
        wordings,
        sentences={relation: _redrawn(group, rng) for relation, group in wordings.sentences.items()},
        asides={relation: _redrawn(group, rng) for relation, group in wordings.asides.items()},
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
    """For each relation, the words of its names and of its training wordings."""
    found = {relation: _words(*graph.relation_names(relation)) for relation in wordings.sentences}
    kinds = [kind for names in wordings.kinds.values() for kind in names]
    for wording in wordings.all():
        if not wording.held:
            words = _words(*(text for piece in wording.pieces for text in _texts(piece, kinds)))
            for relation in wording.relations:
                found[relation] = found.get(relation, frozenset()) | words
    return found


def has_unseen_word(row: dict[str, Any], seen: dict[str, frozenset[str]]) -> bool:
    """True if a question has a content word outside of the `training_words` of its relation."""
    start, end = row["entity_indices"]
    words = {word.casefold() for word in (*row["prefix"][:start], *row["prefix"][end:]) if is_content(word)}
    return not words <= seen.get(row["relation_id"], frozenset())


def _words(*texts: str) -> frozenset[str]:
    return frozenset(word.casefold() for text in texts for word in tokenizer().words(text))


def _texts(piece: str | Slot, kinds: Sequence[str]) -> Sequence[str]:
    """Texts that a piece of a wording may become, without names of entities."""
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
