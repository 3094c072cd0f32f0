"""A run: the directory that holds a model and everything it takes to use it or to go on training it.

config.toml          all settings
vocabulary.json      words, and the number of unknown types
introductions.json   in how many training documents each entity is introduced
kg.json              which graph and vectors, and their hashes when training started
start.safetensors    the weights that training began with, if they are of another run
model.safetensors    the best weights so far
metrics.jsonl        one line an epoch
README.md            the model card
state/               what resuming needs
"""

from __future__ import annotations

import copy
import hashlib
import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from torch import Generator, Tensor

from kglm import __version__, config
from kglm.errors import ConfigError, DataError, VersionError
from kglm.files import atomic_file, exists, read_json, write_json
from kglm.kg.embedding.vectors import Vectors
from kglm.kg.graph import KnowledgeGraph
from kglm.model.base import COMPONENTS, ChunkModel
from kglm.model.entities import count_introductions
from kglm.model.graph_features import GraphFeatures
from kglm.model.table import ModelParts
from kglm.model.text import HistoryConfig
from kglm.runs.checkpoint import load_into, load_tensors, save_tensors
from kglm.runs.settings import RunConfig
from kglm.text.document import Document, read_documents
from kglm.text.repair import repair
from kglm.text.tokenizer import tokenizer
from kglm.text.vocabulary import Vocabulary

FORMAT = 3
READABLE = (2, 3)
"""Formats of runs that this version reads. In format 2 some weights have other names: see `checkpoint.RENAMED`."""
START = "start.safetensors"


class Run:
    """A model with its vocabulary and graph."""

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
        data, latent, kind = settings.data, settings.latent, settings.kind
        self.history = HistoryConfig(latent.facts, data.parent_window, data.mention_types)
        self.features = GraphFeatures.of(
            graph,
            vocabulary,
            _words,
            max_aliases=data.max_aliases,
            max_alias_tokens=data.max_alias_tokens,
            uses_cues=kind.uses_vectors and latent.facts != "none" and latent.reads_cues,
            vectors=Vectors.load(graph.store.path) if kind.uses_vectors else None,
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
    ) -> Run:
        """A new run; words and introductions are counted on the training documents.

        One that starts from another run has its words and weights instead.
        """
        vocabulary = start.vocabulary if start else Vocabulary.count(documents, min_count=settings.data.min_count)
        run = cls(home, settings, vocabulary, graph, count_introductions(documents, graph, settings.latent.facts))
        weights = run.weights_of(start) if start else None
        home.mkdir(parents=True, exist_ok=True)
        (home / START).unlink(missing_ok=True)
        if weights:
            save_tensors(home / START, weights)
        vocabulary.save(home / "vocabulary.json")
        write_json(home / "introductions.json", {graph.id(node): n for node, n in run.introductions.items()})
        known = {**_paths(home, graph.store.path), "hash": graph.hash, "vectors": run.vectors_hash}
        write_json(home / "kg.json", known)
        config.save(settings, home / "config.toml")
        write_json(home / "run.json", {"format": FORMAT, "kglm": __version__, "from": start and start.home.name})
        return run

    @classmethod
    def open(cls, home: Path, *, kg: Path | None = None, weights: bool = True) -> Run:
        """A run that is there; its graph may have been edited or moved since."""
        if not exists(home / "run.json"):
            raise DataError("is not a run", place=home, remedy="make one with: kglm train … --to RUN")
        version = read_json(home / "run.json")
        if version.get("format") not in READABLE:
            raise VersionError(
                f"has format {version.get('format')}; this version of kglm reads {' and '.join(map(str, READABLE))}",
                place=home,
                remedy=f"use kglm {version.get('kglm')}, or train it again",
            )
        known = read_json(home / "kg.json")
        graph = KnowledgeGraph.open(kg or _graph_of(home, known))
        if graph.hash != known["hash"]:
            print(f"warning: {graph.store.path} is not the graph that {home} was trained with", file=sys.stderr)
        settings = config.load(RunConfig, home / "config.toml")
        counts = {graph.find(id): n for id, n in read_json(home / "introductions.json").items()}
        introductions = {node: n for node, n in counts.items() if node is not None}
        run = cls(home, settings, Vocabulary.load(home / "vocabulary.json"), graph, introductions)
        if run.vectors_hash != known["vectors"]:
            raise DataError(
                f"the vectors of {graph.store.path} are not those that this run was trained with",
                place=home,
                remedy="train it again, or give the graph with its old vectors as --kg",
            )
        if weights:
            path = home / "model.safetensors"
            load_into(run.model, load_tensors(path), path, grows=run.model.grows)
            run.model.eval()
        return run

    def weights_of(self, start: Run) -> dict[str, Tensor]:
        """The weights of another run as this one's; what that one has not, or has for another graph, begins anew."""
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
            print(f"{start.home} was trained with other vectors: what it knows of them does not fit", file=sys.stderr)
        if anew := sorted(set(own) - fits):
            print(f"{start.home} has no weights for {', '.join(anew)}: these begin anew", file=sys.stderr)
        return {name: other[name] if name in fits else tensor for name, tensor in own.items()}

    def load_start(self) -> None:
        """Begin with the weights of another run, if this one was made to."""
        if (path := self.home / START).exists():
            load_into(self.model, load_tensors(path), path)

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

    def write_card(self, metrics: Sequence[dict[str, Any]], sources: Sequence[str]) -> None:
        """The model card: what this is, what it was trained on, how good it is."""
        best = min(metrics, key=lambda record: record["valid"]["nats"]) if metrics else None
        start = read_json(self.home / "run.json").get("from")
        begun = f", from the weights of the run `{start}`" if start else ""
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
            cells = [str(best["epoch"]), *(f"{best['valid'][name]:.4f}" for name in columns)]
            lines.append(f"| {' | '.join(cells)} |")
        with atomic_file(self.home / "README.md") as stream:
            stream.write(("\n".join(lines) + "\n").encode())


def _paths(home: Path, kg: Path) -> dict[str, str]:
    """How a run names its graph: one that lies in it or beside it may move with it."""
    home, kg = home.absolute(), kg.absolute()
    beside = {"beside": os.path.relpath(kg, home)} if kg.is_relative_to(home.parent) else {}
    return {"path": str(kg), **beside}


def _graph_of(home: Path, known: dict[str, str]) -> Path:
    """The graph of a run: where it lies from here, else where it was."""
    if "beside" in known and exists(beside := home / known["beside"]):
        return beside
    return Path(known["path"])


@lru_cache(1 << 14)  # names of relations are cut several times
def _words(text: str) -> list[str]:
    return tokenizer().words(text)


def read_for_training(paths: Sequence[Path]) -> list[Document]:
    """Documents of several files, their quirks mended."""
    return [repair(document)[0] for path in paths for document in read_documents(path)]
