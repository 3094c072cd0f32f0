"""Shared Hypothesis strategies."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from kglm.kg.ids import NEW, REFLEXIVE
from kglm.text.document import END, SOURCES, START, Document, Mention

words = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8).filter(
    lambda word: word not in (START, END)
)
item_ids = st.integers(1, 10**6).map("Q{}".format)
properties = st.integers(1, 9999).map("P{}".format)
stored_relations = st.one_of(properties, st.tuples(properties, properties).map(":".join))
relations = st.one_of(st.just(REFLEXIVE), stored_relations, stored_relations.map("R:{}".format))
dates = st.dates().map(lambda day: f"T::11::+{day.isoformat()}T00:00:00Z")
quantities = st.decimals(-(10**6), 10**6, places=4).map("V::{}::1".format)
entity_ids = st.one_of(item_ids, properties, dates, quantities)


@st.composite
def mentions(draw: st.DrawFn, start: int, end: int) -> Mention:
    id = draw(entity_ids)
    source = draw(st.sampled_from(SOURCES))
    if draw(st.booleans()):
        return Mention(start, end, id, source, (NEW,), (id,))
    pairs = draw(st.lists(st.tuples(relations, item_ids), min_size=1, max_size=4))
    return Mention(start, end, id, source, tuple(r for r, _ in pairs), tuple(p for _, p in pairs))


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Any valid document: sentences with non-overlapping mentions, without mentions, or plain text."""
    sentences = draw(st.lists(st.lists(words, min_size=1, max_size=6), max_size=4))
    tokens = [START] + [token for sentence in sentences for token in (*sentence, END)]
    tokens = tokens if tokens[-1] == END else [*tokens, END]
    cuts = sorted(draw(st.sets(st.integers(0, len(tokens)), max_size=8)))
    spans = [(a, b) for a, b in pairwise(cuts) if draw(st.booleans())]
    found = [draw(mentions(a, b)) for a, b in spans]
    annotated = bool(found) or draw(st.booleans())
    return Document(draw(st.text(st.characters(exclude_categories=("Cs",)))), tokens, found, annotated)
