"""A run: the directory of a model, with everything needed to use it or to continue its training.

config.toml          all settings
vocabulary.json      words, and the number of unknown types
introductions.json   number of training documents that introduce each entity
kg.json              path of the graph, and hashes of graph and vectors when training started
start.safetensors    initial weights, if they come from another run
model.safetensors    the best weights so far
metrics.jsonl        one line for each epoch
manifest.json        sizes and checksums of these files
README.md            the model card
state/               the latest checkpoint
"""

from __future__ import annotations

import copy
import hashlib
import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from torch import Generator, Tensor

from kglm import __version__, config
from kglm.errors import ConfigError, DataError, VersionError
from kglm.files import atomic_file, exists
from kglm.files.artefact import Artefact
from kglm.files.tensors import parse_tensors, write_tensors
from kglm.kg.embedding.vectors import Vectors
from kglm.kg.graph import KnowledgeGraph
from kglm.model.base import COMPONENTS, ChunkModel
from kglm.model.entities import count_introductions
from kglm.model.graph_features import GraphFeatures
from kglm.model.table import ModelParts
from kglm.model.text import HistoryConfig
from kglm.runs.checkpoint import EpochMetrics
from kglm.runs.records import FILES, REMEDY, GraphRecord, Introductions, RunRecord, files_of_run, require_run
from kglm.runs.settings import RunConfig, parse_settings
from kglm.runs.tensors import load_into
from kglm.text.document import Document, read_documents
from kglm.text.repair import repair
from kglm.text.tokenizer import tokenizer
from kglm.text.vocabulary import Vocabulary, VocabularyRecord

FORMAT = 3
READABLE = (2, 3)
"""Formats of runs that this version reads. In format 2 some weights have other names: see `tensors.RENAMED`."""
START = "start.safetensors"


class Run:
    """A model with its vocabulary and the features of its graph."""

    def __init__(
        self,
        home: Path,
        settings: RunConfig,
        vocabulary: Vocabulary,
        graph: KnowledgeGraph,
        introductions: dict[int, int],
    ) -> None:
        self.home = home
        self.settings = settings
        self.vocabulary = vocabulary
        self.introductions = introductions
        self.artefact = Artefact(home, None, REMEDY, FILES)
        self.record = RunRecord(FORMAT, __version__)
        data, latent, kind = settings.data, settings.latent, settings.kind
        missing = latent.offers_missing and kind.likelihood == "latent"
        self.history = HistoryConfig(latent.facts, data.parent_window, data.mention_types, missing)
        self.features = GraphFeatures.of(
            graph,
            vocabulary,
            _words,
            max_aliases=data.max_aliases,
            max_alias_tokens=data.max_alias_tokens,
            uses_cues=kind.uses_vectors and latent.facts != "none" and latent.reads_cues,
            uses_tail_facts=kind.uses_vectors and latent.facts != "none" and latent.tail_facts,
            vectors=Vectors.load(graph.store.path, whole=True) if kind.uses_vectors else None,
            introductions=introductions,
        )
        generator = Generator().manual_seed(settings.train.seed)
        self.model: ChunkModel = kind.build(
            ModelParts(settings.encoder, latent, len(vocabulary), self.features), generator
        )

    @property
    def graph(self) -> KnowledgeGraph:
        return self.features.graph

    @classmethod
    def create(
        cls,
        home: Path,
        settings: RunConfig,
        graph: KnowledgeGraph,
        documents: Sequence[Document],
        start: Run | None = None,
        *,
        data: tuple[str, str] | None = None,
        threads: int | None = None,
    ) -> Run:
        """Create a run; vocabulary and introductions are counted on the training documents.

        With `start`, vocabulary and weights come from that run. `data` and `threads` are what resuming compares and
        repeats (see `RunRecord`). The files appear together; `run.json`, which makes the directory a run, is last.
        """
        vocabulary = start.vocabulary if start else Vocabulary.count(documents, min_count=settings.data.min_count)
        run = cls(home, settings, vocabulary, graph, count_introductions(documents, graph, settings.latent.facts))
        weights = run.weights_of(start) if start else None
        run.record = RunRecord(FORMAT, __version__, start.home.name if start else None, data, threads)
        run.artefact = Artefact.create(home, REMEDY, FILES)
        with run.artefact.update() as writer:
            if weights:
                write_tensors(writer, START, weights)
            writer.json("vocabulary.json", vocabulary.record())
            writer.json("introductions.json", {graph.id(node): n for node, n in run.introductions.items()})
            writer.json("kg.json", _graph_record(home, graph, run.vectors_hash))
            writer.bytes("config.toml", config.to_toml(settings))
            writer.json("run.json", run.record)
        return run

    @classmethod
    def open(cls, home: Path, *, kg: Path | None = None, weights: bool = True) -> Run:
        """Open an existing run; its graph may have been edited or moved since."""
        artefact = open_artefact(home)
        record = artefact.record("run.json", RunRecord)
        if record.format not in READABLE:
            raise VersionError(
                f"has format {record.format}; this version of kglm reads {' and '.join(map(str, READABLE))}",
                place=home,
                remedy=f"use kglm {record.kglm}, or train it again",
            )
        known = artefact.record("kg.json", GraphRecord)
        settings = parse_settings(artefact.read("config.toml"), home / "config.toml")
        vocabulary = Vocabulary.of_record(
            artefact.record("vocabulary.json", VocabularyRecord), home / "vocabulary.json"
        )
        counts = artefact.record("introductions.json", Introductions)
        graph = KnowledgeGraph.open(kg or _graph_of(home, known), whole=True)
        if graph.hash != known.hash:
            print(f"warning: {graph.store.path} is not the graph that {home} was trained with", file=sys.stderr)
        introductions = {node: n for id, n in counts.items() if (node := graph.find(id)) is not None}
        run = cls(home, settings, vocabulary, graph, introductions)
        run.artefact, run.record = artefact, record
        if run.vectors_hash != known.vectors:
            raise DataError(
                f"the vectors of {graph.store.path} are not those that this run was trained with",
                place=home,
                remedy="train it again, or give the graph with its old vectors as --kg",
            )
        if weights:
            load_into(run.model, run._tensors("model.safetensors"), home / "model.safetensors", grows=run.model.grows)
            run.model.eval()
        return run

    def _tensors(self, name: str) -> dict[str, Tensor]:
        return parse_tensors(self.artefact.read(name), self.home / name, REMEDY)

    def weights_of(self, start: Run) -> dict[str, Tensor]:
        """Initial weights from another run; weights that it lacks, or has for another graph, keep their own start."""
        own, other = self.model.state_dict(), start.model.state_dict()
        fits = {name for name, tensor in own.items() if name in other and other[name].shape == tensor.shape}
        if missing := [name for name in own if name.startswith("encoder.") and name not in fits]:
            raise ConfigError(
                f"its encoder has another {missing[0]}",
                place=start.home,
                remedy=f"start from a {self.settings.model} with the [encoder] settings that you want",
            )
        if self.vectors_hash != start.vectors_hash or not self.graph.same_numbers(start.graph):
            fits -= self.model.grows  # their rows are relations and entities
        if self.vectors_hash != start.vectors_hash:
            print(f"{start.home} was trained with other vectors: its relation weights are not used", file=sys.stderr)
        if fresh := sorted(set(own) - fits):
            print(f"{start.home} has no weights for {', '.join(fresh)}: they are initialised", file=sys.stderr)
        return {name: other[name] if name in fits else tensor for name, tensor in own.items()}

    def load_start(self) -> None:
        """Load the initial weights from another run, if this run was created with any."""
        if START in self.artefact:
            load_into(self.model, self._tensors(START), self.home / START)

    def on(self, graph: KnowledgeGraph) -> Run:
        """The run on an edited fork of its graph: the weights are shared, nothing is trained."""
        other = copy.copy(self)
        other.features = self.features.on(graph)
        other.model = self.model.on(other.features)
        return other

    @property
    def vectors_hash(self) -> str | None:
        """Identifies the trained vectors: any training changes those of the relations."""
        vectors = self.features.vectors
        return None if vectors is None else hashlib.blake2b(vectors.relation_RD.tobytes(), digest_size=8).hexdigest()

    def write_card(self, metrics: Sequence[EpochMetrics], sources: Sequence[str]) -> None:
        """Write the model card: the model, its training data, its validation loss."""
        best = min(metrics, key=lambda record: record.valid["nats"]) if metrics else None
        begun = f", from the weights of the run `{self.record.start}`" if self.record.start else ""
        lines = [
            f"# {self.settings.model}",
            "",
            f"Trained by kglm {__version__} on {', '.join(sources)}{begun}; facts from `{self.graph.store.path.name}`.",
            f"{len(self.vocabulary):,} words, |U| = {self.vocabulary.unknown_types:,}, "
            f"{sum(p.numel() for p in self.model.parameters()):,} parameters, seed {self.settings.train.seed}.",
            "",
        ]
        if best:
            columns = ("nats", *COMPONENTS)
            lines += ["Validation by annotated joint likelihood, nats a word (lower is better):", ""]
            lines += [f"| epoch | all | {' | '.join(COMPONENTS)} |", "|---" * (1 + len(columns)) + "|"]
            cells = [str(best.epoch), *(f"{best.valid[name]:.4f}" for name in columns)]
            lines.append(f"| {' | '.join(cells)} |")
        with atomic_file(self.home / "README.md") as stream:  # not in the manifest: people may edit it
            stream.write(("\n".join(lines) + "\n").encode())


def open_artefact(home: Path) -> Artefact:
    """The files of a run, with their checksums. Runs of earlier versions have none and open with a notice."""
    require_run(home)
    artefact = files_of_run(home)
    if artefact.manifest is None:
        print(
            f"note: {home} has no manifest.json (an earlier version made it, or the file was deleted), so damage would"
            " go unnoticed;"
            f" add them with: kglm doctor {home} --repair",
            file=sys.stderr,
        )
    return artefact


def graph_path(home: Path) -> Path:
    """Path of the graph that a run names."""
    return _graph_of(home, files_of_run(home, check=False).record("kg.json", GraphRecord))


def _graph_record(home: Path, graph: KnowledgeGraph, vectors: str | None) -> GraphRecord:
    """What `kg.json` stores; a graph inside or beside the run also gets a relative path."""
    kg = graph.store.path.absolute()
    home = home.absolute()
    beside = os.path.relpath(kg, home) if kg.is_relative_to(home.parent) else None
    return GraphRecord(str(kg), graph.hash, vectors, beside)


def _graph_of(home: Path, known: GraphRecord) -> Path:
    """Path of the graph: the relative one if it exists, else the absolute one."""
    if known.beside is not None and exists(beside := home / known.beside):
        return beside
    return Path(known.path)


@lru_cache(1 << 14)  # names of relations are split several times
def _words(text: str) -> list[str]:
    return tokenizer().words(text)


def read_for_training(paths: Sequence[Path]) -> list[Document]:
    """Read documents of several files and repair known quirks."""
    return [repair(document)[0] for path in paths for document in read_documents(path)]
