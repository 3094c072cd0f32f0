"""Verbalised facts: English sentences from the names of relations, annotated by construction."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from conftest import Command
from kglm.errors import GraphError
from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import NEW, REFLEXIVE, REVERSE
from kglm.kg.literals.literal import is_literal
from kglm.text.document import END, START, Document
from kglm.writing.phrases import FRAMES, Phrase, phrases_of, shape_of
from kglm.writing.verbalise import VerbaliseConfig, Verbaliser, verbalise
from support.worlds import make_store

FACTS = (
    ("Q76", "P569", "T::11::+1961-08-04T00:00:00Z"),
    ("Q76", "P26", "Q13133"),
    ("Q76", "P106", "Q82955"),
    ("Q30", "P36", "Q61"),
    ("Q30", "P31", "Q6256"),
    ("Q61", "P131", "Q30"),
    ("Q76", "P31", "Q5"),
    ("Q30", "P54:P413", "Q61"),
)
NAMES = {
    "Q76": ("Barack Obama",),
    "Q13133": ("Michelle Obama",),
    "Q82955": ("politician",),
    "Q30": ("United States of America",),
    "Q61": ("Washington",),
    "Q6256": ("country in the world",),
    "Q5": ("human",),
    "P26": ("spouse", "married to"),
    "P569": ("date of birth", "DOB", "born on", "birth year"),
    "P36": ("capital", "has capital"),
    "P131": ("is in the country of", "is in the state of", "in"),
    "P31": ("instance of",),
    "P106": ("occupation",),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg"), FACTS, NAMES))


@pytest.fixture(scope="module")
def documents(graph: KnowledgeGraph) -> list[Document]:
    return list(verbalise(graph, 600))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("capital", "noun"),
        ("place of birth", "noun"),
        ("born in", "participle"),
        ("written by", "participle"),
        ("married to", "participle"),
        ("is in the state of", "predicate"),
        ("has capital", "predicate"),
        ("works for", "verb"),
        ("by", "preposition"),
        ("is a(n)", None),
        ("based", None),
        ("located in the unit", None),
        ("DOB", None),
        ("writer(s)", None),
        ("instance of", None),
        ("", None),
        ("P31", None),
    ],
)
def test_shape_of_relation_names(name: str, shape: str | None) -> None:
    assert shape_of(name) == shape


def test_plural_is_dropped_if_its_singular_is_there() -> None:
    assert phrases_of(["spouse", "spouses", "news", "spouse"]) == [Phrase("spouse", "noun"), Phrase("news", "noun")]


def test_every_mention_agrees_with_the_graph(graph: KnowledgeGraph, documents: list[Document]) -> None:
    for document in documents:
        assert document.tokens[0] == START and document.tokens[-1] == END
        seen: set[str] = set()
        for mention in document.mentions:
            node = graph.number(mention.id)
            if not is_literal(mention.id):
                assert document.text(mention) in graph.names(node)
            [relation], [parent] = mention.relations, mention.parents
            if relation == NEW:
                assert mention.id not in seen
            elif relation == REFLEXIVE:
                assert mention.id in seen and parent == mention.id
            else:
                assert parent in seen
                index = graph.find_relation(relation)
                assert index is not None and node in graph.tails(graph.number(parent), index)
            seen.add(mention.id)


def test_texts_vary_and_are_reproducible_by_the_seed(graph: KnowledgeGraph, documents: list[Document]) -> None:
    texts = [" ".join(document.tokens) for document in documents]
    assert len(set(texts)) > 150
    assert texts == [" ".join(document.tokens) for document in verbalise(graph, 600)]
    assert texts != [" ".join(document.tokens) for document in verbalise(graph, 600, seed=1)]
    together = " ".join(texts)
    for wording in (
        "The capital of the United States of America is Washington",
        "Barack Obama was born on August 4 , 1961",
        "Barack Obama is married to Michelle Obama",
        "Michelle Obama is the spouse of Barack Obama",
        "United States of America is a country whose capital is Washington",
        "Washington is in the country of United States of America",
        "Barack Obama , who was born on",
        "Barack Obama 's birth year is 1961",
    ):
        assert wording in together
    assert "in the state of" not in together, "a country is not a state"
    assert "birth year is August" not in together
    assert "the human" not in together


def test_relations_and_frames_can_be_held_out(graph: KnowledgeGraph) -> None:
    frames = [frame for frame in FRAMES["noun"] if frame.startswith("The {r} of")]
    config = VerbaliseConfig(hold_out_relations={"P26"}, hold_out_frames=frames)
    for document in verbalise(graph, 200, config=config):
        assert not any(
            "P26" in mention.relations or f"{REVERSE}P26" in mention.relations for mention in document.mentions
        )
        assert "The capital of" not in " ".join(document.tokens)


def test_question_ends_before_the_tail(graph: KnowledgeGraph) -> None:
    verbaliser, rng = Verbaliser(graph), random.Random(0)
    fact = (graph.number("Q76"), graph.find_relation("P569") or 0, graph.number("T::11::+1961-08-04T00:00:00Z"))
    questions = {question for _ in range(60) if (question := verbaliser.question(rng, fact)) is not None}
    assert any(" ".join(question.words).endswith("was born on") for question in questions)
    for question in questions:
        assert question.words[question.start : question.end] == ("Barack", "Obama")
        assert not {"August", "1961"} & set(question.words)


def test_texts_follow_edits_of_the_graph(tmp_path: Path) -> None:
    path = make_store(tmp_path, FACTS, NAMES)
    with KnowledgeGraph.open(path, writable=True) as graph:
        graph.set("Q76", "P569", "2013-03-21")
        graph.edit([NewEntity("Q_me", ("Zoe Quill",)), FactEdit("add", "Q_me", "P26", "Q76")])
        texts = " ".join(" ".join(document.tokens) for document in verbalise(graph, 200))
    assert "2013" in texts and "1961" not in texts and "Zoe Quill" in texts


def test_graph_without_entity_names_is_an_error(tmp_path: Path) -> None:
    graph = KnowledgeGraph.open(make_store(tmp_path, (("Q1", "P1", "Q2"),), {"P1": ("friend",)}))
    with pytest.raises(GraphError, match="has a fact that can be put into words"):
        list(verbalise(graph, 1))


def test_graph_without_relation_names_is_an_error(tmp_path: Path) -> None:
    graph = KnowledgeGraph.open(make_store(tmp_path, (("Q1", "P1", "Q2"),), {"Q1": ("A",), "Q2": ("B",)}))
    with pytest.raises(GraphError, match="no fact can be put into words"):
        list(verbalise(graph, 1))


def test_text_may_begin_with_a_heading_that_names_an_entity(graph: KnowledgeGraph) -> None:
    def begins_with_name(document: Document) -> bool:
        first, end = document.mentions[0], document.tokens.index(END)
        line = document.tokens[1:end]
        return first.is_new and line in (
            document.tokens[first.start : first.end],
            ["=", *document.tokens[first.start : first.end], "="],
        )

    always = list(verbalise(graph, 40, config=VerbaliseConfig(headings=1.0)))
    assert all(map(begins_with_name, always))
    assert not any(map(begins_with_name, verbalise(graph, 40, config=VerbaliseConfig(headings=0.0))))
    assert {document.tokens[1] == "=" for document in always} == {True, False}


def test_excluded_relation_must_exist(graph: KnowledgeGraph, tmp_path: Path, command: Command) -> None:
    done = command("kg", "verbalise", str(graph.store.path), "--to", str(tmp_path / "x.jsonl"), "--without", "P99999")
    assert done.returncode == 2
    assert "--without P99999" in done.stderr
    assert not (tmp_path / "x.jsonl").exists()


def test_alias_of_several_relations_is_not_used(tmp_path: Path) -> None:
    names = NAMES | {"P36": ("capital", "seat"), "P131": ("is in the state of", "Seat")}
    graph = KnowledgeGraph.open(make_store(tmp_path, FACTS, names))
    used = [Verbaliser(graph).phrases(graph.find_relation(id) or 0) for id in ("P36", "P131")]
    assert [[phrase.text for phrase in phrases] for phrases in used] == [["capital"], ["is in the state of"]]
    again = KnowledgeGraph.open(make_store(tmp_path / "b", FACTS, names | {"P36": ("seat",)}))
    assert [phrase.text for phrase in Verbaliser(again).phrases(again.find_relation("P36") or 0)] == ["seat"]
