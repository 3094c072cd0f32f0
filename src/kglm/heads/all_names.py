"""The names of all entities of a graph as one trie: how a name that has begun may go on.

When the base says the first subwords of a name ("Marie S"), the graph may say the rest ("kłodowska"). The next subword
is drawn among those with which some name of the graph goes on,

    p(s | prefix) ∝ W(prefix s)^γ exp(β z_s),      W the number of facts of the entities with that beginning,

with the base's scores z and learned γ and β. The trie is an array of the names as rows of subwords, sorted, so that a
prefix is a range of rows. It is stored beside the graph for each base, `KG.subwords-BASE/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.errors import KglmError
from kglm.files.artefact import Artefact, Writer
from kglm.kg.caches import cached_versions, discard_damaged, require_manifest, save_cache
from kglm.kg.graph import KnowledgeGraph
from kglm.model.arrays import Floats
from kglm.pretrained.base import BaseModel
from kglm.pretrained.subwords import Subwords
from kglm.progress import progress

SUFFIX = ".subwords"
MAX_SUBWORDS = 16
"""Subwords of a name; the rest of a longer one is left to the base."""
MAX_CHILDREN = 512
"""Ways to go on of which the most frequent ones are followed."""
BATCH = 20_000
END = -1
"""Fills the rows of names after their last subword."""


class Range(NamedTuple):
    """Rows of the names with a prefix of this length."""

    first: int
    end: int
    depth: int


class Continuations(NamedTuple):
    """How the names of a range go on."""

    subwords: npt.NDArray[np.int32]
    log_weights: Floats
    ranges: list[Range]
    ends: float
    """Share of the weight of names that end here."""


class AllNames:
    """All names of a graph's entities, with a leading blank, as sorted rows of subwords."""

    def __init__(self, row_NL: npt.NDArray[np.int32], weight_N: Floats) -> None:
        """`row_NL` sorted; `weight_N` the weight of each name."""
        self._row_NL = row_NL
        self._weight_N = weight_N
        self.whole = Range(0, len(row_NL), 0)
        self.continuations = lru_cache(1 << 16)(self._continuations)
        self.after = lru_cache(1 << 18)(self._after)

    @classmethod
    def of(cls, graph: KnowledgeGraph, subwords: Subwords, *, any_case: bool = False) -> AllNames:
        """Read the names of a graph that begin with a capital, or all."""
        nodes = [node for node in range(len(graph)) if not graph.are_literals([node])[0]]
        degree = graph.degrees(nodes)
        rows: list[npt.NDArray[np.int32]] = []
        weights: list[float] = []
        with progress("reading the names", len(nodes), "entities") as advance:
            for start in range(0, len(nodes), BATCH):
                texts, counts = [], []
                for node, facts in zip(
                    nodes[start : start + BATCH], degree[start : start + BATCH].tolist(), strict=True
                ):
                    for text in dict.fromkeys(graph.names(node)):
                        if any_case or (len(text) > 2 and text[:1].isupper()):
                            texts.append(f" {text}")
                            counts.append(1.0 + facts)
                found = subwords.encode_many(texts)
                block = np.full((len(found), MAX_SUBWORDS), END, np.int32)
                for row, ids in zip(block, found, strict=True):
                    row[: min(len(ids), MAX_SUBWORDS)] = ids[:MAX_SUBWORDS]
                rows.append(block)
                weights += counts
                advance(min(BATCH, len(nodes) - start))
        row_NL = np.concatenate(rows) if rows else np.zeros((0, MAX_SUBWORDS), np.int32)
        order = np.lexsort(row_NL.T[::-1])
        return cls(row_NL[order], np.array(weights)[order])

    @classmethod
    def stored(cls, graph: KnowledgeGraph, base: BaseModel) -> AllNames:
        """The names of a stored graph for a base, kept beside the graph; where nothing can be written, read anew."""
        suffix = f"{SUFFIX}-{base.digest}"
        for directory, generation in cached_versions(graph.store, suffix):
            if generation > graph.generation:
                continue
            try:
                artefact = Artefact.open(directory)
                require_manifest(artefact)
                return cls(artefact.array("rows", np.int32, 2), artefact.array("weights", np.float64))
            except KglmError as error:
                if directory.exists():  # else another process has replaced it
                    discard_damaged(directory, error)
        found = cls.of(graph, base.subwords)

        def write(writer: Writer) -> None:
            writer.array("rows", found._row_NL)
            writer.array("weights", found._weight_N)

        with suppress(KglmError):  # the folder of the graph cannot be written
            save_cache(graph.store, suffix, graph.generation, write)
        return found

    def begun(self, ids: Sequence[int]) -> Range | None:
        """The names that begin with some subwords; None if there are none."""
        found: Range | None = self.whole
        for id in ids:
            found = None if found is None else self.after(found, id)
        return found

    def _after(self, where: Range, id: int) -> Range | None:
        """The names of a range that go on with a subword."""
        if where.depth >= MAX_SUBWORDS:
            return None
        column = self._row_NL[where.first : where.end, where.depth]
        first, end = int(column.searchsorted(id)), int(column.searchsorted(id, "right"))
        return Range(where.first + first, where.first + end, where.depth + 1) if first < end else None

    def _continuations(self, where: Range) -> Continuations:
        if where.depth >= MAX_SUBWORDS:
            return Continuations(np.zeros(0, np.int32), np.zeros(0), [], 1.0)
        column = self._row_NL[where.first : where.end, where.depth]
        weight_N = self._weight_N[where.first : where.end]
        starts = np.flatnonzero(np.diff(column, prepend=END - 1))
        ids, weights = column[starts], np.add.reduceat(weight_N, starts)
        ends = np.append(starts[1:], len(column))
        ended = float(weights[ids == END].sum() / weights.sum())
        kept = np.flatnonzero(ids != END)
        if len(kept) > MAX_CHILDREN:
            kept = np.sort(kept[np.argpartition(-weights[kept], MAX_CHILDREN)[:MAX_CHILDREN]])
        ranges = [
            Range(where.first + int(starts[k]), where.first + int(ends[k]), where.depth + 1) for k in kept.tolist()
        ]
        return Continuations(ids[kept], np.log(weights[kept]), ranges, ended)
