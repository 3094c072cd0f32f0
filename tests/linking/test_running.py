"""Linking of a text that grows: what is said of it never depends on later words."""

from __future__ import annotations

import pytest

from kglm.kg.graph import KnowledgeGraph
from kglm.linking.linker import Linker
from kglm.linking.prompts import PromptLinker
from kglm.linking.running import LONGEST, RunningLinker
from kglm.text.document import END
from support.worlds import make_store

FACTS = (
    ("Q1", "P31", "Q5"),
    ("Q1", "P21", "Q6"),
    ("Q1", "P27", "Q2"),
    ("Q2", "P31", "Q8"),
    ("Q3", "P31", "Q9"),
    ("Q3", "P17", "Q4"),
    ("Q4", "P31", "Q8"),
    ("Q10", "P17", "Q4"),
    ("Q11", "P31", "Q5"),
)
NAMES = {
    "Q1": ("Marie Curie",),
    "Q2": ("Poland",),
    "Q3": ("Paris",),
    "Q4": ("France",),
    "Q5": ("human",),
    "Q6": ("female",),
    "Q8": ("country",),
    "Q9": ("city",),
    "Q10": ("Paris Town Hall",),
    "Q11": ("Ada Town",),
    "P31": ("instance of",),
    "P21": ("sex or gender",),
    "P27": ("country of citizenship",),
    "P17": ("country",),
}


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Linker:
    return Linker(KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg"), FACTS, NAMES)))


def read(linker: Linker, text: str) -> list[tuple[str, str | None]]:
    """Mentions of the last sentence of a text, which is read word by word."""
    running = RunningLinker(linker)
    for n, word in enumerate(text.split()):
        running.replace(n, [word])
        running.settle(n)
    return named(running)


def named(running: RunningLinker) -> list[tuple[str, str | None]]:
    graph = running._linker.graph
    return [
        (" ".join(running.words[name.start : name.end]), None if name.node is None else graph.id(name.node))
        for name in running.names
    ]


def test_a_name_is_linked_at_its_end(linker: Linker) -> None:
    assert read(linker, "She lived in Poland") == [("Poland", "Q2")]
    assert read(linker, "It was Marie") == []
    assert read(linker, "It was Marie Curie") == [("Marie Curie", "Q1")]


def test_a_longer_name_replaces_a_shorter_one(linker: Linker) -> None:
    assert read(linker, "We saw Paris") == [("Paris", "Q3")]
    assert read(linker, "We saw Paris Town Hall") == [("Paris Town Hall", "Q10")]


def test_what_follows_can_take_a_link_back(linker: Linker) -> None:
    assert read(linker, "We saw Paris") == [("Paris", "Q3")]
    assert ("Paris", "Q3") not in read(linker, "We saw Paris Hilton in")


def test_pronouns_and_surnames_refer_to_earlier_names(linker: Linker) -> None:
    assert read(linker, f"Marie Curie left Poland . {END} She") == [("She", "Q1")]
    assert read(linker, f"Marie Curie left Poland . {END} There Curie") == [("Curie", "Q1")]
    assert read(linker, f"Marie Curie left Poland . {END} It") == [("It", "Q2")]
    assert read(linker, f"Marie Curie left Poland . {END} It is clear that") == []


def test_words_can_be_replaced_until_they_are_settled(linker: Linker) -> None:
    running = RunningLinker(linker)
    running.replace(0, ["in", "Pol"])
    assert named(running) == []
    running.replace(0, ["in", "Poland"])
    assert named(running) == [("Poland", "Q2")]
    running.replace(1, ["Paris"])
    assert named(running) == [("Paris", "Q3")]
    assert running.replace(0, ["in", "Paris"]) is False


def test_given_words_are_certain(linker: Linker) -> None:
    running = RunningLinker(linker)
    running.given = [(0, 1, linker.graph.number("Q1"))]
    running.replace(0, ["Paris", "was", "here"])
    assert [(name.start, name.end, name.candidates[0].p) for name in running.names] == [(0, 1, 1.0)]


def test_without_later_words_it_is_the_linker_of_prompts(linker: Linker) -> None:
    """A single sentence has no later text, and no earlier decisions."""
    for text in ("Marie Curie left Poland", "in Paris , France , she", "We saw Paris Town Hall"):
        words = text.split()
        whole = PromptLinker(linker).link(words)
        running = RunningLinker(linker)
        running.replace(0, words)
        assert running.names == [name for name in whole if name.candidates]


def test_a_very_long_sentence_is_settled_in_parts(linker: Linker) -> None:
    running = RunningLinker(linker)
    for n, word in enumerate(["Marie", "Curie", *(["and"] * LONGEST), "she"]):
        running.replace(n, [word])
        running.settle(n)
    assert running.open_from > 2
    assert named(running) == [("she", "Q1")]
