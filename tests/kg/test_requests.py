"""Edits in words: typed values, new entities and relations, tables of edits, and their history."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kglm.errors import KglmError, LiteralError, UnknownIdError
from kglm.kg.export import export_graph
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.history import history
from kglm.kg.imports import import_graph
from kglm.kg.relations import list_relations
from kglm.kg.requests import RefusedEdits, Request, read_requests, resolve_requests

TABLE = """\
name,employees,founded,height (m),slogan,owner
Acme,312,1989,12.5,We build,Ada
Lab,5,1871,3,"Bread, first",Bert
"""


@pytest.fixture
def kg(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text(TABLE)
    import_graph([tmp_path / "t.csv"], tmp_path / "own.kg")
    return tmp_path / "own.kg"


def edit(kg: Path, *facts: str, action: str = "set", author: str | None = None, **options: object) -> None:
    with KnowledgeGraph.open(kg, writable=True) as graph:
        graph.author = author
        requests = [Request.parse(action, fact) for fact in facts]
        graph.edit(resolve_requests(graph, requests, **options))  # type: ignore[arg-type]


def tails(kg: Path, head: str, relation: str) -> list[str]:
    with KnowledgeGraph.open(kg) as graph:
        return [fact.tail for fact in graph.store.facts_with(head, relation)]


@pytest.mark.parametrize(
    ("fact", "relation", "tail"),
    [
        ("Acme | employees | 313", "P_employees", "V::313.0000::1"),
        ("Acme | founded | 312", "P_founded", "T::9::+0312-00-00T00:00:00Z"),
        ("Acme | height | 14", "P_height", "V::14.0000::http://www.wikidata.org/entity/Q_metre"),
        ("Acme | slogan | Bert", "P_slogan", "S::Bert"),  # a text, not the entity
        ("Acme slogan We never sleep.", "P_slogan", "S::We%20never%20sleep."),
        ("Acme | owner | Bert", "P_owner", "Q_Bert"),
    ],
)
def test_values_follow_the_type_of_the_relation(kg: Path, fact: str, relation: str, tail: str) -> None:
    edit(kg, fact)
    assert tails(kg, "Q_Acme", relation) == [tail]


@pytest.mark.parametrize(
    ("fact", "error", "message"),
    [
        ("Acme | employees | many", LiteralError, "not a number"),
        ("Acme | founded | when", LiteralError, "not a date"),
        ("Acme | height | 3 paces", LiteralError, "not a known unit"),
        ("Acme | motto | Go", UnknownIdError, "no relation is called 'motto'.*--create"),
        ("Nobody | owner | Ada", UnknownIdError, "no entity called 'Nobody'.*--create"),
        ("Acme | owner | Nobody", UnknownIdError, "no entity called 'Nobody'.*--create"),
    ],
)
def test_what_is_impossible_names_the_remedy(kg: Path, fact: str, error: type[KglmError], message: str) -> None:
    with pytest.raises(error) as caught:
        edit(kg, fact)
    assert re.search(message, str(caught.value))
    with KnowledgeGraph.open(kg) as graph:
        assert graph.generation == 0


def test_new_relations_and_entities_are_created_and_typed(kg: Path) -> None:
    facts = ("Nora Feld | reports to | Ada", "Nora Feld | joined | 1990", "Nora Feld | desk width | 90 cm",
             "Nora Feld | reports to | Carl", "Lab | motto | Ada")  # fmt: skip
    edit(kg, *facts, action="add", create=True, author="Ada")
    assert tails(kg, "Q_Nora_Feld", "P_reports_to") == ["Q_Ada", "Q_Carl"]
    assert tails(kg, "Q_Nora_Feld", "P_joined") == ["T::9::+1990-00-00T00:00:00Z"]
    assert tails(kg, "Q_Lab", "P_motto") == ["S::Ada"]
    with KnowledgeGraph.open(kg, writable=True) as graph:
        types = {each.label: each.type for each in list_relations(graph)}
        assert types["desk width"] == "quantity:centimetre" and types["motto"] == "text"
        assert graph.label(graph.number("Q_Carl")) == "Carl"
        graph.undo()
        assert graph.datatype("P_joined") == ""
    edit(kg, *facts, action="add", create=True)  # what an undo leaves is used again
    assert tails(kg, "Q_Nora_Feld", "P_reports_to") == ["Q_Ada", "Q_Carl"]


def test_a_type_can_be_set_and_undone(kg: Path) -> None:
    with KnowledgeGraph.open(kg, writable=True) as graph:
        graph.edit(resolve_requests(graph, [], types={"height": "quantity:km"}))
        assert graph.datatype("P_height") == "quantity:km"
        graph.undo()
        assert graph.datatype("P_height") == "quantity:metre:point"


def test_edits_of_a_table_are_all_or_none(kg: Path, tmp_path: Path) -> None:
    table = tmp_path / "edits.csv"
    table.write_text(
        "action,head,relation,tail\nset,Acme,employees,313\nadd,Acme,owner,Bert\nremove,Lab,founded,1871\n"
    )
    with KnowledgeGraph.open(kg, writable=True) as graph:
        graph.edit(resolve_requests(graph, read_requests(table)))
        assert [len(each.changes) for each in history(graph.store)] == [4]
        graph.undo()
    table.write_text("action;head;relation;tail\nset;Acme;employees;many\nadd;Nobody;owner;Bert\nset;Lab;employees;7\n")
    with KnowledgeGraph.open(kg) as graph, pytest.raises(RefusedEdits) as caught:
        resolve_requests(graph, read_requests(table))
    assert [problem.partition(": ")[0] for problem in caught.value.problems] == [f"{table}, line {n}" for n in (2, 3)]
    table.write_text("action,head,relation,tail\nchange,Acme,employees,3\nset,Acme,employees\n")
    with pytest.raises(RefusedEdits) as caught:
        read_requests(table)
    assert len(caught.value.problems) == 2


def test_the_history_has_authors(kg: Path) -> None:
    edit(kg, "Acme | employees | 313", author="Ada")
    edit(kg, "Acme | employees | 314")
    with KnowledgeGraph.open(kg, writable=True) as graph:
        graph.author = "Bert"
        graph.undo()
        entries = history(graph.store)
    assert [(each.number, each.author, each.undoes, each.undone_by) for each in entries] == [
        (3, "Bert", 2, None), (2, None, None, 3), (1, "Ada", None, None),
    ]  # fmt: skip
    assert len(entries[0].changes) == 2


def test_an_edited_graph_is_sealed_and_exported(kg: Path, tmp_path: Path) -> None:
    edit(kg, "Acme | owned since | 1999", action="add", create=True, author="Ada")
    with KnowledgeGraph.open(kg, whole=True) as graph:
        assert graph.store.integrity.tables_with_wrong_seal() == []
    export_graph(kg, tmp_path / "out.tsv")
    import_graph([tmp_path / "out.tsv"], tmp_path / "new.kg")
    with KnowledgeGraph.open(tmp_path / "new.kg") as graph:
        assert graph.datatype("P_owned_since") == "year" and graph.relation_name("P_owned_since") == "owned since"
