"""Train heads from files, as `kglm train kglm --base …` does.

A run of heads has

    config.toml          all settings
    heads.json           base, encoder, sizes, well-known relations
    heads.safetensors    the best weights so far by validation
    kg.json              the graph of the training; any other can be used with the heads
    metrics.jsonl        one line for each validation
    manifest.json        sizes and checksums of these files
    README.md            the model card
    features/            stored states of the base, which may be removed after training
    state/               the latest checkpoint
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import torch
from torch import Tensor

from kglm import __version__, config
from kglm.errors import ConfigError, DataError, KglmError
from kglm.files import atomic_file, digest_of, locked_directory, writing
from kglm.files.artefact import Artefact, Writer
from kglm.files.records import Count, HexHash
from kglm.files.tensors import parse_tensors
from kglm.heads.features import FeatureStore
from kglm.heads.keys import key_size
from kglm.heads.meanings import Known
from kglm.heads.model import Heads
from kglm.heads.run import FILES, REMEDY
from kglm.heads.store import RECORD, read_record, write_heads
from kglm.heads.tables import GraphTables
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.relations import list_relations
from kglm.pretrained.base import BaseModel
from kglm.runs.checkpoint import StateDirectory, optimiser_tensors, restore_optimiser
from kglm.runs.records import GraphRecord
from kglm.runs.run import read_for_training
from kglm.text.document import Document
from kglm.text.encoder import SentenceEncoder
from kglm.train.heads.data import Passages
from kglm.train.heads.loop import Finite, Trainer, Validation
from kglm.train.heads.settings import HeadsRunConfig
from kglm.train.interrupts import interrupts

KNOWN_FACTS = 20
"""A relation with this many facts in the training graph is well known: texts may ask for it whatever the graph."""
STATE = 1
ADAPTER_FILE = "adapter.safetensors"


class HeadsState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`state.json` of a checkpoint."""

    format: int
    step: Count
    loss: Finite
    subwords: Count
    best: Finite | None
    data: HexHash
    """Hash of the training and validation documents."""


def train_heads(
    settings: HeadsRunConfig,
    data: Sequence[Path],
    valid: Sequence[Path],
    kg: Path,
    to: Path,
    *,
    base: str | Path,
    resume: bool = False,
    features: Path | None = None,
    adapter: Path | None = None,
) -> list[Validation]:
    """Train heads on a base in the run directory `to`; return the validations.

    `features`: where states are stored; `adapter`: directory with an adapter of the sentence encoder.
    """
    exists = (to / RECORD).exists()
    if exists and not resume:
        raise KglmError("is a run already", place=to, remedy="continue it with --resume, or choose another directory")
    documents = [[read_for_training([path]) for path in paths] for paths in (data, valid)]
    for kind, files in zip(("training", "validation"), documents, strict=True):
        if not any(len(document.tokens) > 1 for found in files for document in found):
            raise KglmError(f"no {kind} document has a word", remedy="give documents with text")
    torch.set_num_threads(1)  # the products are small
    opened = BaseModel.open(base)
    encoder, changes = _encoder(adapter)
    with writing(to):
        (to / "state").mkdir(parents=True, exist_ok=True)
    with (
        locked_directory(to / "state", "another process is training this run"),
        KnowledgeGraph.open(kg, whole=True) as graph,
    ):
        tables = GraphTables.of(graph, opened, encoder=encoder)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.train.seed)
            heads = Heads(settings.heads, opened.model.config.hidden, key_size(opened))
        name = None if encoder is None else encoder.name
        run = _HeadsFiles(to, settings, opened, name, changes, known_relations(graph))
        if exists:
            run.check(settings)
        else:
            run.create(heads, graph)
        store = FeatureStore(features or to / "features", opened)
        passages = [
            Passages(each, store, tables, settings.heads.max_tails, label)
            for each, label in zip(documents, ("training", "validation"), strict=True)
        ]
        trainer = Trainer(heads, tables, passages[0], passages[1], settings.train)
        states = StateDirectory(to / "state")
        states.clean()
        digest = _digest(documents)
        metrics = run.resume(trainer, states, digest) if exists else []

        def validated(found: Validation, best: bool) -> None:
            metrics.append(found)
            run.save(heads if best else None, metrics)
            run.card([path.name for path in data], metrics)
            save()

        def save() -> None:
            progress = trainer.progress
            state = HeadsState(STATE, progress.step, progress.loss, progress.subwords, progress.best, digest)
            states.save(
                {
                    "model": heads.state_dict(),
                    "optimiser": optimiser_tensors(trainer.optimiser),
                    "random": {"state": trainer.generator_state},
                },
                state,
                progress.step,
            )

        with interrupts() as interrupt:
            trainer.run(validated=validated, save=save, stop=lambda: interrupt.requested)
        if interrupt.requested:
            raise KeyboardInterrupt
    return metrics


def _encoder(adapter: Path | None) -> tuple[SentenceEncoder | None, dict[str, Tensor]]:
    """The installed sentence encoder with an adapter, and the changes of the adapter."""
    if adapter is None:
        return SentenceEncoder.installed(), {}
    found = Artefact.open(adapter, REMEDY)
    changes = parse_tensors(found.read(ADAPTER_FILE), adapter / ADAPTER_FILE, REMEDY)
    return SentenceEncoder.required().adapted(changes), changes


def known_relations(graph: KnowledgeGraph) -> list[Known]:
    """The relations with many facts, with their names."""
    return [
        Known(info.id, tuple(graph.relation_names(info.id)[:12]))
        for info in list_relations(graph)
        if info.facts >= KNOWN_FACTS
    ]


def _digest(documents: Sequence[Sequence[Sequence[Document]]]) -> str:
    return digest_of(
        f"{each.title} {' '.join(each.tokens)}" for files in documents for found in files for each in found
    )


class _HeadsFiles:
    """The files of a run in the making."""

    def __init__(
        self,
        home: Path,
        settings: HeadsRunConfig,
        base: BaseModel,
        encoder: str | None,
        adapter: Mapping[str, Tensor],
        known: Sequence[Known],
    ) -> None:
        self.home, self.settings, self.base, self.known = home, settings, base, known
        self.encoder, self.adapter = encoder, adapter

    def create(self, heads: Heads, graph: KnowledgeGraph) -> None:
        """Write the first files."""
        artefact = Artefact.create(self.home, REMEDY, FILES)
        kg, home = graph.store.path.absolute(), self.home.absolute()
        beside = os.path.relpath(kg, home) if kg.is_relative_to(home.parent) else None
        with artefact.update() as writer:
            writer.bytes("config.toml", config.to_toml(self.settings))
            writer.json("kg.json", GraphRecord(str(kg), graph.hash, None, beside))
            writer.bytes("metrics.jsonl", b"")
            self._write(writer, heads)

    def check(self, settings: HeadsRunConfig) -> None:
        """Raise an error if a run was begun with other settings."""
        artefact = self._artefact()
        stored = config.parse(HeadsRunConfig, artefact.read("config.toml"), self.home / "config.toml")
        if read_record(artefact).encoder != self.encoder:
            raise ConfigError(
                "was begun with another sentence encoder or adapter",
                place=self.home,
                remedy="give the same ones, or choose another directory",
            )
        if stored != settings:
            raise ConfigError(
                "was begun with other settings",
                place=self.home,
                remedy="give the same ones, or choose another directory",
            )

    def save(self, heads: Heads | None, metrics: Sequence[Validation]) -> None:
        """Write the metrics, and the weights if they are the best so far."""
        with self._artefact().update() as writer:
            writer.bytes("metrics.jsonl", b"".join(msgspec.json.encode(each) + b"\n" for each in metrics))
            if heads is not None:
                self._write(writer, heads)

    def resume(self, trainer: Trainer, states: StateDirectory, digest: str) -> list[Validation]:
        """Restore the newest checkpoint; return the validations before it."""
        found = states.open()
        if found is None:
            return []
        state = found.record("state.json", HeadsState)
        if state.data != digest:
            raise DataError("was trained on other documents", place=self.home, remedy="give the same documents")
        parts: dict[str, Mapping[str, Tensor]] = {
            name: parse_tensors(found.read(f"{name}.safetensors"), found.home / f"{name}.safetensors", found.remedy)
            for name in ("model", "optimiser", "random")
        }
        trainer.heads.load_state_dict(parts["model"])
        restore_optimiser(trainer.optimiser, parts["optimiser"], found.home)
        trainer.generator_state = parts["random"]["state"]
        progress = trainer.progress
        progress.step, progress.loss, progress.subwords, progress.best = (
            state.step, state.loss, state.subwords, state.best,
        )  # fmt: skip
        lines = self._artefact().read("metrics.jsonl").splitlines()
        validations = [msgspec.json.decode(line, type=Validation) for line in lines]
        return [each for each in validations if each.step <= state.step]

    def card(self, sources: Sequence[str], metrics: Sequence[Validation]) -> None:
        """Write the model card."""
        best = min(metrics, key=lambda each: each.valid)
        lines = [
            f"# Heads for {self.base.name}",
            "",
            f"Trained by kglm {__version__} on {', '.join(sources)}; seed {self.settings.train.seed}.",
            "They choose facts and names of any graph; the base says all other words.",
            "",
            f"Validation after step {best.step}: {best.nats:.4f} nats a word, the base alone {best.base:.4f}; of the",
            f"mentions that a fact explains, {best.right_fact:.1%} have the right relation of their parent first.",
        ]
        with atomic_file(self.home / "README.md") as stream:  # not in the manifest: people may edit it
            stream.write(("\n".join(lines) + "\n").encode())

    def _write(self, writer: Writer, heads: Heads) -> None:
        write_heads(writer, heads, self.base, encoder=self.encoder, adapter=self.adapter, known=self.known)

    def _artefact(self) -> Artefact:
        return Artefact.open(self.home, REMEDY, FILES)
