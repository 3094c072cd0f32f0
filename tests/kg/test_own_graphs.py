"""Three graphs of one's own (a company, a novel, a zoo): every literal right, every bad line reported, nothing half."""

from __future__ import annotations

import csv
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kglm.errors import ConfigError, DataError, KglmError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.importers.formats import describe_source
from kglm.kg.importers.own import FORMATS as OWN_FORMATS
from kglm.kg.importers.own import BadLinesError, read_own
from kglm.kg.importers.records import ImportOptions, OwnOptions
from kglm.kg.imports import ImportReport, import_graph
from kglm.kg.literals.dates import Date
from kglm.kg.literals.literal import is_literal
from kglm.kg.literals.quantities import Quantity
from kglm.kg.literals.texts import text_id
from kglm.kg.resolve import resolve_entity, resolve_relation

HOME = Path(__file__).parent / "own"
GRAPHS = ("company", "novel", "zoo")


def sources(graph: str) -> list[Path]:
    return sorted(path for path in (HOME / graph).iterdir() if path.name != "expected.csv")


def import_own(home: Path, *paths: Path, **own: object) -> ImportReport:
    return import_graph(paths, home / "own.kg", options=ImportOptions(own=OwnOptions(**own)))  # type: ignore[arg-type]


def literal(written: str) -> str:
    """Id of a value of expected.csv: "date 1871-05-04", "year 312", "number 12.5 kilogram", "text …"."""
    kind, _, value = written.partition(" ")
    if kind == "text":
        return text_id(value)
    if kind == "number":
        amount, _, unit = value.partition(" ")
        return Quantity.from_amount(amount, f"Q_{unit.replace(' ', '_')}" if unit else "1").id
    year, month, day = (int(part) for part in f"{value}-0-0".split("-")[:3])
    return Date(11, year, month, day).id


@pytest.mark.parametrize("name", GRAPHS)
def test_every_literal_is_right(tmp_path: Path, name: str) -> None:
    report = import_own(tmp_path, *sources(name))
    assert report.problems == [] and len(report.notes) == len(sources(name))
    with (HOME / name / "expected.csv").open(newline="") as stream:
        expected = list(csv.DictReader(stream))
    with KnowledgeGraph.open(tmp_path / "own.kg") as graph:
        heads = {row["entity"]: resolve_entity(graph, row["entity"]) for row in expected}
        wanted = {
            (heads[row["entity"]], resolve_relation(graph, _label(row["relation"])), literal(row["value"]))
            for row in expected
        }
        found = {
            tuple(row)
            for row in graph.store.rows(
                "SELECT h.id, r.id, t.id FROM fact f JOIN entity h ON h.number = f.head JOIN entity t"
                " ON t.number = f.tail JOIN relation r ON r.number = f.relation WHERE instr(r.id, ':') = 0"
            )
        }
        assert {fact for fact in found if is_literal(fact[2])} == wanted
        assert len(wanted) == len(expected)
        entities = [row for row in graph.store.rows("SELECT id FROM entity") if not is_literal(row[0])]
        assert 30 <= len(entities) <= 100


def _label(column: str) -> str:
    """The relation of a column whose name has a unit."""
    return {"height_m": "height", "weight (kg)": "weight", "area (m²)": "area", "price_eur": "price"}.get(
        column, column
    )


def test_texts_are_no_names(tmp_path: Path) -> None:
    import_own(tmp_path, *sources("novel"))
    with KnowledgeGraph.open(tmp_path / "own.kg") as graph:
        assert graph.search("Bread first, then heaven") == []
        text = graph.number(text_id("Bread first, then heaven"))
        assert graph.label(text) == "Bread first, then heaven"
        assert graph.literal_nodes()[0][text]


def test_qualifiers_of_a_table(tmp_path: Path) -> None:
    import_own(tmp_path, *sources("zoo"))
    with KnowledgeGraph.open(tmp_path / "own.kg") as graph:
        qualifiers = {(fact.relation, fact.tail) for _, fact in graph.store.qualifiers_with("Q_Bruno", "P_lives_in")}
        assert qualifiers == {
            ("P_lives_in:P580", "T::9::+2010-00-00T00:00:00Z"),
            ("P_lives_in:P582", "T::9::+2015-00-00T00:00:00Z"),
        }
        assert set(graph.store.sources_with("Q_Bruno", "P_lives_in").values()) == {("Q_keeper's_book",)}
        assert graph.source_label("Q_keeper's_book") == "keeper's book"
        assert graph.relation_name("P580") == "start time"


BAD = {
    "company": (
        "people.csv",
        [
            ("Hugo Tarn,clerk,Otto Frey,Hill Lab,31/02/1990,\"$41,000\",2019,h@x.example,+49 30 555 1", "day 31"),
            ("Hugo Tarn,clerk,Otto Frey,Hill Lab,13/14/1990,\"$41,000\",2019,h@x.example,+49 30 555 1", "month 14"),
            ("Hugo Tarn,clerk,Otto Frey,Hill Lab,12/11/90,\"$41,000\",2019,h@x.example,+49 30 555 1", "two digits"),
            ("Hugo Tarn,clerk,Otto Frey,Hill Lab,12/11/1990,about forty,2019,h@x.example,+49 30 555 1", "about forty"),
            ("Hugo Tarn,clerk,Otto Frey,Hill Lab,12/11/1990,41000,2019,h@x.example,+49 30 555 1", "has no unit"),
            ("Hugo Tarn,clerk,Otto Frey,Hill Lab,12/11/1990,\"$41.0001,5\",2019,h@x.example,1", "41.0001,5"),
            ("Hugo Tarn,clerk,Otto Frey,Hill Lab,12/11/1990,\"$41,000\",recently,h@x.example,+49 30", "recently"),
            ("Hugo Tarn,clerk,Otto Frey,Hill Lab,12/11/1990,\"$41,000\",2019", "7 columns where 9"),
            (",clerk,Otto Frey,Hill Lab,12/11/1990,\"$41,000\",2019,h@x.example,+49 30 555 1", "'name' is empty"),
            ("Hugo Tarn,clerk,Hugo Tarn,Hill Lab,12/11/1990,\"$41,000\",2019,h@x.example,+49 30", "both 'Hugo Tarn'"),
        ],
    ),
    "novel": (
        "facts.tsv",
        [
            ("Emil Varga\tborn", "2 columns where 3"),
            ("Old Mole\tborn\t30 February 1871", "day 30"),
            ("Old Mole\tborn\tin winter", "in winter"),
            ("the inn\tnumber of steps\tmany", "many"),
            ("the inn\tnumber of steps\t1,200", "1200 or 1.2"),
            ("the inn\theight\t9", "has no unit"),
            ("the inn\theight\t9 paces", "9 paces"),
            ("\tborn\t1900", "head is empty"),
            ("Old Mole\t\t1900", "relation is empty"),
            ("the inn\theight\t3.14159 m", "more than 4 decimals"),
            ("Old Mole\tlives in\tthe inn\tfavourite", "4 columns where 3"),
        ],
    ),
    "zoo": (
        "places.csv",
        [
            ('Bear Wood,capacity,"1,200 visitors",,,', "1200 or 1.2"),
            ("Bear Wood,cost per year,12 EU dollars,,,", "12 EU dollars"),
            ("Bear Wood,area,two hectares,,,", "two hectares"),
            ("Mila,lives in,Bear Wood,sometime,,", "sometime"),
            ("Mila,keeper since,\"1,5\",,,", "1,5"),
            ("Mila,lives in,Bear Wood", "3 columns where 6"),
        ],
    ),
}  # fmt: skip


def with_bad_lines(home: Path, name: str) -> tuple[list[Path], dict[int, str], Path]:
    """A copy of a graph with bad lines at the end of one file: its files, finding by line, and that file."""
    file, lines = BAD[name]
    for path in sources(name):
        shutil.copy(path, home / path.name)
    changed = home / file
    first = len(changed.read_text().splitlines()) + 1
    with changed.open("a") as stream:
        stream.writelines(f"{line}\n" for line, _ in lines)
    return [home / path.name for path in sources(name)], dict(enumerate((what for _, what in lines), first)), changed


@pytest.mark.parametrize("name", GRAPHS)
def test_every_bad_line_is_reported_and_nothing_is_imported(tmp_path: Path, name: str) -> None:
    paths, expected, changed = with_bad_lines(tmp_path, name)
    with pytest.raises(BadLinesError, match="nothing was imported") as caught:
        import_own(tmp_path, *paths)
    found: dict[int, list[str]] = {}
    for problem in caught.value.problems:
        assert problem.startswith(f"{changed}, line ")
        assert "; " in problem  # a remedy
        found.setdefault(int(problem.partition("line ")[2].partition(":")[0]), []).append(problem)
    assert found.keys() == expected.keys()
    for line, what in expected.items():
        assert any(what in problem for problem in found[line]), (line, what, found[line])
    assert not list(tmp_path.glob("own.kg*"))


@pytest.mark.parametrize("name", GRAPHS)
def test_the_other_lines_can_be_imported(tmp_path: Path, name: str) -> None:
    paths, expected, _ = with_bad_lines(tmp_path, name)
    report = import_own(tmp_path, *paths, skip_bad_lines=True)
    assert {int(p.partition("line ")[2].partition(":")[0]) for p in report.problems} == expected.keys()
    (tmp_path / "clean").mkdir()
    clean = import_own(tmp_path / "clean", *sources(name))
    with KnowledgeGraph.open(tmp_path / "own.kg") as some, KnowledgeGraph.open(tmp_path / "clean" / "own.kg") as all_:
        query = (
            "SELECT h.id, r.id, t.id FROM fact f JOIN entity h ON h.number = f.head JOIN entity t ON t.number = f.tail"
            " JOIN relation r ON r.number = f.relation"
        )
        assert set(all_.store.rows(query)) <= set(some.store.rows(query))
    assert clean.problems == []


def table(home: Path, text: str, name: str = "t.csv") -> Path:
    (home / name).write_bytes(text.encode())
    return home / name


def facts(home: Path) -> set[tuple[str, str, str]]:
    with KnowledgeGraph.open(home / "own.kg") as graph:
        return {tuple(row) for row in graph.store.rows(
            "SELECT h.id, r.id, t.id FROM fact f JOIN entity h ON h.number = f.head JOIN entity t ON t.number = f.tail"
            " JOIN relation r ON r.number = f.relation"
        )}  # fmt: skip


def test_types_that_are_given_decide(tmp_path: Path) -> None:
    path = table(tmp_path, 'name,opened,employees,code\nAcme,03/04/2021,"1,234",312\nLab,05/06/2021,"2,000",7\n')
    with pytest.raises(BadLinesError) as caught:
        import_own(tmp_path, path)
    assert len(caught.value.problems) == 4  # two dates and two numbers, each with the way to decide
    assert all("--type" in problem for problem in caught.value.problems)
    types = (("opened", "date:mdy"), ("employees", "quantity:comma"))
    import_own(tmp_path, path, types=types)
    assert facts(tmp_path) >= {
        ("Q_Acme", "P_opened", "T::11::+2021-03-04T00:00:00Z"),
        ("Q_Acme", "P_employees", "V::1.2340::1"),
        ("Q_Acme", "P_code", "S::312"),
    }
    with pytest.raises(ConfigError, match="no column or relation is called 'size'"):
        import_own(tmp_path / "..", path, types=(("size", "quantity"),))


def test_312_is_a_year_only_where_the_name_says_so(tmp_path: Path) -> None:
    import_own(tmp_path, table(tmp_path, "name,employees,founded,seats\nAcme,312,312,1871\nLab,5,1871,1900\n"))
    assert facts(tmp_path) == {
        ("Q_Acme", "P_employees", "V::312.0000::1"), ("Q_Acme", "P_founded", "T::9::+0312-00-00T00:00:00Z"),
        ("Q_Acme", "P_seats", "V::1871.0000::1"), ("Q_Lab", "P_employees", "V::5.0000::1"),
        ("Q_Lab", "P_founded", "T::9::+1871-00-00T00:00:00Z"), ("Q_Lab", "P_seats", "V::1900.0000::1"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("Ada\tknows\tBert\nBert\tknows\tCarl\n", "one fact per row, no header; separated by tab"),
        ("subject;predicate;object\nAda;knows;Bert\n", "in the columns subject, predicate, object"),
        ("\ufeffname|age|boss\nAda|41|Bert\n", "one entity per row, 3 columns: name, age, boss; separated by bar"),
        ("name,age,boss\r\nAda,41,Bert\r\n", "separated by comma"),
        ('who,said,year\n"Ada, the first","""So"" it is.\nAnd more.",1990\n', "one entity per row"),
    ],
)
def test_what_was_recognised_is_said(tmp_path: Path, text: str, note: str) -> None:
    report = import_own(tmp_path, table(tmp_path, text))
    assert note in report.notes[0]
    assert "--delimiter" in report.notes[0]  # the way to say otherwise


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("name,stadt\nAda,Köln\n".encode("latin-1"), r"line 2: is not UTF-8 \(byte 0xf6\)"),
        ("name,age\nAda,3\n".encode("utf-16"), "written in UTF-16"),
        (b"name,age,age\nAda,3,4\n", "2 columns are called 'age'"),
        (b"name,,age\nAda,3,4\n", "column 2 has no name"),
        (b'name,age\n"Ada,3\nBert,4\n', "line 2: the quotes are wrong"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(DataError) as caught:
        import_own(tmp_path, tmp_path / "t.csv")
    assert re.search(what, str(caught.value))
    assert not list(tmp_path.glob("own.kg*"))


def test_ids_names_and_kinds(tmp_path: Path) -> None:
    animals = table(tmp_path, "id,name,also known as,born,friend\na1,Bruno,The Big One,2009,a2\na2,Bruno,,2011,a1\n",
                    "big_bears.csv")  # fmt: skip
    import_own(tmp_path, animals, kinds=("big_bears.csv=bear",))
    assert facts(tmp_path) == {
        ("Q_a1", "P_born", "T::9::+2009-00-00T00:00:00Z"), ("Q_a1", "P_friend", "Q_a2"),
        ("Q_a2", "P_born", "T::9::+2011-00-00T00:00:00Z"), ("Q_a2", "P_friend", "Q_a1"),
        ("Q_a1", "P_instance_of", "Q_bear"), ("Q_a2", "P_instance_of", "Q_bear"),
    }  # fmt: skip
    with KnowledgeGraph.open(tmp_path / "own.kg") as graph:
        assert list(graph.names(graph.number("Q_a1"))) == ["Bruno", "The Big One"]


_CELLS = st.sampled_from(
    [
        *("name", "id", "head", "relation", "tail", ":ID", ":START_ID", ":TYPE", "_id", "_start", "born", "Ada", "312"),
        *("9" * 5000, '{"name": "A", "x": 1e99999999}', "1e999", "1,5", "03/04/2021", "0/0/0000", "$", "€ ", "S::"),
        *("T::9::x", "V::1::Q", "Q1", "P1:P2", "R:P1", " ", "", "@@REFLEXIVE@@", "a" * 20_000, "#", "\x00", "\u2028"),
        *("{", "[[[[", '"', "1.2.3.4", "--5", "٣", "²", "12 km km"),
    ]
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(_CELLS | st.text(max_size=5), min_size=1, max_size=5), min_size=1, max_size=6),
    st.sampled_from(",\t;"),
    st.sampled_from([None, "triples", "table", "neo4j", "objects"]),
)
def test_no_content_ends_in_a_traceback(rows: list[list[str]], delimiter: str, format: str | None) -> None:
    text = "\n".join(delimiter.join(row) for row in rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        with suppress(KglmError):
            source = describe_source(path, ImportOptions(own=OwnOptions(skip_bad_lines=True)), format)
            if source.format in OWN_FORMATS:
                read_own([source])


def test_an_amount_is_exact_whatever_its_length(tmp_path: Path) -> None:
    digits = "12345678901234567890123456789012345678901234567890"
    import_own(tmp_path, table(tmp_path, f"name,size,depth\nAda,{digits},-{digits}\nBert,1,2\n"))
    assert ("Q_Ada", "P_depth", f"V::-{digits}.0000::1") in facts(tmp_path)
