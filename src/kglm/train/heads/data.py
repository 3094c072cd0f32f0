"""Documents as prepared passages, with the stored features of the base and the clauses before their mentions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from kglm.heads.clauses import clause_texts
from kglm.heads.features import FeatureStore, StoredFeatures
from kglm.heads.links import links_of, text_linker
from kglm.heads.local import Link, annotated_links
from kglm.heads.model import ClauseScores
from kglm.heads.objective import Spans, find_spans
from kglm.heads.passage import Passage, passage
from kglm.heads.prepared import Prepared, prepare
from kglm.heads.tables import GraphTables
from kglm.progress import progress
from kglm.text.document import ANSWER, Document
from kglm.text.encoder import encode_cached

KEPT = 1 << 16
"""Examples of short texts that are kept; preparing one takes longer than a step with it."""
CLAUSES = 8192
"""Clauses that are encoded and stored together."""


class Example(NamedTuple):
    """A passage that is ready for training."""

    prepared: Prepared
    spans: Spans
    clause_MC: torch.Tensor | None
    """Clause before each span."""

    def closer(self, hidden: float = 0.0, rng: random.Random | None = None) -> ClauseScores | None:
        """The sentence encoder's view of the clauses before the spans, a share of them hidden."""
        meanings = self.prepared.tables.meanings
        if meanings is None or self.clause_MC is None or not len(self.spans.start_M):
            return None
        position_M = self.spans.start_M
        kept = torch.tensor([rng is None or rng.random() >= hidden for _ in range(len(position_M))])
        clause_NC = self.clause_MC[kept]
        return ClauseScores(position_M[kept], clause_NC, meanings.similarities(clause_NC))


class Passages:
    """Training passages; each is prepared when it is asked for."""

    def __init__(
        self,
        files: Sequence[Sequence[Document]],
        store: FeatureStore,
        tables: GraphTables,
        max_tails: int,
        label: str,
    ) -> None:
        """`files`: the documents of each file, whose features are stored apart: other files do not change them."""
        self._tables, self._max_tails = tables, max_tails
        self._linker = text_linker(tables.graph)
        self._links: dict[int, list[Link]] = {}
        """Links by the text, of long passages that were asked for."""
        self._examples: dict[int, Example] = {}
        """Short passages that were asked for."""
        self.passages: list[Passage] = []
        self._features: list[tuple[StoredFeatures, int]] = []
        for n, documents in enumerate(files, 1):
            which = f"{label} {n}" if len(files) > 1 else label
            part = []
            with progress(f"{which}: subwords", len(documents), "documents") as advance:
                for document in documents:
                    found = passage(document, store.base.subwords, tables.graph)
                    if found.ids:
                        part.append(found)
                    advance()
            stored = store.of([each.ids for each in part], label=f"{which}: features")
            self._features += [(stored, place) for place in range(len(part))]
            self.passages += part
        self._first_mention = np.cumsum([0, *(len(each.mentions) for each in self.passages)])
        self._clauses = self._encode(store, label)

    def __len__(self) -> int:
        return len(self.passages)

    def sizes(self) -> list[int]:
        """Number of subwords of each passage."""
        return [len(each.ids) for each in self.passages]

    @property
    def words(self) -> int:
        return sum(each.words for each in self.passages)

    def example(self, n: int, *, annotated: bool, short: int) -> Example:
        """Passage n with its entities linked as annotated, or as the linker reads the text, which is as in use.

        Questions are always linked as annotated: their texts have words of the chat format that name nothing. Passages
        of at most `short` subwords are kept: they must be asked for in the same way each time.
        """
        kept = self._examples.get(n)
        if kept is None:
            kept = self._prepare(n, annotated)
            if len(self.passages[n].ids) <= short and len(self._examples) < KEPT:
                self._examples[n] = kept
        return kept

    def _prepare(self, n: int, annotated: bool) -> Example:
        found = self.passages[n]
        annotated = annotated or ANSWER in found.surface
        links = annotated_links(found, self._tables.graph) if annotated else self._text_links(n)
        stored, place = self._features[n]
        prepared = prepare(found, stored[place], self._tables, links, self._max_tails)
        spans = find_spans(prepared)
        clause_MC = None
        if self._clauses is not None:
            row_of = {mention.start: k for k, mention in enumerate(found.mentions, int(self._first_mention[n]))}
            rows = [row_of[start] for start in spans.start_M.tolist()]
            clause_MC = torch.from_numpy(self._clauses[rows].astype(np.float32))
        return Example(prepared, spans, clause_MC)

    def _text_links(self, n: int) -> list[Link]:
        if n not in self._links:
            self._links[n] = links_of(self.passages[n], self._linker)
        return self._links[n]

    def _encode(self, store: FeatureStore, label: str) -> np.ndarray | None:
        """Vectors of the clauses before all mentions; None without a sentence encoder."""
        if self._tables.meanings is None:
            return None
        texts: list[str] = []
        for each in self.passages:
            links = annotated_links(each, self._tables.graph)
            texts += clause_texts(each, links, [mention.start for mention in each.mentions])
        parts = []
        with progress(f"{label}: clauses", len(texts), "clauses") as advance:
            for first in range(0, len(texts), CLAUSES):
                part = texts[first : first + CLAUSES]
                parts.append(
                    encode_cached(self._tables.meanings.encoder, part, store.home / "clauses").astype(np.float16)
                )
                advance(len(part))
        return np.concatenate(parts) if parts else np.zeros((0, 1), np.float16)


def batches(sizes: Sequence[int], limit: int, rng: random.Random) -> list[list[int]]:
    """All passages in random order, grouped into steps of at most `limit` subwords, or one longer passage."""
    order = list(range(len(sizes)))
    rng.shuffle(order)
    found: list[list[int]] = []
    size = limit
    for n in order:
        if size + sizes[n] > limit:
            found.append([])
            size = 0
        found[-1].append(n)
        size += sizes[n]
    return found
