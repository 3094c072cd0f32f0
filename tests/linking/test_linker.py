"""The linker: names in a text and the probabilities of their entities."""

from __future__ import annotations

import pytest

from kglm.kg.graph import KnowledgeGraph
from kglm.linking.joint import joint_links
from kglm.linking.linker import LinkedName, Linker
from support.worlds import make_store

FACTS = (
    ("Q90", "P17", "Q142"),
    ("Q90", "P31", "Q515"),
    ("Q90", "P36", "Q7"),
    ("Q830149", "P131", "Q1439"),
    ("Q142", "P36", "Q90"),
    ("Q1439", "P17", "Q30"),
    ("Q5", "P50", "Q6"),
)
NAMES = {
    "Q90": ("Paris", "City of Light"),
    "Q830149": ("Paris", "Paris, Texas"),
    "Q142": ("France",),
    "Q1439": ("Texas",),
    "Q30": ("United States", "America"),
    "Q515": ("city",),
    "Q7": ("Paris Town Hall",),
    "Q5": ("It",),
    "Q6": ("Stephen King", "King"),
    "Q8": ("the",),
    "Q9": ("capital of France",),
    "P36": ("capital",),
    "P131": ("located in",),
    "P17": ("country",),
    "P50": ("author",),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg"), FACTS, NAMES))


@pytest.fixture
def linker(graph: KnowledgeGraph) -> Linker:
    return Linker(graph)


def best_links(linker: Linker, text: str) -> list[tuple[str, str]]:
    words = text.split()
    return [(" ".join(words[a:b]), linker.graph.id(candidates[0].node)) for a, b, candidates in linker.link(words)]


def test_longest_name_wins(linker: Linker) -> None:
    assert best_links(linker, "He saw Paris Town Hall") == [("Paris Town Hall", "Q7")]
    assert best_links(linker, "Stephen King wrote") == [("Stephen King", "Q6")]


def test_other_entities_of_the_text_disambiguate(linker: Linker) -> None:
    assert best_links(linker, "Paris is in Texas")[0] == ("Paris", "Q830149")
    assert best_links(linker, "Paris is in France")[0] == ("Paris", "Q90")


def test_namesake_with_more_facts_is_more_probable_but_not_certain(linker: Linker) -> None:
    [(_, _, candidates)] = linker.link(["Paris"])
    assert [linker.graph.id(each.node) for each in candidates] == ["Q90", "Q830149"]
    assert sum(each.p for each in candidates) == pytest.approx(1)
    assert 0.5 < candidates[0].p < 1


def test_given_spans_stay_and_disambiguate_others(linker: Linker, graph: KnowledgeGraph) -> None:
    texas = graph.number("Q1439")
    linked = linker.link(["Paris", "belongs", "to", "it"], [(3, 4, texas)])
    assert [each.node for each in linked] == [graph.number("Q830149"), texas]
    assert linked[1].candidates[0].p == 1


def test_plain_words_are_not_names(linker: Linker) -> None:
    assert best_links(linker, "the city is big") == []  # no capital
    assert best_links(linker, "the capital of France is") == [
        ("France", "Q142")
    ]  # the name "capital of France" has none
    assert best_links(linker, "It is big") == []  # a function word, although an entity has this name
    assert linker.link([]) == []


def test_training_mentions_raise_the_probability(graph: KnowledgeGraph) -> None:
    often = Linker(graph, introductions={graph.number("Q830149"): 50})
    assert often.link(["Paris"])[0].node == graph.number("Q830149")


def test_joint_links_of_two_ambiguous_names(graph: KnowledgeGraph) -> None:
    linker = Linker(graph)
    linked = linker.link(["Paris", "and", "Paris"])
    joint = joint_links(linked, limit=8)
    assert len(joint) == 4
    assert sum(p for p, _ in joint) == pytest.approx(1)
    assert [p for p, _ in joint] == sorted((p for p, _ in joint), reverse=True)
    assert len(joint_links(linked, limit=1)) == 1
    assert joint_links([LinkedName(0, 1, linked[0].candidates[:1])])[0][1] == [(0, 1, graph.number("Q90"))]
    assert joint_links([]) == [(1.0, [])]
