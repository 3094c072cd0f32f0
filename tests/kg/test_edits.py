"""Edits of a graph: facts, new entities, undo, forks, qualifiers, and facts as typed by users."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kglm.errors import GraphError, KglmError, LiteralError, UnknownIdError
from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.head_facts import HeadFacts
from kglm.kg.imports import import_graph
from kglm.kg.resolve import parse_fact
from kglm.kg.suggest import MAX_CANDIDATES, _candidates, suggest
from support.worlds import BORN, facts_of, make_store

MARCH = "T::11::+2013-03-21T00:00:00Z"


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with KnowledgeGraph.open(make_store(tmp_path), writable=True) as opened:
        yield opened


def reopened(graph: KnowledgeGraph) -> set[tuple[str, str, str]]:
    with KnowledgeGraph.open(graph.store.path) as again:
        return facts_of(again)


def born(graph: KnowledgeGraph) -> set[str]:
    return {tail for head, relation, tail in facts_of(graph) if (head, relation) == ("Q76", "P569")}


class TestDurableEdits:
    def test_set_replaces_in_memory_and_on_disk(self, graph: KnowledgeGraph) -> None:
        graph.set("Q76", "P569", "2013-03-21")
        assert born(graph) == {MARCH}
        assert reopened(graph) == facts_of(graph)

    def test_add_and_remove_change_both_directions(self, graph: KnowledgeGraph) -> None:
        before = facts_of(graph)
        graph.add("Q13133", "P26", "Q76")
        assert facts_of(graph) - before == {("Q13133", "P26", "Q76"), ("Q76", "R:P26", "Q13133")}
        graph.remove("Q13133", "P26", "Q76")
        assert facts_of(graph) == before == reopened(graph)

    def test_reverse_relation_edits_the_same_fact(self, graph: KnowledgeGraph) -> None:
        graph.remove("Q13133", "R:P26", "Q76")
        assert ("Q76", "P26", "Q13133") not in facts_of(graph)

    def test_created_entity_stays_after_undo_and_can_be_created_again(self, graph: KnowledgeGraph) -> None:
        edits = [NewEntity("Q_jane", ("Jane",)), FactEdit("add", "Q_jane", "P26", "Q76")]
        graph.edit(edits)
        graph.undo()
        graph.edit(edits)
        assert ("Q_jane", "P26", "Q76") in facts_of(graph) == reopened(graph)
        with pytest.raises(GraphError, match="already has an entity"):
            graph.edit([NewEntity("Q_jane", ("Another Jane",))])

    def test_undo_reverts_one_edit_at_a_time(self, graph: KnowledgeGraph) -> None:
        states = [facts_of(graph)]
        for edit in (
            FactEdit("set", "Q76", "P569", "2013-03-21"),
            FactEdit("add", "Q13133", "P26", "Q76"),
            FactEdit("remove", "Q76", "P31", "Q5"),
        ):
            graph.edit([edit])
            states.append(facts_of(graph))
        for state in reversed(states[:-1]):
            graph.undo()
            assert facts_of(graph) == state == reopened(graph)
        with pytest.raises(GraphError, match="no edit to undo"):
            graph.undo()

    def test_edit_after_an_undo(self, graph: KnowledgeGraph) -> None:
        graph.set("Q76", "P569", "2013-03-21")
        graph.undo()
        graph.set("Q76", "P569", "1990")
        graph.undo()
        assert born(graph) == {BORN}

    def test_several_edits_are_undone_as_one(self, graph: KnowledgeGraph) -> None:
        before = facts_of(graph)
        graph.edit([FactEdit("remove", "Q76", "P26", "Q13133"), FactEdit("add", "Q13133", "P26", "Q76")])
        graph.undo()
        assert facts_of(graph) == before
        with pytest.raises(GraphError):
            graph.edit([FactEdit("remove", "Q76", "P26", "Q13133"), FactEdit("remove", "Q76", "P26", "Q13133")])
        assert facts_of(graph) == before == reopened(graph), "the first part of a failed edit does not stay"

    def test_new_entity_by_edit(self, graph: KnowledgeGraph) -> None:
        graph.edit([NewEntity("Q_jane", ("Jane Doe", "Jane", " ", "Jane")), FactEdit("set", "Q76", "P26", "Q_jane")])
        assert list(graph.names(graph.number("Q_jane"))) == ["Jane Doe", "Jane"]
        assert ("Q_jane", "R:P26", "Q76") in facts_of(graph) and reopened(graph) == facts_of(graph)
        assert [hit.id for hit in graph.search("Jane Doe")] == ["Q_jane"]

    def test_nodes_keep_their_numbers_when_arrays_are_rebuilt(
        self, graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        graph.edit([NewEntity("Q_jane", ("Jane",)), FactEdit("add", "Q_jane", "P569", "1999-09-09")])
        graph.set("Q76", "P569", "2013-03-21")
        monkeypatch.setattr("kglm.kg.graph.JOURNAL_LIMIT", 0)
        with KnowledgeGraph.open(graph.store.path) as rebuilt:
            assert [rebuilt.id(n) for n in range(len(rebuilt))] == [graph.id(n) for n in range(len(graph))]


class TestForks:
    def test_fork_does_not_change_the_store(self, graph: KnowledgeGraph) -> None:
        before = facts_of(graph)
        fork = graph.fork()
        fork.edit([NewEntity("Q_x", ("X",)), FactEdit("set", "Q76", "P569", "2013-03-21")])
        assert born(fork) == {MARCH} and facts_of(graph) == before == reopened(graph)
        fork.undo()
        assert born(fork) == {BORN}
        with pytest.raises(GraphError, match="no edit to undo"):
            fork.undo()

    def test_edges_of_includes_the_edit(self, graph: KnowledgeGraph) -> None:
        fork = graph.fork()
        fork.set("Q76", "P569", "2013-03-21")
        ragged = fork.edges_of([fork.number("Q5"), fork.number("Q76")])
        assert fork.number(MARCH) in ragged.tail


@pytest.mark.parametrize(
    ("edit", "error", "message"),
    [
        (("add", "Q999", "P26", "Q76"), UnknownIdError, "no entity 'Q999'"),
        (("add", "Q76", "P26", "Q999"), UnknownIdError, "no entity 'Q999'"),
        (("add", "Q76", "P999", "Q5"), UnknownIdError, "no relation 'P999'"),
        (("add", "Q76", "@@REFLEXIVE@@", "Q76"), GraphError, "reflexive relation cannot be edited"),
        (("add", "Q76", "P26", "Q76"), GraphError, "are both Q76"),
        (("add", "Q76", "P26", "Q13133"), GraphError, "already has the fact"),
        (("set", "Q76", "P26", "Q13133"), GraphError, "already the only fact of this head"),
        (("remove", "Q5", "P26", "Q13133"), GraphError, "there is no fact"),
        (("set", "Q76", "P569", "2013-13-45"), LiteralError, "2013-13-45"),
        (("set", "Q76", "P569", "T::11::nonsense"), LiteralError, "nonsense"),
        (("set", "Q76", "P569", "some day"), LiteralError, "'some day' is not a date; write it like 21 March 2013"),
        (("add", BORN, "P26", "Q5"), GraphError, "is a literal"),
    ],
)
def test_invalid_edit_changes_nothing(
    graph: KnowledgeGraph, edit: tuple[str, ...], error: type[KglmError], message: str
) -> None:
    before = facts_of(graph)
    with pytest.raises(error, match=message):
        graph.edit([FactEdit(*edit)])  # type: ignore[arg-type]
    assert facts_of(graph) == before == reopened(graph)
    assert graph.generation == 0


@pytest.mark.parametrize(
    ("id", "names", "message"),
    [("Q76", ("X",), "already has an entity"), ("jane", ("X",), "not an entity id"), ("Q_x", (" ",), "has no name")],
)
def test_invalid_new_entity_is_an_error(graph: KnowledgeGraph, id: str, names: tuple[str, ...], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        graph.edit([NewEntity(id, names)])


class TestParsing:
    @pytest.mark.parametrize(
        ("text", "fact"),
        [
            ("Q76 P569 2013-03-21", ("Q76", "P569", MARCH)),
            ("Barack Obama date of birth 21 March 2013", ("Q76", "P569", MARCH)),
            ("Barack Obama | Date of Birth | March 21, 2013", ("Q76", "P569", MARCH)),
            ("Michelle Obama spouse Barack Obama", ("Q13133", "P26", "Q76")),
            ("obama P26 michelle obama", ("Q76", "P26", "Q13133")),
            ("Q13133 R:P26 Q76", ("Q76", "P26", "Q13133")),
            ("Q76 P569 1961", ("Q76", "P569", "T::9::+1961-00-00T00:00:00Z")),
            ("Q76 P569 T::11::+1961-08-04T00:00:00Z", ("Q76", "P569", BORN)),
        ],
    )
    def test_facts_by_ids_and_names(self, graph: KnowledgeGraph, text: str, fact: tuple[str, str, str]) -> None:
        assert parse_fact(graph, text) == fact

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("Barack Obama birthday 2013", "no relation is named"),
            ("Q76 spouze Q5", r"no relation is called 'spouze'; did you mean spouse \(P26\)"),
            ("Barak | spouse | Q5", "no entity called 'Barak'"),
            ("Barak Obama | spouse | Q5", r"'Barak Obama'; did you mean Barack Obama \(Q76\)"),
            ("Marack Obama | spouse | Q5", r"did you mean Barack Obama \(Q76\)"),
            ("Barack Obama spouse Michele Obama", r"did you mean Michelle Obama \(Q13133\)"),
            ("Barack Obama spouse Michelle", r"'Michelle'; did you mean Michelle Obama \(Q13133\)"),
            ("a | b", "has 2 parts"),
            ("", "no relation is named"),
            ("Barack Obama spouse Jane Unknown", "no entity called 'Jane Unknown'; search with: kglm kg find"),
        ],
    )
    def test_unresolved_fact_is_an_error(self, graph: KnowledgeGraph, text: str, message: str) -> None:
        with pytest.raises(GraphError, match=message):
            parse_fact(graph, text)

    @pytest.mark.parametrize("text", ["Q_jane | father of | Q76", "Q_jane father of Q76", "Jane Doe father of Obama"])
    def test_alias_of_a_relation_is_only_suggested(self, tmp_path: Path, text: str) -> None:
        """An alias may name the reverse relation, as this one does."""
        names = {"Q76": ("Barack Obama", "Obama"), "Q2": ("Barack Obama Sr.",), "Q_jane": ("Jane Doe",)}
        facts = [("Q76", "P22", "Q2"), ("Q_jane", "P22", "Q2")]
        path = make_store(tmp_path / "father", facts, names | {"P22": ("father", "father of")})
        message = (
            r"no relation is called 'father of'; father \(P22\) has that alias: "
            r"write HEAD father TAIL, as in Barack Obama \| father \| Barack Obama Sr\."
        )
        with KnowledgeGraph.open(path) as graph, pytest.raises(UnknownIdError, match=message):
            parse_fact(graph, text)

    def test_misspelt_name_is_compared_with_a_bounded_number_of_names(self, tmp_path: Path) -> None:
        names = {f"Q{number}": (f"Barnabas Abernathy {number}",) for number in range(1000, 9000)}
        facts = [("Q76", "P26", "Q77"), *((id, "P26", "Q77") for id in names)]
        path = make_store(tmp_path / "large", facts, names | {"Q76": ("Barack Obama",), "P26": ("spouse",)})
        with KnowledgeGraph.open(path) as graph:
            assert [each.id for each in suggest(graph, "Barrack Obama")] == ["Q76"]
            assert len(list(_candidates(graph, "barrack obama"))) <= 3 * MAX_CANDIDATES, "three prefixes; 8,000 names"
            assert suggest(graph, "Barrack Obama " * 50) == [] == suggest(graph, "")

    def test_ambiguous_name_of_an_entity_is_an_error(self, tmp_path: Path) -> None:
        names = {"Q1": ("Paris",), "Q2": ("Paris",), "Q3": ("France",), "P17": ("country",)}
        path = make_store(tmp_path / "paris", [("Q1", "P17", "Q3"), ("Q2", "P17", "Q3")], names)
        with KnowledgeGraph.open(path) as graph, pytest.raises(GraphError, match=r"2 entities are called 'Paris'.*Q1"):
            parse_fact(graph, "Paris country France")

    def test_ambiguous_name_of_a_relation_is_an_error(self, tmp_path: Path) -> None:
        names = {"Q1": ("a",), "P10": ("part of",), "P11": ("part of",), "P12": ("whole", "part of")}
        facts = [("Q1", f"P{n}", "Q2") for n in (10, 11, 12)]
        path = make_store(tmp_path / "part", facts, names)
        message = "2 relations are called 'part of'; use an id: P10, P11"
        with KnowledgeGraph.open(path) as graph, pytest.raises(GraphError, match=message):
            parse_fact(graph, "Q1 | part of | Q3")

    def test_quantities_keep_their_unit(self, tmp_path: Path) -> None:
        centimetre = "http://www.wikidata.org/entity/Q174728"
        facts = [("Q1", "P2048", f"V::185.0000::{centimetre}"), ("Q2", "P1082", "V::7.0000::1")]
        names = {"Q174728": ("centimetre", "cm"), "Q1": ("Ann",)}
        with KnowledgeGraph.open(make_store(tmp_path / "cm", facts, names)) as graph:
            for text in ("190", "190 cm", "190 centimetres"):
                assert parse_fact(graph, f"Q1 | P2048 | {text}")[2] == f"V::190.0000::{centimetre}"
            assert parse_fact(graph, "Q2 | P1082 | 1,000,000")[2] == "V::1000000.0000::1"
            with pytest.raises(LiteralError, match="the unit of '190 miles' is not used"):
                parse_fact(graph, "Q1 | P2048 | 190 miles")
            assert graph.label(graph.number(f"V::185.0000::{centimetre}")) == "185 centimetre"

    def test_relation_of_dates_refuses_a_number(self, graph: KnowledgeGraph) -> None:
        with pytest.raises(LiteralError, match="'20130321' is not a date"):
            parse_fact(graph, "Q76 | date of birth | 20130321")

    def test_blanks_in_names_do_not_matter(self, graph: KnowledgeGraph) -> None:
        assert parse_fact(graph, "Barack  Obama |  date  of birth | 21  March 2013")[0] == "Q76"

    def test_other_tails_decide_between_year_and_quantity(self, tmp_path: Path) -> None:
        facts = [
            ("Q1", "P1082", "V::1000.0000::1"),
            ("Q1", "P571", "T::9::+1200-00-00T00:00:00Z"),
            ("Q1", "P800", "Q2"),
        ]
        names = {"Q1": ("Town",), "Q2": ("1984",)}
        with KnowledgeGraph.open(make_store(tmp_path / "n", facts, names)) as graph:
            assert parse_fact(graph, "Q1 P1082 1984")[2] == "V::1984.0000::1"
            assert parse_fact(graph, "Q1 P571 1984")[2] == "T::9::+1984-00-00T00:00:00Z"
            assert parse_fact(graph, "Q1 P800 1984")[2] == "Q2"


class TestQualifiers:
    """Removing a statement removes its qualifiers; undo restores both."""

    @pytest.fixture
    def graph(self, tmp_path: Path) -> Iterator[KnowledgeGraph]:
        import json

        facts = [
            {"head": "Q1", "relation": "P54", "tail": "Q10", "qualifiers": {"P413": ["Q7"], "P580": [MARCH]}},
            {"head": "Q1", "relation": "P54", "tail": "Q11", "qualifiers": {"P413": ["Q7"]}, "rank": "preferred"},
        ]
        (tmp_path / "facts.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
        import_graph([tmp_path / "facts.jsonl"], tmp_path / "q.kg")
        with KnowledgeGraph.open(tmp_path / "q.kg", writable=True) as opened:
            yield opened

    def stored(self, graph: KnowledgeGraph) -> list[tuple[str, str, int, list[str]]]:
        stored = HeadFacts(graph.store, {}, "Q1")
        return [
            (fact.relation, fact.tail, fact.rank, [q.tail for q in stored.qualifiers_of(fact)])
            for fact in graph.store.facts_of("Q1")
        ]

    def test_qualifiers_are_facts_linked_to_statements(self, graph: KnowledgeGraph) -> None:
        assert {("Q1", "P54:P413", "Q7"), ("Q7", "R:P54:P413", "Q1"), ("Q1", "P54:P580", MARCH)} <= facts_of(graph)
        assert ("P54", "Q10", 0, ["Q7", MARCH]) in self.stored(graph)
        assert ("P54", "Q11", 1, ["Q7"]) in self.stored(graph)

    def test_removal_keeps_qualifiers_of_other_statements(self, graph: KnowledgeGraph) -> None:
        before = self.stored(graph)
        graph.remove("Q1", "P54", "Q10")
        assert {(r, t) for r, t, *_ in self.stored(graph)} == {("P54", "Q11"), ("P54:P413", "Q7")}
        graph.remove("Q1", "P54", "Q11")
        assert self.stored(graph) == []
        graph.undo()
        graph.undo()
        assert sorted(self.stored(graph)) == sorted(before), "with rank and qualifiers"
        assert facts_of(graph) == reopened(graph)

    def test_set_removes_a_qualifier_shared_by_the_removed_statements(self, graph: KnowledgeGraph) -> None:
        """Both statements are removed, so their shared qualifier is too; removing only one would keep it."""
        before = self.stored(graph)
        for edits in ([FactEdit("set", "Q1", "P54", "Q7")],
                      [FactEdit("remove", "Q1", "P54", "Q10"), FactEdit("remove", "Q1", "P54", "Q11")]):  # fmt: skip
            graph.edit(edits)
            assert {relation for relation, *_ in self.stored(graph)} <= {"P54"}
            graph.undo()
            assert sorted(self.stored(graph)) == sorted(before)

    def test_qualifier_and_its_statement_in_one_edit(self, graph: KnowledgeGraph) -> None:
        graph.edit([FactEdit("remove", "Q1", "P54:P413", "Q7"), FactEdit("remove", "Q1", "P54", "Q10")])
        assert [(r, t) for r, t, *_ in self.stored(graph)] == [("P54", "Q11")]
        fork = graph.fork()
        fork.remove("Q1", "P54", "Q11")
        assert ("Q1", "P54", "Q11") not in facts_of(fork)

    def test_removal_of_a_qualifier_keeps_its_statement(self, graph: KnowledgeGraph) -> None:
        before = self.stored(graph)
        graph.remove("Q1", "P54:P580", "2013-03-21")
        assert ("P54", "Q10", 0, ["Q7"]) in self.stored(graph)
        graph.undo()
        assert sorted(self.stored(graph)) == sorted(before)


class EditingMachine(RuleBasedStateMachine):
    """Random edits, compared with a set of triples: memory, disk and the set always agree."""

    items = st.sampled_from(["Q1", "Q2", "Q3", "Q4"])
    relations = st.sampled_from(["P1", "P2"])
    tails = st.one_of(items, st.sampled_from(["T::9::+1999-00-00T00:00:00Z", "V::5.0000::1"]))

    @initialize()
    def start(self) -> None:
        import tempfile

        self.home = tempfile.TemporaryDirectory()
        facts = [("Q1", "P1", "Q2"), ("Q3", "P2", "Q4"), ("Q2", "P2", "V::5.0000::1")]
        self.path = make_store(Path(self.home.name), facts)
        self.graph = KnowledgeGraph.open(self.path, writable=True)
        self.history = [set(facts)]

    def teardown(self) -> None:
        self.graph.close()
        self.home.cleanup()

    @rule(head=items, relation=relations, tail=tails, action=st.sampled_from(["add", "remove", "set"]))
    def edit(self, head: str, relation: str, tail: str, action: str) -> None:
        facts, fact = self.history[-1], (head, relation, tail)
        same = {other for other in facts if other[:2] == fact[:2]}
        legal = head != tail and {"add": fact not in facts, "remove": fact in facts, "set": same != {fact}}[action]
        expected = {"add": facts | {fact}, "remove": facts - {fact}, "set": (facts - same) | {fact}}[action]
        try:
            self.graph.edit([FactEdit(action, head, relation, tail)])  # type: ignore[arg-type]
        except GraphError:
            assert not legal
        else:
            assert legal
            self.history.append(expected)

    @precondition(lambda self: len(self.history) > 1)
    @rule()
    def undo(self) -> None:
        self.graph.undo()
        self.history.pop()

    @rule()
    def reopen(self) -> None:
        self.graph.close()
        self.graph = KnowledgeGraph.open(self.path, writable=True)

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "graph"):
            return
        stored = {fact for fact in facts_of(self.graph) if fact[1].startswith("P")}
        rows = self.graph.store.rows(
            "SELECT h.id, r.id, t.id FROM fact f JOIN entity h ON h.number = f.head"
            " JOIN relation r ON r.number = f.relation JOIN entity t ON t.number = f.tail"
        )
        assert stored == set(rows), "memory and disk"
        derived = {fact for fact in facts_of(self.graph) if fact[1].startswith("R:")}
        assert stored == self.history[-1]
        assert derived == {(t, "R:" + r, h) for h, r, t in stored if t.startswith("Q")}


TestEditing = EditingMachine.TestCase
TestEditing.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
