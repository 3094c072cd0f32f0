"""All steps on the bundled world: build the graph, write texts, annotate them, embed the entities, train three models.

quickstart = Quickstart(Path("quickstart"), QuickstartConfig())
quickstart.build(); quickstart.write(); quickstart.annotate(); quickstart.embed(); quickstart.train()

A step whose output exists is skipped, so an interrupted quickstart continues where it stopped. The commands `kglm kg
import`, `annotate`, `kg embed` and `train` do the same steps for another graph and other texts.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from kglm import bundled
from kglm.annotate.annotator import AnnotateConfig
from kglm.annotate.pipeline import Recipe, annotate
from kglm.config import check_range
from kglm.errors import ConfigError, KglmError
from kglm.files import atomic_file, exists, read_record, write_json, writing
from kglm.kg.embedding.transe import EmbedReport, TransEConfig, embed_graph
from kglm.kg.embedding.vectors import vectors_directory
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import ImportReport, import_graph
from kglm.kg.literals.literal import is_literal
from kglm.parallel import available_cores, ordered_map
from kglm.progress import progress
from kglm.runs.settings import MAX_COUNT, MAX_SEED, load_config
from kglm.train.start import train
from kglm.writing.articles import Writer
from kglm.writing.composer import WritingConfig
from kglm.writing.hold_out import HoldOut, has_unseen_word, hold_out, redraw_held_wordings, training_words
from kglm.writing.wordings import read_wordings

QUESTION_RELATIONS = ("P36", "P19", "P569", "P26", "P131", "P50")
"""Relations of the paper's fact completion: capital, place and date of birth, spouse, state of a city, author."""
ALWAYS_HELD = ("Q76",)
"""Entities held out with every seed: Barack Obama is the example in the documentation."""
VALIDATION_ARTICLES = 20
"""Number of articles about held-out entities that are the validation data of the training."""
AWD_LSTM_SETTINGS = ("train.schedule=constant", "train.learning_rate=0.01")
"""The AWD-LSTM must memorise facts that KGLM looks up: with a decaying learning rate it learns far fewer."""
MODELS = ("kglm", "awd-lstm", "proposal")
AGAIN = "remove it, if the options are those that the quickstart was begun with"
BATCH = 40
"""Number of entities in one job of a worker process."""


@dataclass(frozen=True)
class QuickstartConfig:
    """Sizes of the quickstart."""

    entities: int | None = None
    """Number of entities to use, at least 20, because some are held out; None for all."""
    texts: int = 14
    """Mean number of training texts per entity; an entity with more relations gets more."""
    notes: float = 0.96
    """Share of the training texts that are short notes instead of articles."""
    held: float = 0.1
    """Share of the entities that are held out: never mentioned in the training texts, asked about in the questions."""
    scored: int = 40
    """Maximum number of articles about held-out entities, in held-out wordings, to measure perplexity with."""
    dim: int = 64
    """Dimension of the entity vectors."""
    epochs: int = 2
    settings: str = "quickstart"
    """Settings of the models: a TOML file, or the name of one in the package."""
    seed: int = 0
    """Random seed; 0 holds out the wordings that the file of wordings marks as held, another seed draws them."""

    @property
    def is_trial(self) -> bool:
        """True if the model learns from less than by default, so that it answers worse."""
        default = QuickstartConfig()
        fewer = self.texts < default.texts or self.epochs < default.epochs
        return self.entities is not None or fewer or self.settings != default.settings

    @property
    def home(self) -> Path:
        """Where to write if no directory is given."""
        return bundled.TRIAL if self.is_trial else bundled.QUICKSTART

    def __post_init__(self) -> None:
        for name in ("entities", "texts", "scored", "dim", "epochs"):
            check_range(name, getattr(self, name), 1, MAX_COUNT)
        check_range("seed", self.seed, 0, MAX_SEED)
        if self.entities is not None and self.entities < 20:
            raise ConfigError(f"entities = {self.entities}", remedy="give at least 20: some are held out")
        for name in ("notes", "held"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}", remedy="give a share below 1")


class Quickstart:
    """The steps of a quickstart and the files in its directory."""

    def __init__(self, home: Path, config: QuickstartConfig | None = None) -> None:
        self.home = home
        self.config = config or QuickstartConfig()
        self.kg = home / "world.kg"
        self.texts, self.corpus = home / "texts.jsonl", home / "corpus.jsonl"
        self.checked_texts, self.checked_corpus = home / "checked-texts.jsonl", home / "checked-corpus.jsonl"
        self.held_texts, self.held_corpus = home / "held-texts.jsonl", home / "held-corpus.jsonl"
        self.questions, self.strange_questions = home / "questions.jsonl", home / "strange-questions.jsonl"

    def run(self, model: str) -> Path:
        """The directory of a run."""
        return self.home / model

    def begin(self) -> None:
        """Create the directory, or check that it has the same settings; refuse invalid model settings early."""
        for model in MODELS:
            load_config(self.config.settings, model, self._overrides(model))
        if self.config.is_trial and self.home.absolute() == bundled.QUICKSTART.absolute():
            raise ConfigError(
                "is for the full quickstart, whose model kglm complete uses by default; this is a smaller one",
                place=self.home,
                remedy=f"leave out --to to write to {bundled.TRIAL}, or give another folder",
            )
        with writing(self.home):
            self.home.mkdir(parents=True, exist_ok=True)
        path, wanted = self.home / "quickstart.json", asdict(self.config)
        if exists(path) and read_record(path, dict[str, int | float | str | None], AGAIN) != wanted:
            raise ConfigError(
                "was begun with other options", place=self.home, remedy="give the same, or another directory with --to"
            )
        write_json(path, wanted)

    def build(self) -> ImportReport | None:
        """Import the bundled graph."""
        if exists(self.kg):
            return None
        facts, entities, names, relations = map(
            bundled.checked, (bundled.FACTS, bundled.ENTITIES, bundled.RELATION_NAMES, bundled.RELATIONS)
        )
        return import_graph([facts], self.kg, entities=[entities, names], relations=[relations], replace=True)

    def write(self) -> None:
        """Write the training texts, and validation texts, test texts and questions about held-out entities."""
        if exists(self.strange_questions):
            return
        writers = _writers(str(self.kg.absolute()), self.config)
        whole, held_out = writers.whole, writers.held_out
        jobs = (_Job(str(self.kg.absolute()), self.config, nodes) for nodes in _batches(held_out.written, BATCH))
        with atomic_file(self.texts) as stream, progress("writing", len(held_out.written), "entities") as advance:
            for lines in ordered_map(_write_texts, jobs, workers=available_cores(), preload=("spacy.lang.en",)):
                stream.write(lines)
                advance(min(BATCH, len(held_out.written)))
        shuffled = random.Random(self.config.seed).sample(held_out.held, len(held_out.held))
        checked = max(1, min(VALIDATION_ARTICLES, len(shuffled) // 3))
        for path, nodes in ((self.checked_texts, shuffled[:checked]), (self.held_texts, shuffled[checked:])):
            with atomic_file(path) as stream:
                for node in nodes[: self.config.scored]:
                    stream.write(_line(whole.record(node, wordings="held")))
        rows, seen = questions(whole, held_out), training_words(whole.wordings, whole.graph)
        for path, unseen in ((self.questions, False), (self.strange_questions, True)):
            with atomic_file(path) as stream:
                stream.write(b"".join(_line(row) for row in rows if has_unseen_word(row, seen) == unseen))

    def annotate(self) -> None:
        """Annotate the texts with the same pipeline as `kglm annotate`."""
        recipe = Recipe(str(self.kg.absolute()), AnnotateConfig())
        held = [(self.checked_texts, self.checked_corpus), (self.held_texts, self.held_corpus)]
        for source, to in [(self.texts, self.corpus), *held]:
            if not exists(to):
                annotate([source], to, recipe, workers=available_cores())

    def embed(self) -> EmbedReport | None:
        """Train TransE vectors."""
        if exists(vectors_directory(self.kg)):
            return None
        return embed_graph(self.kg, TransEConfig(dim=self.config.dim, epochs=60, seed=self.config.seed))

    def train(self) -> None:
        """Train KGLM in this process; with a second core, train the AWD-LSTM and the proposal in another process."""
        unfinished = [model for model in MODELS if not self._is_done(model)]
        others = [model for model in unfinished if model != "kglm"] if available_cores() > 1 else []
        with run_in_background([self._command(model) for model in others], self.home / "beside.log"):
            for model in unfinished:
                if model not in others:
                    settings = load_config(self.config.settings, model, self._overrides(model))
                    resume = exists(self.run(model) / "run.json")
                    train(settings, [self.corpus], [self.checked_corpus], self.kg, self.run(model), resume=resume)

    def _overrides(self, model: str) -> list[str]:
        own = AWD_LSTM_SETTINGS if model == "awd-lstm" else ()
        return [f"train.epochs={self._epochs(model)}", f"train.seed={self.config.seed}", *own]

    def _epochs(self, model: str) -> int:
        """Number of epochs; the proposal needs only half of them."""
        return (self.config.epochs + 1) // 2 if model == "proposal" else self.config.epochs

    def _is_done(self, model: str) -> bool:
        """True if the training of a model is finished."""
        path = self.run(model) / "metrics.jsonl"
        return exists(path) and len(path.read_bytes().splitlines()) >= self._epochs(model)

    def _command(self, model: str) -> list[str]:
        """Command line that trains one of the models."""
        words = ["train", model, "--config", self.config.settings, "--kg", self.kg, "--to", self.run(model)]
        words += ["--data", self.corpus, "--valid", self.checked_corpus]
        words += [word for override in self._overrides(model) for word in ("--set", override)]
        words += ["--resume"] if exists(self.run(model) / "run.json") else []
        return [sys.executable, "-m", "kglm", *map(str, words)]


class _Job(NamedTuple):
    """Entities that one worker process writes about."""

    kg: str
    config: QuickstartConfig
    nodes: tuple[int, ...]


def _write_texts(job: _Job) -> bytes:
    """Texts about the entities of a job, one JSON record per line."""
    writers = _writers(job.kg, job.config)
    lines = []
    for node in job.nodes:
        share = writers.training.relations(node) / writers.mean_relations
        for number in range(max(1, round(job.config.texts * share))):
            lines.append(_line(writers.training.record(node, number)))
    return b"".join(lines)


class _Writers(NamedTuple):
    """A writer with all facts, a writer without the held-out facts, and what is held out."""

    whole: Writer
    training: Writer
    held_out: HoldOut
    mean_relations: float
    """Mean number of relations of an entity that have wordings."""


@lru_cache(1)
def _writers(kg: str, config: QuickstartConfig) -> _Writers:
    """Writers for a graph; every process creates the same ones."""
    graph, wordings = KnowledgeGraph.open(kg, whole=True), read_wordings()
    if config.seed:
        wordings = redraw_held_wordings(wordings, config.seed)
    whole = Writer(graph, wordings, config.seed)
    topics = whole.topics()[: config.entities]
    held_out = hold_out(graph, topics, round(config.held * len(topics)), always=ALWAYS_HELD, seed=config.seed)
    notes = WritingConfig(note=config.notes)
    training = Writer(graph, wordings, config.seed, excluded=held_out.facts, config=notes)
    return _Writers(whole, training, held_out, mean(map(training.relations, held_out.written)))


def _batches(nodes: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    for start in range(0, len(nodes), size):
        yield tuple(nodes[start : start + size])


def questions(writer: Writer, held_out: HoldOut) -> list[dict[str, Any]]:
    """Questions with one answer about facts of held-out entities, in held-out wordings.

    Questions for only the year of a date are left out: the year is not the whole fact.
    """
    rows = writer.prompts(held_out.facts_of(QUESTION_RELATIONS), per_fact=3, single_answer=True)
    return [row for row in rows if not (is_literal(row["tail_id"]) and row["expected_tail"].isdigit())]


@contextmanager
def run_in_background(commands: Sequence[Sequence[str]], log: Path) -> Iterator[None]:
    """Run commands one after another in another process during the block, then wait for them."""
    running: list[subprocess.Popen[bytes]] = []
    failed: list[int] = []
    stopped = threading.Event()

    def work() -> None:
        with log.open("ab") as output:
            for command in commands:
                if stopped.is_set():
                    return
                process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
                running.append(process)
                if stopped.is_set():  # set after the check above: the process may be missing from the loop below
                    process.terminate()
                if code := process.wait():
                    failed.append(code)
                    return

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
        if thread.is_alive():
            with progress("waiting for the training in the background", None, "seconds") as advance:
                while thread.is_alive():
                    thread.join(1.0)
                    advance()
    finally:
        stopped.set()
        for process in running:
            if process.poll() is None:
                process.terminate()
        thread.join()
    if failed:
        raise KglmError(f"a background training exited with code {failed[0]}", place=log, remedy="read its last lines")


def _line(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False) + "\n").encode()
