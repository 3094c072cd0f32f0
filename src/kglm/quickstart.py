"""The whole story on the bundled world: a graph, texts, a corpus, vectors, three models.

story = Quickstart(Path("quickstart"), QuickstartConfig())
story.build(); story.write(); story.annotate(); story.embed(); story.train()

What is there already is not made again: one that was stopped goes on where it was. All of it can be done for another
graph and other texts by the verbs of the same names.
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
from kglm.errors import ConfigError, KglmError
from kglm.files import atomic_file, exists, read_json, write_json, writing
from kglm.kg.embedding.transe import EmbedReport, TransEConfig, embed_graph
from kglm.kg.embedding.vectors import vectors_directory
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import ImportReport, import_graph
from kglm.kg.literals.literal import is_literal
from kglm.parallel import available_cores, ordered_map
from kglm.progress import progress
from kglm.runs.settings import load_config
from kglm.train.start import train
from kglm.writing.articles import Writer
from kglm.writing.composer import WritingConfig
from kglm.writing.hold_out import HoldOut, has_unseen_word, hold_out, redraw_held_wordings, training_words
from kglm.writing.wordings import read_wordings

QUESTION_RELATIONS = ("P36", "P19", "P569", "P26", "P131", "P50")
"""The relations of the paper's questions: capital, place and date of birth, spouse, state of a city, author."""
ALWAYS_HELD = ("Q76",)
"""Barack Obama is asked about, so nothing is said of him."""
VALIDATION_ARTICLES = 20
"""Articles about further entities that are held out, by which training is judged as it goes on."""
AWD_LSTM_SETTINGS = ("train.schedule=constant", "train.learning_rate=0.01")
"""The plain model has to learn by heart what KGLM looks up: with steps that shrink it gets nowhere near as far."""
MODELS = ("kglm", "awd-lstm", "proposal")
BATCH = 40
"""So many entities a process writes about at a time."""


@dataclass(frozen=True)
class QuickstartConfig:
    """How much is done."""

    entities: int | None = None
    """Only the first so many are written or asked about; at least 20, of whom some are held_out."""
    texts: int = 14
    """About each entity that is written about, on average: more about those of whom there is more to say."""
    notes: float = 0.96
    """The share of them that are short."""
    held: float = 0.1
    """The share of the entities of which nothing is said, to ask about."""
    scored: int = 40
    """Articles about these, in wordings that are held out, whose perplexity is measured."""
    dim: int = 64
    """Of the vectors of entities."""
    epochs: int = 2
    settings: str = "quickstart"
    """Sizes of the models: a TOML file, or one that comes with the package."""
    seed: int = 0
    """Decides all that is drawn; 0 holds out the wordings that the file says, others draw these, too."""

    def __post_init__(self) -> None:
        for name in ("entities", "texts", "scored", "dim", "epochs"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}", remedy="give at least 1")
        if self.entities is not None and self.entities < 20:
            raise ConfigError(f"entities = {self.entities}", remedy="give at least 20: some are held_out to ask about")
        for name in ("notes", "held"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}", remedy="give a share below 1")


class Quickstart:
    """One folder in which all of it is done."""

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
        """Make the folder, or see that it is of the same settings; what cannot be trained is refused here."""
        for model in MODELS:
            load_config(self.config.settings, model, self._overrides(model))
        with writing(self.home):
            self.home.mkdir(parents=True, exist_ok=True)
        path, wanted = self.home / "quickstart.json", asdict(self.config)
        if exists(path) and read_json(path) != wanted:
            raise ConfigError(
                "was begun with other options", place=self.home, remedy="give the same, or another folder by --to"
            )
        write_json(path, wanted)

    def build(self) -> ImportReport | None:
        """The graph."""
        if exists(self.kg):
            return None
        names = [bundled.ENTITIES, bundled.RELATION_NAMES]
        return import_graph([bundled.FACTS], self.kg, entities=names, relations=[bundled.RELATIONS], replace=True)

    def write(self) -> None:
        """Texts to train on, texts to measure with, and questions, about whom the former never speak."""
        if exists(self.strange_questions):
            return
        writers = _writers(str(self.kg.absolute()), self.config)
        whole, held_out = writers.whole, writers.held_out
        jobs = (_Job(str(self.kg.absolute()), self.config, nodes) for nodes in _batches(held_out.written, BATCH))
        with atomic_file(self.texts) as stream, progress("writing", len(held_out.written), "entities") as advance:
            for lines in ordered_map(_write_texts, jobs, workers=available_cores(), loads=("spacy.lang.en",)):
                stream.write(lines)
                advance(min(BATCH, len(held_out.written)))
        drawn = random.Random(self.config.seed).sample(held_out.held, len(held_out.held))
        checked = max(1, min(VALIDATION_ARTICLES, len(drawn) // 3))
        for path, nodes in ((self.checked_texts, drawn[:checked]), (self.held_texts, drawn[checked:])):
            with atomic_file(path) as stream:
                for node in nodes[: self.config.scored]:
                    stream.write(_line(whole.record(node, wordings="held")))
        asked, said = questions(whole, held_out), training_words(whole.wordings, whole.graph)
        for path, strange in ((self.questions, False), (self.strange_questions, True)):
            with atomic_file(path) as stream:
                stream.write(b"".join(_line(row) for row in asked if has_unseen_word(row, said) == strange))

    def annotate(self) -> None:
        """The texts as linked documents, by the pipeline that annotates any others."""
        recipe = Recipe(str(self.kg.absolute()), AnnotateConfig())
        held = [(self.checked_texts, self.checked_corpus), (self.held_texts, self.held_corpus)]
        for source, to in [(self.texts, self.corpus), *held]:
            if not exists(to):
                annotate([source], to, recipe, workers=available_cores())

    def embed(self) -> EmbedReport | None:
        """TransE vectors."""
        if exists(vectors_directory(self.kg)):
            return None
        return embed_graph(self.kg, TransEConfig(dim=self.config.dim, epochs=60, seed=self.config.seed))

    def train(self) -> None:
        """KGLM in this process; beside it, where there is a second core, the plain model and the proposal."""
        left = [model for model in MODELS if not self._done(model)]
        others = [model for model in left if model != "kglm"] if available_cores() > 1 else []
        with beside([self._command(model) for model in others], self.home / "beside.log"):
            for model in left:
                if model not in others:
                    settings = load_config(self.config.settings, model, self._overrides(model))
                    resume = exists(self.run(model) / "run.json")
                    train(settings, [self.corpus], [self.checked_corpus], self.kg, self.run(model), resume=resume)

    def _overrides(self, model: str) -> list[str]:
        own = AWD_LSTM_SETTINGS if model == "awd-lstm" else ()
        return [f"train.epochs={self._epochs(model)}", f"train.seed={self.config.seed}", *own]

    def _epochs(self, model: str) -> int:
        """A proposal has learned what it can after half of them."""
        return (self.config.epochs + 1) // 2 if model == "proposal" else self.config.epochs

    def _done(self, model: str) -> bool:
        """Whether a model has read the corpus as often as it should."""
        path = self.run(model) / "metrics.jsonl"
        return exists(path) and len(path.read_text().splitlines()) >= self._epochs(model)

    def _command(self, model: str) -> list[str]:
        """A verb that trains one of the models."""
        words = ["train", model, "--config", self.config.settings, "--kg", self.kg, "--to", self.run(model)]
        words += ["--data", self.corpus, "--valid", self.checked_corpus]
        words += [word for override in self._overrides(model) for word in ("--set", override)]
        words += ["--resume"] if exists(self.run(model) / "run.json") else []
        return [sys.executable, "-m", "kglm", *map(str, words)]


class _Job(NamedTuple):
    """Entities to write about, in whatever process."""

    kg: str
    config: QuickstartConfig
    nodes: tuple[int, ...]


def _write_texts(job: _Job) -> bytes:
    """Texts, a line each."""
    writers = _writers(job.kg, job.config)
    lines = []
    for node in job.nodes:
        share = writers.training.relations(node) / writers.mean_relations
        for number in range(max(1, round(job.config.texts * share))):
            lines.append(_line(writers.training.record(node, number)))
    return b"".join(lines)


class _Writers(NamedTuple):
    """Who writes about everything, who writes what is trained on, and what the latter may not say."""

    whole: Writer
    training: Writer
    held_out: HoldOut
    mean_relations: float
    """How many relations of an entity there are words for, on average."""


@lru_cache(1)
def _writers(kg: str, config: QuickstartConfig) -> _Writers:
    """The same in every process."""
    graph, wordings = KnowledgeGraph.open(kg), read_wordings()
    if config.seed:
        wordings = redraw_held_wordings(wordings, config.seed)
    whole = Writer(graph, wordings, config.seed)
    topics = whole.topics()[: config.entities]
    held_out = hold_out(graph, topics, round(config.held * len(topics)), always=ALWAYS_HELD, seed=config.seed)
    notes = WritingConfig(note=config.notes)
    training = Writer(graph, wordings, config.seed, without=held_out.facts, config=notes)
    return _Writers(whole, training, held_out, mean(map(training.relations, held_out.written)))


def _batches(nodes: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    for start in range(0, len(nodes), size):
        yield tuple(nodes[start : start + size])


def questions(writer: Writer, held_out: HoldOut) -> list[dict[str, Any]]:
    """Questions after facts that have one answer, in wordings that are held out.

    Left out are those that ask for the year of a date alone: it is a part of the fact.
    """
    rows = writer.prompts(held_out.facts_of(QUESTION_RELATIONS), each=3, alone=True)
    return [row for row in rows if not (is_literal(row["tail_id"]) and row["expected_tail"].isdigit())]


@contextmanager
def beside(commands: Sequence[Sequence[str]], log: Path) -> Iterator[None]:
    """Run commands one after another in a process beside this one; leave when they are done too."""
    running: list[subprocess.Popen[bytes]] = []
    failed: list[int] = []
    stopped = threading.Event()

    def work() -> None:
        with log.open("ab") as output:
            for command in commands:
                if stopped.is_set():
                    return
                running.append(subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL))
                if code := running[-1].wait():
                    failed.append(code)
                    return

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
        if thread.is_alive():
            with progress("waiting for the models that are trained beside it", None, "seconds") as advance:
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
        raise KglmError(f"a training beside this one left with {failed[0]}", place=log, remedy="read its last lines")


def _line(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False) + "\n").encode()
