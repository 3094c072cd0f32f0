"""A graph with a simple structure that vectors can learn."""

from __future__ import annotations

from kglm.kg.embedding.transe import TransEConfig
from kglm.kg.embedding.triples import Triples

SMALL = TransEConfig(dim=8, epochs=3, batch=16, held_out=20, learning_rate=0.1)


def ring(count: int = 60) -> list[tuple[str, str, str]]:
    """Facts of people who know their neighbours on a ring, live in one of four towns and have a date of birth."""
    facts = [(f"Q{n}", "P1", f"Q{(n + step) % count}") for n in range(count) for step in (1, 2, 3)]
    facts += [(f"Q{n}", "P2", f"Q{1000 + n % 4}") for n in range(count)]
    facts += [(f"Q{n}", "P569", f"T::9::+{1900 + n}-00-00T00:00:00Z") for n in range(count)]
    facts += [(f"Q{n}", "P569", f"T::9::+{1901 + n}-00-00T00:00:00Z") for n in range(count)]
    facts += [(f"Q{n}", "P1082", f"V::{n}.0000::1") for n in range(0, count, 2)]
    facts += [(f"Q{n}", "P2:P1082", f"V::{n + 1}.0000::1") for n in range(0, count, 3)]
    return facts


def as_set(triples: Triples) -> set[tuple[int, int, int]]:
    return set(zip(*(column.tolist() for column in triples), strict=True))
