"""Test the tables: own and published results as text, Markdown, JSON and charts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conftest import Command
from kglm.evaluate.published import COMPLETION, CORPUS, PERPLEXITY
from kglm.evaluate.rows import label
from support.tiny import DOCUMENTS


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide terminal, so that no cell is wrapped."""
    monkeypatch.setenv("COLUMNS", "300")


def result(path: Path, model: str, upp: float | None, **more: Any) -> str:
    """Write a result file as `kglm evaluate --to` does."""
    found = {
        "model": model, "method": "exact", "samples": 1, "ppl": 100.0, "upp": upp, "ppl_interval": [90.0, 111.0],
        "upp_interval": None if upp is None else [upp - 1, upp + 1], "upp_mention": upp, "upp_other": upp,
        "documents": 2, "tokens": 1234, "data": "d", "vocabulary": "v", **more,
    }  # fmt: skip
    path.write_text(json.dumps(found))
    return str(path)


@pytest.fixture
def results(tmp_path: Path) -> list[str]:
    return [
        result(tmp_path / "a.json", "awd-lstm", 200.0),
        result(tmp_path / "b.json", "awd-lstm + cache", 180.0),
        result(tmp_path / "c.json", "kglm", 90.0, method="particle", samples=100),
        result(tmp_path / "d.json", "Pre|trained", None, vocabulary=None, note="open vocabulary"),
    ]


def test_rows_and_published_rows(results: list[str], command: Command) -> None:
    rows = json.loads(command("table", "perplexity", *results, "--json").stdout)["rows"]
    names = ["AWD-LSTM", "AWD-LSTM + cache", "KGLM, particle 100", "Pre|trained (not comparable)"]
    assert [row["model"] for row in rows] == [*names, *(row[0] for row in PERPLEXITY)]
    assert [row["upp_ratio"] for row in rows[:4]] == [1.0, 0.9, 0.45, None]
    assert [row["published"] for row in rows] == [False] * 4 + [True] * 4


def test_text_and_markdown(results: list[str], command: Command) -> None:
    shown = command("table", "perplexity", *results).stdout
    assert "100.0 (90 – 111)" in shown and "0.45" in shown and "KGLM (published, other data)" in shown
    assert "Pre|trained (not comparable): open vocabulary." in shown and "1,234 words" in shown
    page = command("table", "perplexity", *results, "--markdown", "--no-published").stdout
    lines = [line for line in page.splitlines() if line.startswith("|")]
    assert len(lines) == 6 and "published" not in page
    assert "Pre\\|trained" in page and {line.replace("\\|", "").count("|") for line in lines} == {7}


def test_equal_names_get_the_run_name(tmp_path: Path, command: Command) -> None:
    both = [result(tmp_path / f"{k}.json", "kglm", 90.0, run=f"run{k}", method="beam") for k in (1, 2)]
    topic = result(tmp_path / "t.json", "kglm", 50.0, facts="topic")
    rows = json.loads(command("table", "perplexity", *both, topic, "--json").stdout)["rows"]
    names = ["KGLM, beam 1 (a bound), run1", "KGLM, beam 1 (a bound), run2", "NKLM (topic given)"]
    assert [row["model"] for row in rows[:3]] == names


def test_chart(results: list[str], command: Command, tmp_path: Path) -> None:
    command("table", "perplexity", *results, "--chart", str(tmp_path / "bars.svg"))
    drawing = ElementTree.parse(tmp_path / "bars.svg").getroot()
    bars = [each for each in drawing.iter() if each.tag.endswith("rect") and each.get("fill", "").startswith("#")]
    assert len([bar for bar in bars if float(bar.get("height", "0")) > 0]) >= 6, "three models, PPL and UPP"


@pytest.mark.parametrize(
    ("more", "message"),
    [({"data": "other"}, "has other documents than"), ({"vocabulary": "other"}, "has another vocabulary than")],
)
def test_results_on_other_data_are_an_error(
    results: list[str], command: Command, tmp_path: Path, more: dict[str, str], message: str
) -> None:
    odd = result(tmp_path / "odd.json", "kglm", 90.0, **more)
    left = command("table", "perplexity", *results, odd)
    assert left.returncode == 2
    assert message in left.stderr and "odd.json" in left.stderr


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"ppl": "x", "model": "kglm"}', '{"ppl": 3, "model": "awd-lstm"}', '{"a": 1}']
)
def test_a_file_that_is_not_a_result_is_an_error(command: Command, tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    left = command("table", "perplexity", str(tmp_path / "x.json"))
    assert left.returncode == 2
    assert "kglm evaluate" in left.stderr


def test_corpora_and_published_corpora(command: Command, tmp_path: Path) -> None:
    shown = command("table", "corpus", str(DOCUMENTS), "--chart", str(tmp_path / "c.svg")).stdout
    assert "122,983" in shown and "Dev of Linked WikiText-2 (published)" in shown
    found = json.loads(command("table", "corpus", str(DOCUMENTS), "--json").stdout)
    [ours] = found["files"].values()
    assert ours["documents"] >= 2 and ours["vocabulary"] > 4 and found["published"] == CORPUS
    assert ElementTree.parse(tmp_path / "c.svg").getroot().tag.endswith("svg")


def test_labels() -> None:
    assert label({"model": "entity-nlm", "method": "importance", "samples": 10}) == "EntityNLM, importance 10"
    assert label({"model": "kglm", "method": "beam", "samples": 16}) == "KGLM, beam 16 (a bound)"
    assert label({"model": "awd-lstm + cache + dynamic evaluation"}) == "AWD-LSTM + cache + dynamic evaluation"


def test_published_averages_match_their_rows() -> None:
    """Catches typing errors; the tolerance covers rounding in the paper."""
    for cells in COMPLETION.values():
        for k in (0, 1):
            mean = sum(pair[k] for relation, pair in cells.items() if relation != "average") / 6
            assert mean == pytest.approx(cells["average"][k], abs=0.6)
