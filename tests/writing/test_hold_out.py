"""Entities and wordings that are held out of the training texts."""

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


def test_training_texts_never_mention_held_out_entities(graph: KnowledgeGraph) -> None:
    whole = Writer(graph, read_wordings(), 0)
    held_out = hold_out(graph, whole.topics(), 300, always=["Q76"], seed=1)
    assert graph.number("Q76") in held_out.held and not set(held_out.held) & set(held_out.written)
    writer = Writer(graph, read_wordings(), 0, excluded=held_out.facts, config=WritingConfig(note=0.5))
    held = {graph.id(node) for node in held_out.held}
    near = {fact[2] for fact in held_out.facts}  # neighbours of held-out entities are the hardest case
    topics = [node for node in held_out.written if graph.id(node) in near][:60]
    mentioned = {mention.id for document in writer.texts(topics, per_entity=2) for mention in document.mentions}
    assert len(mentioned) > 100 and not mentioned & held
    unrestricted = Writer(graph, read_wordings(), 0)
    assert held & {mention.id for document in unrestricted.texts(topics) for mention in document.mentions}


def test_seed_draws_the_held_out_entities_and_none_is_a_hub(graph: KnowledgeGraph) -> None:
    topics = Writer(graph, read_wordings(), 0).topics()
    one, same, other = (hold_out(graph, topics, 50, seed=seed) for seed in (0, 0, 1))
    assert one == same and one.held != other.held and len(one.held) == 50
    assert all(len(graph.edges(node).tail) <= HUB for node in one.held)
    assert len(hold_out(graph, topics[:30], 1000).held) <= 30
    assert {relation for _, relation, _ in one.facts_of(["P36", "P19"])} == {"P36", "P19"}
    ends = {id for head, _, tail in one.facts for id in (head, tail)}
    assert {graph.id(node) for node in one.held} <= ends


def test_another_seed_holds_out_other_wordings() -> None:
    original = read_wordings()
    drawn, again, other = (redraw_held_wordings(original, seed) for seed in (1, 1, 2))
    assert drawn == again and drawn != other and drawn != original
    for relation, before in original.sentences.items():
        after = drawn.sentences[relation]
        assert [wording.text for wording in after] == [wording.text for wording in before]
        questions_after, questions_before = (sum(w.held and w.ends_in_object for w in each) for each in (after, before))
        assert questions_after >= questions_before, relation
        held = {wording.text for wording in after if wording.held}
        assert not held & {wording.text for wording in after if not wording.held}


@pytest.mark.parametrize(
    ("words", "relation", "unseen"),
    [
        ("{} was born in", "P19", False),
        ("The town of {} 's birth is", "P19", False),
        ("The town of {} 's birth is", "P26", True),  # no training wording of spouses has these words
        ("{} is a book that was written by", "P50", False),  # "book" is a kind
        ("{} is located in", "P131", False),  # in no training wording, but in a name of the relation
        ("{} falls within", "P131", True),
        ("{} hails from", "P36", True),
    ],
)
def test_unseen_words_are_in_no_training_wording_and_no_name_of_the_relation(
    graph: KnowledgeGraph, words: str, relation: str, unseen: bool
) -> None:
    prefix = words.format("Hails").split()  # words of the entity's name do not count
    at = prefix.index("Hails")
    row = {"prefix": prefix, "entity_indices": [at, at + 1], "relation_id": relation}
    assert has_unseen_word(row, training_words(read_wordings(), graph)) == unseen
