"""Candidates at each position of a text: entities whose names stand there, as an annotator would find them.

Four kinds: entities with a name that begins at the position; dates and quantities of their facts; entities that the
text names in full elsewhere, at a single word of the name ("Obama"); and at a pronoun, the entities named first and
last.
Among many namesakes the most probable are kept, first those with a fact that links them to another entity of the text.
The particle filter also covers other entities; the beam does not, and is a lower bound.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import numpy as np

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.linking.coreference import PRONOUNS
from kglm.linking.name_index import NameIndex
from kglm.marginal.cache import NO_CACHE, Cache
from kglm.marginal.entity_words import WordTable
from kglm.marginal.prepared_text import AllEntities, PreparedText
from kglm.marginal.windows import WINDOW, LatentWindows
from kglm.model.aliases import AliasTable
from kglm.model.kglm import Kglm
from kglm.model.text import Components, Text
from kglm.text.document import Document

NAMESAKES = 8
"""Maximum number of candidates that share a name."""
MAX_ANTECEDENTS = 3
"""Number of entities named last that a pronoun may refer to."""
MAX_LITERALS = 5_000
"""Dates and quantities of one entity whose texts are looked for."""
KEPT_LENGTHS = 1 << 16
"""Number of lengths that are kept."""
SURPRISE = -3.0
"""log p of a plain word above which it is not tried as a part of a name."""


class NameCandidates:
    """Candidates of one text."""

    complete = False

    def __init__(
        self,
        text: Text,
        graph: KnowledgeGraph,
        aliases: AliasTable,
        names: NameIndex,
        latent: LatentWindows,
        words: WordTable,
        *,
        namesakes: int = NAMESAKES,
    ) -> None:
        self._text = text
        self._aliases = aliases
        self._length: dict[tuple[int, int], int] = {}
        targets = text.surface[1:]
        found: list[dict[int, None]] = [{} for _ in targets]
        for t, _, nodes in names.spans(targets):
            found[t].update(dict.fromkeys(node for node in nodes if targets[t] in aliases[node].surface))
        linked = _linked(graph, sorted({node for nodes in found for node in nodes}))
        kept = _most_probable(found, linked, latent, words, namesakes)
        _add_literals(kept, targets, graph, aliases)
        _add_parts(kept, targets, aliases, words)
        _add_pronoun_candidates(kept, targets, graph)
        self._at = [sorted(nodes) for nodes in kept]

    def at(self, t: int) -> Sequence[int]:
        return self._at[t]

    def length(self, t: int, node: int) -> int:
        """Number of words from position t on that are consecutive words of one of the entity's names."""
        found = self._length.get((t, node))
        if found is None:
            if len(self._length) >= KEPT_LENGTHS:
                self._length.clear()
            found = self._length[t, node] = _run(self._aliases[node].names, self._text.surface, t + 1)
        return found


def prepare_text(
    components: Components,
    model: Kglm,
    document: Document,
    names: NameIndex,
    cache: Cache = NO_CACHE,
    *,
    window: int = WINDOW,
) -> PreparedText:
    """A text with the candidates of its names."""
    every = AllEntities(len(components.features.graph))
    prepared = PreparedText(components, model, document, every, cache, window=window)
    prepared.candidates = NameCandidates(
        prepared.text, prepared.graph, prepared.aliases, names, prepared.latent, prepared.words
    )
    return prepared


def _run(names: Sequence[Sequence[str]], words: Sequence[str], first: int) -> int:
    """Number of words from index `first` on that are consecutive words of a name; at least 1."""
    longest, words = 1, words[first : first + max(map(len, names), default=0)]
    for name in names:
        for start in range(len(name)):
            length = 0
            while start + length < len(name) and length < len(words) and name[start + length] == words[length]:
                length += 1
            longest = max(longest, length)
    return longest


def _linked(graph: KnowledgeGraph, nodes: Sequence[int]) -> set[int]:
    """Nodes that share a fact with another node of the list."""
    if not nodes:
        return set()
    node_N = np.array(nodes, np.int64)
    edges = graph.edges_of(node_N)
    head = np.repeat(node_N, np.diff(edges.offsets))
    inside = np.isin(edges.tail, node_N) & (edges.tail != head)
    return set(head[inside].tolist()) | set(edges.tail[inside].tolist())


def _most_probable(
    found: Sequence[dict[int, None]], linked: set[int], latent: LatentWindows, words: WordTable, namesakes: int
) -> list[set[int]]:
    """The candidates to keep at each position: linked ones first, then by p(e | new)."""
    pairs = [(t, node) for t, nodes in enumerate(found) for node in nodes]
    kept: list[set[int]] = [set() for _ in found]
    if not pairs:
        return kept
    t_N, node_N = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    score_N = 1e6 * np.isin(node_N, np.fromiter(linked, np.int64, len(linked)))
    for start, stop in map(latent.hidden.bounds, range(len(latent.hidden.ends()))):
        here = slice(*np.searchsorted(t_N, [start, stop]))
        score_N[here] += latent.new_entities_at(start).log_probs(t_N[here], node_N[here])
        words.plain(0.0, start, stop)  # needed later, when the hidden states may be gone
    for place in np.lexsort((node_N, -score_N, t_N)).tolist():
        t, node = pairs[place]
        if len(kept[t]) < namesakes:
            kept[t].add(node)
    return kept


def _add_literals(kept: Sequence[set[int]], targets: Sequence[str], graph: KnowledgeGraph, aliases: AliasTable) -> None:
    """Add dates and quantities of the candidates, where a form of them begins; at most `MAX_LITERALS` of each."""
    heads = sorted({node for nodes in kept for node in nodes})
    tails = [tail[graph.are_literals(tail)][:MAX_LITERALS] for tail in (graph.edges(head).tail for head in heads)]
    nodes_of: dict[tuple[str, ...], list[int]] = {}
    lengths: dict[str, set[int]] = {}
    for node in np.unique(np.concatenate(tails)).tolist() if tails else ():
        for name in aliases[node].names:
            nodes_of.setdefault(name, []).append(node)
            lengths.setdefault(name[0], set()).add(len(name))
    for t, word in enumerate(targets):
        for length in lengths.get(word, ()):
            kept[t].update(nodes_of.get(tuple(targets[t : t + length]), ()))


def _add_parts(kept: Sequence[set[int]], targets: Sequence[str], aliases: AliasTable, words: WordTable) -> None:
    """Add entities that are named in full elsewhere, at single words of their names."""
    times = Counter(node for nodes in kept for node in nodes)
    by_word: dict[str, set[int]] = {}
    for node in times:
        for name in aliases[node].names:
            if len(name) > 1:
                for word in name:
                    by_word.setdefault(word, set()).add(node)
    often = {
        word: heapq.nsmallest(NAMESAKES, nodes, key=lambda node: (-times[node], node))
        for word, nodes in by_word.items()
    }
    for t, word in enumerate(targets):
        if word in often and words.plain_at(t) < SURPRISE:
            kept[t].update(often[word])


def _add_pronoun_candidates(kept: Sequence[set[int]], targets: Sequence[str], graph: KnowledgeGraph) -> None:
    """Add the entities that a pronoun may refer to; of namesakes, the one that the text names most often."""
    times = Counter(node for nodes in kept for node in nodes)
    named: dict[int, None] = {}  # in order of last mention
    first: list[int] = []
    for t, word in enumerate(targets):
        real = [node for node in kept[t] if not is_literal(graph.id(node))]
        if real:
            most = min(real, key=lambda node: (-times[node], node))
            named.pop(most, None)
            named[most] = None
            first = first or [most]
        elif word.casefold() in PRONOUNS:
            kept[t].update([*first, *islice(reversed(named), MAX_ANTECEDENTS)])
