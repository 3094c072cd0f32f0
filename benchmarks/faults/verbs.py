"""The commands that write files, as the attacks run them: how each starts, and how to compare what it made."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults import own_samples
from benchmarks.faults.world import make_world

from kglm import bundled
from kglm.doctor import examine

LEFTOVERS = (".tmp", ".gone", ".partial", ".lock", ".new", "-journal", "-wal", "-shm", ".parts")
EDIT = "Q76 P569 2013-03-21"
KGLM = ("-m", "kglm")
TIMEOUT = 300


@dataclass(frozen=True)
class Verb:
    """A command, run in a directory with its input; running it again must finish what a killed run began."""

    name: str
    command: Callable[[Path], list[str]]
    result: Callable[[Path], str]
    """Digest of what the command made; equal for equal results."""
    target: Callable[[Path], Path]
    """Artefact for `kglm doctor`."""
    prepare: Callable[[Path, Path], None]
    """Copy the input from the world into the directory of one attempt."""


def run(command: list[str], home: Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments to its end."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=home,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def left_over(home: Path) -> list[str]:
    """Files that only a running process may have."""
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.name.endswith(LEFTOVERS))


def sound(path: Path) -> str | None:
    """First error that doctor finds, or None."""
    errors = [finding for finding in examine(path) if finding.level == "error"]
    return f"{errors[0].place}: {errors[0].what}" if errors else None


def _copy_graph(world: Path, home: Path) -> None:
    for path in world.glob("world.kg*"):
        (shutil.copytree if path.is_dir() else shutil.copy)(path, home / path.name)


def _bytes(*paths: Path) -> str:
    return hashlib.blake2b(b"".join(path.read_bytes() for path in paths), digest_size=8).hexdigest()


def _facts(path: Path) -> str:
    connection = sqlite3.connect(path)
    rows = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in ("entity", "name", "relation", "fact")]
    connection.close()
    return hashlib.blake2b(repr(rows).encode(), digest_size=8).hexdigest()


def _newest(folder: Path) -> Path:
    return max((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))


def _import(home: Path) -> list[str]:
    names = ["--entities", str(bundled.ENTITIES), "--relations", str(bundled.RELATIONS)]
    return [*KGLM, "kg", "import", str(bundled.FACTS), *names, "--to", str(home / "new.kg"), "--workers", "1"]


_EMBED = """
import sys
from kglm.errors import KglmError
from kglm.kg.embedding import transe
transe.ROUND_PAIRS = 1 << 12
try:
    transe.embed_graph(sys.argv[1], transe.TransEConfig(dim=8, epochs=3, seed=1, save_every=0))
except KglmError as error:
    sys.exit(f"error: {error}")
"""
"""As `kglm kg embed`, but its state is saved after every few triples, so that a fault can meet a saved state."""


def _import_own(home: Path) -> list[str]:
    tables = [str(home / name) for name in ("works.csv", "staff.csv", "more.jsonl")]
    return [*KGLM, "kg", "import", *tables, "--type", "birth date=date:dmy", "--to", str(home / "new.kg")]


def _prepare_own(_: Path, home: Path) -> None:
    (home / "works.csv").write_bytes(own_samples.WIDE)
    (home / "staff.csv").write_bytes(own_samples.TRIPLES)
    (home / "more.jsonl").write_bytes(own_samples.OBJECTS)


def _prepare_bulk(world: Path, home: Path) -> None:
    _copy_graph(world, home)
    rows = [f"set,Q76,favourite number {k},{k} km" for k in range(40)] + ["set,Q142,motto,Liberté", "set,Q76,P19,Paris"]
    (home / "edits.csv").write_text("action,head,relation,tail\n" + "\n".join(rows) + "\n")


def _embed(home: Path) -> list[str]:
    return ["-c", _EMBED, str(home / "world.kg")]


def _annotate(home: Path) -> list[str]:
    return [
        *KGLM,
        "annotate",
        str(home / "texts.jsonl"),
        "--kg",
        str(home / "world.kg"),
        "--to",
        str(home / "docs.jsonl"),
    ]


def _train(home: Path) -> list[str]:
    data = str(home / "train.jsonl")
    settings = ["epochs=2", "rows=10", "length=20", "threads=1", "checkpoint_minutes=0.0001"]
    sets = [part for setting in settings for part in ("--set", f"train.{setting}")]
    files = ["--data", data, "--valid", data, "--kg", str(home / "world.kg"), "--to", str(home / "new-run")]
    return [*KGLM, "train", "kglm", "--config", "tiny", *files, *sets, "--resume"]


def _prepare_texts(world: Path, home: Path) -> None:
    _copy_graph(world, home)
    shutil.copy(world / "texts.jsonl", home)


def _prepare_texts_again(world: Path, home: Path) -> None:
    """As before, with the output of other texts, which `--force` replaces."""
    _prepare_texts(world, home)
    shutil.copy(world / "short.jsonl", home / "docs.jsonl")


def _prepare_training(world: Path, home: Path) -> None:
    _copy_graph(world, home)
    shutil.copy(world / "short.jsonl", home / "train.jsonl")


VERBS = {
    verb.name: verb
    for verb in (
        Verb("import", _import, lambda home: _facts(home / "new.kg"), lambda home: home / "new.kg", lambda *_: None),
        Verb(
            "import-own", _import_own, lambda home: _facts(home / "new.kg"), lambda home: home / "new.kg", _prepare_own
        ),
        Verb(
            "embed",
            _embed,
            lambda home: _bytes(*sorted(_newest(home / "world.kg.vectors").glob("*.npy"))),
            lambda home: home / "world.kg",
            _copy_graph,
        ),
        Verb(
            "annotate",
            _annotate,
            lambda home: _bytes(home / "docs.jsonl"),
            lambda home: home / "docs.jsonl",
            _prepare_texts,
        ),
        Verb(
            "train",
            _train,
            lambda home: _bytes(home / "new-run" / "model.safetensors", home / "new-run" / "metrics.jsonl"),
            lambda home: home / "new-run",
            _prepare_training,
        ),
        Verb(
            "edit",
            lambda home: [*KGLM, "kg", "edit", str(home / "world.kg"), "--set", EDIT],
            lambda home: _facts(home / "world.kg"),
            lambda home: home / "world.kg",
            _copy_graph,
        ),
        Verb(
            "edit-table",
            lambda home: [*KGLM, "kg", "edit", str(home / "world.kg"), "--create", "--from", str(home / "edits.csv")],
            lambda home: _facts(home / "world.kg"),
            lambda home: home / "world.kg",
            _prepare_bulk,
        ),
        Verb(
            "annotate-again",
            lambda home: [*_annotate(home), "--force"],
            lambda home: _bytes(home / "docs.jsonl"),
            lambda home: home / "docs.jsonl",
            _prepare_texts_again,
        ),
    )
}


def make_input(world: Path) -> None:
    """Input of all verbs: a graph, texts to annotate and documents to train on."""
    import json

    from kglm.text.document import read_documents, write_documents

    make_world(world)
    documents = list(read_documents(bundled.ARTICLES))[:40]
    write_documents(world / "short.jsonl", documents[:12])
    with (world / "texts.jsonl").open("w") as stream:
        for document in documents:
            text = " ".join(token for token in document.tokens if not token.startswith("@@"))
            stream.write(json.dumps({"title": document.title, "text": text}) + "\n")
