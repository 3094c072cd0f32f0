"""The command as its users meet it: what it prints, exit codes, one line of error."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conftest import Command
from kglm import bundled
from kglm.cli.main import app
from kglm.kg.graph import KnowledgeGraph
from support.hubs import hub_store
from support.worlds import BORN, facts_of, make_store


def process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """`kglm` in a process of its own, where it is the process that matters."""
    return subprocess.run(
        [sys.executable, "-m", "kglm", *map(str, arguments)], capture_output=True, text=True, timeout=120, **options
    )


@pytest.fixture
def kglm(command: Command) -> Command:
    return lambda *arguments: command(*map(str, arguments))


@pytest.fixture
def refused(kglm: Command) -> Callable[..., str]:
    """The one line of a refusal."""

    def run(*arguments: object) -> str:
        left = kglm(*arguments)
        assert left.returncode == 2, left
        assert left.stdout == "" and left.stderr.startswith("error: ") and left.stderr.count("\n") == 1
        return left.stderr

    return run


@pytest.fixture
def kg(tmp_path: Path) -> Path:
    return make_store(tmp_path)


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    mention = {"source": "KG", "id": "Q76", "relation": ["@@NEW@@"], "parent_id": ["Q76"], "span": [1, 2]}
    record = {"title": "t", "tokens": ["@@START@@", "Obama", "@@END@@"], "annotations": [mention]}
    (tmp_path / "docs.jsonl").write_text(json.dumps(record) + "\n")
    return tmp_path / "docs.jsonl"


class TestStats:
    def test_json(self, documents: Path, kglm: Command) -> None:
        result = json.loads(kglm("stats", documents, "--json").stdout)
        assert result["documents"] == 1 and result["sources"] == {"WIKI": 0, "NEL": 0, "KG": 1, "COREF": 0}

    def test_the_published_table(self, shared_data: Path, kglm: Command) -> None:
        result = json.loads(kglm("stats", shared_data / "lw2" / "valid.jsonl.gz", "--json").stdout)
        expected = {
            "documents": 60, "tokens": 216_076, "end_tokens": 8_154, "paper_tokens": 207_982, "mention_spans": 12_214,
            "mention_tokens": 21_226, "unique_entities": 5_415, "unique_relations": 484, "new": 7_372, "related": 4_842,
            "sources": {"WIKI": 6258, "NEL": 2805, "KG": 2053, "COREF": 1098}, "duplicate_parent": 976,
            "adjacent_same_id": 248, "spans_with_end": 65, "longest_document": 18_805,
        }  # fmt: skip
        assert {name: result[name] for name in expected} == expected

    def test_the_table(self, documents: Path, kglm: Command) -> None:
        assert "Mention spans" in kglm("stats", documents).stdout


class TestGraph:
    def test_import_show_find(self, tmp_path: Path, kg: Path, kglm: Command) -> None:
        report = json.loads(kglm("kg", "import", tmp_path / "facts.tsv", "--to", tmp_path / "x.kg", "--json").stdout)
        assert {"facts", "entities", "aliases", "relations", "duplicates", "skipped", "seconds"} <= set(report)
        assert report["facts"] == 5
        shown = json.loads(kglm("kg", "show", kg, "Barack Obama", "--json").stdout)
        assert shown["id"] == "Q76" and {fact["tail"] for fact in shown["facts"]} == {"Q13133", "Q5", BORN}
        assert "date of birth" in kglm("kg", "show", kg, "Q76").stdout
        assert "← instance of" in kglm("kg", "show", kg, "Q5").stdout
        assert json.loads(kglm("kg", "find", kg, "michelle", "--json").stdout)[0]["id"] == "Q13133"

    def test_edit_prints_the_change_and_undo_takes_it_back(self, kg: Path, kglm: Command) -> None:
        output = kglm("kg", "edit", kg, "--set", "Barack Obama date of birth 21 March 2013").stdout
        assert output.splitlines() == [
            "− Barack Obama (Q76) —date of birth (P569)→ August 4, 1961",
            "+ Barack Obama (Q76) —date of birth (P569)→ March 21, 2013",
        ]
        changes = json.loads(kglm("kg", "edit", kg, "--undo", "--json").stdout)["changes"]
        assert [change["action"] for change in changes] == ["remove", "add"]
        with KnowledgeGraph.open(kg) as graph:
            assert ("Q76", "P569", BORN) in facts_of(graph)

    def test_a_new_entity_and_its_facts_in_one_command(self, kg: Path, kglm: Command) -> None:
        edits = ["--entity", "Q_jane=Jane Doe|Jane", "--add", "Barack Obama | spouse | Jane Doe"]
        assert kglm("kg", "edit", kg, *edits).returncode == 0
        with KnowledgeGraph.open(kg) as graph:
            assert ("Q76", "P26", "Q_jane") in facts_of(graph)

    def test_show_pages(self, tmp_path: Path, kglm: Command) -> None:
        path = hub_store(tmp_path, 120)
        output = kglm("kg", "show", path, "Great List").stdout
        assert output.count("has part") == 11 and "and 110 more" in output
        assert "list more with: --relation P527 --offset 10, or all with --all" in output
        assert "and 115 more" in kglm("kg", "show", path, "Q2").stdout
        page = ("kg", "show", path, "Q2", "--relation", "instance of", "--limit", 30, "--offset", 60)
        output = kglm(*page).stdout
        assert output.count("← instance of") == 31 and "and 30 more" in output and "--offset 90" in output
        assert "more" not in kglm(*page[:-1], 90).stdout
        listed = json.loads(kglm(*page[:-1], 90, "--json").stdout)
        assert len(listed["reverse"]["R:P31"]) == 30 and listed["counts"]["reverse"] == {"R:P31": 120}
        output = kglm("kg", "show", path, "Q1", "--all").stdout
        assert output.count("has part") == 120 and "more" not in output
        assert len(json.loads(kglm("kg", "show", path, "Q1", "--all", "--json").stdout)["facts"]) == 121
        assert len(json.loads(kglm("kg", "show", path, "Q1", "--json").stdout)["facts"]) == 101

    def test_edit_prints_some_of_many_changes(self, tmp_path: Path, kglm: Command) -> None:
        path = hub_store(tmp_path, 120)
        output = kglm("kg", "edit", path, "--set", "Q1 P527 Q31").stdout
        assert output.count("−") == 50 and "and 71 more changes" in output

    def test_markup_in_names_is_shown_literally(self, tmp_path: Path, kglm: Command) -> None:
        path = make_store(tmp_path / "m", [("Q1", "P1", "Q2")], {"Q1": ("[red]evil[/red]",), "Q2": ("[/]",)})
        output = kglm("kg", "show", path, "Q1").stdout
        assert "[red]evil[/red]" in output and "[/]" in output

    def test_emoji_codes_and_control_characters_too(self, tmp_path: Path, kglm: Command) -> None:
        path = make_store(tmp_path / "m", [("Q1", "P1", "Q2")], {"Q1": (":dog: \x1b[31mred",), "Q2": ("x\x07",)})
        output = kglm("kg", "show", path, "Q1").stdout
        assert ":dog: \\x1b[31mred" in output and "\x1b" not in output and "\x07" not in output

    def test_tables_are_not_cut_when_they_are_read_by_programs(
        self, tmp_path: Path, kglm: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = "a rather long name of something that goes on and on " * 2
        path = make_store(tmp_path / "m", [("Q1", "P1", "Q2")], {"Q2": (name.strip(),)})
        monkeypatch.delenv("COLUMNS", raising=False)
        assert name.strip() in kglm("kg", "show", path, "Q1").stdout


class TestRefusals:
    def test_graphs(self, tmp_path: Path, kg: Path, refused: Callable[..., str]) -> None:
        assert "no such file" in refused("kg", "show", tmp_path / "none.kg", "Q1")
        assert "is a directory" in refused("kg", "show", tmp_path, "Q1")
        assert "is not a knowledge graph file" in refused("kg", "show", tmp_path / "facts.tsv", "Q1")
        assert "no entity called 'Zzz'" in refused("kg", "show", kg, "Zzz")
        assert f"search with: kglm kg find {kg} TEXT" in refused("kg", "show", kg, "Zzz")
        assert f"kglm kg show {kg} Q76" in refused("kg", "edit", kg, "--remove", "Q76 P26 Q5")
        assert "exists already" in refused("kg", "import", tmp_path / "facts.tsv", "--to", kg)
        assert "no such file" in refused("kg", "import", tmp_path / "none.tsv", "--to", tmp_path / "y.kg")
        assert "nothing to edit" in refused("kg", "edit", kg)
        assert "--undo goes alone" in refused("kg", "edit", kg, "--undo", "--add", "Q76 P26 Q5")
        assert "no edit to undo" in refused("kg", "edit", kg, "--undo")
        assert "has no name" in refused("kg", "edit", kg, "--entity", "Q_x")
        assert "unknown format" in refused("kg", "import", tmp_path / "facts.tsv", "--to", tmp_path / "y.kg",
                                           "--format", "xml")  # fmt: skip
        assert not (tmp_path / "y.kg").exists()

    def test_documents(self, tmp_path: Path, documents: Path, refused: Callable[..., str]) -> None:
        good = documents.read_bytes()
        cases: dict[str, tuple[bytes, str]] = {
            "not json": (
                b"hello\n",
                "line 1: not JSON, so no linked documents; if it is plain text, annotate it first: kglm annotate",
            ),
            "wrong type": (b'{"title": 1, "tokens": []}\n', "$.title: expected `str`, got `int`"),
            "range": (good.replace(b"[1, 2]", b"[1, 9]"), "span [1, 9) does not fit 3 tokens"),
            "utf-8": (good.replace(b"Obama", b"\xff"), "invalid UTF-8"),
            "gzip": (gzip.compress(good * 2000)[:-50], "the compressed data ends in the middle"),
            "not json later": (good + b"hello\n", "line 2: not JSON"),
            "second line": (good + b"{}\n", "line 2: "),
        }
        for name, (content, message) in cases.items():
            path = tmp_path / f"{name}.jsonl"
            path.write_bytes(content)
            assert message in refused("stats", path), name
        assert "no such file" in refused("stats", tmp_path / "none")
        assert "is a directory" in refused("stats", tmp_path)

    def test_texts_are_not_documents(self, tmp_path: Path, kg: Path, refused: Callable[..., str]) -> None:
        text = tmp_path / "note.txt"
        text.write_text("Barack Obama was born in Honolulu.\n")
        run = ("--kg", kg, "--to", tmp_path / "run", "--config", "tiny")
        for words in (("stats", text), ("train", "awd-lstm", "--data", text, "--valid", text, *run),
                      ("evaluate", bundled.RUN, "--data", text)):  # fmt: skip
            assert f"annotate it first: kglm annotate {text} --kg KG --to DOCS.jsonl" in refused(*words)

    def test_an_unknown_configuration(
        self, tmp_path: Path, kg: Path, documents: Path, refused: Callable[..., str]
    ) -> None:
        run = ("--data", documents, "--valid", documents, "--kg", kg, "--to", tmp_path / "run")
        message = "there is no configuration 'smal'; give a TOML file, or one of paper, quickstart, small, tiny"
        assert message in refused("train", "awd-lstm", *run, "--config", "smal")

    def test_outputs_are_kept(self, tmp_path: Path, kg: Path, documents: Path, refused: Callable[..., str]) -> None:
        """Without --force, an output that exists is an error before any work."""
        there = tmp_path / "there.json"
        there.write_text("mine")
        prompt = {"prompt": "x", "expected_tail": "y", "entity_id": "Q76", "entity_span": [0, 1], "relation": "r"}
        (tmp_path / "prompts.jsonl").write_text(json.dumps(prompt) + "\n")
        for words, option in (
            (("kg", "verbalise", kg, "--to", there), "--to"),
            (("evaluate", bundled.RUN, "--data", documents, "--to", there), "--to"),
            (("evaluate", bundled.RUN, "--data", documents, "--weights", there), "--weights"),
            (("table", "completion", tmp_path / "prompts.jsonl", "--run", bundled.RUN, "--rows", there), "--rows"),
            (("table", "editing", "--rows", there), "--rows"),
        ):
            assert f"exists already; give another {option}, or overwrite it with --force" in refused(*words)
        assert there.read_text() == "mine"

    def test_usage(self, refused: Callable[..., str]) -> None:
        assert "see kglm stats --help" in refused("stats", "--wrong")
        assert "No such command 'nonsense'; see kglm --help" in refused("nonsense")
        assert "see kglm kg edit --help" in refused("kg", "edit", "--wrong")

    def test_debug_shows_the_traceback(self, tmp_path: Path) -> None:
        left = process("stats", tmp_path / "none", "--debug")
        assert left.returncode == 2 and "Traceback" in left.stderr
        assert left.stderr.splitlines()[-1].startswith("error: ") and "no such file" in left.stderr.splitlines()[-1]

    def test_a_reader_that_leaves_early(self, shared_data: Path) -> None:
        command = f"{sys.executable} -m kglm stats {shared_data / 'lw2' / 'valid.jsonl.gz'} --json | head -c 10"
        left = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
        assert left.returncode == 0 and left.stderr == ""


def test_a_terminal_that_cannot_show_it_and_a_closed_output(kg: Path) -> None:
    old = process("kg", "edit", kg, "--set", "Q76 P569 2013", env=os.environ | {"PYTHONIOENCODING": "latin-1"})
    assert old.returncode == 0 and "\\u2192" in old.stdout
    command = f"{sys.executable} -m kglm kg show {kg} Q76 >&-"
    assert subprocess.run(["bash", "-c", command], capture_output=True).returncode == 0


def test_full_output_device(documents: Path) -> None:
    with Path("/dev/full").open("w") as full:
        left = subprocess.run(
            [sys.executable, "-m", "kglm", "stats", str(documents)], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert left.returncode == 2 and "the disk is full" in left.stderr


def test_version_and_help(kglm: Command) -> None:
    assert process("--version").stdout.startswith("kglm ")
    assert "stats" in kglm("--help").stdout


def test_the_surface_is_what_the_design_says() -> None:
    """A verb or option that goes away breaks somebody's script."""
    runner = CliRunner(env={"COLUMNS": "300", "TERM": "dumb", "NO_COLOR": "1"})
    expected = {
        ("kg", "import"): ["--to", "--entities", "--relations", "--near", "--hops", "--replace", "--json", "--workers"],
        ("kg", "show"): ["--relation", "--limit", "--offset", "--json", "--all"],
        ("kg", "find"): ["--json", "--limit"],
        ("kg", "edit"): ["--set", "--add", "--remove", "--undo", "--entity", "--dry-run", "--json"],
        ("kg", "embed"): ["--dim", "--epochs", "--seed", "--json"],
        ("train",): ["--data", "--valid", "--kg", "--to", "--config", "--set", "--resume", "--json"],
        ("annotate",): [
            "--kg",
            "--to",
            "--workers",
            "--ray",
            "--linker",
            "--coreference",
            "--min-p",
            "--cutoff",
            "--anchors",
            "--html",
            "--json",
        ],
        ("kg", "verbalise"): ["--to", "--documents", "--seed", "--without", "--json"],
        ("evaluate",): [
            "--data",
            "--method",
            "--proposal",
            "--samples",
            "--seed",
            "--aggregate",
            "--weights",
            "--json",
        ],
        ("complete",): ["--entity", "--edit", "--top", "--why", "--links", "--kg", "--json"],
        ("generate",): ["--words", "--seed", "--beam", "--temperature", "--top-p", "--why", "--json"],
        ("link",): ["--json"],
        ("table", "completion"): ["--run", "--kg", "--rows", "--json"],
        ("table", "editing"): ["--run", "--edits", "--json"],
        ("table", "perplexity"): ["--published", "--chart", "--markdown", "--json"],
        ("table", "corpus"): ["--min-count", "--chart", "--markdown", "--json"],
        ("stats",): ["--json"],
        ("world",): ["--to", "--json"],
        ("doctor",): ["--json"],
        ("quickstart",): ["--to", "--texts", "--epochs", "--config", "--seed"],
        ("serve",): ["--host", "--port", "--token", "--allow-edit", "--persist", "--documents"],
    }
    for verb, options in expected.items():
        output = runner.invoke(app, [*verb, "--help"]).output
        assert all(option in output for option in options), (verb, output)


def test_quickstart_into_a_file(tmp_path: Path, refused: Callable[..., str]) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused("quickstart", "--to", tmp_path / "file")


def test_an_output_is_overwritten_with_force(kglm: Command, kg: Path, tmp_path: Path) -> None:
    there = tmp_path / "facts.jsonl"
    there.write_text("mine")
    assert kglm("kg", "verbalise", kg, "--to", there, "--documents", "2", "--force").returncode == 0
    assert len(there.read_text().splitlines()) == 2


def test_vectors_are_kept_without_force(kglm: Command, kg: Path, documents: Path, tmp_path: Path) -> None:
    """New vectors would make runs unusable; those beside the graph are named."""
    embed = ("kg", "embed", kg, "--dim", "4", "--epochs", "1", "--held-out", "0")
    assert kglm(*embed).returncode == 0
    before = kglm(*embed)
    assert (
        before.returncode == 2
        and "has vectors, and runs trained with them can be used with no others; copy" in before.stderr
    )
    run = tmp_path / "run"
    train = ("train", "kglm", "--data", documents, "--valid", documents, "--kg", kg, "--to", run, "--config", "tiny")
    assert kglm(*train, "--set", "train.epochs=1").returncode == 0
    assert f"(found: {run})" in kglm(*embed).stderr
    assert kglm("complete", run, "Obama").returncode == 0
    assert kglm(*embed, "--seed", "1", "--force").returncode == 0
    assert "are not those that this run was trained with" in kglm("complete", run, "Obama").stderr


def test_training_without_a_configuration_says_which(kglm: Command, kg: Path, documents: Path, tmp_path: Path) -> None:
    words = ("train", "awd-lstm", "--data", documents, "--valid", documents, "--kg", kg, "--to", tmp_path / "run")
    left = kglm(*words, "--set", "train.epochs=1", "--set", "encoder.hidden=8", "--set", "encoder.embedding=8")
    assert (
        left.returncode == 0 and "--config small, because none is given; others: paper, quickstart, tiny" in left.stderr
    )
    assert "rows = 40" in (tmp_path / "run" / "config.toml").read_text()
