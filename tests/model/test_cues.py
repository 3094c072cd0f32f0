"""Words before a mention that name a relation, or the kind of a tail. That they enter the model rightly: `toys.cue`."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.graph import KnowledgeGraph
from kglm.model.cues import BLOCK, WINDOW, Cues, TextCues, window
from kglm.text.document import END, START
from support.worlds import make_store

FACTS = (("Q1", "P19", "Q2"), ("Q1", "P569", "Q2"), ("Q1", "P36", "Q3"), ("Q3", "P31", "Q4"), ("Q2", "P131", "Q3"))
NAMES = {
    "Q1": ("Ann",),
    "Q3": ("Ohio",),
    "Q4": ("state of a country",),
    "P19": ("place of birth", "born in"),
    "P569": ("date of birth", "born on"),
    "P36": ("capital", "capital city"),
    "P131": ("in",),
}


@pytest.fixture
def graph(tmp_path: Path) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path, FACTS, NAMES), writable=True)


def named(cues: Cues, text: str) -> dict[str, float]:
    return found_by(cues, text, 0)


def found_by(cues: Cues, text: str, column: int) -> dict[str, float]:
    found_N = cues.relations([START, *text.split()], len(text.split()), 1)[0, :, column]
    return {cues.graph.relation_id(2 * n): float(found_N[n]) for n in np.flatnonzero(found_N).tolist()}


def test_a_name_counts_by_the_share_of_its_words(graph: KnowledgeGraph) -> None:
    cues = Cues(graph, str.split)
    born = named(cues, "Ann was born in")
    assert born["P19"] == 1 and 0.5 <= born["P569"] < 1, "born on has one word of two"
    assert named(cues, "The Capital of Ohio is") == {"P36": 1}
    assert named(cues, "Ann is in") == {}, "words that say nothing name nothing"
    assert named(cues, "Ann sings") == {}


def test_what_stands_right_before_counts_by_itself(graph: KnowledgeGraph) -> None:
    cues = Cues(graph, str.split)
    assert found_by(cues, "Ann was born in", 1) == {"P19": 1}, "not P569: on is not in"
    assert found_by(cues, "Ann was born in the capital", 1) == {"P36": 1}
    assert found_by(cues, "The capital is in", 1) == {}, "no name is a function word alone"
    [most] = found_by(cues, "the big city", 1).values()
    assert 0.5 <= most < 1, "the end of capital city"


def test_only_the_last_words_of_the_sentence_count() -> None:
    surface = [START, "capital", END, "It", "Is"]
    assert window(surface, 4) == ["is", "it"]
    assert window(surface, 1) == ["capital"] and window(surface, 0) == []
    assert len(window(["w"] * 100, 80)) == WINDOW


def test_a_whole_text_is_its_windows(graph: KnowledgeGraph) -> None:
    """Words said twice, ends of sentences, and more targets than are taken at once."""
    cues, draw = Cues(graph, str.split), random.Random(0)
    text = [
        START,
        *draw.choices(["born", "in", "on", "capital", "City", "of", "birth", "place", "x", END], k=2 * BLOCK),
    ]
    at_once = cues.relations(text)
    assert len(at_once) == len(text) - 1
    for t in range(len(text) - 1):
        alone = [START, *reversed(window(text, t))]
        found_N2 = cues.relations(alone, len(alone) - 1, 1)[0]
        assert np.allclose(at_once[t], found_N2, rtol=0, atol=1e-12)
        assert np.array_equal(cues.relations(text, t, 1)[0] > 0, found_N2 > 0)
        assert np.allclose(cues.at_end(text[: t + 1])[0], at_once[t], rtol=0, atol=1e-12)


def test_kinds(graph: KnowledgeGraph) -> None:
    text = [START, "a", "city", "in", "the", "state", "of"]
    found = TextCues(Cues(graph, str.split), text, 4, 3)
    nodes = [graph.number("Q2"), graph.number("Q3")]
    kinds = found.kinds(nodes, slice(0, 3))
    assert kinds is not None and kinds.tolist() == [[0, 0, 0], [0, 1, 1]], "from the word on, and only of the state"
    assert found.kinds(nodes, slice(0, 1)) is None


def test_they_follow_edits(graph: KnowledgeGraph) -> None:
    cues = Cues(graph, str.split)
    fork = graph.fork()
    fork.edit([FactEdit("add", "Q2", "P31", "Q4")])
    assert cues.on(fork).kind_words(graph.number("Q2")) == {"state", "country"}
    assert cues.kind_words(graph.number("Q2")) == set()
    fork.edit([NewEntity("P_friend", ("friend",)), FactEdit("add", "Q1", "P_friend", "Q2")])
    assert named(cues.on(fork), "A friend of Ann is") == {"P_friend": 1}


def test_only_words_that_can_be_cues_are_read(graph: KnowledgeGraph) -> None:
    text = [START, *(["is", "in", "the", "state", "of"] * 400)]
    read = list[str]()

    class Counted(list[str]):
        def __getitem__(self, index: Any) -> Any:
            found = super().__getitem__(index)
            read.extend(found if isinstance(index, slice) else [found])
            return found

    cues = Cues(graph, str.split)
    assert np.array_equal(cues.relations(Counted(text), 1000, 7), cues.relations(text)[1000:1007])
    assert len(read) <= WINDOW + 7
