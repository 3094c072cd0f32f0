"""The linker: names in a text and the probabilities of their entities."""

from __future__ import annotations

import pytest

from kglm.kg.graph import KnowledgeGraph
from kglm.linking.joint import joint_links, marginal_links
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
    "Q30": ("United States", "America", "USA"),
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
    [name] = linker.link(["Paris"])
    assert [linker.graph.id(each.node) for each in name.candidates] == ["Q90", "Q830149"]
    assert sum(each.p for each in name.candidates) + name.p_nil == pytest.approx(1)
    assert name.candidates[0].p > name.candidates[1].p > 0 and 0 < name.p_nil < 0.5


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


@pytest.mark.parametrize(
    "text",
    [
        "Paris Hilton was born in",
        "We met Paris Hilton",
        "the Paris Agreement",
        "a Paris",
        "France Gall sings",
        "Saint Denzel Paris sings",
    ],
)
def test_name_inside_a_longer_unknown_name_is_nil(linker: Linker, text: str) -> None:
    assert [name.node for name in linker.link(text.split())] == [None]


def test_sole_candidate_of_another_kind_is_nil(linker: Linker) -> None:
    [certain], [planet] = linker.link(["France", "is", "a", "country"]), linker.link(["the", "planet", "France", "is"])
    assert certain.node == linker.graph.number("Q142") and planet.p_nil > certain.p_nil


def test_abbreviations_are_names_rather_than_words(linker: Linker) -> None:
    [abbreviation], [name] = linker.link(["in", "the", "USA", "and"]), linker.link(["in", "the", "America", "and"])
    assert abbreviation.node == name.candidates[0].node == linker.graph.number("Q30")
    assert abbreviation.p_nil < name.p_nil


def test_later_short_name_refers_to_the_full_name_before(linker: Linker, graph: KnowledgeGraph) -> None:
    king, again = linker.link(["We", "met", "Stephen", "King", ".", "Then", "King", "left"])
    assert king.node == again.node == graph.number("Q6")
    alone = linker.link(["Then", "King", "left"])
    assert not alone or alone[0].p_nil > again.p_nil


def test_parts_of_an_unknown_name_stay_unknown(linker: Linker) -> None:
    names = linker.link(["We", "met", "Paris", "Hilton", ".", "Then", "Paris", "left"])
    alone = linker.link(["Then", "Paris", "left"])
    assert names[0].node is None and names[1].p_nil > alone[0].p_nil


def test_names_of_several_words_are_found_in_small_letters(linker: Linker, graph: KnowledgeGraph) -> None:
    assert [name.node for name in linker.link(["stephen", "king", "was", "born", "in"])] == [graph.number("Q6")]
    assert linker.link(["the", "king", "of", "france"]) == []


def test_a_comma_separates_two_names(linker: Linker, graph: KnowledgeGraph) -> None:
    first, second = linker.link(["He", "left", "Paris", ",", "Texas"])
    assert (first.start, first.end, first.node) == (2, 3, graph.number("Q830149"))
    assert second.node == graph.number("Q1439")


def test_probabilities_of_given_candidates_sum_to_one(linker: Linker, graph: KnowledgeGraph) -> None:
    nodes = [graph.number("Q90"), graph.number("Q830149")]
    assert linker.probabilities(["Paris", "is"], 0, 1, nodes).sum() == pytest.approx(1)


def test_joint_links_of_two_ambiguous_names(graph: KnowledgeGraph) -> None:
    linker = Linker(graph)
    linked = linker.link(["Paris", "and", "Paris"])
    joint = joint_links(linked, limit=9)
    assert len(joint) == 9, "two entities or NIL for each name"
    assert sum(p for p, _ in joint) == pytest.approx(1)
    assert [p for p, _ in joint] == sorted((p for p, _ in joint), reverse=True)
    assert sum(p for p, spans in joint if not spans) == pytest.approx(linked[0].p_nil * linked[1].p_nil)
    assert len(joint_links(linked, limit=1)) == 1
    sure = LinkedName.certain(0, 1, linked[0].candidates[0].node)
    assert joint_links([sure]) == [(1.0, [(0, 1, graph.number("Q90"))])]
    assert joint_links([]) == [(1.0, [])]


def test_marginals_of_joint_links_are_the_probabilities_of_each_name(graph: KnowledgeGraph) -> None:
    linked = Linker(graph).link(["Paris", "and", "France"])
    for name, marginal in zip(linked, marginal_links(joint_links(linked, limit=99)), strict=True):
        assert marginal.p_nil == pytest.approx(name.p_nil)
        assert dict(marginal.candidates) == pytest.approx(dict(name.candidates))


def test_name_that_is_probably_nil_has_no_span_in_the_best_assignment(linker: Linker) -> None:
    assert joint_links(linker.link(["We", "met", "Paris", "Hilton"]), limit=1)[0][1] == []
