"""Perplexity of heads: a toy base of English bytes, a toy graph, heads with weights drawn at random."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from conftest import Command
from kglm.errors import ConfigError
from kglm.evaluate.components import NAMES
from kglm.evaluate.heads import HeadsScorer, evaluate_heads, heads_task
from kglm.files.artefact import new_artefact
from kglm.heads.model import Heads, Type
from kglm.heads.options import HeadsConfig
from kglm.heads.store import write_heads
from kglm.heads.tables import GraphTables
from kglm.kg.graph import KnowledgeGraph
from kglm.pretrained.base import BaseModel
from kglm.text.document import END, START, Document, Mention, write_documents
from support.causal import save_english
from support.worlds import make_store

pytest.importorskip("transformers", reason="the extra hf is not installed")
FACTS = (
    ("Q1", "P31", "Q5"),
    ("Q1", "P19", "Q3"),
    ("Q1", "P26", "Q7"),
    ("Q3", "P17", "Q2"),
    ("Q7", "P19", "Q8"),
    ("Q8", "P17", "Q4"),
    ("Q9", "P19", "Q10"),
    ("Q10", "P17", "Q11"),
)
NAMES_OF = {
    "Q1": ("Marie Curie",),
    "Q2": ("Poland",),
    "Q3": ("Warsaw",),
    "Q4": ("France",),
    "Q5": ("human",),
    "Q7": ("Pierre Curie",),
    "Q8": ("Paris",),
    "Q9": ("Ada Lovelace",),
    "Q10": ("London",),
    "Q11": ("United Kingdom",),
    "P31": ("instance of",),
    "P19": ("place of birth",),
    "P26": ("spouse",),
    "P17": ("country",),
}


def document(title: str, text: str, *mentions: tuple[int, int, str]) -> Document:
    tokens = [START, *text.split(), END]
    return Document(title, tokens, [Mention(a, b, id, "WIKI", ("@@NEW@@",), (id,)) for a, b, id in mentions])


DOCUMENTS = [
    document("a", "Marie Curie was born in Warsaw , Poland .", (1, 3, "Q1"), (6, 7, "Q3"), (8, 9, "Q2")),
    document(
        "b", "Pierre Curie was born in Paris . He married Marie Curie .", (1, 3, "Q7"), (6, 7, "Q8"), (10, 12, "Q1")
    ),
    document(
        "c",
        "It rained all day .",
    ),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a base, a graph, heads and documents."""
    home = tmp_path_factory.mktemp("heads")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(home / "cache"))
        base = BaseModel.open(save_english(home / "base", context=512), dtype=torch.float32)
        make_store(home / "graph", FACTS, NAMES_OF)
        [kg] = (home / "graph").glob("*.kg")
        with KnowledgeGraph.open(kg) as graph:
            tables = GraphTables.of(graph, base)
        torch.manual_seed(0)
        heads = Heads(HeadsConfig(state=8, relation=4), base.model.config.hidden, tables.key_RD.shape[1])
        for parameter in heads.parameters():
            parameter.data += 0.3 * torch.randn_like(parameter)
        heads.types.bias.data += torch.tensor([0.0, 2.0, 1.0])
        base.name = str(home / "base")
        for name, bias in (("heads", 0.0), ("plain", 3e4)):
            heads.types.bias.data[Type.PLAIN] += bias
            with new_artefact(home / name) as writer:
                write_heads(writer, heads, base)
    write_documents(home / "docs.jsonl", DOCUMENTS)
    return home


@pytest.fixture(autouse=True)
def cache(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGLM_CACHE", str(home / "cache"))


@pytest.fixture(scope="module")
def kg(home: Path) -> Path:
    [path] = (home / "graph").glob("*.kg")
    return path


def result(home: Path, kg: Path, run: str = "heads", **options: object) -> dict[str, object]:
    task = heads_task(home / run, DOCUMENTS, kg=kg, **options)  # type: ignore[arg-type]
    return evaluate_heads(task, DOCUMENTS).to_json()


def test_words_and_shares(home: Path, kg: Path) -> None:
    found = result(home, kg)
    words = sum(len(each.tokens) - 2 for each in DOCUMENTS)
    assert (found["tokens"], found["documents"], found["method"]) == (words, 3, "exact")
    assert found["share"] == pytest.approx(found["ppl"] / found["base_ppl"])  # type: ignore[operator]
    low, high = found["share_interval"]  # type: ignore[misc]
    assert low < found["share"] < high
    assert found["share"] != pytest.approx(1, abs=1e-3)
    inside = sum(mention.end - mention.start for each in DOCUMENTS for mention in each.mentions)
    logs = inside * math.log(found["ppl_mention"]) + (words - inside) * math.log(found["ppl_other"])  # type: ignore[arg-type]
    assert found["ppl"] == pytest.approx(math.exp(logs / words))
    assert math.log(found["ppl"]) == pytest.approx(found["nats_mention"] + found["nats_other"])  # type: ignore[arg-type,operator]


def test_components_sum_to_the_gain(home: Path, kg: Path) -> None:
    found = result(home, kg)
    assert set(found["components"]) == set(NAMES)  # type: ignore[call-overload]
    assert sum(found["components"].values()) == pytest.approx(-math.log(found["share"]))  # type: ignore[attr-defined,arg-type]


def test_the_base_alone_is_the_base(home: Path, kg: Path) -> None:
    found = result(home, kg, "plain")
    assert found["share"] == pytest.approx(1, abs=1e-9)
    base = BaseModel.open(home / "base", dtype=torch.float32)
    log_p = sum(float(base.log_probs(base.subwords.encode(text).ids).sum()) for text in map(readable, DOCUMENTS))
    assert math.log(found["base_ppl"]) == pytest.approx(-log_p / found["tokens"], abs=1e-3)  # type: ignore[arg-type,operator]


def readable(document: Document) -> str:
    from kglm.text.tokenizer import detokenize

    return detokenize(document.tokens)


def test_the_annotation_is_not_used(home: Path, kg: Path) -> None:
    bare = [Document(each.title, each.tokens, annotated=False) for each in DOCUMENTS]
    task = heads_task(home / "heads", bare, kg=kg)
    found = evaluate_heads(task, bare).to_json()
    assert found["ppl"] == result(home, kg)["ppl"]
    assert found["ppl_mention"] is None
    assert result(home, kg, annotated=True)["ppl"] != found["ppl"]


def test_documents_are_independent_of_workers_and_stored_features(home: Path, kg: Path, tmp_path: Path) -> None:
    expected = result(home, kg)["ppl"]
    task, features = heads_task(home / "heads", DOCUMENTS, kg=kg), tmp_path / "features"
    for workers in (1, 2):
        found = evaluate_heads(task, DOCUMENTS, features=features, workers=workers).to_json()
        assert found["ppl"] == pytest.approx(expected, rel=5e-3)  # half precision
    assert len(list(features.iterdir())) == 1


def test_a_text_without_entities_has_no_facts(home: Path, kg: Path) -> None:
    scorer = HeadsScorer(heads_task(home / "heads", DOCUMENTS, kg=kg))
    scored = scorer.score(DOCUMENTS[2])
    facts = [NAMES.index(name) for name in ("parent", "relation", "tail", "name")]
    assert scored.links == 0
    assert not scored.part_WC[:, facts].any()


def test_control_graphs(home: Path, kg: Path) -> None:
    shuffled, absent = result(home, kg, control="shuffled"), result(home, kg, control="absent")
    assert "shuffled" in str(shuffled["model"]) and absent["control"] == "absent"
    assert shuffled["links"] == result(home, kg)["links"] and absent["links"] == 0
    assert len({shuffled["ppl"], absent["ppl"], result(home, kg)["ppl"]}) == 3
    assert absent["components"]["name"] == 0  # type: ignore[index]


def test_command(home: Path, kg: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")  # the place of the files of this test may be long
    to = tmp_path / "result.json"
    shown = command(
        "evaluate", str(home / "heads"), "--data", str(home / "docs.jsonl"), "--kg", str(kg), "--to", str(to)
    )
    assert "share of the base's perplexity" in shown.stdout and "relation" in shown.stdout
    found = json.loads(to.read_text())
    assert np.isclose(found["ppl"], result(home, kg)["ppl"])
    table = json.loads(command("table", "perplexity", str(to), "--no-published", "--json").stdout)["rows"]
    assert [row["ppl"] for row in table] == [found["base_ppl"], found["ppl"]]
    scored = command(
        "table",
        "perplexity",
        "--run",
        str(home / "heads"),
        "--kg",
        str(kg),
        "--data",
        str(home / "docs.jsonl"),
        "--json",
    )
    assert json.loads(scored.stdout)["rows"][:2] == table


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "particle"], "exactly"),
        (["--control", "other"], "no control"),
        (["--links", "none"], "--links none"),
        ([], "which graph"),
    ],
)
def test_wrong_options(home: Path, kg: Path, command: Command, options: list[str], message: str) -> None:
    graph = ["--kg", str(kg)] if options else []
    shown = command("evaluate", str(home / "heads"), "--data", str(home / "docs.jsonl"), *graph, *options)
    assert shown.returncode == 2 and message in shown.stderr


def test_options_of_heads_are_refused_elsewhere(home: Path) -> None:
    with pytest.raises(ConfigError, match="which graph"):
        heads_task(home / "heads", DOCUMENTS)
