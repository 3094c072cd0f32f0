"""Rule-based coreference: pronouns, "the game", parts of names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kglm.kg.graph import KnowledgeGraph
from kglm.linking.coreference import GraphResolver
from kglm.linking.spans import LinkedSpan
from kglm.linking.traits import TraitReader
from kglm.text.document import END, START
from support.worlds import make_store

MALE, FEMALE, HUMAN = "Q6581097", "Q6581072", "Q5"
FACTS = (
    ("Q1", "P31", HUMAN),
    ("Q1", "P21", MALE),
    ("Q2", "P31", HUMAN),
    ("Q2", "P21", FEMALE),
    ("Q3", "P31", "Q7889"),
    ("Q4", "P31", "Q215380"),
    ("Q6", "P31", HUMAN),
    ("Q7", "P31", "Q7889"),
    ("Q8", "P31", HUMAN),
    ("Q8", "P569", "T::9::+1989-00-00T00:00:00Z"),
)
NAMES = {
    "Q1": ("Adam Baker",),
    "Q2": ("Clara Dunn",),
    "Q3": ("Star Quest",),
    "Q4": ("The Lamps",),
    "Q6": ("Robin Fox",),
    "Q7": ("Moon Quest",),
    "Q8": ("Angel of Death",),
    HUMAN: ("human",),
    "Q7889": ("video game",),
    "Q215380": ("rock band",),
    MALE: ("male",),
    FEMALE: ("female",),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg"), FACTS, NAMES))


def meant(graph: KnowledgeGraph, *sentences: str, subject: str | None = None) -> list[tuple[str, str]]:
    """(words, id) of the coreferent mentions; names in the text are given as [Adam Baker|Q1]."""
    tokens, found = [START], []
    for sentence in sentences:
        rest = sentence
        while rest:
            before, _, rest = rest.partition("[")
            tokens += before.split()
            if rest:
                name, _, rest = rest.partition("]")
                words, _, id = name.partition("|")
                found.append(LinkedSpan(len(tokens), len(tokens) + len(words.split()), graph.number(id), "WIKI"))
                tokens += words.split()
        tokens.append(END)
    topic = None if subject is None else graph.number(subject)
    return [
        (" ".join(tokens[each.start : each.end]), graph.id(each.node))
        for each in GraphResolver(graph).resolve(tokens, found, topic)
    ]


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        (["[Adam Baker|Q1] sang .", "He won ."], [("He", "Q1")]),
        (["[Adam Baker|Q1] met [Clara Dunn|Q2] .", "She won ; he lost his bet ."],
         [("She", "Q2"), ("he", "Q1"), ("his", "Q1")]),
        (["[Clara Dunn|Q2] sang .", "He won ."], []),
        (["[Robin Fox|Q6] sang .", "She won ."], [("She", "Q6")]),
        (["[Star Quest|Q3] sold well .", "It won a prize for its sound ."], [("It", "Q3"), ("its", "Q3")]),
        (["[Adam Baker|Q1] sang .", "It was good ."], []),
        (["[The Lamps|Q4] sang .", "They won their prize ."], [("They", "Q4"), ("their", "Q4")]),
        (["[Star Quest|Q3] sold well .", "They won ."], []),
        (["[Star Quest|Q3] sold well .", "It is clear that sales matter ."], []),
        (["[Star Quest|Q3] sold well .", "The game won ; the video game too ."],
         [("The game", "Q3"), ("the video game", "Q3")]),
        (["[The Lamps|Q4] sang .", "The game was long .", "This band is old ."], [("This band", "Q4")]),
        (["[Adam Baker|Q1] sang .", "Baker won , and Adam too ."], [("Baker", "Q1"), ("Adam", "Q1")]),
        (["[Adam Baker|Q1] sang .", "Mary Baker won .", "The Baker Street"], []),
        (["[Angel of Death|Q8] sang .", "Angel won ; Death too ."], []),
        (["[Star Quest|Q3] sold well .", "Quest won ."], []),
        (["[Star Quest|Q3] sold well .", "The IT department ran ITS IT ."], []),
        (["In [1989|T::9::+1989-00-00T00:00:00Z] all was well .", "It was cold ."], []),
    ],
)  # fmt: skip
def test_coreferent_mentions(graph: KnowledgeGraph, sentences: list[str], expected: list[tuple[str, str]]) -> None:
    assert meant(graph, *sentences) == expected


def test_first_of_its_sentence_and_nearest_antecedent_win(graph: KnowledgeGraph) -> None:
    near = ["[Star Quest|Q3] came before [Moon Quest|Q7] .", "It won ."]
    assert meant(graph, *near) == [("It", "Q3")], "the first of its sentence"
    assert meant(graph, "[Star Quest|Q3] sold .", "[Moon Quest|Q7] sold .", "It won .") == [("It", "Q7")], "the nearer"
    assert meant(graph, *near, subject="Q7")[0] != [("It", "Q3")]


def test_entities_mentioned_long_ago_are_no_antecedents(graph: KnowledgeGraph) -> None:
    far = ["[Star Quest|Q3] sold .", *["Nothing happened ."] * 3, "It won ."]
    assert meant(graph, *far) == []
    assert meant(graph, *far, subject="Q3") == [("It", "Q3")], "except the article's subject"
    assert meant(graph, "[Adam Baker|Q1] sang .", *["Nothing happened ."] * 9, "Baker won .") == [("Baker", "Q1")]


def test_given_spans_are_not_resolved_again(graph: KnowledgeGraph) -> None:
    assert meant(graph, "[Adam Baker|Q1] sang .", "[Baker|Q2] won .", "the [game|Q3] is [his|Q2]") == []


def test_traits_by_relation_names_in_a_graph_without_wikidata_ids(tmp_path_factory: pytest.TempPathFactory) -> None:
    facts = (("Q_ann", "P_kind", "Q_person"), ("Q_ann", "P_sex", "Q_f"), ("Q_x", "P_kind", "Q_club"))
    names = {
        "P_kind": ("instance of",),
        "P_sex": ("sex or gender",),
        "Q_person": ("Person",),
        "Q_f": ("Female",),
        "Q_club": ("old football club",),
    }
    graph = KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("own"), facts, names))
    traits = TraitReader(graph)
    ann, club = traits.of(graph.number("Q_ann")), traits.of(graph.number("Q_x"))
    assert (ann.human, ann.gender) == (True, "female")
    assert (club.human, club.group, club.kinds) == (False, True, {"club", "football club", "old football club"})


@pytest.mark.parametrize("tokens", [[], [START], [START, END], ["He"], [START, "the"], [START, "It", END, "his"]])
def test_texts_without_antecedents(graph: KnowledgeGraph, tokens: Sequence[str]) -> None:
    assert GraphResolver(graph).resolve(tokens, []) == []
