"""Texts, questions and documents as subwords, with their words and mentions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kglm.errors import ConfigError
from kglm.heads.clauses import clause_texts
from kglm.heads.local import Link, LocalEntities, annotated_links, last_sentence, sentence_starts
from kglm.heads.passage import Passage, passage, question_passage, text_passage
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import NEW
from kglm.pretrained.base import BaseModel
from kglm.pretrained.subwords import ChatFormat, Subwords
from kglm.text.document import ANSWER, END, START, Document, Mention
from kglm.text.tokenizer import tokenizer
from support.causal import SENTENCES, save_english
from support.worlds import make_store

pytest.importorskip("transformers", reason="the extra hf is not installed")
NAMES = {"Q1": ("Zoë",), "Q2": ("dogs",), "Q3": ("1961",), "P1": ("owns",)}


@pytest.fixture(scope="module")
def subwords(tmp_path_factory: pytest.TempPathFactory) -> Subwords:
    home = tmp_path_factory.mktemp("passages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(home / "cache"))
        found = BaseModel.open(save_english(home / "base")).subwords
    found.chat = ChatFormat("<ask>\n", "</ask>\n<say>\n", "</say>")
    return found


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    home = tmp_path_factory.mktemp("graph")
    return KnowledgeGraph.open(make_store(home, [("Q1", "P1", "Q2"), ("Q2", "P1", "Q3")], NAMES))


def word_texts(found: Passage) -> list[tuple[str, str]]:
    """For each subword, its text and the token it belongs to."""
    begins = [0, *found.end_T.tolist()]
    return [
        (found.text[begin:end], found.surface[word])
        for begin, end, word in zip(begins, begins[1:], found.word_T.tolist(), strict=False)
    ]


@pytest.mark.parametrize("text", [*SENTENCES, " ".join(SENTENCES), "", "  a  b ", "naïve façade — 東京."])
def test_subwords_cover_the_text_and_belong_to_the_word_in_which_they_end(text: str, subwords: Subwords) -> None:
    found = text_passage(text, subwords)
    assert "".join(piece for piece, _ in word_texts(found)) == text[: int(found.end_T[-1]) if len(found.end_T) else 0]
    tokens = [token for sentence in tokenizer().sentences(text) for token in sentence]
    for end, (_, word) in zip(found.end_T.tolist(), word_texts(found), strict=True):
        inside = [token.text for token in tokens if token.start < end <= token.end]
        assert [word] == inside or not inside  # a blank belongs to the word after it
    assert sum(found.begins_T.tolist()) == len(set(found.word_T.tolist()))


def test_a_document_and_its_text_have_the_same_subwords(subwords: Subwords, graph: KnowledgeGraph) -> None:
    tokens = [START, "Zoë", "'s", "dogs", "'", "bowls", "are", "full", ".", END]
    mentions = [Mention(1, 2, "Q1", "KG", (NEW,), ("Q1",)), Mention(3, 4, "Q2", "KG", ("P1",), ("Q1",))]
    found = passage(Document("", tokens, mentions), subwords, graph)
    assert found.text == "Zoë's dogs' bowls are full."
    assert found.ids == text_passage(found.text, subwords).ids
    spans = [found.text[begin(found, each.start) : int(found.end_T[each.end - 1])] for each in found.mentions]
    assert spans == ["Zoë", " dogs"]
    assert found.mentions[1].facts == ((graph.number("Q1"), graph.find_relation("P1")),)


def begin(found: Passage, position: int) -> int:
    return int(found.end_T[position - 1]) if position else 0


def question_document() -> Document:
    tokens = [START, "Who", "owns", "dogs", "?", ANSWER, "Zoë", ".", END]
    mentions = [Mention(3, 4, "Q2", "KG", (NEW,), ("Q2",)), Mention(6, 7, "Q1", "KG", ("R:P1",), ("Q2",))]
    return Document("", tokens, mentions)


def test_a_question_with_its_answer_is_in_the_chat_format(subwords: Subwords, graph: KnowledgeGraph) -> None:
    found = passage(question_document(), subwords, graph)
    assert found.text == "<ask>\nWho owns dogs?</ask>\n<say>\nZoë.</say>"
    assert [found.text[begin(found, each.start) : int(found.end_T[each.end - 1])] for each in found.mentions] == [
        " dogs",
        "Zoë",
    ]
    asked = question_passage("Who owns dogs?", subwords)
    assert found.ids[: len(asked.ids)] == asked.ids
    assert found.mentions[1].start == len(asked.ids)
    assert found.words == asked.words + 2 == 6


def test_the_clause_of_a_question_is_the_question_without_its_names(subwords: Subwords, graph: KnowledgeGraph) -> None:
    found = passage(question_document(), subwords, graph)
    answer = found.mentions[1].start
    assert clause_texts(found, annotated_links(found, graph), [answer]) == ["Who owns it?"]


def test_what_a_mention_is_called_is_left_out_of_a_clause(subwords: Subwords) -> None:
    found = text_passage("I see the dogs Zoë has in", subwords)
    [name] = [n for n, end in enumerate(found.end_T.tolist()) if found.text[:end].endswith("Zoë")]
    end = len(found.ids)
    assert clause_texts(found, [Link(name, name + 1, 7)], [end]) == ["I see it has in"]
    assert clause_texts(found, [], [end]) == ["I see the dogs Zoë has in"]


def test_a_clause_is_the_sentence_so_far_without_its_names(subwords: Subwords) -> None:
    text = "I cannot stay. Zoë's dogs' bowls (two) are full."
    found = text_passage(text, subwords)
    place = {int(end): n for n, end in enumerate(found.end_T.tolist())}

    def link(name: str, p: float = 1.0) -> Link:
        start = text.index(name)
        first = 1 + place[start if start in place else start - 1]
        return Link(first, 1 + place[start + len(name)], 7, p)

    end = len(found.ids)
    dogs = link("dogs")
    assert clause_texts(found, [link("Zoë"), dogs], [end]) == ["it's it' bowls (two) are full."]
    assert clause_texts(found, [link("Zoë", 0.3), dogs], [end]) == ["Zoë's it' bowls (two) are full."]
    assert clause_texts(found, [link("Zoë"), dogs], [dogs.start]) == ["it's"]
    assert clause_texts(found, [], [2]) == [text[: int(found.end_T[1])]]


def test_one_position_has_its_places_in_the_text(subwords: Subwords, graph: KnowledgeGraph) -> None:
    found = text_passage("I stay. Zoë's dogs' bowls are full. They are full.", subwords)
    count, first_T = len(found.ids), sentence_starts(found)
    one, two = (graph.number(id) for id in ("Q1", "Q2"))
    links = [Link(1, 3, one, 0.5), Link(1, 3, two, 0.4, since=4), Link(4, 5, two, 0.9, until=8), Link(6, 7, one)]
    local = LocalEntities(graph, links)
    expected = local.places(count, first_T)
    assert len(set(first_T.tolist())) == 3
    for t in range(count):
        for all_TP, at_1P in zip(expected, local.places_at(t, int(first_T[t])), strict=True):
            assert np.array_equal(all_TP[t : t + 1], at_1P)
        so_far = replace(found, ids=found.ids[: t + 1], word_T=found.word_T[: t + 1])
        assert last_sentence(so_far) == first_T[t]


def test_a_base_without_a_chat_format_refuses_questions(subwords: Subwords) -> None:
    plain = Subwords.__new__(Subwords)
    plain.__dict__.update(subwords.__dict__)
    plain.chat = None
    with pytest.raises(ConfigError, match="no chat format"):
        question_passage("Who?", plain)
