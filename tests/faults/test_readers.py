"""Inputs that fuzzing found to end in a traceback: each is refused by an error that names the place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kglm import bundled
from kglm.annotate import pipeline
from kglm.annotate.annotator import AnnotateConfig
from kglm.doctor.documents import examine_documents
from kglm.errors import ConfigError, DataError, GraphError, KglmError, LiteralError
from kglm.evaluate.prompts import read_prompts
from kglm.files.artefact import Artefact
from kglm.kg.describe import describe
from kglm.kg.embedding.transe import TransEConfig
from kglm.kg.export import WRITERS, export_graph
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.importers.records import ImportOptions, OwnOptions, Source
from kglm.kg.importers.table import parse_jsonl
from kglm.kg.importers.wikidata import parse_dump
from kglm.kg.imports import import_graph
from kglm.kg.resolve import parse_fact
from kglm.linking.anchors import Anchors
from kglm.quickstart import Quickstart, QuickstartConfig
from kglm.runs.run import Run
from kglm.runs.settings import load_config
from kglm.text.articles import ReadingReport, read_articles
from kglm.text.document import read_documents
from support.trainers import trainer

DEEP = "[" * 100_000 + "]" * 100_000
DIGITS = "9" * 5000
PROMPT: dict[str, Any] = {"prefix": ["A", "is"], "entity_indices": [0, 1], "entity_id": "Q1", "expected_tail": "x"}


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    return KnowledgeGraph.open(bundled.RUN / "world.kg")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f'{{"title": "t", "tokens": [], "x": {DEEP}}}'.encode(), "nested too deeply"),
        (DEEP.encode(), "expected `object`|nested too deeply"),
        (f'{{"title": "t", "tokens": [], "x": 1{"0" * 400}.0}}'.encode(), "out of range"),
        (f'{{"title": "t", "tokens": [], "x": [{DIGITS}]}}'.encode(), "out of range"),
        (b'{"title": "t", "tokens": [], "x": 1e400}', "out of range"),
        (b'{"title": "t", "tokens": [], "x": "\xe1"}', "invalid UTF-8"),
        (b'{"title": "t", "tokens": [], "\xe1": 1}', "invalid UTF-8"),
        (b'{"title": "t", "tokens": [], "x": "\\ud800"}', "lone surrogate"),
    ],
)
def test_documents(line: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_bytes(b'{"title": "t", "tokens": []}\n' + line + b"\n")
    with pytest.raises(DataError, match=rf"d\.jsonl, line 2: .*({message})"):
        list(read_documents(tmp_path / "d.jsonl"))
    assert any(finding.level == "error" for finding in examine_documents(tmp_path / "d.jsonl"))


def test_an_article_that_is_nested_too_deeply(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"title": "t", "text": "x", "x": {DEEP}}}')
    with pytest.raises(DataError, match="nested too deeply"):
        list(read_articles(tmp_path / "a.json"))


@pytest.mark.parametrize("charset", ["undefined", "idna", "rot13", "zlib", "nonsense"])
def test_an_encoding_that_cannot_be_read(charset: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(f"<html><meta charset={charset}><p>Some wörds..{'x' * 70}.</p></html>")
    report = ReadingReport()
    with pytest.raises(DataError, match=r"a\.html: (unknown encoding|invalid)"):
        list(read_articles(tmp_path / "a.html", report=report))
    assert not report.skipped["failed"], "an error of the parser"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"totals": {"targets": 1.5}}, "targets"),
        ({"totals": {"words": 1}}, "unknown key 'words'"),
        ({"rows": [0]}, "has 3 rows, state.json 1"),
        ({"metrics": [{"epoch": 1, "step": 1, "train": {}, "valid": {}, "unexplained": {}}], "epoch": 1}, "nats"),
    ],
)
def test_progress_in_a_checkpoint(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    trained = trainer(tmp_path)
    trained.fit(stop_after=2)
    place = trained.state.latest
    assert place is not None
    path = place / "state.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    Artefact.open(place, check=False).accept()
    with pytest.raises(DataError, match=message):
        trained.resume()


@pytest.mark.parametrize(
    "changes",
    [
        '"entity_indices": [1e400, 1]',
        '"entity_indices": [Infinity, 1]',
        '"entity_indices": [0, 1, 2]',
        f'"entity_indices": [0, {DIGITS}]',
        f'"x": {DEEP}',
        '"entity_id": 7',
        '"shortlist": [1]',
        '"expected_tail": "\\ud800"',
    ],
)
def test_prompts(changes: str, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(json.dumps(PROMPT)[:-1] + f", {changes}}}\n")
    with pytest.raises(DataError, match=r"p\.jsonl, line 1: is not a valid prompt: .*; give"):
        read_prompts(tmp_path / "p.jsonl")


@pytest.mark.parametrize("value", [DIGITS, DEEP, "{a=" * 50_000 + "1" + "}" * 50_000])
def test_overrides_that_are_too_large(value: str) -> None:
    with pytest.raises(ConfigError, match=r"--set train\.seed"):
        load_config("tiny", "kglm", [f"train.seed={value}"])


@pytest.mark.parametrize(
    "override",
    [
        "train.learning_rate=nan", "train.learning_rate=inf", "train.clip=nan", "train.checkpoint_minutes=nan",
        "train.average_decay=nan", "train.seed=-1", "train.rows=1000000000000", "train.threads=1000000",
        "encoder.hidden=1000000000000", "encoder.embedding=0", "encoder.layers=1000", "encoder.hidden_dropout=nan",
        "data.max_aliases=1000000000", "data.max_alias_tokens=0", "latent.uniform_share=nan", "train.seed=1e3",
    ],
)  # fmt: skip
def test_settings_out_of_range(override: str) -> None:
    name = override.partition("=")[0].rpartition(".")[2]
    with pytest.raises(ConfigError, match=name):
        load_config("tiny", "kglm", [override])


def test_sizes_of_vectors_and_of_the_quickstart_have_a_range() -> None:
    for wrong in ({"dim": 10**12}, {"margin": float("inf")}, {"epochs": 10**30}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            TransEConfig(**wrong)  # type: ignore[arg-type]
    for wrong in ({"seed": -1}, {"dim": 10**12}, {"texts": 0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            QuickstartConfig(**wrong)  # type: ignore[arg-type]


def test_an_encoder_that_does_not_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes.")

    monkeypatch.setattr("kglm.model.kglm.Kglm.__init__", build)
    with pytest.raises(ConfigError, match="does not fit into memory"):
        Run.open(bundled.RUN)


@pytest.mark.parametrize("count", ["0", "-1", "-9223372036854775809", DIGITS, "1.5", DEEP])
def test_anchors(count: str, graph: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"format": 1, "links": {{"Obama": {{"Q76": {count}}}}}}}')
    with pytest.raises(DataError, match=r"a\.json: is not a table of link texts"):
        Anchors.load(tmp_path / "a.json", graph)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", "[]"),
        ("run.json", '{"format": 1}'),
        ("00000.json", "{}"),
        ("00000.json", "[]"),
        ("00000.json", '{"number": 0, "words": [], "documents": 1, "counts": {}, "failures": []}'),
        ("00000.json", '{"number": 0, "words": 1, "documents": 1, "counts": 1.5, "failures": []}'),
        ("00000.json", '{"number": 0, "words": 1, "documents": 1, "counts": {"a": -1}, "failures": []}'),
        ("00000.json", '{"number": 0, "words": 1, "documents": 1, "counts": {}, "failures": 1}'),
        ("00000.json", '{"number": 7, "words": 1, "documents": 1, "counts": {}, "failures": []}'),
    ],
)
def test_parts_of_an_annotation(name: str, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in bundled.RUN.glob("world.kg*"):
        (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / path.name)
    recipe = pipeline.Recipe(str(tmp_path / "world.kg"), AnnotateConfig())
    source, to = tmp_path / "a.txt", tmp_path / "d.jsonl"
    source.write_text("Barack Obama was born in Honolulu.\n")
    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "remove_directory", lambda _: None)
        pipeline.annotate([source], to, recipe)
    parts = tmp_path / "d.jsonl.parts"
    for odd in ("0x.json", "0x.jsonl"):  # not the files of a shard
        (parts / odd).write_text("")
    (parts / name).write_text(content)
    with pytest.raises(DataError, match=rf"{name}: .*; remove this"):
        pipeline.annotate([source], to, recipe)
    shutil.rmtree(parts)
    assert pipeline.annotate([source], to, recipe).documents == 1


def test_quickstart_record(tmp_path: Path) -> None:
    steps = Quickstart(tmp_path)
    steps.begin()
    steps.begin()
    for wrong in ("[]", "{", DEEP, '{"texts": []}'):
        (tmp_path / "quickstart.json").write_text(wrong)
        with pytest.raises(DataError, match=r"quickstart\.json: .*; remove it"):
            steps.begin()


def test_sources_that_are_nested_too_deeply() -> None:
    source = Source("s", "x", ImportOptions())
    good = b'{"id": "Q1", "label": "a", "labels": {"en": {"value": "a"}}}\n'
    for parse in (parse_dump, parse_jsonl):
        batch = parse(good + f'{{"id": "Q2", "x": {DEEP}}}'.encode(), 1, source)
        assert batch.skipped == {"not JSON": 1}
        assert len(batch.entities) == 1


def test_a_fact_that_is_not_unicode(graph: KnowledgeGraph) -> None:
    with pytest.raises(KglmError, match="is not valid Unicode"):
        parse_fact(graph, "Obama\udcff | P19 | Paris")


@pytest.mark.parametrize("text", ["date of birth " * 5000, "P19 " * 5000, "a " * 5000])
def test_a_fact_of_too_many_words(text: str, graph: KnowledgeGraph) -> None:
    """Every division into head, relation and tail is tried: with 5,000 words that would take hours."""
    with pytest.raises(GraphError, match=r"words; write HEAD \| RELATION \| TAIL"):
        parse_fact(graph, f"Barack Obama {text}")


def test_a_year_of_too_many_digits(graph: KnowledgeGraph) -> None:
    with pytest.raises(LiteralError, match="a year of 5000 digits; give at most 16"):
        parse_fact(graph, f"Q76 P569 -{DIGITS}")


# --- files of one's own --------------------------------------------------------------------------------------------


def imported(home: Path, name: str, content: bytes, **options: Any) -> KnowledgeGraph:
    (home / name).write_bytes(content)
    own = OwnOptions(skip_bad_lines=True)
    import_graph([home / name], home / "g.kg", options=ImportOptions(own=own), workers=1, replace=True, **options)
    return KnowledgeGraph.open(home / "g.kg")


def facts(graph: KnowledgeGraph) -> list[tuple[str, str, str]]:
    return [fact[:3] for number in range(len(graph)) for fact in graph.store.facts_of(graph.id(number))]


def test_json_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "g.jsonl").write_bytes(b'{"head": "A", "relation": "r", "tail": "B"}\n{"head": "\xba"}\n')
    with pytest.raises(DataError, match=r"g\.jsonl, line 2: is not UTF-8"):
        import_graph([tmp_path / "g.jsonl"], tmp_path / "g.kg")


def test_a_lone_surrogate_in_json_is_refused_with_its_line(tmp_path: Path) -> None:
    good, bad = b'{"head": "Ada \\ud83d\\ude00", "relation": "employer", "tail": "Works"}', b'{"name": "\\ud800"}'
    (tmp_path / "g.jsonl").write_bytes(good + b"\n" + bad + b"\n")
    with pytest.raises(DataError, match=r"g\.jsonl, line 2: a text with a lone surrogate"):
        import_graph([tmp_path / "g.jsonl"], tmp_path / "g.kg")
    with imported(tmp_path, "one.jsonl", good) as graph:
        assert graph.label(graph.number(facts(graph)[0][0])) == "Ada \U0001f600"


@pytest.mark.parametrize(
    ("value", "tail"),
    [
        ('"1871-12-25"^^xsd:date', "T::11::+1871-12-25T00:00:00Z"),
        ('"1871-12-25T07:00:00.5Z"^^xsd:dateTime', "T::11::+1871-12-25T00:00:00Z"),
        ('"1871-12-25+01:00"^^xsd:date', "T::11::+1871-12-25T00:00:00Z"),
        ('"-0043-03-15"^^xsd:date', "T::11::-0044-03-15T00:00:00Z"),  # RDF has a year 0
        ('"-0043"^^xsd:gYear', "T::9::-0044-00-00T00:00:00Z"),
        ('"25 December"^^xsd:date', None),
        ('"1871-13-25"^^xsd:date', None),
    ],
)
def test_dates_of_rdf(value: str, tail: str | None, tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph", reason="the extra rdf is not installed")
    head = "@prefix : <http://e.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
    with imported(tmp_path, "g.ttl", f"{head}:Ada :knows :Nora .\n:Ada :born {value} .".encode()) as graph:
        found = [fact[2] for fact in facts(graph) if fact[1] == "P_born"]
    assert found == ([tail] if tail else [])


def test_types_that_are_none_are_reported(tmp_path: Path) -> None:
    (tmp_path / "f.tsv").write_text("Q1\tP1\tQ2\nP1\tdatatype\tnonsense\nP2\tdatatype\tquantity: metre\n")
    report = import_graph([tmp_path / "f.tsv"], tmp_path / "f.kg")
    assert report.skipped == {"unknown type of values": 1}
    assert "f.tsv, line 2: 'nonsense' is not a type" in report.problems[0]
    with KnowledgeGraph.open(tmp_path / "f.kg") as graph:
        assert graph.datatype("P2") == "quantity:metre"
        assert not graph.datatype("P1")


def test_a_date_can_be_shown(tmp_path: Path) -> None:
    with imported(tmp_path, "g.csv", b"head,relation,tail\nAda,born on,1871-12-25\nAda,employer,Works\n") as graph:
        shown = describe(graph, graph.number("T::11::+1871-12-25T00:00:00Z"))
    assert shown["facts"] == [] and shown["reverse"] == {}


def test_a_relation_without_facts_is_exported(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text(
        '{"relation": "P1", "label": ""}\n{"head": "Q1", "relation": "P2", "tail": "Q2"}\n{"id": "Q1", "label": "a"}\n'
    )
    import_graph([tmp_path / "f.jsonl"], tmp_path / "f.kg", format="jsonl")
    for ending in WRITERS:
        export_graph(tmp_path / "f.kg", tmp_path / f"out{ending}")
        import_graph([tmp_path / f"out{ending}"], tmp_path / "again.kg", replace=True)
        with KnowledgeGraph.open(tmp_path / "again.kg") as graph:
            assert [graph.relation_id(2 * number) for number in (1, 2)] == ["P1", "P2"], ending
