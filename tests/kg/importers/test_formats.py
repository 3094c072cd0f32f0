"""Importers of TSV, JSONL, KGTK, N-Triples and the authors' pickles."""

from __future__ import annotations

import collections
import json
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from kglm.errors import DataError
from kglm.kg.importers.authors import load_restricted, read_authors
from kglm.kg.importers.kgtk import parse_kgtk
from kglm.kg.importers.ntriples import parse_ntriples
from kglm.kg.importers.records import Batch, ImportOptions, Source
from kglm.kg.importers.table import parse_facts, parse_jsonl, parse_redirects, parse_relations
from kglm.kg.imports import describe_source

DATE = "T::11::+1961-08-04T00:00:00Z"


def source(**options: Any) -> Source:
    return Source("x", "x", ImportOptions(**options))


def triples(batch: Batch) -> list[tuple[str, str, str]]:
    return [fact[:3] for fact in batch.facts]


class TestFactsTsv:
    def test_facts_in_tsv(self) -> None:
        data = f"head\trelation\ttail\n# a comment\nQ1\tP2\tQ3\r\n\nQ1\tP2:P4\t{DATE}\tpreferred\n".encode()
        batch = parse_facts(data, 1, source())
        assert batch.facts == [("Q1", "P2", "Q3", 0, None), ("Q1", "P2:P4", DATE, 1, None)]

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b"Q1\tP2", "wrong number of columns"),
            (b"Q1 P2 Q3", "wrong number of columns"),
            (b"Q1\tP2\tQ3\tbest", "unknown rank"),
            (b"Q1\tP2\tQ3\tdeprecated", "deprecated statement"),
            (b"anna\tP2\tQ3", "head is not an id"),
            (b"T::9::+1961-00-00T00:00:00Z\tP2\tQ3", "head is not an id"),
            (b"Q1\tknows\tQ3", "relation is not an id"),
            (b"Q1\tR:P2\tQ3", "relation is not an id"),
            (b"Q1\tP2\tsomeone", "tail is not an id"),
            (b"Q1\tP2\tT::11::+1961-13-04T00:00:00Z", "malformed literal"),
            (b"Q1\tP2\tV::x::1", "malformed literal"),
            (b"Q1\tP2\t\xff", "invalid UTF-8"),
        ],
    )
    def test_invalid_line_is_counted_and_reported(self, line: bytes, reason: str) -> None:
        batch = parse_facts(b"Q1\tP2\tQ3\n" + line + b"\nQ4\tP2\tQ3\n", 7, source())
        assert len(batch.facts) == 2 and batch.skipped == {reason: 1}
        assert [number for number, _ in batch.problems] == ([8] if reason != "deprecated statement" else [])

    def test_ids_are_minted_from_names(self) -> None:
        batch = parse_facts(b"Ada Lovelace\tborn on\t10 December 1815\nAda Lovelace\tfather\tLord Byron\n", 1,
                            source(mint_ids=True))  # fmt: skip
        assert triples(batch) == [
            ("Q_Ada_Lovelace", "P_born_on", "T::11::+1815-12-10T00:00:00Z"),
            ("Q_Ada_Lovelace", "P_father", "Q_Lord_Byron"),
        ]
        assert ("Q_Lord_Byron", 2, "Lord Byron") in batch.names and ("P_father", "father") in batch.relations

    def test_iso_years(self) -> None:
        data = b"Q1048\tP570\tT::9::-0043-00-00T00:00:00Z\nQ1\tP1\tT::9::+0043-00-00T00:00:00Z\n"
        tails = [fact[2] for fact in parse_facts(data, 1, source(iso_years=True)).facts]
        assert tails == ["T::9::-0044-00-00T00:00:00Z", "T::9::+0043-00-00T00:00:00Z"]

    def test_empty_rank_is_normal(self) -> None:
        assert parse_facts(b"Q1\tP2\tQ3\t\n", 1, source()).facts == [("Q1", "P2", "Q3", 0, None)]

    def test_relations_and_redirects(self) -> None:
        batch = parse_relations(b"P1\tone  thing\nP2\t\nx\ty\nP3\n", 1, source())
        assert batch.relations == [("P1", "one thing"), ("P2", "")]
        assert batch.skipped == {"relation is not an id": 1, "wrong number of columns": 1}
        minted = parse_relations(b"works for\tis employed by\n", 1, source(mint_ids=True))
        assert minted.relations == [("P_works_for", "is employed by")]
        batch = parse_redirects(b"NYC\tNew York City\niPod\tIPod\nlonely\n", 1, source())
        assert batch.redirects == [("NYC", "New_York_City"), ("IPod", "IPod")]


class TestJsonl:
    def test_entities_and_facts(self) -> None:
        lines = [
            {"id": "Q1", "label": "one", "aliases": ["uno", "", "  "], "title": "one", "description": "d"},
            {"id": "Q2", "label": None, "aliases": []},
            {"head": "Q1", "relation": "P2", "tail": "Q2", "rank": "preferred", "qualifiers": {"P3": [DATE]}},
            {"head": "Q1", "relation": "P2", "tail": "Q2", "rank": "deprecated"},
        ]
        batch = parse_jsonl(b"".join(json.dumps(line).encode() + b"\n" for line in lines), 1, source())
        assert batch.names == [("Q1", 0, "one"), ("Q1", 1, "uno")]
        assert batch.entities == [("Q1", "d", "One"), ("Q2", None, None)]
        assert batch.facts[0][:4] == ("Q1", "P2", "Q2", 1) and batch.qualifiers[0][1:] == ("P3", DATE)
        assert batch.skipped == {"empty name": 2, "deprecated statement": 1}

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b"{", "not JSON"),
            (b'{"id": 5}', "wrong type"),
            (b'{"id": "anna"}', "not an entity id"),
            (b'{"head": "Q1"}', "neither entity nor fact"),
            (b'{"head": "Q1", "relation": "P1", "tail": "Q2", "qualifiers": {"P2": ["x"]}}', "tail is not an id"),
        ],
    )
    def test_invalid_lines_are_counted(self, line: bytes, reason: str) -> None:
        batch = parse_jsonl(b"\n" + line + b"\n", 1, source())
        assert batch.skipped == {reason: 1} and batch.problems[0][0] == 2


class TestKgtk:
    header = ("id", "node1", "label", "node2", "rank")

    def parse(self, *rows: tuple[str, ...]) -> Batch:
        data = "\n".join("\t".join(row) for row in (self.header, *rows)).encode()
        return parse_kgtk(data, 1, Source("x", "kgtk", ImportOptions(), self.header, 1))

    def test_edges_literals_and_names(self) -> None:
        batch = self.parse(
            ("e1", "Q1", "P2", "Q3", "normal"),
            ("e2", "Q1", "P569", "^1961-08-04T00:00:00Z/11", "preferred"),
            ("e3", "Q1", "P2048", "+1.85[1.84,1.86]Q11573", ""),
            ("e4", "Q1", "P1082", "27", ""),
            ("e5", "Q1", "label", "'One \\| thing'@en", ""),
            ("e6", "Q1", "alias", "'Uno'@en", ""),
            ("e7", "Q1", "alias", "'Eins'@de", ""),
            ("e8", "Q1", "description", "'a number'@en", ""),
        )
        assert [fact[1:4] for fact in batch.facts] == [
            ("P2", "Q3", 0),
            ("P569", DATE, 1),
            ("P2048", "V::1.8500::http://www.wikidata.org/entity/Q11573", 0),
            ("P1082", "V::27.0000::1", 0),
        ]
        assert batch.names == [("Q1", 0, "One | thing"), ("Q1", 1, "Uno")]
        assert batch.entities == [("Q1", "a number", None)]
        assert batch.skipped == {"text in another language": 1}

    def test_edge_of_an_edge_is_a_qualifier(self) -> None:
        batch = self.parse(("e1-x", "Q1", "P54", "Q3", ""), ("q1", "e1-x", "P580", "^2001-01-01T00:00:00Z/9", ""))
        assert batch.facts[0][4] == "e1-x"
        assert batch.qualifiers == [("e1-x", "P580", "T::9::+2001-00-00T00:00:00Z")]

    def test_skipped_edges_are_counted(self) -> None:
        batch = self.parse(
            ("a", "Q1", "P2", "Q3", "deprecated"),
            ("b", "Q1", "P625", "@1.0/2.0", ""),
            ("c", "Q1", "P213", '"0000 0001"', ""),
            ("d", "Q1", "P569", "^1961/99", ""),
            ("e", "Q1", "P569", "^1961", ""),
            ("f", "Q1", "wikipedia_sitelink", "x", ""),
        )
        assert not batch.facts and sum(batch.skipped.values()) == 6
        assert self.parse(("g", "foo bar", "label", "'x'@en", "")).skipped == {"not an item or property": 1}
        short = parse_kgtk(b"h\nQ1\tP1\n", 1, Source("x", "kgtk", ImportOptions(), self.header, 1))
        assert short.skipped == {"wrong number of columns": 1} and short.problems[0][0] == 2


class TestNTriples:
    def parse(self, *lines: str, **options: Any) -> Batch:
        return parse_ntriples("\n".join(lines).encode(), 1, source(**options))

    def test_truthy_dump_of_wikidata(self) -> None:
        entity, direct, xsd = (
            "http://www.wikidata.org/entity",
            "http://www.wikidata.org/prop/direct",
            "http://www.w3.org/2001/XMLSchema#",
        )
        batch = self.parse(
            "# a comment",
            f"<{entity}/Q42> <{direct}/P31> <{entity}/Q5> .",
            f'<{entity}/Q42> <{direct}/P569> "1961-08-04T00:00:00Z"^^<{xsd}dateTime> .',
            f'<{entity}/Q42> <{direct}/P571> "1850-01-01T00:00:00Z"^^<{xsd}dateTime> .',
            f'<{entity}/Q42> <{direct}/P2048> "+1.85"^^<{xsd}decimal> .',
            f'<{entity}/Q42> <{direct}/P646> "/m/0282x" .',
            f'<{entity}/Q42> <http://www.w3.org/2000/01/rdf-schema#label> "D\\u00F6ner \\"x\\""@en .',
            f'<{entity}/Q42> <http://www.w3.org/2000/01/rdf-schema#label> "Deutsch"@de .',
            f'<{entity}/Q42> <http://www.w3.org/2004/02/skos/core#altLabel> "DNA"@en .',
            f'<{entity}/Q42> <http://schema.org/description> "a writer"@en .',
            f"<https://en.wikipedia.org/wiki/Douglas_Adams> <http://schema.org/about> <{entity}/Q42> .",
        )
        assert triples(batch) == [
            ("Q42", "P31", "Q5"),
            ("Q42", "P569", DATE),
            ("Q42", "P571", "T::9::+1850-00-00T00:00:00Z"),
            ("Q42", "P2048", "V::1.8500::1"),
        ]
        assert batch.names == [("Q42", 0, 'Döner "x"'), ("Q42", 1, "DNA"), ("Q42", 1, "Douglas Adams")]
        assert ("Q42", None, "Douglas_Adams") in batch.entities and ("Q42", "a writer", None) in batch.entities
        assert batch.skipped == {"literal string": 1, "text in another language": 1}

    @pytest.mark.parametrize(("year", "expected"), [("0000", "-0001"), ("-0043", "-0044"), ("0044", "+0044")])
    def test_years_before_christ_are_astronomical(self, year: str, expected: str) -> None:
        line = (f'<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P570> '
                f'"{year}-03-15T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .')  # fmt: skip
        assert triples(self.parse(line))[0][2] == f"T::11::{expected}-03-15T00:00:00Z"

    def test_other_rdf_graphs_with_minted_ids(self) -> None:
        home = "http://dbpedia.org"
        line = f"<{home}/resource/Ada_Lovelace> <{home}/ontology/birthPlace> <{home}/resource/London> ."
        assert self.parse(line).skipped == {"subject is not an entity": 1}
        batch = self.parse(line, mint_ids=True)
        [(head, relation, tail)] = triples(batch)
        assert head.startswith("Q_Ada_Lovelace.") and relation == "P_birthPlace" and tail.startswith("Q_London.")
        assert (head, 2, "Ada Lovelace") in batch.names, "any label that the source gives goes first"

    def test_same_name_in_two_namespaces_gives_two_ids(self) -> None:
        lines = [f"<http://a.org/{place}/1> <http://a.org/near> <http://a.org/x/2> ." for place in ("people", "places")]
        batch = self.parse(*lines, mint_ids=True)
        assert len({head for head, _, _ in triples(batch)}) == 2 and len({tail for _, _, tail in triples(batch)}) == 1

    def test_invalid_lines_are_counted(self) -> None:
        batch = parse_ntriples(b"rubbish\n\xff\xfe\n", 1, source())
        assert batch.skipped == {"not a triple": 1, "invalid UTF-8": 1}


class TestAuthors:
    def save(self, path: Path, value: object) -> Source:
        path.write_bytes(pickle.dumps(value))
        return describe_source(path, ImportOptions())

    def read(self, path: Path, value: object) -> Batch:
        [batch] = read_authors(self.save(path, value))
        return batch

    def test_knowledge_graph(self, tmp_path: Path) -> None:
        edges = collections.defaultdict(list, {"Q1": [("P2", "Q3"), ("R:P4", "Q5"), ("@@REFLEXIVE@@", "Q1")]})
        batch = self.read(tmp_path / "knowledge_graph.pkl", edges)
        assert triples(batch) == [("Q1", "P2", "Q3"), ("Q5", "P4", "Q1")]
        assert batch.skipped == {"derived relation": 1}

    def test_aliases_as_text_or_words(self, tmp_path: Path) -> None:
        batch = self.read(tmp_path / "alias.pkl", {"Q1": ["One thing", ["Two", "things"]], "Q2": []})
        assert batch.names == [("Q1", 1, "One thing"), ("Q1", 1, "Two things")]

    @pytest.mark.parametrize(
        "value", [{"Q1": [1]}, {"Q1": {"set"}}, {"Q1": None}, {"Q1": [b"bytes"]}, {"Q1": [1.5]}, Path("x"), print]
    )
    def test_pickle_of_other_types_is_refused(self, tmp_path: Path, value: object) -> None:
        with pytest.raises(DataError, match="only dict, list, tuple and str are accepted"):
            load_restricted(self.save(tmp_path / "x.pkl", value).path)

    def test_pickle_runs_no_code(self, tmp_path: Path) -> None:
        canary = tmp_path / "canary"

        class Evil:
            def __reduce__(self) -> tuple[object, tuple[str]]:
                return (Path.touch, (canary,))  # type: ignore[return-value]

        with pytest.raises(DataError):
            load_restricted(self.save(tmp_path / "evil.pkl", {"Q1": [Evil()]}).path)
        assert not canary.exists()

    def test_a_huge_memo_index_takes_no_memory(self, tmp_path: Path) -> None:
        (tmp_path / "memo.pkl").write_bytes(b"]r\xff\xff\xff\x7f.")  # an empty list, remembered as number 2**31 - 1
        tracemalloc.start()
        assert load_restricted(str(tmp_path / "memo.pkl")) == []
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
        tracemalloc.stop()

    def test_damaged_pickle_is_an_error(self, tmp_path: Path) -> None:
        whole = pickle.dumps({"Q1": ["x"] * 100})
        (tmp_path / "cut.pkl").write_bytes(whole[:40])
        with pytest.raises(DataError, match="not a pickle of plain data"):
            load_restricted(str(tmp_path / "cut.pkl"))
        with pytest.raises(DataError, match="expected a dict"):
            list(read_authors(self.save(tmp_path / "list.pkl", ["x"])))


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (b"Q1\tP2\tQ3\n", "facts"),
        (b"# a comment\n\nQ1\tP2\tQ3\n", "facts"),
        (b"\xef\xbb\xbfQ1\tP2\tQ3\n", "facts"),
        (b"# a comment\n<http://a> <http://b> <http://c> .\n", "rdf-ntriples"),
        (b"<http://www.wikidata.org/entity/Q1> <http://b> <http://c> .\n", "ntriples"),
        (b"<urn:kglm:Q_a> <urn:kglm:P_b> <urn:kglm:Q_c> .\n", "ntriples"),
        (b"@prefix ex: <http://ex.org/> .\nex:a ex:b ex:c .\n", "turtle"),
        (b'{"@context": {}, "@id": "http://a"}\n', "jsonld"),
        (b'<?xml version="1.0"?>\n<rdf:RDF/>\n', "rdfxml"),
        (b":ID,name\n1,Ada\n", "neo4j"),
        (b"Ada\tknows\tBert\n", "csv"),
        (b"Q1\tP2\tthe fourth of May\n", "csv"),
        (b"name;age\nAda;3\n", "csv"),
        (b'{"name": "Ada", "age": 3}\n', "objects"),
        (b'{"head": "Ada", "relation": "age", "tail": "3"}\n', "objects"),
        (b"\nid\tnode1\tlabel\tnode2\ne\tQ1\tP2\tQ3\n", "kgtk"),
        (b"id\tnode1\tlabel\tnode2\ne\tQ1\tP2\tQ3\n", "kgtk"),
        (b"node1\tlabel\tnode2\nQ1\tP2\tQ3\n", "kgtk"),
        (b'[\n{"id": "Q1"}\n]', "wikidata"),
        (b'{"type": "item", "id": "Q1", "labels": {}, "claims": {}}\n', "wikidata"),
        (b'{"id": "Q1", "label": "x"}\n', "jsonl"),
        (b'{"head": "Q1", "relation": "P1", "tail": "Q2"}\n', "jsonl"),
    ],
)
def test_format_is_detected_from_the_content(tmp_path: Path, content: bytes, format: str) -> None:
    (tmp_path / "unnamed").write_bytes(content)
    assert describe_source(tmp_path / "unnamed", ImportOptions()).format == format


def test_unknown_format_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello world\n")
    with pytest.raises(DataError, match="give --format"):
        describe_source(tmp_path / "x", ImportOptions())
    (tmp_path / "x").write_text(" \n")
    with pytest.raises(DataError, match="is empty"):
        describe_source(tmp_path / "x", ImportOptions())
