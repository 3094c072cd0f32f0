"""JSON, RDF and Neo4j's CSV of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from kglm.errors import DataError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.importers.own import BadLinesError
from kglm.kg.imports import ImportReport, import_graph

Facts = set[tuple[str, str, str]]


def imported(home: Path, files: dict[str, str]) -> tuple[ImportReport, Facts]:
    for name, text in files.items():
        (home / name).write_text(text)
    report = import_graph([home / name for name in files], home / "own.kg")
    with KnowledgeGraph.open(home / "own.kg") as graph:
        rows = graph.store.rows(
            "SELECT h.id, r.id, t.id FROM fact f JOIN entity h ON h.number = f.head JOIN entity t ON t.number = f.tail"
            " JOIN relation r ON r.number = f.relation"
        )
    return report, {(head, relation, tail) for head, relation, tail in rows}


OBJECTS = """\
{"name": "Acme", "employees": 312, "founded": 1989, "products": ["lamp", "saw"], "weight": 1.234, "open": true,
 "head of sales": {"value": "Ann Roe", "from": 2001}, "motto": "We saw."}
{"name": "Saw Ltd", "aliases": ["Saw"], "employees": 12, "founded": 312, "weight": 2}
{"head": "Acme", "relation": "owner", "tail": "Saw", "since": 1999}
"""
ACME = {
    ("Q_Acme", "P_employees", "V::312.0000::1"),
    ("Q_Acme", "P_founded", "T::9::+1989-00-00T00:00:00Z"),
    ("Q_Acme", "P_products", "Q_lamp"),
    ("Q_Acme", "P_products", "Q_saw"),
    ("Q_Acme", "P_weight", "V::1.2340::1"),
    ("Q_Acme", "P_open", "S::yes"),
    ("Q_Acme", "P_head_of_sales", "Q_Ann_Roe"),
    ("Q_Acme", "P_head_of_sales:P580", "T::9::+2001-00-00T00:00:00Z"),
    ("Q_Acme", "P_motto", "S::We%20saw."),
    ("Q_Acme", "P_owner", "Q_Saw_Ltd"),  # by an alias
    ("Q_Acme", "P_owner:P580", "T::9::+1999-00-00T00:00:00Z"),
    ("Q_Saw_Ltd", "P_employees", "V::12.0000::1"),
    ("Q_Saw_Ltd", "P_founded", "T::9::+0312-00-00T00:00:00Z"),
    ("Q_Saw_Ltd", "P_weight", "V::2.0000::1"),
}


def test_objects(tmp_path: Path) -> None:
    assert imported(tmp_path, {"o.jsonl": OBJECTS})[1] == ACME


def test_an_array_of_objects(tmp_path: Path) -> None:
    lines = OBJECTS.replace(",\n ", ", ").splitlines()
    assert imported(tmp_path, {"o.json": f"[{', '.join(lines)}]"})[1] == ACME


def test_bad_objects_are_reported_with_their_lines(tmp_path: Path) -> None:
    bad = '{"name": "X", "employees": {"a": 1}}\n{"name": \n["a"]\n{"age": 3}\n'
    bad = OBJECTS + bad + '{"head": "A", "relation": [], "tail": 1}\n'
    with pytest.raises(BadLinesError) as caught:
        imported(tmp_path, {"o.jsonl": bad})
    lines = [int(problem.partition("line ")[2].partition(":")[0]) for problem in caught.value.problems]
    assert lines == [5, 6, 7, 8, 9]
    assert not list(tmp_path.glob("own.kg*"))


def test_neo4j(tmp_path: Path) -> None:
    people = "personId:ID(Person),name,born:int,height:float,nick:string[],home:point,:LABEL\n"
    people += '1,Keanu,1964,1.86,The One;Ted,"{x:1}",Actor\n2,Carrie,1967,1.7,,,Actor;Person\n'
    films = "filmId:ID(Film),title,:LABEL\n1,The Matrix,Film\n"
    acted = ":START_ID(Person),role,:END_ID(Film),:TYPE,since:int\n1,Neo,1,ACTED_IN,1999\n2,Trinity,1,ACTED_IN,1999\n"
    report, facts = imported(tmp_path, {"people.csv": people, "films.csv": films, "acted.csv": acted})
    assert {note.partition(": ")[2].partition(" (")[0] for note in report.notes} == {
        "Neo4j's CSV with nodes", "Neo4j's CSV with relationships",
    }  # fmt: skip
    assert report.skipped == {"point": 1}
    assert facts >= {
        ("Q_Person.1", "P_born", "T::9::+1964-00-00T00:00:00Z"),
        ("Q_Person.1", "P_height", "V::1.8600::1"),
        ("Q_Person.1", "P_nick", "S::Ted"),
        ("Q_Person.2", "P_instance_of", "Q_Actor"),
        ("Q_Person.2", "P_instance_of", "Q_Person"),
        ("Q_Person.1", "P_acted_in", "Q_Film.1"),
        ("Q_Person.1", "P_acted_in:P_role", "S::Neo"),
        ("Q_Person.1", "P_acted_in:P580", "T::9::+1999-00-00T00:00:00Z"),
    }
    with KnowledgeGraph.open(tmp_path / "own.kg") as graph:
        assert graph.label(graph.number("Q_Film.1")) == "The Matrix"


def test_apoc(tmp_path: Path) -> None:
    text = "_id,_labels,name,born,_start,_end,_type\n0,:Person,Ada,1815,,,\n1,:City,London,,,,\n,,,,0,1,BORN_IN\n"
    _, facts = imported(tmp_path, {"export.csv": text})
    assert facts == {
        ("Q_0", "P_instance_of", "Q_Person"), ("Q_1", "P_instance_of", "Q_City"),
        ("Q_0", "P_born", "T::9::+1815-00-00T00:00:00Z"), ("Q_0", "P_born_in", "Q_1"),
    }  # fmt: skip


TURTLE = """\
@prefix ex: <http://ex.org/people/> .
@prefix s: <http://schema.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
ex:Ada_Lumen a s:Person ; rdfs:label "Ada Lumen"@en, "Ada L"@de ; skos:altLabel "A. Lumen" ;
  s:birthDate "1871-05-04"^^xsd:date ; s:worksFor ex:Orrery ; s:email "ada@orrery.example" ;
  s:height "1.72"^^xsd:decimal ; s:children 3 ; s:motto "Weiter"@de .
ex:Orrery s:name "Orrery Works" ; s:foundingDate 1889 ; s:slogan "Stars made by hand"@en ;
  s:dissolved "1950"^^xsd:gYear ; s:description "A workshop"@en ; s:address [ s:street "Hill" ] .
"""
ADA = {
    ("Q_Ada_Lumen", "P_instance_of", "Q_Person"),
    ("Q_Ada_Lumen", "P_birth_date", "T::11::+1871-05-04T00:00:00Z"),
    ("Q_Ada_Lumen", "P_works_for", "Q_Orrery"),
    ("Q_Ada_Lumen", "P_email", "S::ada@orrery.example"),
    ("Q_Ada_Lumen", "P_height", "V::1.7200::1"),
    ("Q_Ada_Lumen", "P_children", "V::3.0000::1"),
    ("Q_Orrery", "P_founding_date", "T::9::+1889-00-00T00:00:00Z"),
    ("Q_Orrery", "P_slogan", "S::Stars%20made%20by%20hand"),
    ("Q_Orrery", "P_dissolved", "T::9::+1950-00-00T00:00:00Z"),
}


@pytest.mark.parametrize("syntax", ["TURTLE", "N_TRIPLES", "RDF_XML", "JSON_LD"])
def test_rdf(tmp_path: Path, syntax: str) -> None:
    pyoxigraph = pytest.importorskip("pyoxigraph")
    triples = [quad.triple for quad in pyoxigraph.parse(TURTLE, format=pyoxigraph.RdfFormat.TURTLE)]
    text = pyoxigraph.serialize(triples, format=getattr(pyoxigraph.RdfFormat, syntax)).decode()
    report, facts = imported(tmp_path, {"data": TURTLE if syntax == "TURTLE" else text})
    assert facts == ADA
    assert report.skipped == {"text in another language": 1, "blank node": 2}
    with KnowledgeGraph.open(tmp_path / "own.kg") as graph:
        assert list(graph.names(graph.number("Q_Ada_Lumen"))) == ["Ada Lumen", "A. Lumen"]
        assert graph.label(graph.number("Q_Orrery")) == "Orrery Works"
        assert graph.store.description("Q_Orrery")[0] == "A workshop"


def test_broken_rdf_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph")
    with pytest.raises(DataError, match="is not turtle"):
        imported(tmp_path, {"data.ttl": TURTLE[:-20]})
