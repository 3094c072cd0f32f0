"""A run: the directory that holds a model and everything it takes to use it or to go on training it.

config.toml         all settings
vocabulary.json     words, and the number of unknown types
kg.json             which graph, and its hash when training started
model.safetensors   the best weights so far
metrics.jsonl       one line an epoch
README.md           the model card
state/              what resuming needs
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Generator

from kglm import __version__, config
from kglm.errors import ConfigError, DataError, KglmError, VersionError
from kglm.files import atomic_file, read_json, write_json
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.vectors import Vectors
from kglm.model.aliases import AliasTable
from kglm.model.annotation import AnnotationEncoder, EncodedDocument, MentionTypes
from kglm.model.chunk import ChunkBuilder
from kglm.model.encoder import EncoderConfig
from kglm.model.kglm import Kglm
from kglm.model.latent import EntityTable, LatentConfig
from kglm.model.parts import ChunkModel, KglmConfig
from kglm.model.proposal import Proposal
from kglm.progress import progress
from kglm.text.document import Document, read_documents
from kglm.text.repair import repair
from kglm.text.tokenizer import tokenizer
from kglm.text.vocabulary import Vocabulary
from kglm.train.checkpoint import load_into, load_tensors
from kglm.train.loop import TrainConfig, Trainer

FORMAT = 1
MODELS: dict[str, type[Kglm] | type[Proposal]] = {"kglm": Kglm, "proposal": Proposal}
SHIPPED = Path(__file__).parent.parent / "configs"


@dataclass(frozen=True)
class DataConfig:
    """How documents become numbers."""

    min_count: int = 3
    """Words seen less often in training are unknown."""
    max_aliases: int = 4
    """Aliases of an entity that can be copied from."""
    max_alias_tokens: int = 8
    """Words of an alias that can be copied."""
    mention_types: MentionTypes = "continue"
    """continue: an entity is paid for once a mention; paper: once a word, as the paper has it."""
    parent_window: int | None = None
    """Only entities mentioned in the last so many words can be parents; all, if left out."""


@dataclass(frozen=True)
class RunConfig:
    """All settings of a run."""

    model: Literal["kglm", "proposal"] = "kglm"
    data: DataConfig = field(default_factory=DataConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    latent: LatentConfig = field(default_factory=LatentConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


def load_config(name: str | Path | None, model: str, overrides: Iterable[str] = ()) -> RunConfig:
    """Settings from a file, or from one that comes with the package (`small`), with `a.b=c` on top."""
    if model not in MODELS:
        raise ConfigError(f"there is no model {model!r}", remedy=f"use one of {', '.join(MODELS)}")
    overrides = [*overrides, f"model={model}"]
    if name is None:
        return config.from_dict(RunConfig, config.with_overrides({}, overrides))
    shipped = SHIPPED / f"{name}.toml"
    return config.load(RunConfig, shipped if shipped.exists() else Path(name), overrides)


class Run:
    """A model with its vocabulary and graph."""

    def __init__(self, home: Path, settings: RunConfig, vocabulary: Vocabulary, graph: KnowledgeGraph) -> None:
        self.home = home
        self.settings = settings
        self.vocabulary = vocabulary
        self.graph = graph
        data = settings.data
        self.aliases = AliasTable(
            graph,
            vocabulary,
            lambda text: tokenizer().words(text),
            max_aliases=data.max_aliases,
            max_alias_tokens=data.max_alias_tokens,
        )
        self.encoder = AnnotationEncoder(
            graph, vocabulary, self.aliases, mention_types=data.mention_types, parent_window=data.parent_window
        )
        self.builder = ChunkBuilder(graph, self.aliases, parent_window=data.parent_window)
        self.model = self._build()

    def _build(self) -> ChunkModel:
        vectors = Vectors.load(self.graph.store.path).for_graph(self.graph)
        numbers = np.arange(len(self.graph))
        literal, _ = self.graph.literal_nodes()
        table = EntityTable(
            torch.from_numpy(np.concatenate([vectors.entity_RD, vectors.late_LD])),
            torch.from_numpy(vectors.rows(numbers).astype(np.int64)),
            torch.from_numpy(np.flatnonzero(~literal)),
        )
        settings = self.settings
        return MODELS[settings.model](
            KglmConfig(settings.encoder, settings.latent),
            len(self.vocabulary),
            table,
            torch.from_numpy(np.array(vectors.relation_RD)),
            generator=Generator().manual_seed(settings.train.seed),
        )

    @classmethod
    def create(cls, home: Path, settings: RunConfig, graph: KnowledgeGraph, documents: Sequence[Document]) -> Run:
        """A new run; the vocabulary is counted on the training documents."""
        vocabulary = Vocabulary.count(documents, min_count=settings.data.min_count)
        run = cls(home, settings, vocabulary, graph)
        home.mkdir(parents=True, exist_ok=True)
        vocabulary.save(home / "vocabulary.json")
        write_json(home / "kg.json", {"path": str(graph.store.path.absolute()), "hash": graph.hash})
        config.save(settings, home / "config.toml")
        write_json(home / "run.json", {"format": FORMAT, "kglm": __version__})
        return run

    @classmethod
    def open(cls, home: Path, *, kg: Path | None = None, weights: bool = True) -> Run:
        """A run that is there; its graph may have been edited or moved since."""
        if not (home / "run.json").exists():
            raise DataError("is not a run", place=home, remedy="make one with: kglm train … --to RUN")
        version = read_json(home / "run.json")
        if version.get("format") != FORMAT:
            raise VersionError(
                f"is a run of format {version.get('format')}, this version of kglm reads {FORMAT}",
                place=home,
                remedy=f"use kglm {version.get('kglm')}, or train it again",
            )
        known = read_json(home / "kg.json")
        graph = KnowledgeGraph.open(kg or Path(known["path"]))
        if graph.hash != known["hash"]:
            print(f"warning: {graph.store.path} is not the graph that {home} was trained with", file=sys.stderr)
        settings = config.load(RunConfig, home / "config.toml")
        run = cls(home, settings, Vocabulary.load(home / "vocabulary.json"), graph)
        if weights:
            path = home / "model.safetensors"
            load_into(run.model, load_tensors(path), path)
            run.model.eval()
        return run

    def encode(self, documents: Sequence[Document], title: str) -> list[EncodedDocument]:
        """Documents as numbers."""
        encoded = []
        with progress(title, sum(len(document.tokens) for document in documents), "tokens") as advance:
            for document in documents:
                encoded.append(self.encoder.encode(document))
                advance(len(document.tokens))
        return encoded

    def write_card(self, metrics: Sequence[dict[str, Any]], sources: Sequence[str]) -> None:
        """The model card: what this is, what it was trained on, how good it is."""
        best = min(metrics, key=lambda record: record["valid"]["nats"]) if metrics else None
        lines = [
            f"# {self.settings.model}",
            "",
            f"Trained by kglm {__version__} on {', '.join(sources)}; facts from `{self.graph.store.path.name}`.",
            f"{len(self.vocabulary):,} words, |U| = {self.vocabulary.unknown_types:,}, "
            f"{sum(p.numel() for p in self.model.parameters()):,} parameters, seed {self.settings.train.seed}.",
            "",
        ]
        if best:
            lines += ["Validation by annotated joint likelihood, nats a word (lower is better):", ""]
            lines += ["| epoch | all | type | entity | word |", "|---|---|---|---|---|"]
            valid = best["valid"]
            cells = [str(best["epoch"]), *(f"{valid[name]:.4f}" for name in ("nats", "type", "entity", "word"))]
            lines.append(f"| {' | '.join(cells)} |")
        with atomic_file(self.home / "README.md") as stream:
            stream.write(("\n".join(lines) + "\n").encode())


def read_for_training(paths: Sequence[Path]) -> list[Document]:
    """Documents of several files, their quirks mended."""
    return [repair(document)[0] for path in paths for document in read_documents(path)]


def train(
    settings: RunConfig, data: Sequence[Path], valid: Sequence[Path], kg: Path, to: Path, *, resume: bool = False
) -> list[dict[str, Any]]:
    """Train a model into the run directory `to`; with `resume`, go on where an earlier start was."""
    exists = (to / "run.json").exists()
    if exists and not resume:
        raise KglmError("is a run already", place=to, remedy="go on with it by --resume, or choose another directory")
    documents = read_for_training(data)
    if exists:
        run = Run.open(to, kg=kg, weights=False)
        if run.settings != settings:
            raise ConfigError("was started with other settings", place=to, remedy="give the same --config and --set")
    else:
        run = Run.create(to, settings, KnowledgeGraph.open(kg), documents)
    trainer = Trainer(
        run.model,
        run.builder,
        run.encode(documents, "encoding training documents"),
        run.encode(read_for_training(valid), "encoding validation documents"),
        settings.train,
        to,
    )
    if exists:
        trainer.resume()
    metrics = trainer.fit()
    run.write_card(metrics, [path.name for path in data])
    return metrics
