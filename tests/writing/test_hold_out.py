"""Entities and wordings that are held_out from the texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from kglm import bundled
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import import_graph
from kglm.writing.articles import Writer
from kglm.writing.composer import WritingConfig
from kglm.writing.hold_out import HUB, has_unseen_word, hold_out, redraw_held_wordings, training_words
from kglm.writing.wordings import read_wordings


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    kg: Path = tmp_path_factory.mktemp("world") / "world.kg"
    names = [bundled.ENTITIES, bundled.RELATION_NAMES]
    import_graph([bundled.FACTS], kg, entities=names, relations=[bundled.RELATIONS], workers=1)
    return KnowledgeGraph.open(kg)


def test_what_is_kept_is_never_mentioned(graph: KnowledgeGraph) -> None:
    whole = Writer(graph, read_wordings(), 0)
    held_out = hold_out(graph, whole.topics(), 300, always=["Q76"], seed=1)
    assert graph.number("Q76") in held_out.held and not set(held_out.held) & set(held_out.written)
    writer = Writer(graph, read_wordings(), 0, without=held_out.facts, config=WritingConfig(note=0.5))
    held = {graph.id(node) for node in held_out.held}
    near = {fact[2] for fact in held_out.facts}  # whoever is related to those, where a slip is likeliest
    topics = [node for node in held_out.written if graph.id(node) in near][:60]
    mentioned = {mention.id for document in writer.texts(topics, each=2) for mention in document.mentions}
    assert len(mentioned) > 100 and not mentioned & held
    open_writer = Writer(graph, read_wordings(), 0)
    assert held & {mention.id for document in open_writer.texts(topics) for mention in document.mentions}


def test_who_is_kept_is_drawn_by_the_seed_and_is_no_hub(graph: KnowledgeGraph) -> None:
    topics = Writer(graph, read_wordings(), 0).topics()
    one, same, other = (hold_out(graph, topics, 50, seed=seed) for seed in (0, 0, 1))
    assert one == same and one.held != other.held and len(one.held) == 50
    assert all(len(graph.edges(node).tail) <= HUB for node in one.held)
    assert len(hold_out(graph, topics[:30], 1000).held) <= 30
    assert {relation for _, relation, _ in one.facts_of(["P36", "P19"])} == {"P36", "P19"}
    ends = {id for head, _, tail in one.facts for id in (head, tail)}
    assert {graph.id(node) for node in one.held} <= ends


def test_other_wordings_are_held_out_by_another_seed() -> None:
    written = read_wordings()
    drawn, again, other = (redraw_held_wordings(written, seed) for seed in (1, 1, 2))
    assert drawn == again and drawn != other and drawn != written
    for relation, said in written.sentences.items():
        now = drawn.sentences[relation]
        assert [wording.text for wording in now] == [wording.text for wording in said]
        assert sum(w.held and w.ends_in_object for w in now) >= sum(w.held and w.ends_in_object for w in said), relation
        held = {wording.text for wording in now if wording.held}
        assert not held & {wording.text for wording in now if not wording.held}


@pytest.mark.parametrize(
    ("words", "relation", "strange"),
    [
        ("{} was born in", "P19", False),
        ("The town of {} 's birth is", "P19", False),
        ("The town of {} 's birth is", "P26", True),  # no text says it of spouses
        ("{} is a book that was written by", "P50", False),  # a kind is said, too
        ("{} is located in", "P131", False),  # no text says so, but the relation is called so
        ("{} falls within", "P131", True),
        ("{} hails from", "P36", True),
    ],
)
def test_a_question_is_strange_if_nothing_else_says_its_words_of_the_relation(
    graph: KnowledgeGraph, words: str, relation: str, strange: bool
) -> None:
    prefix = words.format("Hails").split()  # words of the name do not count
    at = prefix.index("Hails")
    row = {"prefix": prefix, "entity_indices": [at, at + 1], "relation_id": relation}
    assert has_unseen_word(row, training_words(read_wordings(), graph)) == strange
