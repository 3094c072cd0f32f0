"""A toy graph with a hub, and counters of what is read from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.store import Store
from support.worlds import make_store

DEGREE = 3000


def hub_store(home: Path, degree: int = DEGREE) -> Path:
    """Q1 has `degree` parts and one country; all parts are of the kind Q2; Q3 is an ordinary entity."""
    parts = [f"Q{100 + number}" for number in range(degree)]
    facts = [("Q1", "P17", "Q30"), ("Q3", "P17", "Q30"), ("Q3", "P527", "Q100"), ("Q3", "P527", "Q101")]
    facts += [fact for part in parts for fact in (("Q1", "P527", part), (part, "P31", "Q2"))]
    names: dict[str, tuple[str, ...]] = {
        "Q1": ("Great List",),
        "Q2": ("kind",),
        "Q3": ("Short List",),
        "Q30": ("Ruritania",),
        "Q31": ("Borduria",),
        "P17": ("country",),
        "P527": ("has part",),
        "P31": ("instance of",),
    }
    names |= {part: (f"Part {part}", f"{part} alias") for part in parts}
    return make_store(home, facts, names)


class Counted:
    """Rows read from the store, and labels made."""

    rows = 0
    labels = 0


@contextmanager
def counting() -> Iterator[Counted]:
    """Count what any graph reads in this block."""
    counted, read_rows, make_label = Counted(), Store.rows, KnowledgeGraph.label

    def rows(self, query, values=()):  # type: ignore[no-untyped-def]
        found = read_rows(self, query, values)
        counted.rows += len(found)
        return found

    def label(self, number):  # type: ignore[no-untyped-def]
        counted.labels += 1
        return make_label(self, number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "rows", rows)
        patch.setattr(KnowledgeGraph, "label", label)
        yield counted
