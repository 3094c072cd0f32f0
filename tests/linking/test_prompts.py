"""Mentions of prompts: pronouns, surnames, unknown names, descriptions."""

from __future__ import annotations

import pytest

from kglm.kg.graph import KnowledgeGraph
from kglm.linking.context import NIL_FEATURES
from kglm.linking.descriptions import Describer
from kglm.linking.kinds import agreement, singular, stated_nouns
from kglm.linking.linker import FEATURES, LinkedName, Linker
from kglm.linking.prompts import PromptLinker
from kglm.linking.traits import TraitReader
from kglm.linking.unknown import capital_sequences, with_unknown_names
from kglm.linking.weights import NIL_WEIGHTS, WEIGHTS
from kglm.text.document import END
from support.worlds import make_store

FACTS = (
    ("Q1", "P31", "Q5"),
    ("Q1", "P21", "Q6"),
    ("Q1", "P27", "Q2"),
    ("Q1", "P106", "Q7"),
    ("Q2", "P31", "Q8"),
    ("Q3", "P31", "Q9"),
    ("Q3", "P17", "Q2"),
)
NAMES = {
    "Q1": ("Marie Curie",),
    "Q2": ("Poland",),
    "Q3": ("Torun",),
    "Q5": ("human",),
    "Q6": ("female",),
    "Q7": ("physicist",),
    "Q8": ("country",),
    "Q9": ("city",),
    "P31": ("instance of",),
    "P21": ("sex or gender",),
    "P27": ("country of citizenship",),
    "P106": ("occupation",),
    "P17": ("country",),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg"), FACTS, NAMES))


def linked(graph: KnowledgeGraph, text: str) -> dict[str, str | None]:
    words = text.split()
    found = PromptLinker(Linker(graph)).link(words)
    return {
        " ".join(words[name.start : name.end]): None if name.node is None else graph.id(name.node) for name in found
    }


def test_pronouns_and_surnames_refer_to_earlier_names(graph: KnowledgeGraph) -> None:
    text = f"Marie Curie left Poland . {END} She liked it . {END} Curie was born in"
    assert linked(graph, text) == {"Marie Curie": "Q1", "Poland": "Q2", "She": "Q1", "it": "Q2", "Curie": "Q1"}


def test_pronoun_without_an_antecedent_is_no_mention(graph: KnowledgeGraph) -> None:
    assert linked(graph, "She was born in") == {}
    assert linked(graph, "It rains in Poland") == {"Poland": "Q2"}


def test_a_pronoun_is_as_uncertain_as_its_antecedent(graph: KnowledgeGraph) -> None:
    name, pronoun = PromptLinker(Linker(graph)).link(f"Marie Curie left . {END} She was born in".split())
    assert pronoun.candidates[0].p < name.candidates[0].p


def test_names_outside_the_graph_are_found_as_nil(graph: KnowledgeGraph) -> None:
    assert linked(graph, "Paris Hilton met Simone de Beauvoir in Torun") == {
        "Paris Hilton": None,
        "Simone de Beauvoir": None,
        "Torun": "Q3",
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Yesterday President Ann Lee met him", ["Ann Lee"]),
        ("The house is red", []),
        ("On Monday it rained", []),
        (f"It ended . {END} Berlin was quiet", ["Berlin"]),
        ("the University of Oslo", ["University of Oslo"]),
    ],
)
def test_sequences_of_capitals(text: str, names: list[str]) -> None:
    words = text.split()
    assert [" ".join(words[start:end]) for start, end in capital_sequences(words)] == names


def test_linked_names_stay_inside_of_capitals() -> None:
    name = LinkedName.certain(1, 2, 7)
    assert with_unknown_names(["New", "York", "City"], [name]) == [name]


@pytest.mark.parametrize(
    ("text", "place", "nouns"),
    [
        ("the novel Emma is", 2, ["novel"]),
        ("Emma is a book that was written", 0, ["book"]),
        ("Torun , a city in Poland", 0, ["city"]),
        ("the state of Georgia", 3, ["state"]),
        ("the capital of Italy is", 3, []),
        ("We left Torun early", 2, []),
    ],
)
def test_stated_nouns(text: str, place: int, nouns: list[str]) -> None:
    assert stated_nouns(text.split(), place, place + 1) == nouns


def test_agreement_of_kinds(graph: KnowledgeGraph) -> None:
    city = TraitReader(graph).of(graph.number("Q3"))
    assert agreement(["city"], city, "place") == (True, 1.0)
    assert agreement(["town"], city, "place") == (False, 0.5)
    assert agreement(["singer"], city, "place") == (False, -1.0)
    assert agreement([], city, "place") == (False, 0.0)
    assert singular("cities") == "city" and singular("boss") == "boss"


def test_descriptions_are_made_of_facts(graph: KnowledgeGraph) -> None:
    describer = Describer(graph)
    assert describer.of(graph.number("Q1")) == "physicist, Poland"
    assert describer.of(graph.number("Q3")) == "city, Poland"
    assert describer.of(graph.number("Q9")) == "inverse of instance of: Torun" or describer.of(graph.number("Q9"))


def test_every_feature_has_a_weight() -> None:
    assert len(FEATURES) == len(WEIGHTS) and len(NIL_FEATURES) == len(NIL_WEIGHTS)
