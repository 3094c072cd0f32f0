"""Every reader of kglm as a function of bytes, with valid samples to mutate."""

from __future__ import annotations

import json
import random
import shutil
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w
from benchmarks.faults.models import MODEL_READERS
from benchmarks.faults.mutations import (
    mutate_bytes,
    mutate_fields,
    mutate_json,
    mutate_json_lines,
    mutate_markup,
    mutate_override,
    mutate_toml,
)
from benchmarks.faults.own import OWN_READERS
from benchmarks.faults.reader import Reader, exhaust, file_reader
from benchmarks.faults.samples import (
    DOCUMENT,
    DUMP,
    ENTITIES,
    FACTS,
    HTML,
    JSON_ARTICLES,
    KGTK,
    NESTED,
    NTRIPLES,
    PICKLES,
    PROMPT,
    WIKIDATA,
    WIKITEXT,
    as_lines,
)
from benchmarks.faults.sources import article, fact_strings, importer, mutate_pickle, requests
from benchmarks.faults.world import make_world

from kglm import bundled
from kglm.files.artefact import Artefact
from kglm.kg.embedding.vectors import Vectors
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.name_index import NameIndex
from kglm.runs.checkpoint import StateDirectory
from kglm.runs.records import FILES
from kglm.runs.run import Run
from kglm.runs.settings import SHIPPED, load_config

UNRENEWED = 0.1
"""Share of the inputs whose manifest still describes the file before the mutation."""


# --- documents, prompts, settings ---------------------------------------------------------------------------------


def documents(home: Path) -> Reader:
    from kglm.text.document import read_documents, to_line
    from kglm.text.repair import repair

    def read(path: Path) -> None:
        for document in read_documents(path):
            to_line(document)
            repair(document)

    return Reader([as_lines(DOCUMENT, NESTED)], mutate_json_lines, file_reader(home, "documents.jsonl", read))


def doctor_documents(home: Path) -> Reader:
    from kglm.doctor.documents import examine_documents

    read = file_reader(home, "examined.jsonl", lambda path: exhaust(examine_documents(path)))
    return Reader([as_lines(DOCUMENT, NESTED)], mutate_json_lines, read)


def prompts(home: Path) -> Reader:
    from kglm.evaluate.prompts import expected_answer, read_prompts

    graph = KnowledgeGraph.open(make_world(home)[0])
    clean = PROMPT | {
        "entity_id_clean": "Q142",
        "expected_tail": "Paris",
        "prefix": ["The", "capital", "of", "X", "is"],
    }

    def read(path: Path) -> None:
        for prompt in read_prompts(path):
            expected_answer(graph, prompt)

    return Reader(
        [as_lines(PROMPT, clean | {"entity_indices": [3, 4]})],
        mutate_json_lines,
        file_reader(home, "p.jsonl", read),
        graph.close,
    )


def settings(home: Path) -> Reader:
    texts = [path.read_bytes() for path in sorted(SHIPPED.glob("*.toml"))] + [
        (bundled.RUN / "config.toml").read_bytes()
    ]
    return Reader(texts, mutate_toml, file_reader(home, "settings.toml", lambda path: load_config(path, "kglm")))


def overrides(home: Path) -> Reader:  # noqa: ARG001
    keys = tomllib.loads((bundled.RUN / "config.toml").read_text())
    samples = [
        f"{section}.{key}={json.dumps(value)}".encode()
        for section, values in keys.items() if isinstance(values, dict) for key, value in values.items()
    ]  # fmt: skip
    return Reader(
        samples, mutate_override, lambda data: load_config("tiny", "kglm", [data.decode("utf-8", "surrogateescape")])
    )


def wordings(home: Path) -> Reader:
    from kglm.writing.wordings import WORDINGS, read_wordings

    record: dict[str, Any] = tomllib.loads(WORDINGS.read_text())
    record["relation"] = {name: groups[:2] for name, groups in list(record["relation"].items())[:4]}
    for name in ("opening", "together", "filler", "heading"):
        record[name] = record[name][:3]
    return Reader([tomli_w.dumps(record).encode()], mutate_toml, file_reader(home, "wordings.toml", read_wordings))


def quickstart(home: Path) -> Reader:
    from kglm.quickstart import Quickstart

    steps = Quickstart(home / "quickstart")
    steps.begin()
    path = home / "quickstart" / "quickstart.json"
    return Reader([path.read_bytes()], mutate_json, file_reader(path.parent, path.name, lambda _: steps.begin()))


# --- runs and graphs ----------------------------------------------------------------------------------------------


def _copied_world(home: Path, name: str) -> tuple[Path, Path]:
    """A copy of the graph and the run for one reader."""
    _, run = make_world(home)
    copy = home / f"world of {name}"
    if not copy.exists():
        copy.mkdir()
        for path in home.glob("world.kg*"):
            (shutil.copytree if path.is_dir() else shutil.copy)(path, copy / path.name)
        shutil.copytree(run, copy / "run")
    return copy / "world.kg", copy / "run"


def _renew(directory: Path, names: Sequence[str] | None, data: bytes) -> None:
    """Make the manifest fit the files, but for a share of the inputs."""
    if random.Random(data).random() >= UNRENEWED:
        Artefact.open(directory, names=names, check=False).accept()


def run_file(name: str, home: Path) -> Reader:
    _, run = _copied_world(home, name)
    path = run / name

    def read(data: bytes) -> None:
        path.write_bytes(data)
        _renew(run, FILES, data)
        Run.open(run)

    return Reader([path.read_bytes()], mutate_toml if name.endswith("toml") else mutate_json, read)


def manifest(home: Path) -> Reader:
    _, run = _copied_world(home, "manifest")
    path = run / "manifest.json"
    return Reader([path.read_bytes()], mutate_json, file_reader(run, path.name, lambda _: Run.open(run)))


def metrics(home: Path) -> Reader:
    from kglm.doctor.runs import examine_run

    _, run = _copied_world(home, "metrics")

    def read(data: bytes) -> None:
        (run / "metrics.jsonl").write_bytes(data)
        _renew(run, FILES, data)
        exhaust(iter(examine_run(run)))

    return Reader([(run / "metrics.jsonl").read_bytes()], mutate_json_lines, read)


def checkpoint(home: Path) -> Reader:
    """`state.json`, read by itself and by a trainer that resumes and trains for a step."""
    from kglm.text.document import read_documents
    from kglm.train.chunks import ChunkBuilder
    from kglm.train.encoding import DocumentEncoder
    from kglm.train.loop import Trainer

    _, home_of_run = _copied_world(home, "state")
    run = Run.open(home_of_run)
    encoder = DocumentEncoder.of(run)
    texts = [encoder.encode(document) for document in list(read_documents(home / "train.jsonl"))[:20]]
    trainer = Trainer(run.model, ChunkBuilder.of(run), texts, texts, run.settings.train, home_of_run)
    directory = StateDirectory(home_of_run / "state").latest
    assert directory is not None

    def read(data: bytes) -> None:
        (directory / "state.json").write_bytes(data)
        _renew(directory, None, data)
        StateDirectory(home_of_run / "state").load()
        trainer.resume()

    return Reader([(directory / "state.json").read_bytes()], mutate_json, read)


def cache_file(suffix: str, name: str, home: Path) -> Reader:
    """A JSON file of a directory beside the graph; caches are removed when they are damaged, and made again."""
    kg, _ = _copied_world(home, suffix + name)
    kept = Path(f"{kg}.kept{suffix}")
    folder = Path(f"{kg}{suffix}")
    if not kept.exists():
        shutil.copytree(folder, kept)
    version = next(path for path in kept.iterdir() if path.is_dir()).name

    def read(data: bytes) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(kept, folder)
        (folder / version / name).write_bytes(data)
        if name != "manifest.json":
            _renew(folder / version, None, data)
        with KnowledgeGraph.open(kg, whole=True) as graph:
            if suffix == ".names":
                NameIndex.for_graph(graph)
            if suffix == ".vectors":
                Vectors.load(kg, whole=True).for_graph(graph)

    return Reader([(kept / version / name).read_bytes()], mutate_json, read)


def checksums(home: Path) -> Reader:
    kg, _ = _copied_world(home, "checksums")

    def read(_: Path) -> None:
        with KnowledgeGraph.open(kg, whole=True) as graph:
            graph.label(graph.number("Q76"))

    path = Path(f"{kg}.checksums")
    return Reader([path.read_bytes()], mutate_json, file_reader(path.parent, path.name, read))


# --- annotation ---------------------------------------------------------------------------------------------------


def anchors(home: Path) -> Reader:
    from kglm.linking.anchors import Anchors

    graph = KnowledgeGraph.open(make_world(home)[0])
    sample = {"format": 1, "links": {"Obama": {"Q76": 3, "Q13133": 1}, "France": {"Q142": 2}}}

    def read(path: Path) -> None:
        table = Anchors.load(path, graph)
        names = NameIndex.for_graph(graph).including(table.names())
        for words, node in table.names():
            assert node in names[words]
            for name in table._counts:
                table.log_share(name, node)

    return Reader([as_lines(sample)], mutate_json, file_reader(home, "anchors.json", read), graph.close)


def shards(home: Path) -> Reader:
    """The files of `DOCS.parts` that a resumed annotation reads: its manifest, or the counts of a shard."""
    from kglm.annotate import pipeline
    from kglm.annotate.annotator import AnnotateConfig

    kg, _ = make_world(home)
    source, to = home / "article.txt", home / "annotated.jsonl"
    source.write_text("Barack Obama\n\nBarack Obama was born on August 4, 1961.\n")
    recipe = pipeline.Recipe(str(kg), AnnotateConfig())
    parts, kept = to.with_name(to.name + ".parts"), home / "kept parts"
    remove, pipeline.remove_directory = pipeline.remove_directory, lambda _: None  # type: ignore[assignment]
    try:
        pipeline.annotate([source], to, recipe)
        if not kept.exists():
            shutil.copytree(parts, kept)
    finally:
        pipeline.remove_directory = remove

    def read(data: bytes) -> None:
        shutil.rmtree(parts, ignore_errors=True)
        shutil.copytree(kept, parts)
        (parts / ("run.json" if b"digest" in data else "00000.json")).write_bytes(data)
        pipeline.annotate([source], to, recipe)

    return Reader([(kept / name).read_bytes() for name in ("run.json", "00000.json")], mutate_json, read)


READERS: dict[str, Callable[[Path], Reader]] = {
    "documents": documents,
    "doctor: documents": doctor_documents,
    "prompts": prompts,
    "settings": settings,
    "overrides": overrides,
    "wordings": wordings,
    "quickstart.json": quickstart,
    **{
        f"run: {name}": partial(run_file, name)
        for name in ("run.json", "kg.json", "vocabulary.json", "introductions.json", "config.toml")
    },
    "run: manifest.json": manifest,
    "run: metrics.jsonl": metrics,
    "checkpoint: state.json": checkpoint,
    **{f"graph{suffix}/{name}": partial(cache_file, suffix, name)
       for suffix in (".arrays", ".names", ".vectors") for name in ("meta.json", "manifest.json")},
    "graph.checksums": checksums,
    "anchors": anchors,
    "annotate: parts": shards,
    "articles: text": partial(article, ".txt", [b"Obama\n\nBarack Obama was born in 1961."], mutate_bytes),
    "articles: JSON lines": partial(article, ".jsonl", [JSON_ARTICLES], mutate_json_lines),
    "articles: HTML": partial(article, ".html", [HTML], mutate_markup),
    "articles: wikitext": partial(article, ".wiki", [WIKITEXT], mutate_markup),
    "articles: dump": partial(article, ".xml", [DUMP], mutate_markup),
    "import: facts": partial(importer, "facts", [FACTS], mutate_fields("\t")),
    "import: jsonl": partial(importer, "jsonl", [ENTITIES], mutate_json_lines),
    "import: relations": partial(importer, "relations", [b"P19\tplace of birth\nP569\tborn\n"], mutate_fields("\t")),
    "import: redirects": partial(importer, "redirects", [b"NYC\tNew York City\nObama\tNYC\n"], mutate_fields("\t")),
    "import: wikidata": partial(importer, "wikidata", [WIKIDATA], mutate_json_lines),
    "import: ntriples": partial(importer, "ntriples", [NTRIPLES], mutate_fields(" ")),
    "import: kgtk": partial(importer, "kgtk", [KGTK], mutate_fields("\t")),
    "import: authors": partial(importer, "authors", PICKLES, mutate_pickle),
    **OWN_READERS,
    **MODEL_READERS,
    "facts and literals": fact_strings,
    "HTTP bodies": requests,
}  # fmt: skip
