"""From files to a trained run: what `kglm train` does, alone or under `torchrun`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from kglm import config
from kglm.errors import ConfigError, KglmError
from kglm.files import digest_of, read_json, write_json
from kglm.kg.graph import KnowledgeGraph
from kglm.runs.run import Run, read_for_training
from kglm.runs.settings import RunConfig
from kglm.text.document import Document
from kglm.train.chunks import ChunkBuilder
from kglm.train.encoding import DocumentEncoder, EncodedDocument, unused_mentions
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
    """Train a model into the run directory `to`; with `resume`, go on where an earlier start was.

    `start` is a run whose words and weights it begins with. Under `torchrun` every process calls this, and they train
    together.
    """
    with joined(settings.train.device) as world:
        exists = (to / "run.json").exists()
        world.wait()
        if exists and resume and start is not None:
            raise ConfigError("was begun already", place=to, remedy="leave out --from: it knows what it began with")
        if exists and not resume:
            remedy = "go on with it by --resume, or choose another directory"
            raise KglmError("is a run already", place=to, remedy=remedy)
        documents = [read_for_training(paths) for paths in (data, valid)]
        for kind, found in zip(("training", "validation"), documents, strict=True):
            if not any(len(document.tokens) > 1 for document in found):
                raise KglmError(f"no {kind} document has a word", remedy="give documents with text")
        if exists:
            run = _taken_up(to, settings, kg, documents, world)
        else:
            run = _started(to, settings, kg, documents, world, start)
        run.load_start()
        torch.set_num_threads(_threads(run, world))
        encoder = DocumentEncoder.of(run)
        encoded = [
            encoder.encode_all(found, f"encoding {kind} documents", counted=kind == "training", shown=world.leads)
            for kind, found in zip(("training", "validation"), documents, strict=True)
        ]
        if world.leads:
            _tell_losses(encoded[0])
        trainer = Trainer(run.model, ChunkBuilder.of(run), encoded[0], encoded[1], settings.train, to, world=world)
        if exists:
            trainer.resume()
        try:
            return trainer.fit()
        finally:  # a run that was interrupted can be used too
            if world.leads and trainer.metrics:
                run.write_card(trainer.metrics, [path.name for path in data])


def _started(
    to: Path, settings: RunConfig, kg: Path, documents: list[list[Document]], world: World, start: Path | None
) -> Run:
    """The leader makes the run, the others open it; where it cannot, they leave without a word of their own."""
    failure: KglmError | None = None
    if world.leads:
        try:
            old = None if start is None else Run.open(start)
            run = Run.create(to, settings, KnowledgeGraph.open(kg), documents[0], old)
            write_json(to / "run.json", read_json(to / "run.json") | {"data": [digest(found) for found in documents]})
        except KglmError as error:
            failure = error
    [failed] = world.any(failure is not None)
    if failure is not None:
        raise failure
    if failed:
        raise SystemExit(2)
    return run if world.leads else Run.open(to, kg=kg, weights=False)


def _taken_up(to: Path, settings: RunConfig, kg: Path, documents: list[list[Document]], world: World) -> Run:
    run = Run.open(to, kg=kg, weights=False)
    if not run.settings.same_run(settings):
        raise ConfigError("was started with other settings", place=to, remedy="give the same --config and --set")
    if read_json(to / "run.json").get("data") != [digest(found) for found in documents]:
        raise ConfigError("was started with other documents", place=to, remedy="give the same --data and --valid")
    run.settings = settings
    if world.leads:
        config.save(settings, to / "config.toml")
    return run


def digest(documents: Sequence[Document]) -> str:
    """Tells corpora apart, by titles, words and entities."""
    return digest_of(
        part
        for document in documents
        for part in (
            document.title,
            " ".join(document.tokens),
            " ".join(f"{mention.start} {mention.end} {mention.id}" for mention in document.mentions),
        )
    )


def _tell_losses(documents: Sequence[EncodedDocument]) -> None:
    """Say what of the annotation cannot be used."""
    counts = unused_mentions(documents)
    starts = sum(len(document.starts) for document in documents)
    meanings = {
        "unknown_entity": "are of entities that the graph does not hold: they count as plain words",
        "new_literal": "are of dates or quantities that no fact leads to: they count as plain words",
        "unexplained": "list no fact that the graph holds: type and word are trained, the entity is not",
    }
    for name, meaning in meanings.items():
        if counts[name]:
            total = starts + counts["unknown_entity"] + counts["new_literal"]
            print(f"{counts[name]:,} of {total:,} mentions {meaning}", file=sys.stderr)


def _threads(run: Run, world: World) -> int:
    """As set; or as measured when the run began, because another number would round differently."""
    if run.settings.train.threads:
        return run.settings.train.threads
    if world.size > 1:
        return 1
    path = run.home / "run.json"
    about = read_json(path)
    if "threads" not in about:
        about["threads"] = choose_threads()
        write_json(path, about)
    return int(about["threads"])
