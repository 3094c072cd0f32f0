from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import NEW, REFLEXIVE
from kglm.model.aliases import AliasTable
from kglm.model.buckets import bucket
from kglm.model.cues import NamedRelation
from kglm.model.mention_state import INSIDE, STATES, outside_states
from kglm.model.types import Type
from kglm.text.document import START, Document, Mention
from kglm.text.vocabulary import PADDING, UNKNOWN, Vocabulary
from kglm.train.chunks import ChunkBuilder, Piece, whole
from support.toys import YEAR, Toy, annotated, make_toy, random_documents, random_texts
from support.worlds import make_store

TEXT = [START, "Mario", "Land", "is", "Game", "Boy", "1989"]


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return make_toy(tmp_path)


def new(start: int, end: int, id: str) -> Mention:
    return Mention(start, end, id, "WIKI", (NEW,), (id,))


def related(start: int, end: int, id: str, *facts: tuple[str, str]) -> Mention:
    return Mention(start, end, id, "KG", tuple(r for _, r in facts), tuple(p for p, _ in facts))


STORY = [new(1, 3, "Q1"), related(4, 6, "Q2", ("Q1", "P1"), ("Q1", "P1")), related(6, 7, YEAR, ("Q2", "P3"))]


class TestEncoding:
    def test_types_entities_and_state(self, toy: Toy) -> None:
        encoded = toy.encoder.encode(Document("t", TEXT, STORY))
        assert [Type(t) for t in encoded.type_T] == [
            Type.NEW, Type.CONTINUE, Type.NONE, Type.RELATED, Type.CONTINUE, Type.RELATED,
        ]  # fmt: skip
        assert encoded.related_T.tolist() == [False, True, True, True, True, True]
        assert encoded.continue_T.tolist() == [False, True, True, False, True, True]
        assert [toy.graph.id(node) for node in encoded.entities] == ["Q1", "Q2"], "a date is never a parent"
        assert not encoded.counts

    def test_all_facts_that_reach_it_and_which_are_listed(self, toy: Toy) -> None:
        start = toy.encoder.encode(Document("t", TEXT, STORY)).starts[1]
        paths = {(path.parent, toy.graph.relation_id(path.relation), path.tails, path.listed) for path in start.paths}
        assert paths == {(0, "P1", 2, True), (0, "P2", 1, False)}

    def test_slots_that_say_the_word(self, toy: Toy) -> None:
        encoded = toy.encoder.encode(Document("t", TEXT, STORY))
        assert encoded.slots_T == {0: [0, 3], 1: [1], 3: [0], 4: [1], 5: [0]}

    def test_a_span_at_the_first_token_does_not_wrap(self, toy: Toy) -> None:
        encoded = toy.encoder.encode(Document("t", ["Mario", "Land", "is"], [new(0, 2, "Q1")]))
        assert encoded.type_T.tolist() == [Type.NEW, Type.NONE]
        only = toy.encoder.encode(Document("t", ["Mario", "is"], [new(0, 1, "Q1")]))
        assert only.type_T.tolist() == [Type.NONE] and not only.starts

    def test_a_span_at_the_last_token_does_not_overflow(self, toy: Toy) -> None:
        encoded = toy.encoder.encode(Document("t", TEXT, STORY))
        chunk = toy.builder.build([whole(encoded)], ahead=1)
        assert chunk.words.input_BT[0].tolist() == encoded.words_N[1:].tolist()

    def test_reading_ahead_shifts_the_words_and_nothing_else(self, toy: Toy) -> None:
        pieces = [Piece(toy.encoder.encode(Document("t", TEXT, STORY)), 1, 5)]
        behind, ahead = (toy.builder.build(pieces, ahead=k) for k in (0, 1))
        for part in fields(behind):
            if part.name == "share":
                continue
            one, two = getattr(behind, part.name), getattr(ahead, part.name)
            for column in fields(one):
                same = getattr(one, column.name).equal(getattr(two, column.name))
                assert same == (column.name != "input_BT"), column.name
        assert ahead.words.input_BT.equal(behind.words.target_BT)

    @pytest.mark.parametrize(
        "document", [Document("t", [START]), Document("t", TEXT, annotated=False), Document("t", [])]
    )
    def test_documents_with_little_or_no_annotation(self, toy: Toy, document: Document) -> None:
        encoded = toy.encoder.encode(document)
        assert len(encoded) == max(len(document.tokens) - 1, 0) and not encoded.starts

    def test_a_literal_is_never_new(self, toy: Toy) -> None:
        encoded = toy.encoder.encode(Document("t", TEXT, [new(6, 7, YEAR)]))
        assert encoded.counts == {"new_literal": 1} and not encoded.starts

    def test_reflexive(self, toy: Toy) -> None:
        text = Document("t", [START, "Mario", "is", "Mario"], [new(1, 2, "Q1"), related(3, 4, "Q1", ("Q1", REFLEXIVE))])
        [path] = toy.encoder.encode(text).starts[1].paths
        assert (path.parent, path.relation, path.tails, path.listed) == (0, 0, 1, True)


def test_recency_buckets_grow() -> None:
    assert [bucket(distance) for distance in (1, 2, 3, 4, 5, 64, 65, 10_000)] == [0, 1, 2, 2, 3, 6, 7, 7]
    states = outside_states(np.full(3, 1000), np.array([-1, 999, 0]))
    assert states.tolist() == [STATES - 1, INSIDE, STATES - 2]


class TestAliases:
    def table(self, tmp_path: Path, names: tuple[str, ...], **limits: int) -> AliasTable:
        graph = KnowledgeGraph.open(make_store(tmp_path, [("Q1", "P1", "Q2")], {"Q1": names}))
        return AliasTable(graph, Vocabulary((PADDING, UNKNOWN, "a")), str.split, **limits)

    def test_only_the_first_aliases_and_words(self, tmp_path: Path) -> None:
        table = self.table(tmp_path, tuple(f"name{k} a b c" for k in range(12)), max_aliases=4, max_alias_tokens=2)
        aliases = table[0]
        assert aliases.surface == ("name0", "a", "name1", "a", "name2", "a", "name3", "a")
        assert aliases.matches("name4") == [] and aliases.matches("a") == [1, 3, 5, 7] and aliases.matches("A") == []

    def test_an_entity_without_names(self, tmp_path: Path) -> None:
        aliases = self.table(tmp_path, ("x",))[1]
        assert not aliases.words_AL.any() and aliases.matches("x") == []

    def test_an_unknown_word_is_no_wild_card(self, tmp_path: Path) -> None:
        assert self.table(tmp_path, ("strange",))[0].matches("odd") == []

    def test_what_can_follow(self, tmp_path: Path) -> None:
        aliases = self.table(tmp_path, ("New York City", "New York"))[0]
        assert aliases.can_follow(["New"]) == (True, False)
        assert aliases.can_follow(["New", "York"]) == (True, True)
        assert aliases.can_follow(["York"]) == (False, False)

    def test_slots_are_the_same_in_every_process(self, tmp_path: Path) -> None:
        path = make_store(tmp_path, [("Q1", "P1", "Q2")], {"Q1": ("b", "a", "c d")})
        code = (
            "from kglm.kg.graph import KnowledgeGraph as G; from kglm.model.aliases import AliasTable as A;"
            "from kglm.text.vocabulary import Vocabulary as V, PADDING, UNKNOWN;"
            f"print(A(G.open({str(path)!r}), V((PADDING, UNKNOWN)), str.split)[0].surface)"
        )
        outputs = {
            subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True).stdout
            for seed in ("0", "1")
        }
        assert len(outputs) == 1 and b"'b'" in outputs.pop()


def test_what_was_mentioned_before_a_piece(toy: Toy) -> None:
    """Compared with a walk over the whole document, for every piece of it."""
    for document in random_documents(toy, 6):
        encoded = toy.encoder.encode(document)
        slots = encoded.slot_T.tolist()
        for start in range(len(encoded) + 1):
            assert encoded.entities_before(start) == 1 + max(slots[:start], default=-1)
            for end in range(start, len(encoded) + 1):
                after = [t > 0 and slots[t - 1] >= 0 for t in range(start, end)]
                assert encoded.after_mention(start, end).tolist() == after
                mentioned = [[slot for slot in slots[:t] if slot >= 0] for t in range(start, end)]
                assert encoded.current(start, end).tolist() == [before[-1] if before else -1 for before in mentioned]


def test_pieces_of_a_long_document_take_no_work_for_the_words_before(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document's own introductions are counted once, and cues are found in blocks."""
    monkeypatch.setattr("kglm.train.encoding.CUE_BLOCK", 4)
    read, relations = list[int](), toy.encoder.cues.relations

    def counted(surface: Sequence[str], first: int, count: int) -> np.ndarray:
        read.append(count)
        return relations(surface, first, count)

    monkeypatch.setattr(toy.encoder.cues, "relations", counted)
    document = annotated(toy, random_texts(toy, 40, 1)[0])
    encoded = toy.encoder.encode(document)
    assert read == [4] * 10
    whole_TK2 = relations(document.tokens)
    np.testing.assert_array_equal(encoded.named.value_F3, NamedRelation.of(whole_TK2).value_F3)
    np.testing.assert_array_equal(encoded.named.relation_F, NamedRelation.of(whole_TK2).relation_F)
    for target in range(len(encoded)):
        cues = encoded.cues.between(target, target + 1)
        assert cues.relation_Y.tolist() == np.flatnonzero(whole_TK2[target].any(1)).tolist()
        np.testing.assert_array_equal(cues.value_Y2, whole_TK2[target, cues.relation_Y])

    asked = list[int]()

    class Counts(dict[int, int]):
        def get(self, node: int, default: int = 0) -> int:  # type: ignore[override]
            asked.append(node)
            return default

    builder, encoded.counted = ChunkBuilder(toy.features, introductions=Counts({-1: 1})), True
    for start in range(0, len(encoded), 5):
        builder.build([Piece(encoded, start, start + 5)])
    assert asked == encoded.introduced
