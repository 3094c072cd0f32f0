"""Training as its user does it: from files, by one command, into a run directory."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kglm.bundled import DOCUMENTS, ENTITIES, FACTS, RELATIONS
from kglm.errors import ConfigError, DataError, KglmError, VersionError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import import_graph
from kglm.kg.transe import TransEConfig, embed_graph
from kglm.model.chunk import whole
from kglm.train.run import Run, read_for_training, train
from kglm.train.settings import SHIPPED, RunConfig, load_config

SETTINGS = load_config("tiny", "kglm", ["train.epochs=2"])


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("world") / "world.kg"
    import_graph([FACTS], path, entities=[ENTITIES], relations=[RELATIONS])
    embed_graph(path, TransEConfig(dim=16, epochs=3, held_out=0))
    return path


@pytest.fixture(scope="module")
def run(kg: Path) -> Path:
    train(SETTINGS, [DOCUMENTS], [DOCUMENTS], kg, kg.with_name("run"))
    return kg.with_name("run")


@pytest.mark.parametrize("model", ["kglm", "proposal"])
def test_a_run_has_all_it_needs(kg: Path, tmp_path: Path, model: str) -> None:
    settings = load_config("tiny", model, ["train.epochs=2"])
    metrics = train(settings, [DOCUMENTS], [DOCUMENTS], kg, tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names >= {
        "config.toml",
        "model.safetensors",
        "vocabulary.json",
        "kg.json",
        "metrics.jsonl",
        "README.md",
        "state",
    }
    assert len(metrics) == 2 and metrics[0]["unexplained"] == {"train": 0, "valid": 0}
    assert f"# {model}" in (tmp_path / "run" / "README.md").read_text()


def test_a_loaded_run_scores_as_the_trained_one(run: Path) -> None:
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    loaded = Run.open(run)
    chunk = loaded.builder.build([whole(document) for document in loaded.encode(read_for_training([DOCUMENTS]), "x")])
    with torch.no_grad():
        nats = -float(loaded.model.score(chunk).total_BT.double().sum()) / chunk.targets
    assert nats == pytest.approx(min(record["valid"]["nats"] for record in metrics), rel=1e-5)


def test_the_graph_may_have_been_edited_but_it_is_said(
    run: Path, kg: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (kg, *kg.parent.glob("world.kg.*")):
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, tmp_path / path.name)
    with KnowledgeGraph.open(tmp_path / "world.kg", writable=True) as graph:
        graph.set("Q76", "P569", "2013-03-21")
    Run.open(run, kg=tmp_path / "world.kg")
    assert "is not the graph that" in capsys.readouterr().err


def test_resuming(run: Path, kg: Path) -> None:
    with pytest.raises(KglmError, match="is a run already; go on with it by --resume"):
        train(SETTINGS, [DOCUMENTS], [DOCUMENTS], kg, run)
    assert len(train(SETTINGS, [DOCUMENTS], [DOCUMENTS], kg, run, resume=True)) == 2, "it is done: nothing is added"
    with pytest.raises(ConfigError, match="was started with other settings"):
        train(load_config("tiny", "kglm", ["train.rows=3"]), [DOCUMENTS], [DOCUMENTS], kg, run, resume=True)
    longer = replace(SETTINGS, train=replace(SETTINGS.train, epochs=3, learning_rate=0.001))
    assert len(train(longer, [DOCUMENTS], [DOCUMENTS], kg, run, resume=True)) == 3, "what is tunable may change"


class TestRefusals:
    def test_not_a_run_or_of_another_version(self, run: Path, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="is not a run"):
            Run.open(tmp_path)
        shutil.copytree(run, tmp_path / "old")
        (tmp_path / "old" / "run.json").write_text('{"format": 0, "kglm": "0.0.1"}')
        with pytest.raises(VersionError, match=r"format 0, this version of kglm reads 2; use kglm 0\.0\.1"):
            Run.open(tmp_path / "old")

    def test_vectors_that_are_missing_or_of_another_size(self, kg: Path, tmp_path: Path) -> None:
        import_graph([FACTS], tmp_path / "bare.kg")
        with pytest.raises(DataError, match="has no vectors; make them with: kglm kg embed"):
            train(SETTINGS, [DOCUMENTS], [DOCUMENTS], tmp_path / "bare.kg", tmp_path / "run")
        with pytest.raises(ConfigError, match="leave it out, or set 56"):
            train(load_config("tiny", "kglm", ["encoder.output=60"]), [DOCUMENTS], [DOCUMENTS], kg, tmp_path / "run")

    def test_settings(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="there is no model 'gpt'"):
            load_config(None, "gpt")
        with pytest.raises(ConfigError, match=r"unknown key 'encoder\.layer'; did you mean 'layers'"):
            load_config("tiny", "kglm", ["encoder.layer=1"])
        with pytest.raises(DataError, match="no such file"):
            load_config(tmp_path / "none.toml", "kglm")

    def test_an_empty_corpus(self, kg: Path, tmp_path: Path) -> None:
        (tmp_path / "empty.jsonl").write_text("")
        with pytest.raises(KglmError, match="no training document has a word"):
            train(SETTINGS, [tmp_path / "empty.jsonl"], [DOCUMENTS], kg, tmp_path / "run")


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_settings_are_sound(path: Path) -> None:
    assert isinstance(load_config(path.stem, "kglm"), RunConfig)
