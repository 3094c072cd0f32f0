"""Link events: a function of the text so far, however the text arrives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kglm.heads.links import LinkEvents, links_of
from kglm.heads.local import Link, LocalEntities, sentence_starts
from kglm.heads.passage import Passage
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.linker import Linker
from kglm.text.document import START
from support.worlds import make_store

FACTS = (
    ("Q1", "P31", "Q5"),
    ("Q1", "P21", "Q6"),
    ("Q1", "P27", "Q2"),
    ("Q2", "P31", "Q8"),
    ("Q3", "P31", "Q9"),
    ("Q3", "P17", "Q4"),
    ("Q10", "P17", "Q4"),
    ("Q12", "P17", "Q4"),
)
NAMES = {
    "Q1": ("Marie Curie",),
    "Q2": ("Poland", "P."),
    "Q3": ("Paris",),
    "Q4": ("France",),
    "Q5": ("human",),
    "Q6": ("female",),
    "Q8": ("country",),
    "Q9": ("city",),
    "Q10": ("Paris Town Hall",),
    "Q12": ("Paris", "Pari"),
    "P31": ("instance of",),
    "P21": ("sex or gender",),
    "P27": ("country of citizenship",),
    "P17": ("country",),
}
PIECES = (
    "Marie", " Marie", " Curie", "'s", " Par", "is", " Paris", " Town", " Hall", " Poland", " P", ".", " She", " she",
    " it", " It", " is", " clear", " that", " the", " city", ",", " “", "”", " of", " Hilton", "—", " in", "n't",
    "\n\n", " France", "-", " 3", "ian", " U", "S",
)  # fmt: skip
"""Subwords of made-up texts: fragments of words, sentence ends, names inside of names."""


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Linker:
    return Linker(KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg"), FACTS, NAMES)))


def holding(links: list[Link], position: int) -> set[tuple[int, int, int, float]]:
    """What is known when the subword at a position is predicted."""
    return {(link.start, link.end, link.node, link.p) for link in links if link.holds(position)}


def events(linker: Linker, pieces: list[str]) -> list[Link]:
    found = LinkEvents(linker)
    for piece in pieces:
        found.add(piece)
    return found.links


def text_of(pieces: list[str]) -> Passage:
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    count = len(pieces)
    words_T, begins_T = np.arange(1, count + 1), np.ones(count, np.bool_)
    return Passage("", "".join(pieces), [0] * count, ends, words_T, begins_T, [START, *pieces])


pieces = st.lists(st.sampled_from(PIECES), max_size=30)


@settings(max_examples=150, deadline=None)
@given(pieces, pieces)
def test_no_link_depends_on_later_words(linker: Linker, before: list[str], after: list[str]) -> None:
    alone, longer = events(linker, before), events(linker, [*before, *after])
    for position in range(len(before) + 1):
        assert holding(alone, position) == holding(longer, position)


@settings(max_examples=50, deadline=None)
@given(pieces)
def test_a_whole_text_has_the_links_of_its_pieces(linker: Linker, before: list[str]) -> None:
    assert links_of(text_of(before), linker) == events(linker, before)


@settings(max_examples=50, deadline=None)
@given(pieces, pieces, pieces)
def test_a_fork_goes_on_alone(linker: Linker, before: list[str], first: list[str], second: list[str]) -> None:
    found = LinkEvents(linker)
    for piece in before:
        found.add(piece)
    fork = found.fork()
    for piece in first:
        found.add(piece)
    for piece in second:
        fork.add(piece)
    assert found.links == events(linker, [*before, *first])
    assert fork.links == events(linker, [*before, *second])


def shown(linker: Linker, pieces: list[str]) -> list[tuple[str, str, int, int | None]]:
    """Text, entity, first and last position of the links."""
    end = np.cumsum([0, *map(len, pieces)])
    text = "".join(pieces)
    return [
        (
            text[end[link.start] : end[link.end]].strip(),
            linker.graph.id(link.node),
            link.first,
            None if link.until > len(pieces) else link.until,
        )
        for link in events(linker, pieces)
        if link.p > 0.5
    ]


def test_names_hold_from_their_end_on(linker: Linker) -> None:
    assert ("Poland", "Q2", 2, None) in shown(linker, ["In", " Poland", " it", " was", " cold"])


def test_a_longer_name_takes_the_place_of_a_shorter_one(linker: Linker) -> None:
    found = shown(linker, ["We", " saw", " Poland", " Paris", " Town", " Hall", " and", " left"])
    assert [(text, node) for text, node, _, until in found if until is None and "Hall" in text] == [
        ("Paris Town Hall", "Q10")
    ]
    assert all(until is not None and until <= 6 for text, _, _, until in found if text == "Paris")


def test_the_beginning_of_another_word_is_taken_back(linker: Linker) -> None:
    found = shown(linker, ["In", " Poland", "ian", " towns"])
    assert [(first, until) for text, _, first, until in found if text == "Poland"] == [(2, 3)]


def test_a_sentence_ends_when_the_next_one_begins(linker: Linker) -> None:
    found = shown(linker, ["Marie", " Curie", " left", " Poland", ".", " She", " was", " ill", "."])
    assert ("She", "Q1") in [each[:2] for each in found]


def test_given_spans_are_certain(linker: Linker) -> None:
    found = LinkEvents(linker, [(3, 8, linker.graph.number("Q4"))])
    for piece in ("In", " Paris", " it", " is"):
        found.add(piece)
    assert Link(1, 2, linker.graph.number("Q4"), 1.0, 2) in found.links


def test_links_that_are_taken_back_are_no_parents_any_more(linker: Linker) -> None:
    graph = linker.graph
    paris, hall = graph.number("Q3"), graph.number("Q10")
    links = [Link(0, 1, paris, 0.8, 1, 3), Link(0, 3, hall, 0.9, 3), Link(4, 5, paris, 0.5, 5)]
    local = LocalEntities(graph, links)
    places = local.places(7, sentence_starts(text_of(["a"] * 7)))
    slot = local.slot_of[paris]
    p_T = np.exp(places.log_p_TP[:, slot])
    assert np.allclose(p_T, [0, 0.8, 0.8, 0, 0, 0.5, 0.5])
    assert places.subject_TP[:, slot].tolist() == [False, True, True, False, False, False, False]
    assert places.subject_TP[:, local.slot_of[hall]].tolist() == [False, False, False, True, True, True, True]


def test_the_last_mention_before_one_that_is_taken_back_counts_again(linker: Linker) -> None:
    graph = linker.graph
    paris = graph.number("Q3")
    places = LocalEntities(graph, [Link(0, 1, paris), Link(2, 3, paris, 0.5, 3, 4)]).places(
        6, sentence_starts(text_of(["a"] * 6))
    )
    alone = LocalEntities(graph, [Link(0, 1, paris)]).places(6, sentence_starts(text_of(["a"] * 6)))
    assert places.bucket_TP[3, 0] < alone.bucket_TP[3, 0]
    assert places.bucket_TP[4:, 0].tolist() == alone.bucket_TP[4:, 0].tolist()
