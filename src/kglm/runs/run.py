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
from kglm.model.aliases import AliasTable
from kglm.model.annotation import AnnotationEncoder, EncodedDocument
from kglm.model.chunk import ChunkBuilder
from kglm.model.cues import Cues
from kglm.model.entities import count_introductions, entity_table, grown
from kglm.model.parts import COMPONENTS, ChunkModel, LatentModel
from kglm.model.table import Parts
from kglm.progress import progress
from kglm.runs.checkpoint import load_into, load_tensors, save_tensors
from kglm.runs.settings import RunConfig
from kglm.text.document import Document, read_documents
from kglm.text.repair import repair
from kglm.text.tokenizer import tokenizer
from kglm.text.vocabulary import Vocabulary

FORMAT = 2
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
        limits = {"max_aliases": settings.data.max_aliases, "max_alias_tokens": settings.data.max_alias_tokens}
        uses_vectors = settings.kind.uses_vectors
        uses_cues = uses_vectors and settings.latent.facts != "none" and settings.latent.reads_cues
        self._use(graph, AliasTable(graph, vocabulary, _words, **limits), Cues(graph, _words) if uses_cues else None)
        self.vectors = Vectors.load(graph.store.path) if uses_vectors else None
        self.model = self._build()

    def _use(self, graph: KnowledgeGraph, aliases: AliasTable, cues: Cues | None) -> None:
        self.graph, self.aliases = graph, aliases
        data = self.settings.data
        self.encoder = AnnotationEncoder(
            graph,
            self.vocabulary,
            aliases,
            mention_types=data.mention_types,
            parent_window=data.parent_window,
            facts=self.settings.latent.facts,
            cues=cues,
        )
        self.builder = ChunkBuilder(
            graph, aliases, parent_window=data.parent_window, introductions=self.introductions, cues=cues
        )

    def _build(self) -> ChunkModel:
        settings, entities = self.settings, None
        if self.vectors is not None:
            vectors = self.vectors.for_graph(self.graph)
            entities = entity_table(self.graph, vectors, self.vocabulary, _words, self.introductions)
        parts = Parts(settings.encoder, settings.latent, len(self.vocabulary), entities)
        return settings.kind.build(parts, Generator().manual_seed(settings.train.seed))

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
        if version.get("format") != FORMAT:
            raise VersionError(
                f"is a run of format {version.get('format')}, this version of kglm reads {FORMAT}",
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
        """The run on a fork of its graph, with edits that are not stored: weights are shared, nothing is trained."""
        other = copy.copy(self)
        cues = self.encoder.cues
        other._use(graph, self.aliases.on(graph, len(self.graph)), None if cues is None else cues.on(graph))
        if isinstance(self.model, LatentModel) and self.vectors is not None:
            vectors = self.vectors.for_graph(graph)
            table = grown(self.model.latent.entities, graph, vectors, self.vocabulary, _words)
            other.model = self.model.on(table, len(vectors.entity_RD))
        return other

    @property
    def vectors_hash(self) -> str | None:
        """Tells trained vectors apart: relations move whenever anything does."""
        if self.vectors is None:
            return None
        return hashlib.blake2b(self.vectors.relation_RD.tobytes(), digest_size=8).hexdigest()

    def encode(
        self, documents: Sequence[Document], title: str, *, counted: bool = False, shown: bool = True
    ) -> list[EncodedDocument]:
        """Documents as numbers; `counted` are those that the introductions were counted on."""
        encoded = []
        total = sum(len(document.tokens) for document in documents)
        with progress(title, total, "tokens", shown=shown) as advance:
            for document in documents:
                result = self.encoder.encode(document)
                result.counted = counted
                encoded.append(result)
                advance(len(document.tokens))
        return encoded

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
