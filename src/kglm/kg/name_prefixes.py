"""Which of many nodes have a name that begins with one of some texts: vectorised over the names in the arrays.

A hub has hundreds of thousands of neighbours, and splitting all of their names into words takes seconds. Comparing
their first bytes takes milliseconds, and leaves few names to split.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from kglm.kg.graph import KnowledgeGraph

Nodes = npt.NDArray[np.int64]


def nodes_named_like(graph: KnowledgeGraph, nodes: npt.NDArray[np.integer], beginnings: Collection[str]) -> Nodes:
    """The nodes with a stored name that begins with one of the texts, sorted; literals have no stored names."""
    base, starts = graph.overlay.base, tuple(filter(None, beginnings))
    stored = nodes[nodes < len(base)].astype(np.int64)
    first_N, count_N = base.name_first[stored], base.name_first[stored + 1] - base.name_first[stored]
    place_Y = np.arange(count_N.sum()) + np.repeat(first_N - (np.cumsum(count_N) - count_N), count_N)
    begin_Y, length_Y = base.name_offsets[place_Y], base.name_offsets[place_Y + 1] - base.name_offsets[place_Y]
    byte_Y = base.name_bytes[begin_Y] if len(base.name_bytes) else begin_Y.astype(np.uint8)
    owner_Y = np.repeat(stored, count_N)
    new = nodes[nodes >= len(base)].tolist()
    found = [node for node in new if any(name.startswith(starts) for name in graph.names(node))]
    for raw in {text.encode() for text in starts}:
        left = np.flatnonzero((byte_Y == raw[0]) & (length_Y >= len(raw)))
        for place, byte in enumerate(raw[1:], 1):
            left = left[base.name_bytes[begin_Y[left] + place] == byte]
        found += owner_Y[left].tolist()
    return np.unique(np.array(found, np.int64))
