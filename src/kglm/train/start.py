"""Train a run from files, as `kglm train` does, in one process or under `torchrun`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from kglm import config
from kglm.errors import ConfigError, KglmError
from kglm.files import digest_of, locked_directory, writing
from kglm.kg.graph import KnowledgeGraph
from kglm.runs.checkpoint import StateDirectory
from kglm.runs.run import Run, read_for_training
from kglm.runs.settings import RunConfig
from kglm.text.document import Document
from kglm.train.chunks import ChunkBuilder
from kglm.train.encoding import DocumentEncoder, EncodedDocument, unused_mentions
from kglm.train.hidden import Hiding
from kglm.train.loop import Trainer
from kglm.train.processes import World, joined
from kglm.train.threads import choose_threads


def train(
    settings: RunConfig,
    data: Sequence[Path],
    valid: Sequence[Path],
    kg: Path,
    to: Path,
    *,
    start: Path | None = None,
    resume: bool = False,
) -> list[dict[str, Any]]:
    """Train a model in the run directory `to` and return its metrics by epoch; `resume` continues an earlier run.

    `start` is a run that provides the initial vocabulary and weights. Under `torchrun` every process calls this.
    """
    with joined(settings.train.device) as world, _only_trainer(to, world):
        exists = (to / "run.json").exists()
        world.wait()
        if exists and resume and start is not None:
            raise ConfigError(
                "is a run already, which --from cannot change", place=to, remedy="leave out --from to resume it"
            )
        if exists and not resume:
            remedy = "continue it with --resume, or choose another directory"
            raise KglmError("is a run already", place=to, remedy=remedy)
        documents = [read_for_training(paths) for paths in (data, valid)]
        for kind, found in zip(("training", "validation"), documents, strict=True):
            if not any(len(document.tokens) > 1 for document in found):
                raise KglmError(f"no {kind} document has a word", remedy="give documents with text")
        if exists:
            run = _open_existing(to, settings, kg, documents, world)
        else:
            run = _create(to, settings, kg, documents, world, start)
        run.load_start()
        torch.set_num_threads(_threads(run, world))
        encoder = DocumentEncoder.of(run)
        hiding, shown = Hiding(settings.train.hide_facts, settings.train.seed), world.leads
        encoded = [
            encoder.encode_all(documents[0], "encoding training documents", counted=True, hiding=hiding, shown=shown),
            encoder.encode_all(documents[1], "encoding validation documents", shown=shown),
        ]
        if world.leads:
            _report_unused_mentions(encoded[0])
        trainer = Trainer(run.model, ChunkBuilder.of(run), encoded[0], encoded[1], settings.train, to, world=world)
        if exists:
            trainer.resume()
        try:
            return trainer.fit()
        finally:  # an interrupted run is usable too
            if world.leads and trainer.metrics:
                run.write_card(trainer.metrics, [path.name for path in data])


@contextmanager
def _only_trainer(to: Path, world: World) -> Iterator[None]:
    """Keep other processes from training the same run during the block."""
    states, failure = to / "state", None
    with ExitStack() as stack:
        if world.leads:
            try:
                with writing(to):
                    states.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked_directory(states, "another process is training this run"))
            except KglmError as error:
                failure = error
        _stop_all(failure, world)
        try:
            yield
        finally:
            if world.leads:
                with suppress(OSError):  # they are not empty, unless training never began
                    states.rmdir()
                    to.rmdir()


def _stop_all(failure: KglmError | None, world: World) -> None:
    """If the leading process failed, end all of them; only the leader says why."""
    [failed] = world.any(failure is not None)
    if failure is not None:
        raise failure
    if failed:
        raise SystemExit(2)


def _create(
    to: Path, settings: RunConfig, kg: Path, documents: list[list[Document]], world: World, start: Path | None
) -> Run:
    """Create the run in the leading process and open it in the others; if that fails, only the leader prints why."""
    failure: KglmError | None = None
    if world.leads:
        try:
            old = None if start is None else Run.open(start)
            threads = None if settings.train.threads or world.size > 1 else choose_threads()
            data = (digest(documents[0]), digest(documents[1]))
            run = Run.create(
                to, settings, KnowledgeGraph.open(kg, whole=True), documents[0], old, data=data, threads=threads
            )
        except KglmError as error:
            failure = error
    _stop_all(failure, world)
    return run if world.leads else Run.open(to, kg=kg, weights=False)


def _open_existing(to: Path, settings: RunConfig, kg: Path, documents: list[list[Document]], world: World) -> Run:
    """Open a run to resume it; an error if settings or documents differ from those it was started with."""
    run = Run.open(to, kg=kg, weights=False)
    if not run.settings.same_run(settings):
        raise ConfigError("was started with other settings", place=to, remedy="give the same --config and --set")
    if run.record.data not in (None, (digest(documents[0]), digest(documents[1]))):
        raise ConfigError("was started with other documents", place=to, remedy="give the same --data and --valid")
    StateDirectory(to / "state").load_state()  # an error if it cannot be read: before anything changes
    if world.leads and settings != run.settings:
        with run.artefact.update() as writer:
            writer.bytes("config.toml", config.to_toml(settings))
    run.settings = settings
    return run


def digest(documents: Sequence[Document]) -> str:
    """Hash of the documents' titles, words and mentions."""
    return digest_of(
        part
        for document in documents
        for part in (
            document.title,
            " ".join(document.tokens),
            " ".join(f"{mention.start} {mention.end} {mention.id}" for mention in document.mentions),
        )
    )


def _report_unused_mentions(documents: Sequence[EncodedDocument]) -> None:
    """Print how many annotated mentions training cannot use, and why."""
    counts = unused_mentions(documents)
    starts = sum(len(document.starts) for document in documents)
    meanings = {
        "unknown_entity": "are of entities outside the graph: trained as plain words",
        "new_literal": "are of dates or quantities that no fact leads to: trained as plain words",
        "unexplained": "have no fact in the graph: type and words are trained, the entity is not",
    }
    for name, meaning in meanings.items():
        if counts[name]:
            total = starts + counts["unknown_entity"] + counts["new_literal"]
            print(f"{counts[name]:,} of {total:,} mentions {meaning}", file=sys.stderr)


def _threads(run: Run, world: World) -> int:
    """Number of threads: the setting, or the number measured when the run started, so that rounding stays the same."""
    if run.settings.train.threads:
        return run.settings.train.threads
    return 1 if world.size > 1 else run.record.threads or choose_threads()
