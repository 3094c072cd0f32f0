"""Training of heads on a toy base: it learns, and a run that was interrupted ends like one that was not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from conftest import Command
from kglm.errors import ConfigError, DataError, KglmError
from kglm.files.artefact import Artefact
from kglm.heads.objective import passage_loss
from kglm.heads.run import FILES, HeadsRun
from kglm.heads.store import WEIGHTS
from kglm.kg.ids import NEW
from kglm.text.document import END, START, Document, Mention, write_documents
from kglm.train.heads.loop import Trainer
from kglm.train.heads.settings import HeadsRunConfig, HeadsTrainConfig
from kglm.train.heads.start import train_heads
from support.causal import save_english
from support.worlds import make_store

pytest.importorskip("transformers", reason="the extra hf is not installed")

TOWNS = {f"Q{k}": name for k, name in enumerate(("Ulm", "Bern", "Lyon", "Graz"), 11)}
PEOPLE = {f"Q{k}": name for k, name in enumerate(("Ada", "Bob", "Cleo", "Dan"), 21)}
FACTS = [(person, "P19", town) for person, town in zip(PEOPLE, TOWNS, strict=True)]


def sentence(person: str, town: str) -> Document:
    tokens = [START, PEOPLE[person], "was", "born", "in", TOWNS[town], ".", END]
    mentions = [
        Mention(1, 2, person, "KG", (NEW,), (person,)),
        Mention(5, 6, town, "KG", ("P19",), (person,)),
    ]
    return Document(f"{person} {town}", tokens, mentions)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("heads")
    names = {**{id: (name,) for id, name in (TOWNS | PEOPLE).items()}, "P19": ("place of birth", "born in")}
    make_store(home / "graph", FACTS, names)
    save_english(home / "base", hidden=32)
    documents = [sentence(person, town) for person, _, town in FACTS]
    write_documents(home / "train.jsonl", documents * 8)
    write_documents(home / "valid.jsonl", documents)
    return home


@pytest.fixture(autouse=True)
def cache(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGLM_CACHE", str(home / "cache"))


def settings(**options: object) -> HeadsRunConfig:
    defaults = {"epochs": 4, "batch": 40, "warm_up": 2, "validate": 8, "hide_asked": 0.0, "rate": 1e-2}
    return HeadsRunConfig(train=HeadsTrainConfig(**{**defaults, **options}))  # type: ignore[arg-type]


def trained(home: Path, to: Path, config: HeadsRunConfig, *, resume: bool = False) -> list[float]:
    found = train_heads(
        config, [home / "train.jsonl"], [home / "valid.jsonl"], home / "graph" / "toy.kg", to,
        base=home / "base", resume=resume, features=home / "features",
    )  # fmt: skip
    return [each.valid for each in found]


def test_it_learns_and_opens(home: Path, tmp_path: Path) -> None:
    losses = trained(home, tmp_path / "run", settings())
    assert losses[-1] < losses[0]
    run = HeadsRun.open(tmp_path / "run")
    assert run.record.base == str(home / "base")
    assert not run.heads.training
    assert Artefact.open(tmp_path / "run", names=FILES).read("metrics.jsonl").count(b"\n") == len(losses)
    assert list(Artefact.open(tmp_path / "run", names=FILES).damages()) == []


def test_an_interrupted_run_ends_like_an_uninterrupted_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(checkpoint=0.0)
    whole = trained(home, tmp_path / "whole", config)
    step, calls = Trainer._step, iter(range(1000))

    def killed(self: Trainer, number: int) -> None:
        if next(calls) == 11:
            raise RuntimeError("killed")
        step(self, number)

    monkeypatch.setattr(Trainer, "_step", killed)
    with pytest.raises(RuntimeError):
        trained(home, tmp_path / "resumed", config)
    monkeypatch.setattr(Trainer, "_step", step)
    assert trained(home, tmp_path / "resumed", config, resume=True) == whole
    assert (tmp_path / "whole" / WEIGHTS).read_bytes() == (tmp_path / "resumed" / WEIGHTS).read_bytes()


def test_it_stops_at_a_loss_that_is_not_finite(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **options: object) -> object:
        found = passage_loss(*args, **options)  # type: ignore[arg-type]
        return found._replace(total=found.total * float("nan"))

    monkeypatch.setattr("kglm.train.heads.loop.passage_loss", broken)
    with pytest.raises(KglmError, match=r"not finite at step 0 \(documents Q2"):
        trained(home, tmp_path / "run", settings())


def test_other_settings_documents_or_an_existing_run_are_refused(home: Path, tmp_path: Path) -> None:
    trained(home, tmp_path / "run", settings(epochs=1))
    with pytest.raises(KglmError, match="is a run already"):
        trained(home, tmp_path / "run", settings(epochs=1))
    with pytest.raises(ConfigError, match="other settings"):
        trained(home, tmp_path / "run", settings(epochs=2), resume=True)
    write_documents(tmp_path / "other.jsonl", [sentence("Q21", "Q11")])
    with pytest.raises(DataError, match="other documents"):
        train_heads(
            settings(epochs=1), [tmp_path / "other.jsonl"], [home / "valid.jsonl"], home / "graph" / "toy.kg",
            tmp_path / "run", base=home / "base", resume=True, features=home / "features",
        )  # fmt: skip


def test_the_command(home: Path, tmp_path: Path, command: Command) -> None:
    arguments = ["train", "kglm", "--base", str(home / "base"), "--data", str(home / "train.jsonl"), "--json"]
    arguments += ["--valid", str(home / "valid.jsonl"), "--to", str(tmp_path / "run")]
    arguments += ["--kg", str(home / "graph" / "toy.kg"), "--features", str(home / "features")]
    arguments += ["--set", "train.epochs=1", "--set", "train.warm_up=2"]
    found = command(*arguments)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["metrics"][0]["base"] > 0
    assert torch.isfinite(HeadsRun.open(tmp_path / "run").heads.types.weight).all()
    refused = command(*arguments, "--preset", "paper")
    assert refused.returncode == 2 and "without --preset" in refused.stderr
