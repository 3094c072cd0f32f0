"""Training as its user does it: from files, by one command, into a run directory."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w
import torch
from safetensors.torch import save_file

from kglm import config
from kglm.doctor import examine
from kglm.errors import ConfigError, DataError, KglmError, VersionError
from kglm.files import locked_directory, read_json, write_json
from kglm.files.tensors import load_tensors
from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.embedding.transe import TransEConfig, embed_graph
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import NEW
from kglm.kg.imports import import_graph
from kglm.runs.run import Run, read_for_training
from kglm.runs.settings import PRESETS, SHIPPED, RunConfig, load_config, parse_settings
from kglm.runs.tensors import RENAMED
from kglm.text.document import START, Document, Mention
from kglm.train.chunks import ChunkBuilder, whole
from kglm.train.encoding import DocumentEncoder
from kglm.train.start import train
from kglm.train.totals import evaluate
from support.artefacts import accept
from support.tiny import DOCUMENTS, ENTITIES, FACTS, RELATIONS

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
    encoded = DocumentEncoder.of(loaded).encode_all(read_for_training([DOCUMENTS]), "x")
    chunk = ChunkBuilder.of(loaded).build([whole(each) for each in encoded])
    with torch.no_grad():
        nats = -float(loaded.model.score(chunk).total_BT.double().sum()) / chunk.targets
    assert nats == pytest.approx(min(record["valid"]["nats"] for record in metrics), rel=1e-5)


def test_a_run_of_format_2_has_the_same_weights_under_other_names(run: Path, tmp_path: Path) -> None:
    old = shutil.copytree(run, tmp_path / "old")
    before = {present: name for name, present in RENAMED.items()}
    tensors = {}
    for name, tensor in load_tensors(run / "model.safetensors").items():
        present = next((present for present in before if name.startswith(present)), None)
        tensors[name if present is None else before[present] + name[len(present) :]] = tensor
    assert {"latent.cue", "latent.type_head.weight", "latent.parent_bias.weight_Q"} <= set(tensors)
    save_file(tensors, old / "model.safetensors")
    write_json(old / "run.json", read_json(old / "run.json") | {"format": 2})
    (old / "manifest.json").unlink()
    one, two = (Run.open(home).model.state_dict() for home in (run, old))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_run_begins_with_the_weights_of_another(
    run: Path, kg: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    still = replace(SETTINGS, train=replace(SETTINGS.train, learning_rate=1e-9, average="none", epochs=1))
    train(still, [DOCUMENTS], [DOCUMENTS], kg, tmp_path / "next", start=run)
    assert "initialised" not in capsys.readouterr().err
    old, new = (load_tensors(home / "model.safetensors") for home in (run, tmp_path / "next"))
    assert old.keys() == new.keys()
    assert all(torch.allclose(old[name], new[name], atol=1e-5) for name in old)
    assert (tmp_path / "next" / "vocabulary.json").read_bytes() == (run / "vocabulary.json").read_bytes()
    assert f"from the weights of the run `{run.name}`" in (tmp_path / "next" / "README.md").read_text()
    assert "from the weights" not in (run / "README.md").read_text()

    train(load_config("tiny", "proposal", ["train.epochs=1"]), [DOCUMENTS], [DOCUMENTS], kg, tmp_path / "q", start=run)
    train(still, [DOCUMENTS], [DOCUMENTS], kg, tmp_path / "back", start=tmp_path / "q")
    assert "they are initialised" in capsys.readouterr().err, "a proposal has no word bias"

    wide = load_config("tiny", "kglm", ["encoder.hidden=23"])
    with pytest.raises(ConfigError, match="its encoder has another encoder"):
        train(wide, [DOCUMENTS], [DOCUMENTS], kg, tmp_path / "wide", start=run)
    assert not (tmp_path / "wide" / "run.json").exists()


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


def test_runs_of_earlier_versions_open_without_missing_facts(run: Path, kg: Path, tmp_path: Path) -> None:
    """Their settings do not have the option, and their weights not the parameters."""
    settings = parse_settings((run / "config.toml").read_bytes(), run)
    assert settings.latent.missing and Run.open(run).history.missing
    values = config.parse_toml((run / "config.toml").read_bytes(), run)
    del values["latent"]["missing"], values["train"]["hide_facts"]
    before = parse_settings(tomli_w.dumps(values).encode(), run)
    assert not before.latent.missing and before.train.hide_facts == 0
    names = Run(tmp_path, before, Run.open(run).vocabulary, KnowledgeGraph.open(kg), {}).model.state_dict()
    assert not any("missing" in name for name in names)


def test_resuming(run: Path, kg: Path) -> None:
    with pytest.raises(KglmError, match="is a run already; continue it with --resume"):
        train(SETTINGS, [DOCUMENTS], [DOCUMENTS], kg, run)
    assert len(train(SETTINGS, [DOCUMENTS], [DOCUMENTS], kg, run, resume=True)) == 2, "it is done: nothing is added"
    with pytest.raises(ConfigError, match="was started with other settings"):
        train(load_config("tiny", "kglm", ["train.rows=3"]), [DOCUMENTS], [DOCUMENTS], kg, run, resume=True)
    longer = replace(SETTINGS, train=replace(SETTINGS.train, epochs=3, learning_rate=0.001))
    assert len(train(longer, [DOCUMENTS], [DOCUMENTS], kg, run, resume=True)) == 3, "what is tunable may change"


def test_two_trainings_of_one_run_are_refused(run: Path, kg: Path, tmp_path: Path) -> None:
    with locked_directory(run / "state"), pytest.raises(KglmError, match="another process is training this run"):
        train(SETTINGS, [DOCUMENTS], [DOCUMENTS], kg, run, resume=True)
    with pytest.raises(DataError, match="no such file"):
        train(SETTINGS, [tmp_path / "none.jsonl"], [DOCUMENTS], kg, tmp_path / "new")
    assert not (tmp_path / "new").exists(), "a training that never began leaves nothing"


class TestRefusals:
    @pytest.mark.parametrize("path", ["", "\x00"])
    def test_a_graph_at_an_impossible_path(self, run: Path, tmp_path: Path, path: str) -> None:
        copy = shutil.copytree(run, tmp_path / "run")
        write_json(copy / "kg.json", read_json(copy / "kg.json") | {"path": path})
        accept(copy)
        with pytest.raises(DataError, match=r"kg\.json: \$\.path"):
            Run.open(copy)

    def test_not_a_run_or_of_another_version(self, run: Path, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="is not a run"):
            Run.open(tmp_path)
        shutil.copytree(run, tmp_path / "old")
        (tmp_path / "old" / "run.json").write_text('{"format": 0, "kglm": "0.0.1"}')
        accept(tmp_path / "old")
        with pytest.raises(VersionError, match=r"format 0; this version of kglm reads 2 and 3; use kglm 0\.0\.1"):
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
        with pytest.raises(
            ConfigError, match=r"none\.toml'; give a TOML file, or one of paper, quickstart, small, tiny"
        ):
            load_config(tmp_path / "none.toml", "kglm")

    def test_a_start_that_fails_leaves_no_run(self, kg: Path, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no such file"):
            train(SETTINGS, [DOCUMENTS], [tmp_path / "nowhere.jsonl"], kg, tmp_path / "run")
        (tmp_path / "empty.jsonl").write_text("")
        with pytest.raises(KglmError, match="no validation document has a word"):
            train(SETTINGS, [DOCUMENTS], [tmp_path / "empty.jsonl"], kg, tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_resuming_with_other_documents(self, run: Path, kg: Path, tmp_path: Path) -> None:
        lines = DOCUMENTS.read_text().splitlines(keepends=True)
        (tmp_path / "fewer.jsonl").write_text("".join(lines[1:]))
        for data, valid in ((tmp_path / "fewer.jsonl", DOCUMENTS), (DOCUMENTS, tmp_path / "fewer.jsonl")):
            with pytest.raises(ConfigError, match="was started with other documents"):
                train(SETTINGS, [data], [valid], kg, run, resume=True)

    @pytest.mark.parametrize(
        "setting", ["latent.uniform_share=1", "data.max_aliases=0", "data.parent_window=0", "train.average_decay=1"]
    )
    def test_settings_out_of_range(self, setting: str) -> None:
        with pytest.raises(ConfigError, match=setting.split("=")[0]):
            load_config("tiny", "kglm", [setting])

    def test_an_empty_corpus(self, kg: Path, tmp_path: Path) -> None:
        (tmp_path / "empty.jsonl").write_text("")
        with pytest.raises(KglmError, match="no training document has a word"):
            train(SETTINGS, [tmp_path / "empty.jsonl"], [DOCUMENTS], kg, tmp_path / "run")


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_settings_are_sound(path: Path) -> None:
    assert isinstance(load_config(path.stem, "kglm"), RunConfig)


class TestDoctor:
    def findings(self, home: Path, level: str) -> list[str]:
        return [finding.what for finding in examine(home) if finding.level == level]

    def test_healthy(self, run: Path) -> None:
        assert not self.findings(run, "error") and not self.findings(run, "warning")
        assert any("epochs" in note for note in self.findings(run, "note"))

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("model.safetensors", "is not a complete safetensors file"),
            ("vocabulary.json", "."),
            ("config.toml", "is not TOML"),
            ("run.json", "is not JSON"),
        ],
    )
    def test_damage(self, run: Path, tmp_path: Path, name: str, message: str) -> None:
        home = shutil.copytree(run, tmp_path / "run")
        (home / name).write_text("]")
        [what] = self.findings(home, "error")
        assert "is damaged: has 1 bytes instead of" in what
        accept(home)
        [what] = self.findings(home, "error")
        assert re.search(message, what)

    def test_a_checkpoint_that_lacks_a_part(self, run: Path, tmp_path: Path) -> None:
        home = shutil.copytree(run, tmp_path / "run")
        [state] = home.glob("state/*/state.json")
        state.unlink()
        assert self.findings(home, "error")

    def test_weights_that_are_no_numbers(self, run: Path, tmp_path: Path) -> None:
        home = shutil.copytree(run, tmp_path / "run")
        tensors = load_tensors(home / "model.safetensors")
        tensors["word_bias_V"][0] = float("nan")
        save_file(tensors, home / "model.safetensors")
        accept(home)
        assert self.findings(home, "error") == ["word_bias_V has entries that are NaN or infinite"]


class TestGraphs:
    """Runs with a graph that is not the one they were trained with."""

    def moved(self, kg: Path, tmp_path: Path) -> Path:
        for path in (kg, *kg.parent.glob("world.kg.*")):
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, tmp_path / path.name)
        return tmp_path / "world.kg"

    def test_entities_and_relations_that_came_later(self, run: Path, kg: Path, tmp_path: Path) -> None:
        """They have inductive vectors; what was trained for each entity or relation keeps its place."""
        path = self.moved(kg, tmp_path)
        with KnowledgeGraph.open(path, writable=True) as graph:
            graph.edit([NewEntity("Q999999001", ("Zora Quist",)), FactEdit("add", "Q999999001", "P26", "Q76")])
            graph.edit([NewEntity("P999901", ("idol",)), FactEdit("add", "Q76", "P999901", "Q999999001")])
        before, after = Run.open(run), Run.open(run, kg=path)
        one, two = before.model.state_dict(), after.model.state_dict()
        for name, tensor in one.items():
            rows = len(tensor) if tensor.dim() else None
            assert torch.equal(two[name][:rows] if rows is not None else two[name], tensor), name
        assert len(two["latent.relations.vector_RD"]) == len(one["latent.relations.vector_RD"]) + 2
        [document] = DocumentEncoder.of(after).encode_all([Document("t", [START, "Zora", "Quist"], [
            Mention(1, 3, "Q999999001", "KG", (NEW,), ("Q999999001",))])], "x")  # fmt: skip
        with torch.no_grad():
            scores = after.model.score(ChunkBuilder.of(after).build([whole(document)]))
        assert torch.isfinite(scores.total_BT).all() and not scores.unknown_BT.any(), "its name is copied"

    def test_vectors_that_were_trained_again(self, run: Path, kg: Path, tmp_path: Path) -> None:
        path = self.moved(kg, tmp_path)
        embed_graph(path, TransEConfig(dim=16, epochs=1, held_out=0, seed=5))
        with pytest.raises(DataError, match="are not those that this run was trained with; train it again"):
            Run.open(run, kg=path)


@pytest.mark.parametrize("preset", ["best", "paper"])
def test_presets(preset: str) -> None:
    settings = load_config("tiny", "kglm", ["latent.uniform_share=0.25"], preset=preset)
    assert settings.latent == replace(PRESETS[preset], uniform_share=0.25), "what is set wins"
    with pytest.raises(ConfigError, match="there is no preset 'worst'"):
        load_config(None, "kglm", preset="worst")


def test_the_paper_is_the_preset() -> None:
    assert load_config("paper", "kglm").latent == PRESETS["paper"]


def test_a_document_far_longer_than_a_chunk(run: Path) -> None:
    """It is read in chunks with carried state; what is kept of its past grows with it, not with its square."""
    loaded = Run.open(run)
    [short, *_] = read_for_training([DOCUMENTS])
    mentions, tokens = [], list[str]()
    for copy in range(400):
        mentions += [
            mention.moved(mention.start + len(tokens), mention.end + len(tokens)) for mention in short.mentions
        ]
        tokens += short.tokens if not copy else [short.tokens[-1], *short.tokens[1:]]
    [encoded] = DocumentEncoder.of(loaded).encode_all([Document("long", tokens, mentions)], "x")
    assert len(encoded) > 8000
    values = [
        evaluate(loaded.model, ChunkBuilder.of(loaded), [encoded], rows=1, length=length).nats()["nats"]
        for length in (70, 2000)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_a_run_finds_its_graph_where_both_were_moved_and_where_it_was_moved_alone(run: Path, tmp_path: Path) -> None:
    together = shutil.copytree(run.parent, tmp_path / "together") / run.name
    assert Run.open(together).graph.store.path.resolve() == (together.parent / "world.kg").resolve()
    alone = shutil.copytree(run, tmp_path / "alone")
    assert Run.open(alone).graph.store.path.resolve() == (run.parent / "world.kg").resolve()
